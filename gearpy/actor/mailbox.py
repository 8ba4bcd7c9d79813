"""The inbox of an actor, in the form that pykka asks for, and the answer to a question."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Full
from typing import Any, Final

import pykka
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from gearpy.errors import MailboxFull
from gearpy.ids import ActorPath

_log = logging.getLogger("gearpy.actor")

#: User messages that wait in a mailbox before `Ref.tell` raises `MailboxFull`.
MAILBOX_MAX: Final = 100_000


class Reply(pykka.ThreadingFuture[Any]):
    """The answer to one question. The first outcome counts, later ones are dropped.

    Runs on: any thread.
    """

    def set(self, value: Any = None) -> None:
        with suppress(Full):
            super().set(value)

    def set_exception(self, exc_info: Any = None) -> None:
        with suppress(Full):
            super().set_exception(exc_info)

    @property
    def is_done(self) -> bool:
        return self._result is not None

    def wait(self, timeout_s: float) -> bool:
        with self._condition:
            return self._condition.wait_for(
                lambda: self.is_done, min(timeout_s, threading.TIMEOUT_MAX)
            )


def is_stop(envelope: Envelope[Any]) -> bool:
    return type(envelope.message) is _ActorStop


class Mailbox:
    """Two queues, system before user, and the one turn that its owner may have outstanding.

    A system message is a call that the owner makes in its turn. User messages are bounded, and
    in the envelopes of pykka: a question carries the future of its answer. This is the inbox
    that pykka's `ActorRef.tell`, `ask` and `stop` put into, too.

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
        "_path",
        "_wake",
        "system",
        "user",
    )

    def __init__(self, path: ActorPath, user_max: int, wake: Callable[[], object]) -> None:
        self.system: deque[Callable[[], object]] = deque()
        self.user: deque[Envelope[Any]] = deque()
        self._path = path
        self._max = user_max
        self._wake = wake
        self._lock = threading.Lock()
        self._on_turn = False
        self._closed = False  # No new user messages.
        self._drained = False  # Those that waited have been taken out too.
        self._ended = False  # No system messages either.

    @property
    def is_open(self) -> bool:
        return not self._closed

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue a user message, or a stop; see `discard` for a mailbox that is closed."""
        if type(envelope.message) is _ActorStop:
            self.put_unbounded(envelope)
            return
        with self._lock:
            is_taken = not self._closed and len(self.user) < self._max
            if is_taken:
                self.user.append(envelope)
                if self._on_turn:
                    return
                self._on_turn = True
        if is_taken:
            self._wake()
        elif self._closed:
            self.discard([envelope])
        else:
            raise MailboxFull(f"mailbox of actor {self._path} is full: {self._max} messages wait")

    def put_unbounded(self, envelope: Envelope[Any], /) -> None:
        """Queue a user message even when full; a stop is the last one."""
        with self._lock:
            is_taken = not self._closed
            if is_taken:
                self.user.append(envelope)
                self._closed = is_stop(envelope)
            wake = is_taken and self._claim_turn()
        if wake:
            self._wake()
        elif not is_taken:
            self.discard([envelope])

    def put_last(self) -> None:
        self.put_unbounded(Envelope(_ActorStop()))

    def put_system(self, call: Callable[[], object]) -> bool:
        """Queue a call for the owner to make; False when the actor is gone."""
        with self._lock:
            if self._ended:
                return False
            self.system.append(call)
            wake = self._claim_turn()
        if wake:
            self._wake()
        return True

    def take_batch(self, size: int) -> tuple[list[Any], Envelope[Any] | None]:
        """Take messages that were told, and the first envelope that is more than that."""
        batch: list[Any] = []
        take = self.user.popleft
        try:
            while len(batch) < size:
                envelope = take()
                if envelope.reply_to is not None or type(envelope.message) is _ActorStop:
                    return batch, envelope
                batch.append(envelope.message)
        except IndexError:
            pass  # Empty, or closed meanwhile.
        return batch, None

    def put_back(self, envelope: Envelope[Any]) -> None:
        """Undo a take, or discard the message if all waiting ones were discarded meanwhile."""
        with self._lock:
            is_kept = not self._drained
            if is_kept:
                self.user.appendleft(envelope)
        if not is_kept:
            self.discard([envelope])

    def rest(self, *, takes_user: bool) -> bool:
        with self._lock:
            self._on_turn = bool(self._ended or self.system or (takes_user and self.user))
            return self._on_turn

    def close(self) -> None:
        with self._lock:
            rest = self._drain()
        self.discard(rest)

    def end(self) -> None:
        """Take nothing more at all; wake the owner, for it to notice."""
        with self._lock:
            self._ended = True
            rest = self._drain()
            wake = self._claim_turn()
        if wake:
            self._wake()
        self.discard(rest)

    def discard(self, envelopes: Iterable[Envelope[Any]]) -> None:
        """Tell askers that the actor has stopped; the rest are dead letters."""
        for envelope in envelopes:
            reply = envelope.reply_to
            if is_stop(envelope):
                if reply is not None:
                    reply.set(None)
            elif reply is not None:
                text = f"actor {self._path} stopped before it answered"
                reply.set_exception((pykka.ActorDeadError, pykka.ActorDeadError(text), None))
            else:
                what = type(envelope.message).__name__
                _log.debug("dead letter: %s to actor %s", what, self._path)

    def _claim_turn(self) -> bool:
        claimed = not self._on_turn
        self._on_turn = True
        return claimed

    def _drain(self) -> list[Envelope[Any]]:
        self._closed = self._drained = True
        rest = []
        # One by one, as the owner may be taking at the same time; no message goes to both.
        while self.user:
            try:
                rest.append(self.user.popleft())
            except IndexError:
                break
        return rest
