"""Finds and ends processes started by user code that would outlive their own process.

A child of a worker leads a process group, with which most of what it starts is killed. What has
left the group, in a session of its own, is found in ``/proc``: by a mark in its environment, which
is passed on from process to process, or by an output that is still a pipe to the worker. Of what
has neither any more nothing is known, nor on systems without ``/proc``.
"""

import os
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

#: The environment variable with the mark; not a key of the configuration.
MARK: Final = "_GEARPY_LAUNCH"
_PREFIX: Final = f"{MARK}=".encode()
_PROC: Final = Path("/proc")
_ROUNDS_MAX: Final = 20  # A process may be starting another one while it is killed.
_OUTPUTS: Final = (1, 2)
_serials = count(1)


class ProcessMark(Struct, frozen=True):
    """A launch by a worker: the worker's process, and which of its launches.

    ``started`` tells a process from an earlier one with the same number.
    """

    pid: int
    started: str
    serial: int

    @classmethod
    def new(cls) -> "ProcessMark":
        return cls(os.getpid(), _started(os.getpid()), next(_serials))

    @classmethod
    def of(cls, pid: int) -> "ProcessMark | None":
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            return None
        found = (each for each in environment.split(b"\0") if each.startswith(_PREFIX))
        text = next(found, b"").removeprefix(_PREFIX).decode("ascii", "replace")
        worker, _, rest = text.partition(".")
        started, _, serial = rest.partition(".")
        if not (worker.isdecimal() and serial.isdecimal()):
            return None
        return cls(int(worker), started, int(serial))

    def __str__(self) -> str:
        return f"{self.pid}.{self.started}.{self.serial:010d}"

    @property
    def is_of_the_dead(self) -> bool:
        return _started(self.pid) != self.started


def end_marked(mark: ProcessMark, outputs: Collection[IO[bytes]] = ()) -> int:
    pipes = {f"pipe:[{os.fstat(each.fileno()).st_ino}]" for each in outputs}
    return _end(lambda pid: ProcessMark.of(pid) == mark or not pipes.isdisjoint(_outputs_of(pid)))


def end_of_dead_workers() -> int:
    """Kill processes left by workers of this machine that are gone; return how many.

    A worker that was killed has left behind processes outside the groups of its children.
    """
    own = _namespace(os.getpid())

    def is_left(pid: int) -> bool:
        mark = ProcessMark.of(pid)
        # In another namespace, such as a container's, the worker has another number than here.
        return mark is not None and mark.is_of_the_dead and _namespace(pid) == own

    return _end(is_left)


def _end(is_left: Callable[[int], bool]) -> int:
    ended: set[int] = set()
    for _ in range(_ROUNDS_MAX):
        killed = {pid for pid in _processes() if _kill(pid, is_left)}
        if killed <= ended:
            break
        ended |= killed
    return len(ended)


def _processes() -> Iterator[int]:
    with suppress(OSError):
        for path in _PROC.iterdir():
            if path.name.isdecimal() and int(path.name) != os.getpid():
                yield int(path.name)


def _kill(pid: int, is_left: Callable[[int], bool]) -> bool:
    """Kill a process if it is one; its number is held meanwhile, so that it is no other's."""
    if not is_left(pid):
        return False
    # It may have ended, be somebody else's, or there are no pidfds.
    with suppress(AttributeError, OSError), ExitStack() as held:
        handle = os.pidfd_open(pid)
        held.callback(os.close, handle)
        if is_left(pid):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    return False


def _outputs_of(pid: int) -> set[str]:
    found: set[str] = set()
    for number in _OUTPUTS:
        with suppress(OSError):
            found.add(str((_PROC / str(pid) / "fd" / str(number)).readlink()))
    return found


def _namespace(pid: int) -> str:
    try:
        return str((_PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process was started, in ticks since the machine was; empty if it is gone."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]  # The name before may contain anything.
