"""The story of one link: a sender with credit, what is on the wire, and the receiver's counts."""

from collections import deque
from collections.abc import Iterator

from gearpy.core.flow.link import FlowLimits, ReceiverCounts, Subscription
from gearpy.errors import MessageLost
from gearpy.ids import MAX_MS, SessionId, TaskId
from tests.transcripts.transcript import Player, Words

_SOURCE = TaskId(0, 0)


class _Link:
    def __init__(self) -> None:
        self._now_ms = 0
        self._session = SessionId(0)
        self._wire: deque[tuple[SessionId, str, int, int]] = deque()  # What, its number, records.
        self._counts = ReceiverCounts()

    def limits(self, words: Words) -> Iterator[str]:
        self._limits = FlowLimits(
            window_records=words.number("window", 10),
            window_bytes=words.number("bytes", 10_000),
            ack_interval_records=words.number("ask-each", 4),
            ack_interval_ms=words.number("ask-ms", 10_000),
            quiet_ack_ms=words.number("quiet-ms", 500),
            repeat_ack_ms=words.number("repeat-ms", 2000),
        )
        return self.restart(words)

    def restart(self, _: Words) -> Iterator[str]:
        """Begin another session; what was sent before may still be on the wire."""
        self._session = SessionId(self._session + 1)
        self._sender = Subscription(targets=1, limits=self._limits)
        self._messages = 0
        self._counts.on_open(_SOURCE, self._session)
        yield f"session {self._session}, credit {self._sender.credit(0)}"

    def send(self, words: Words) -> Iterator[str]:
        records, at_ms = int(words.plain[0]), words.number("at", MAX_MS)
        asked = self._sender.on_sent(
            0,
            records=records,
            size_bytes=words.number("bytes", records),
            oldest_ms=at_ms,
            now_ms=self._now_ms,
        )
        self._messages += 1
        self._wire.append((self._session, "data", self._messages, records))
        yield f"message {self._messages} with {records} records; {self._credit()}"
        if asked is not None:
            yield self._ask(asked)

    def wait(self, words: Words) -> Iterator[str]:
        self._now_ms += int(words.plain[0])
        for _, asked in self._sender.on_tick(self._now_ms):
            yield self._ask(asked)

    def lose(self, _: Words) -> Iterator[str]:
        what, number = self._wire.popleft()[1:3]
        yield f"{what} {number} is lost"

    def repeat(self, _: Words) -> Iterator[str]:
        self._wire.appendleft(self._wire[0])
        yield from ()

    def deliver(self, words: Words) -> Iterator[str]:
        """Deliver all that is on the wire, or so many messages; records are processed at once."""
        count = int(words.plain[0]) if words.plain else len(self._wire)
        for _ in range(count):
            session, what, number, records = self._wire.popleft()
            try:
                take = self._on_data if what == "data" else self._on_asked
                yield take(session, number, records)
            except MessageLost as error:
                yield f"LOST: {error}"

    def _on_data(self, session: SessionId, number: int, records: int) -> str:
        verdict = self._counts.on_data(_SOURCE, session, number)
        if verdict == "accept":
            self._counts.on_processed(_SOURCE, session, records)
        return f"message {number} of session {session}: {verdict}"

    def _on_asked(self, session: SessionId, number: int, _: int) -> str:
        received = self._counts.processed(_SOURCE, session)
        if received is None or session != self._session:
            return f"question of session {session}: no answer"
        self._sender.on_ack(0, seq=number, received=received)
        return f"answer: {received} of {number}; {self._credit()}"

    def _ask(self, number: int) -> str:
        self._wire.append((self._session, "question", number, 0))
        return f"asks: have you got {number}?"

    def _credit(self) -> str:
        oldest_ms = self._sender.oldest_unacked_ms
        oldest = "" if oldest_ms == MAX_MS else f", oldest {oldest_ms}"
        return f"credit {self._sender.credit(0)}{oldest}"


def link_player() -> Player:
    link = _Link()
    named = (link.limits, link.restart, link.send, link.wait, link.lose, link.repeat, link.deliver)
    return {each.__name__: each for each in named}
