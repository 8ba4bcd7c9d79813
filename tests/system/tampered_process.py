"""Gives a process, and all that it starts, a wrong wall clock and a slow disk while it runs.

`environment` returns what makes a process take them. A file for each role says how wrong and how
slow. Masters are called like their folders, the others ``worker`` and ``child``: an app master or
executor.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = "TAMPERED_FOLDER"
_ROOT: Final = Path(__file__).parents[2]
_LOOK_S: Final = 0.02
_SITE: Final = """\
import sys

sys.path.insert(0, {root!r})
from tests.system.tampered_process import install

install()
"""


def environment(folder: Path) -> dict[str, str]:
    site = folder / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(_SITE.format(root=str(_ROOT)), encoding="utf-8")
    return {_FOLDER: str(folder), "PYTHONPATH": str(site)}


def tamper(folder: Path, role: str, *, wrong_s: int = 0, sync_s: float = 0.0) -> None:
    """Let the clocks of a role be wrong by so much, and what it syncs take so long."""
    temporary = folder / f".{role}"
    temporary.write_text(json.dumps([wrong_s, sync_s]), encoding="ascii")
    temporary.replace(folder / role)


def install(environ: Mapping[str, str] = os.environ) -> None:
    tampered = _Tampered(Path(environ[_FOLDER]) / _role(sys.orig_argv))
    true_ns, true_sync = time.time_ns, os.fsync

    def sync(fd: Any) -> None:
        time.sleep(tampered.sync_s)
        true_sync(fd)

    time.time_ns = lambda: true_ns() + tampered.wrong_ns
    time.time = lambda: (true_ns() + tampered.wrong_ns) / 1e9
    os.fsync = sync


class _Tampered:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.wrong_ns, self.sync_s = 0, 0.0
        self._look()
        threading.Thread(target=self._look_often, daemon=True).start()

    def _look(self) -> None:
        with suppress(OSError, ValueError):
            wrong_s, self.sync_s = json.loads(self._path.read_text(encoding="ascii"))
            self.wrong_ns = wrong_s * 1_000_000_000

    def _look_often(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            self._look()


def _role(argv: list[str]) -> str:
    if "master" in argv:
        return Path(argv[argv.index("--folder") + 1]).name
    return "worker" if "worker" in argv else "child"
