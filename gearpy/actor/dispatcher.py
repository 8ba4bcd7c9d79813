"""Dispatchers give actors their turns: a thread for many, or a thread for one."""

import logging
import threading
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Final, Literal, Protocol, TypeAlias

_log = logging.getLogger("gearpy.actor")

#: Messages in one turn of an actor with a thread of its own; nobody else waits for it.
_OWN_TURN_MESSAGES: Final = 1_000


class Runnable(Protocol):
    """An actor for its dispatcher: gets a turn for each time it was scheduled."""

    def take_turn(self, messages_max: int, until_s: float) -> bool:
        """Handle up to ``messages_max`` messages, none once `time.monotonic` is ``until_s``."""
        ...


class Dispatcher(Protocol):
    """A thread on which actors take turns. Gearpump: ``task-dispatcher``."""

    def start(self) -> None: ...

    def schedule(self, runnable: Runnable) -> None: ...


#: ``"pinned"``: a thread of its own. Or one that is shared.
DispatcherChoice: TypeAlias = Literal["pinned"] | Dispatcher


class SharedDispatcher:
    """Gives turns first in, first out; an actor with more to do goes to the back.

    A turn ends after ``turn_messages`` messages, or with the message during which ``turn_ms``
    passed, so neighbours wait for no more than that and one message. Gearpump: ``task-dispatcher``.

    Runs on: `schedule` on any thread; turns on its own daemon thread. Its maker calls `close`
    after its actors have stopped.
    """

    def __init__(
        self, *, turn_ms: float = 2, turn_messages: int = 100, name: str = "shared"
    ) -> None:
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
        threading.Thread(target=self._run, name=f"gearpy-{self._name}", daemon=True).start()

    def close(self) -> None:
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

    def __init__(self, name: str) -> None:
        self._name = name
        self._turns: SimpleQueue[Runnable] = SimpleQueue()
        self.schedule = self._turns.put

    def start(self) -> None:
        threading.Thread(target=self._run, name=f"gearpy-{self._name}", daemon=True).start()

    def _run(self) -> None:
        while self._turns.get().take_turn(_OWN_TURN_MESSAGES, inf):
            pass
