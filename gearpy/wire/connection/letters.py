"""Carries letters from node to node, exactly once and in order; tells which node is lost.

A node keeps an `Outbox` for each node it writes to, and one `Intake` for all that write to it.
Letters are numbered and kept until they were taken, so that a broken connection costs nothing:
the next one begins with what the other end has. Only when that cannot be known any more, or the
other end was silent for too long (`Heartbeat`) or is not there (`Patience`), is it given up:
for ever if it has an incarnation, since whatever it does later comes from a zombie.
"""

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import ActorPath, incarnation_of
from gearpy.messages.peer import Fenced, Greeting, Letter, Ping, Welcome

if TYPE_CHECKING:
    from random import Random

#: Names of the fields, numbers and headers of a letter take less.
_LETTER_OVERHEAD_BYTES: Final = 160


def letter_bytes_max(body: bytes, to: str, reply_to: ActorPath | None) -> int:
    texts = to if reply_to is None else to + reply_to.node + reply_to.name
    escaped = len(texts.encode("utf-8", "backslashreplace"))
    return _LETTER_OVERHEAD_BYTES + len(body) + escaped


class Outbox:
    """The letters of one session to one node, from `post` until they are taken.

    On each connection: `greeting`, then `on_welcome`, then send what `unsent` returns.

    Invariant: the letters that are kept have consecutive numbers, the first one behind what is
    known to be taken; `unsent` returns each number once for a connection, in order.
    """

    def __init__(
        self, session: int, *, letters_max: int, bytes_max: int, letter_bytes_max: int
    ) -> None:
        self.session = session
        self._letters_max, self._bytes_max = letters_max, bytes_max
        self._letter_bytes_max = letter_bytes_max
        self._kept: deque[Letter] = deque()
        self._kept_bytes = 0
        self._posted = 0  # The highest number.
        self._given = 0  # The highest number that `unsent` ever returned.
        self._next = 0  # The first of `_kept` that this connection has not had.
        self._welcomed = False

    @property
    def untaken(self) -> int:
        return len(self._kept)

    def post(
        self,
        *,
        to: str,
        body: bytes,
        reply_to: ActorPath | None = None,
        ask: int = 0,
        answers: int = 0,
    ) -> bool:
        """Number and keep a letter; False if the limits of the outbox do not allow it.

        Raises:
            ConfigError: the letter alone is over the limit of a frame.
        """
        size = letter_bytes_max(body, to, reply_to)
        if size > self._letter_bytes_max:
            raise ConfigError(
                f"a letter of {size} bytes to actor {to!r} is over the limit of "
                f"{self._letter_bytes_max}: send less at a time"
            )
        if self.untaken >= self._letters_max or self._kept_bytes + size > self._bytes_max:
            return False
        self._posted += 1
        letter = Letter(
            number=self._posted, to=to, body=body, reply_to=reply_to, ask=ask, answers=answers
        )
        self._kept.append(letter)
        self._kept_bytes += size
        return True

    def greeting(self, *, sender: str, receiver: str) -> Greeting:
        return Greeting(
            sender=sender, receiver=receiver, session=self.session, resumes=self._welcomed
        )

    def on_welcome(self, taken: int) -> bool:
        """Go on behind the letters that the other end has; False if the number cannot be right."""
        if not self._posted - len(self._kept) <= taken <= self._given:
            return False
        self._welcomed = True
        self._drop(taken)
        self._next = 0
        return True

    def on_taken(self, number: int) -> None:
        if number > self._given:
            raise ProtocolError(f"letter {number} was taken but not sent, only {self._given} were")
        self._drop(number)

    def unsent(self, bytes_max: int) -> list[Letter]:
        """Return letters to send now, about ``bytes_max`` of them; empty if there are none."""
        letters: list[Letter] = []
        size = 0
        while self._next < len(self._kept) and size < bytes_max:
            letter = self._kept[self._next]
            letters.append(letter)
            size += _size_of(letter)
            self._next += 1
            self._given = max(self._given, letter.number)
        return letters

    def _drop(self, number: int) -> None:
        while self._kept and self._kept[0].number <= number:
            self._kept_bytes -= _size_of(self._kept.popleft())
            self._next = max(0, self._next - 1)


def _size_of(letter: Letter) -> int:
    return letter_bytes_max(letter.body, letter.to, letter.reply_to)


class LetterVerdict(Enum):
    """The decision about a letter."""

    HAND_ON = auto()
    REPEATED = auto()  # It was handed on before; say so again.
    REFUSED = auto()  # It comes from a zombie, or from a session that has ended.


