"""Where messages wait for an actor, what waits there, and the answer an asker waits for."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gearpy.actor.api import Exited

if TYPE_CHECKING:
    from gearpy.actor.cell import ActorCell
    from gearpy.actor.context import CellTimer, Watch

__all__ = [
    "POISON_PILL",
    "ChildExited",
    "Mailbox",
    "PauseOver",
    "PoisonPill",
    "Question",
    "Refusal",
    "Reply",
    "Signal",
    "Stop",
    "TimerFired",
    "WatchExited",
]


# -- system messages -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop now."""


@dataclass(frozen=True, slots=True)
class ChildExited:
    """A child is gone."""

    child: "ActorCell[Any]"
    exited: Exited


@dataclass(frozen=True, slots=True)
class WatchExited:
    """A watched actor is gone."""

    watch: "Watch"
    exited: Exited


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer of `ActorContext.schedule` or `schedule_once` is due."""

    timer: "CellTimer"


@dataclass(frozen=True, slots=True)
class PauseOver:
    """The actor has waited long enough, for a restart or for its children to stop."""

    number: int


Signal: TypeAlias = Stop | ChildExited | WatchExited | TimerFired | PauseOver


# -- user messages that are more than a message --------------------------------------------


class Reply:
    """The answer to one question. The first outcome counts, later ones are dropped.

    Runs on: any thread.
    """

    __slots__ = ("_error", "_finished", "_latch", "_lock", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._finished = False
        self._latch = threading.Lock()  # Held until there is an outcome.
        self._latch.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def set(self, value: Any) -> None:
        """Answer with a value."""
        self._finish(value, None)

    def fail(self, error: BaseException) -> None:
        """Answer with an exception."""
        self._finish(None, error)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if not self._finished:
                self._finished = True
                self._value, self._error = value, error
                self._latch.release()

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self._finished

    def wait(self, timeout_s: float) -> bool:
        """Block until there is an outcome; False when it took too long."""
        if not self._latch.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX)):
            return False
        self._latch.release()
        return True

    def result(self) -> Any:
        """Return or raise the outcome; call after `wait`."""
        if self._error is not None:
            raise self._error
        return self._value


@dataclass(frozen=True, slots=True)
class Question:
    """A message whose sender waits for the reply."""

    message: Any
    reply: Reply


@dataclass(frozen=True, slots=True)
class PoisonPill:
    """Stop when everything before this has been handled."""


POISON_PILL: Final = PoisonPill()


class Refusal(Enum):
    """Why a mailbox did not take a user message."""

    FULL = "full"
    CLOSED = "closed"


class Mailbox:
    """Two queues, system before user, and the one turn that its owner may have outstanding.

    Any thread puts; only the owner, in its turn, takes from ``system`` and ``user``, and it
    does so without the lock: a deque's `popleft` is atomic, with and without a GIL. As any
    thread may close the mailbox at that moment, a take must be ready for `IndexError`.

    Invariant: at most one turn of the owner is queued or running, and while none is, nothing
    waits that the owner would take.
    """

    __slots__ = (
        "_closed",
        "_drained",
        "_ended",
        "_lock",
        "_max",
        "_on_turn",
        "_wake",
        "system",
        "user",
    )

    def __init__(self, user_max: int, wake: Callable[[], None]) -> None:
        self.system: deque[Signal] = deque()
        self.user: deque[Any] = deque()
        self._lock = threading.Lock()
        self._max = user_max
        self._wake = wake
        self._on_turn = True  # The first turn comes with the start of the actor.
        self._closed = False  # No new user messages.
        self._drained = False  # Those that waited have been taken out too.
        self._ended = False  # No system messages either.

    @property
    def is_open(self) -> bool:
        """Whether user messages are taken."""
        return not self._closed

    def put(self, item: Any, /) -> Refusal | None:
        """Queue a user message; None when it was taken."""
        with self._lock:
            if self._closed:
                return Refusal.CLOSED
            if len(self.user) >= self._max:
                return Refusal.FULL
            self.user.append(item)
            if self._on_turn:
                return None
            self._on_turn = True
        self._wake()
        return None

    def put_unbounded(self, item: Any, /, *, close: bool = False) -> bool:
        """Queue a user message even when full; ``close`` makes it the last one."""
        with self._lock:
            if self._closed:
                return False
            self.user.append(item)
            self._closed = close
            wake = self._claim_turn()
        if wake:
            self._wake()
        return True

    def put_system(self, signal: Signal) -> bool:
        """Queue a system message; False when the actor is gone."""
        with self._lock:
            if self._ended:
                return False
            self.system.append(signal)
            wake = self._claim_turn()
        if wake:
            self._wake()
        return True

    def take_batch(self, size: int) -> tuple[list[Any], Question | PoisonPill | None]:
        """Take plain user messages, and the first that is more than that."""
        batch: list[Any] = []
        take = self.user.popleft
        try:
            while len(batch) < size:
                item = take()
                if type(item) is Question or type(item) is PoisonPill:
                    return batch, item
                batch.append(item)
        except IndexError:
            pass  # Empty, or closed meanwhile.
        return batch, None

    def put_back(self, item: Any) -> bool:
        """Undo a take; False when the waiting messages have been taken out meanwhile."""
        with self._lock:
            if not self._drained:
                self.user.appendleft(item)
            return not self._drained

    def rest(self, *, takes_user: bool) -> bool:
        """End the owner's turn; True when it must have another one, if only to see the end."""
        with self._lock:
            self._on_turn = bool(self._ended or self.system or (takes_user and self.user))
            return self._on_turn

    def close(self) -> list[Any]:
        """Take no more user messages and return those that waited."""
        with self._lock:
            return self._drain()

    def end(self) -> list[Any]:
        """Take nothing more at all; wake the owner, for it to notice."""
        with self._lock:
            self._ended = True
            rest = self._drain()
            wake = self._claim_turn()
        if wake:
            self._wake()
        return rest

    def _claim_turn(self) -> bool:
        claimed = not self._on_turn
        self._on_turn = True
        return claimed

    def _drain(self) -> list[Any]:
        self._closed = self._drained = True
        rest = []
        # One by one, as the owner may be taking at the same time; no message goes to both.
        while self.user:
            try:
                rest.append(self.user.popleft())
            except IndexError:
                break
        return rest
