"""Flow control and loss detection of one link, both ends.

Gearpump counts messages with 16-bit numbers and clocks an edge by what its receivers echo; here
counts are unbounded, every data message has a sequence number beside the count, and the clock
of an edge is the oldest record that is not yet acknowledged, so that a quiet target holds
nothing back. A data message without records counts as one, so that its loss is found, too.
Gearpump: `Subscription`, with the clock rule of its release 0.8.
"""

from collections import deque
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from gearpy.errors import MessageLost
from gearpy.ids import FIRST_SESSION, MAX_MS, SessionId, TaskId


class FlowLimits(Struct, frozen=True, kw_only=True):
    """The bounds of the records under way on one link, and of the time between acknowledgements."""

    window_records: int
    window_bytes: int
    ack_interval_records: int
    ack_interval_ms: int  #: What is sent so long after the last request asks, too.
    quiet_ack_ms: int  #: A link quiet for so long asks for what is still unacknowledged.
    repeat_ack_ms: int  #: An unanswered ack request is asked again after so long.
    #: A window is no smaller than the batches that are sent, up to this size, and grows from there;
    #: 0: the first one is the whole, and none is too small.
    least_records: int = 0

    def __post_init__(self) -> None:
        assert 0 < self.ack_interval_records <= self.window_records
        assert self.least_records <= self.window_records


#: Questions in one window: with the answer to the first, more is sent while the rest is processed.
_ASKS_A_WINDOW: Final = 4


class _Span(Struct):
    """Records sent between two ack requests."""

    seq: int = 0  #: Records sent in all, up to the end of the span.
    bytes_total: int = 0  #: Bytes sent in all, up to the end of the span.
    oldest_ms: int = MAX_MS  #: Oldest event time within the span.


class _Target(Struct):
    """Counts the records that one downstream task was sent and has acknowledged."""

    window: int  #: So many may be unacknowledged.
    ask_each: int  #: Ask after so many.
    batch: int = 0  #: The largest batch since the last acknowledgement ...
    batch_before: int = 0  #: ... and before that.
    acked: int = 0
    acked_bytes: int = 0
    open: _Span = field(default_factory=_Span)  #: Sent since the last ack request.
    asked: deque[_Span] = field(default_factory=deque)  #: Asked about, oldest first.
    oldest_ms: int = MAX_MS  #: Oldest event time not yet acknowledged.
    last_sent_ms: int = 0
    last_asked_ms: int = 0

    def has_unasked(self) -> bool:
        return self.open.seq > (self.asked[-1].seq if self.asked else self.acked)

    def oldest(self) -> int:
        return min((span.oldest_ms for span in self.asked), default=MAX_MS)