class Intake:
    """The letters that other peers have sent to this one, and the peers that are refused.

    A conversation is what one sender writes to this node under one name; its newest session
    counts.

    Invariant: the letters of a session are handed on in order, each once; a conversation that was
    forgotten for the limit is never resumed.
    """

    def __init__(self, node: str, *, senders_max: int, fenced_max: int) -> None:
        self.node = node
        self._senders_max, self._fenced_max = senders_max, fenced_max
        # The keys are sender and its name for this node: session and last letter, least recently
        # used first.
        self._taken: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._fenced: OrderedDict[str, str] = OrderedDict()  # Node to reason, oldest first.

    def fence(self, node: str, reason: str) -> None:
        """Refuse all that a node says from now on; the first reason stays."""
        assert incarnation_of(node), f"{node} has no incarnation: it may be anybody"
        self._fenced.setdefault(node, reason)
        if len(self._fenced) > self._fenced_max:
            self._fenced.popitem(last=False)
        for key in [key for key in self._taken if key[0] == node]:
            del self._taken[key]

    def reason(self, node: str) -> str | None:
        return self._fenced.get(node)

    def on_greeting(self, greeting: Greeting) -> Welcome | Fenced:
        reason = self._refusal(greeting)
        if reason is not None:
            given_up = self.reason(greeting.sender) is not None
            return Fenced(node=self.node, reason=reason, given_up=given_up)
        session, taken = self._taken.get(_key(greeting), (0, 0))
        taken = taken if session == greeting.session else 0
        self._remember(greeting, taken)
        return Welcome(node=self.node, taken=taken)

    def on_letter(self, greeting: Greeting, number: int) -> LetterVerdict:
        """Judge the next letter of a connection that began with ``greeting``."""
        if greeting.sender in self._fenced:
            return LetterVerdict.REFUSED
        session, taken = self._taken.get(_key(greeting), (0, 0))
        if session != greeting.session:
            return LetterVerdict.REFUSED
        if number <= taken:
            return LetterVerdict.REPEATED
        if number != taken + 1:
            raise ProtocolError(f"letter {number} of {greeting.sender} came after {taken}")
        self._remember(greeting, number)
        return LetterVerdict.HAND_ON

    def on_ping(self, greeting: Greeting) -> bool:
        return greeting.sender not in self._fenced

    def _refusal(self, greeting: Greeting) -> str | None:
        """Say why a sender is not listened to, if so."""
        sender, wanted = greeting.sender, incarnation_of(greeting.receiver)
        if sender in self._fenced:
            return f"fenced: {self._fenced[sender]}"
        if not incarnation_of(sender):
            return f"sender {sender!r} has no incarnation"
        if wanted and wanted != incarnation_of(self.node):
            return f"{greeting.receiver} is not here any more, this is {self.node}"
        session, _ = self._taken.get(_key(greeting), (0, 0))
        if greeting.session < session:
            return f"session {greeting.session} is over, session {session} has begun"
        if greeting.session > session and greeting.resumes:
            return f"session {greeting.session} is not known here, so it cannot go on"
        return None

    def _remember(self, greeting: Greeting, taken: int) -> None:
        key = _key(greeting)
        self._taken[key] = greeting.session, taken
        self._taken.move_to_end(key)
        if len(self._taken) > self._senders_max:
            self._taken.popitem(last=False)


def _key(greeting: Greeting) -> tuple[str, str]:
    return greeting.sender, greeting.receiver


#: No more late ticks in a row are forgiven; then silence is silence.
_LATE_TICKS_MAX: Final = 3


class Heartbeat:
    """The decision whether a node is alive: it is asked on every tick, and silence has an end.

    A tick that comes late by a whole interval says that this process was held up, so what the
    other said may not have been read: then it is given one more interval.

    Invariant: nobody is lost who was heard within the timeout.
    """

    def __init__(self, *, interval_ms: int, timeout_ms: int) -> None:
        self.interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._heard_ms = self._tick_ms = 0
        self._late = 0
        self._pings = 0
        self.is_doubtful = False  # At the last tick half of the time had passed in silence.

    def start(self, now_ms: int) -> None:
        self._heard_ms = self._tick_ms = now_ms
        self._late = 0

    def on_heard(self, now_ms: int) -> None:
        self._heard_ms = now_ms
        self._late = 0

    def on_tick(self, now_ms: int) -> Ping | None:
        """Return the ping to send now, or None: the node was silent for too long."""
        was_late = now_ms - self._tick_ms >= 2 * self.interval_ms
        self._tick_ms = now_ms
        self.is_doubtful = not was_late and 2 * self.silent_ms(now_ms) >= self._timeout_ms
        if self.silent_ms(now_ms) >= self._timeout_ms:
            self._late += 1
            if not was_late or self._late > _LATE_TICKS_MAX:
                return None
        self._pings += 1
        return Ping(number=self._pings)

    def silent_ms(self, now_ms: int) -> int:
        return now_ms - self._heard_ms


class Patience:
    """The pauses before an address is called again, and the point at which that is hopeless.

    Where nobody listens any more, the process that was meant is gone: so for a node with
    incarnation, and for one that was reached before. An address that was never reached may still
    get its process; that it does not is found by `Heartbeat`, or after ``retries``.

    Invariant: a pause is at most ``max_ms``; hopeless only after `refused_max` refusals in a row,
    or after more than ``retries`` failures.
    """

    refused_max: Final = 3

    def __init__(
        self, *, base_ms: int, max_ms: int, is_incarnated: bool = False, retries: int | None = None
    ) -> None:
        self._is_known = is_incarnated
        self._base_ms, self._max_ms = base_ms, max_ms
        self._retries = retries
        self._failures = 0
        self._refusals = 0

    def on_welcome(self) -> None:
        self._is_known = True
        self._refusals = 0

    def on_progress(self) -> None:
        """Note that the connection is of use: when it breaks, the next call is made at once."""
        self._failures = 0

    def on_failure(self, rng: "Random", *, refused: bool) -> int | None:
        """Return after how many ms to call again, or None: nobody is there any more.

        ``refused``: nobody listens at the address.
        """
        self._refusals = self._refusals + 1 if refused else 0
        if self._is_known and self._refusals >= self.refused_max:
            return None
        self._failures += 1
        if self._retries is not None and self._failures > self._retries:
            return None
        if self._failures == 1 and not refused:
            return 0
        doublings = (self._refusals if refused and self._is_known else self._failures) - 1
        pause_ms = min(self._max_ms, self._base_ms << min(doublings, 30))
        return round(pause_ms * rng.uniform(0.5, 1.0))
