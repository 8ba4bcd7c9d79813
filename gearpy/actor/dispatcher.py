"""A pool of threads on which many actors take turns."""

import logging
import sys
import threading
from os import cpu_count
from queue import SimpleQueue
from time import monotonic

from gearpy.actor.api import Runnable
from gearpy.errors import ConfigError

__all__ = ["SharedDispatcher", "default_threads"]

_log = logging.getLogger("gearpy.actor")


def default_threads() -> int:
    """Return how many threads can run Python code at the same time: 1 where there is a GIL."""
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return 1 if has_gil else cpu_count() or 1


class SharedDispatcher:
    """Gives turns first in, first out; an actor with more to do goes to the back.

    A turn ends after ``turn_messages`` messages, or with the message during which ``turn_ms``
    passed, so neighbours wait for no more than that and one message. Gearpump: ``task-dispatcher``.

    Runs on: `schedule` on any thread; turns on its own daemon threads. Whoever makes one calls
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
        """See `Dispatcher`."""
        with self._lock:
            if self._is_started:
                return
            self._is_started = True
        for number in range(self.threads):
            name = f"gearpy-{self._name}-{number}"
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        """End the threads, each after the turn it runs."""
        for _ in range(self.threads):
            self._runnables.put(None)

    def _run(self) -> None:
        take = self._runnables.get
        while (runnable := take()) is not None:
            try:
                runnable.take_turn(self._turn_messages, monotonic() + self._turn_s)
            except BaseException:  # noqa: BLE001 - the thread serves other actors too
                _log.critical("bug in the actor layer: a turn raised", exc_info=True)
