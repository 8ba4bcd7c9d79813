"""Tells readers, on one thread of the process, when there may be something to read again.

Descriptors are waited for by `epoll`. Of what has no event, such as a file that grows, a look on
this thread costs a tenth of what a turn of the task does that reads it.
"""

import logging
import os
import select
import threading
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeAlias

_log = logging.getLogger(__name__)

#: Between two looks; longer where they take more than a share of it.
_LOOK_S: Final = 0.08
_SHARE: Final = 100

Wake: TypeAlias = Callable[[], object]


class Waker:
    """Calls back, once for each time that it was asked.

    Runs on: any thread; the calls on its own, a daemon that starts when it is first needed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: dict[object, tuple[Callable[[], bool], Wake]] = {}
        self._files: dict[int, Wake] = {}
        self._epoll = select.epoll()
        self._news = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._news, select.EPOLLIN)
        threading.Thread(target=self._run, name="gearpy-waker", daemon=True).start()

    def when_readable(self, file: int, wake: Wake) -> bool:
        events = select.EPOLLIN | select.EPOLLONESHOT
        self._files[file] = wake
        try:
            try:
                self._epoll.modify(file, events)
            except FileNotFoundError:  # For the first time, or it was another file's number.
                self._epoll.register(file, events)
        except OSError:
            del self._files[file]
            return False
        return True

    def when(self, owner: object, look: Callable[[], bool], wake: Wake) -> None:
        with self._lock:
            self._looks[owner] = (look, wake)
            if len(self._looks) == 1:
                os.eventfd_write(self._news, 1)

    def forget(self, owner: object) -> None:
        with self._lock:
            self._looks.pop(owner, None)

    def _run(self) -> None:
        pause_s = _LOOK_S
        while True:
            for file, _ in self._epoll.poll(pause_s if self._looks else None):
                if file == self._news:
                    os.eventfd_read(file)
                elif (wake := self._files.get(file)) is not None:
                    self._call(wake)
            began_s = monotonic()
            for owner, (look, wake) in list(self._looks.items()):
                if self._has_changed(look):
                    with self._lock:
                        if self._looks.get(owner) == (look, wake):
                            del self._looks[owner]
                    self._call(wake)
            pause_s = max(_LOOK_S, _SHARE * (monotonic() - began_s))

    def _has_changed(self, look: Callable[[], bool]) -> bool:
        try:
            return look()
        except Exception:  # noqa: BLE001 - its reader finds out by itself
            return True

    def _call(self, wake: Wake) -> None:
        try:
            wake()
        except Exception:  # noqa: BLE001 - the thread serves others, too
            _log.exception("a reader could not be told that there is more")


_wakers: Final[dict[int, Waker]] = {}  # By process: a fork has no threads.
_making: Final = threading.Lock()


def call_when_readable(file: int, wake: Wake) -> bool:
    """Call once there is something to read, or the end; False if nobody can tell."""
    return _has_means() and _waker().when_readable(file, wake)


def call_when(owner: object, look: Callable[[], bool], wake: Wake) -> bool:
    """Call once ``look`` is true, which is called on another thread; False if nobody looks.

    It takes the place of what the same owner has asked for before; `forget` ends it.
    """
    if _has_means():
        _waker().when(owner, look, wake)
    return _has_means()


def forget(owner: object) -> None:
    if (there := _wakers.get(os.getpid())) is not None:
        there.forget(owner)


def _has_means() -> bool:
    return hasattr(select, "epoll") and hasattr(os, "eventfd")


def _waker() -> Waker:
    with _making:
        if (pid := os.getpid()) not in _wakers:
            _wakers.clear()
            _wakers[pid] = Waker()
        return _wakers[pid]
