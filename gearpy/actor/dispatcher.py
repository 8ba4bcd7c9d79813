"""Dispatchers give actors their turns: a pool of threads for many, or a thread for one."""

import logging
import sys
import threading
from math import inf
from os import cpu_count
from queue import SimpleQueue
from time import monotonic
from typing import Final, Literal, Protocol, TypeAlias

from gearpy.errors import ConfigError

_log = logging.getLogger("gearpy.actor")

#: Messages in one turn of an actor with a thread of its own; nobody else waits for it.
_OWN_TURN_MESSAGES: Final = 1_000


class Runnable(Protocol):
    """An actor for its dispatcher: gets a turn for each time it was scheduled."""

    def take_turn(self, messages_max: int, until_s: float) -> bool:
        """Handle up to ``messages_max`` messages, none once `time.monotonic` is ``until_s``."""
        ...


class Dispatcher(Protocol):
    """Threads on which actors take turns. Gearpump: ``task-dispatcher``."""

    @property
    def threads(self) -> int: ...

    def start(self) -> None: ...

    def schedule(self, runnable: Runnable) -> None: ...


#: ``"pinned"``: a thread of its own. ``"shared"``: the system's pool. Or a pool of yours.
DispatcherChoice: TypeAlias = Literal["pinned", "shared"] | Dispatcher


def default_threads() -> int:
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return 1 if has_gil else cpu_count() or 1


class SharedDispatcher:
    """Gives turns first in, first out; an actor with more to do goes to the back.

    A turn ends after ``turn_messages`` messages, or with the message during which ``turn_ms``
    passed, so neighbours wait for no more than that and one message. Gearpump: ``task-dispatcher``.

    Runs on: `schedule` on any thread; turns on its own daemon threads. Its maker calls
    `close` after its actors have stopped.
    """

    def __init__(
        self,
        threads: int = 1,
        *,
        turn_ms: float = 2,
        turn_messages: int = 100,
        name: str = "shared",
    ) -> None:
        if threads < 1 or turn_ms <= 0 or turn_messages < 1:
            raise ConfigError(
                f"dispatcher {name!r}: threads is {threads}, turn_ms is {turn_ms}, turn_messages "
                f"is {turn_messages}; all must be above 0"
            )
        self.threads = threads
        self._name = name
        self._turn_s = turn_ms / 1000
        self._turn_messages = turn_messages
        self._runnables: SimpleQueue[Runnable | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_started = False
        self.schedule = self._runnables.put  # The hot path: no call of ours between.

    def start(self) -> None:
        with self._lock:
            if self._is_started:
                return
            self._is_started = True
        for number in range(self.threads):
            name = f"gearpy-{self._name}-{number}"
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        for _ in range(self.threads):
            self._runnables.put(None)

    def _run(self) -> None:
        take = self._runnables.get
        while (runnable := take()) is not None:
            try:
                runnable.take_turn(self._turn_messages, monotonic() + self._turn_s)
            except BaseException:  # noqa: BLE001 - the thread serves other actors too
                _log.critical("bug in the actor layer: a turn raised", exc_info=True)


class OwnThread:
    """The dispatcher of one pinned actor: a daemon thread that ends with it."""

    threads = 1

    def __init__(self, name: str) -> None:
        self._name = name
        self._turns: SimpleQueue[Runnable] = SimpleQueue()
        self.schedule = self._turns.put

    def start(self) -> None:
        threading.Thread(target=self._run, name=f"gearpy-{self._name}", daemon=True).start()

    def _run(self) -> None:
        while self._turns.get().take_turn(_OWN_TURN_MESSAGES, inf):
            pass
