"""TaskTie: ends the process of a worker when its task of Spark is over.

Spark ends a process of Python only some seconds after it has cancelled its task, and only if the
task has not ended for Spark by then. But it closes the connection at once. A process whose parent
was killed may hear of it late, too.
"""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

_FDS: Final = Path("/proc/self/fd")
_SOCKET: Final = "socket:"
_GONE: Final = 1  # The exit code; nobody is there to see it.


class TaskTie:
    """A thread that ends this process when its task of Spark, or its parent, is gone.

    Use as a context manager around what the task does, before that opens connections of its own:
    those that are there when it is made are Spark's.

    Runs on: a thread of its own. Where there is no ``/proc``, Spark alone ends the process.
    """

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = before
        self._processes, self._connections = _parent(), _connections()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._watch, name="gearpy-task-tie", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stop_write, b"\0")
        self._thread.join()
        own = (self._stop_read, self._stop_write)
        for descriptor in (*self._processes, *self._connections, *own):
            os.close(descriptor)

    def _watch(self) -> None:
        poll = select.poll()
        for descriptor in (self._stop_read, *self._processes):  # The end of a process can be read.
            poll.register(descriptor, select.POLLIN)
        for descriptor in self._connections:
            poll.register(descriptor, select.POLLRDHUP)
        if any(descriptor == self._stop_read for descriptor, _ in poll.poll()):
            return
        with suppress(Exception):
            self._before()
        os._exit(_GONE)


def _parent() -> list[int]:
    """Return a descriptor of the process that has started this one; none where there are none."""
    try:
        return [os.pidfd_open(os.getppid())]
    except (AttributeError, OSError):
        return []


def _connections() -> list[int]:
    """Return copies of the descriptors of all connections that this process has."""
    found: list[int] = []
    with suppress(OSError):
        for link in _FDS.iterdir():
            with suppress(OSError):
                if str(link.readlink()).startswith(_SOCKET):
                    found.append(os.dup(int(link.name)))
    return found