class Subscription:
    """Credit window between one task and the tasks of one downstream processor.

    A target says itself how much of the window it uses. Owned by one `TaskRunner`, hence no lock.
    Gearpump: `Subscription`.

    Invariant: ``0 <= pending(t) <= window_records`` for every target ``t`` as long as the owner
    sends no more than `credit`.
    """

    def __init__(self, *, targets: int, limits: FlowLimits) -> None:
        self._limits = limits
        first = 1 if limits.least_records else limits.window_records
        each = limits.ack_interval_records
        self._targets = [_Target(window=first, ask_each=each) for _ in range(targets)]

    def credit(self, target: int) -> int:
        state = self._targets[target]
        if state.open.bytes_total - state.acked_bytes >= self._limits.window_bytes:
            return 0
        return state.window - (state.open.seq - state.acked)

    def takes(self, target: int, records: int) -> bool:
        if self.credit(target) >= records:
            return True
        state = self._targets[target]
        state.batch = max(state.batch, records)
        state.window = max(state.window, min(records, self._limits.least_records))
        return self.credit(target) >= records

    def pending(self, target: int) -> int:
        return self._targets[target].open.seq - self._targets[target].acked

    def on_sent(
        self, target: int, *, records: int, size_bytes: int, oldest_ms: int, now_ms: int
    ) -> int | None:
        """Count sent records; return the count to ask about if an ack request is due.

        It is due after so many records, or after so much time: else the clock of a thin stream that
        is never quiet would be a whole interval of records behind.
        Gearpump: `Subscription.sendMessage`, which asks each `ack-once-every-message-count`.
        """
        state, limits = self._targets[target], self._limits
        span = state.open
        span.seq += records
        span.bytes_total += size_bytes
        pending, pending_bytes = span.seq - state.acked, span.bytes_total - state.acked_bytes
        assert 0 < records <= pending <= state.window, "send no more than credit()"
        if oldest_ms < span.oldest_ms:
            span.oldest_ms = oldest_ms
            state.oldest_ms = min(state.oldest_ms, oldest_ms)
        state.last_sent_ms = now_ms
        state.batch = max(state.batch, records)
        due = (
            span.seq - (state.asked[-1].seq if state.asked else state.acked) >= state.ask_each
            or now_ms - state.last_asked_ms >= limits.ack_interval_ms
            or pending >= state.window
            or pending_bytes >= limits.window_bytes
        )
        return self._ask(state, now_ms) if due else None

    def on_divided(self, target: int, *, unsent: int, more: int) -> None:
        """Count the last ``unsent`` records as so many more: they were divided otherwise."""
        state = self._targets[target]
        sent = state.open.seq - unsent
        for span in (*state.asked, state.open):
            if span.seq > sent:
                span.seq += more

    def ask(self, target: int, now_ms: int) -> int:
        return self._ask(self._targets[target], now_ms)

    def on_ack(self, target: int, *, seq: int, received: int, room: int = 0) -> None:
        """Free the credit of acknowledged records; ``room`` is how many the target wants, if not 0.

        Raises `MessageLost` if it did not get as many records as were sent. Gearpump:
        `Subscription.receiveAck` throws `MsgLostException`.
        """
        if received != seq:
            raise MessageLost(f"target {target} has {received} of {seq} records")
        state = self._targets[target]
        if seq:  # The answer to the opening of a link knows nothing yet.
            limits = self._limits
            batch = max(1, min(max(state.batch, state.batch_before), limits.least_records))
            state.batch, state.batch_before = 0, state.batch
            used = state.window if room else state.open.seq - state.acked
            most = max(state.window, 2 * used)
            wanted = min(room or limits.window_records, most)
            state.window = min(limits.window_records, max(batch, wanted))
            state.ask_each = limits.ack_interval_records
            if state.window < limits.window_records:
                state.ask_each = min(state.ask_each, max(batch, state.window // _ASKS_A_WINDOW))
        while state.asked and state.asked[0].seq <= seq:
            span = state.asked.popleft()
            state.acked, state.acked_bytes = span.seq, span.bytes_total
        state.oldest_ms = min(state.oldest(), state.open.oldest_ms)

    def on_tick(self, now_ms: int) -> list[tuple[int, int]]:
        """Return ``(target, seq)`` of the ack requests that time has made due.

        A link that has gone quiet asks for its rest; a request without an answer is asked
        again, so that a lost tail is found. Gearpump: `Subscription.onStallingTime`.
        """
        due = []
        for index, state in enumerate(self._targets):
            is_quiet = now_ms - state.last_sent_ms >= self._limits.quiet_ack_ms
            is_overdue = now_ms - state.last_asked_ms >= self._limits.repeat_ack_ms
            if (is_quiet and state.has_unasked()) or (is_overdue and state.asked):
                due.append((index, self._ask(state, now_ms)))
        return due

    @property
    def oldest_unacked_ms(self) -> int:
        return min([state.oldest_ms for state in self._targets])

    @property
    def is_settled(self) -> bool:
        return all(state.acked == state.open.seq for state in self._targets)

    def _ask(self, state: _Target, now_ms: int) -> int:
        span = state.open
        if state.has_unasked():
            state.asked.append(span)
            state.open = _Span(seq=span.seq, bytes_total=span.bytes_total)
        state.last_asked_ms = now_ms
        return span.seq


#: ``stale``: of another session, ``duplicate``: seen before. Both are dropped.
Verdict: TypeAlias = Literal["accept", "stale", "duplicate"]


class _Inbound(Struct):
    """Counts the messages of one upstream task in its current session."""

    session: SessionId
    seq: int = 0
    processed: int = 0


class ReceiverCounts:
    """Counts the messages of each input link and finds gaps.

    Invariant: an accepted data message is the successor of the one accepted before it on the
    same link and session. Gearpump: `TaskActor.SecurityChecker`.
    """

    def __init__(self, first_session: SessionId = FIRST_SESSION) -> None:
        self._first = first_session
        self._links: dict[TaskId, _Inbound] = {}

    def on_open(self, source: TaskId, session: SessionId) -> bool:
        """Start to count a link at zero; False if this or a later session is open already."""
        known = self._links.get(source)
        if session < self._first or (known is not None and known.session >= session):
            return False
        self._links[source] = _Inbound(session)
        return True

    def on_data(self, source: TaskId, session: SessionId, seq: int) -> Verdict:
        """Judge a data message by its session and sequence number."""
        link = self._links.get(source)
        if link is None or link.session != session:
            return "stale"
        if seq <= link.seq:
            return "duplicate"
        if seq != link.seq + 1:
            raise MessageLost(f"from task {source}: message {seq} came after {link.seq}")
        link.seq = seq
        return "accept"

    def on_processed(self, source: TaskId, session: SessionId, records: int) -> None:
        link = self._links.get(source)
        if link is not None and link.session == session:
            link.processed += records

    def processed(self, source: TaskId, session: SessionId) -> int | None:
        """Return the number to acknowledge; None for a session that is over.

        A session that was never opened has lost its opening, and all that came after it was
        dropped: it is answered with 0, so that its sender fails instead of waiting for ever.
        """
        link = self._links.get(source)
        if session < self._first:
            return None
        if link is None or link.session < session:
            return 0
        return link.processed if link.session == session else None
