"""``gear run --watch``: runs the program in a child, and again when a file of it is saved."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from gearpy.cluster.embedded.signals import StopSignals
from gearpy.cluster.processes.lifeline import end_group_with
from gearpy.cluster.programs.artifacts import split_target

_POLL_S: Final = 0.3
#: What a child that has not drained by then has not shown, the next one reads again.
_DRAIN_S: Final = 10.0
_NOT_SEARCHED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})

_Stamps: TypeAlias = Mapping[str, tuple[int, int]]


def watch(target: str, words: Sequence[str], *, is_named: bool, say: Callable[[str], None]) -> int:
    """Run the program until Ctrl-C or SIGTERM, again whenever a file is saved; return an exit code.

    Args:
        target: the program; ``gear.toml`` and all modules beside it and below are watched.
        words: the command line behind ``gear run``, without ``--watch``.
        is_named: it has ``--resume``; else what the steps have kept is in a folder until the end.
    """
    path, _ = split_target(target)
    folder = path.resolve().parent if path.is_file() else Path.cwd()
    child: subprocess.Popen[bytes] | None = None

    def tell(number: int) -> None:
        if child is not None and child.poll() is None:
            child.send_signal(number)

    finished = 0
    lifeline, held = os.pipe()
    with (
        open(lifeline, "rb"),  # noqa: PTH123 - descriptors
        open(held, "wb"),  # noqa: PTH123
        TemporaryDirectory(prefix="gearpy-watch-") as kept,
        StopSignals(on_second=tell, replaces=lambda handler: handler is not signal.SIG_IGN) as stop,
    ):
        while True:
            stamps = _stamps(folder)
            state = [] if is_named else ["--resume", f"{kept}/{finished}", "--allow-drop"]
            # A terminal sends Ctrl-C to its whole group, and a second one would end it at once.
            command = [sys.executable, "-m", "gearpy", "run", *state, *words]
            child = subprocess.Popen(command, process_group=0, pass_fds=[lifeline])  # noqa: S603 - the same program
            end_group_with(lifeline, child.pid)  # Also if this process is killed.
            has_ended = False
            while stop.number is None and _stamps(folder) == stamps:
                if not has_ended and child.poll() is not None:
                    has_ended = True
                    finished += child.returncode == 0
                    say(f"watching {folder}: save a file to run it again, Ctrl-C ends it")
                time.sleep(_POLL_S)
            if stop.number is not None:
                tell(stop.number)
                return child.wait()
            say(f"saved: {', '.join(_changed(stamps, _stamps(folder)))}")
            tell(signal.SIGTERM)
            try:
                child.wait(_DRAIN_S)
            except subprocess.TimeoutExpired:
                tell(signal.SIGKILL)
                child.wait()


def _stamps(folder: Path) -> _Stamps:
    """Return size and time of change of each file that makes the program, by its path."""
    return {
        os.path.relpath(found.path, folder): ((stat := found.stat()).st_size, stat.st_mtime_ns)
        for found in _files(str(folder))
        if found.name.endswith(".py") or found.name in ("gear.toml", "pyproject.toml")
    }


def _files(folder: str) -> Iterator["os.DirEntry[str]"]:
    try:
        found = list(os.scandir(folder))
    except OSError:
        return  # It has just been removed, or is another user's.
    if any(each.name == "pyvenv.cfg" for each in found):
        return
    for each in found:
        if each.is_dir(follow_symlinks=False):
            if not each.name.startswith(".") and each.name not in _NOT_SEARCHED:
                yield from _files(each.path)
        elif each.is_file():
            yield each


def _changed(before: _Stamps, now: _Stamps) -> list[str]:
    return sorted({path for path, _ in before.items() ^ now.items()})
