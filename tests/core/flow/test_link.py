"""Credit, ack requests and loss detection of one link, both ends."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.link import FlowLimits, ReceiverCounts, Subscription
from gearpy.errors import MessageLost
from gearpy.ids import MAX_MS, SessionId, TaskId

SOURCE = TaskId(0, 0)
SESSION, NEW = SessionId(2), SessionId(3)


def a_subscription(
    *,
    targets: int = 1,
    window: int = 10,
    interval: int = 4,
    interval_ms: int = 1000,
    window_bytes: int = 1000,
    least: int = 0,
) -> Subscription:
    limits = FlowLimits(
        window_records=window,
        window_bytes=window_bytes,
        ack_interval_records=interval,
        ack_interval_ms=interval_ms,
        quiet_ack_ms=5,
        repeat_ack_ms=100,
        least_records=least,
    )
    return Subscription(targets=targets, limits=limits)


def send(
    subscription: Subscription,
    records: int,
    *,
    target: int = 0,
    oldest_ms: int = 0,
    size_bytes: int = 0,
    now_ms: int = 0,
) -> int | None:
    return subscription.on_sent(
        target, records=records, size_bytes=size_bytes, oldest_ms=oldest_ms, now_ms=now_ms
    )


def ack(subscription: Subscription, seq: int, *, target: int = 0) -> None:
    subscription.on_ack(target, seq=seq, received=seq)


# -- the sender ------------------------------------------------------------------------------


def test_full_window_is_asked_about_at_once() -> None:
    """Nothing else could open it again."""
    subscription = a_subscription(window=10, interval=4)
    send(subscription, 8)

    asked = send(subscription, 2)

    assert asked == 10
    assert subscription.credit(0) == 0


def test_ack_gives_credit_back() -> None:
    subscription = a_subscription(window=10)
    send(subscription, 10)

    ack(subscription, 10)

    assert subscription.credit(0) == 10
    assert subscription.is_settled


def test_wrong_number_received_is_message_loss() -> None:
    subscription = a_subscription()
    send(subscription, 4)

    with pytest.raises(MessageLost, match="3 of 4"):
        subscription.on_ack(0, seq=4, received=3)


def test_more_than_credit_is_a_bug() -> None:
    subscription = a_subscription(window=10)

    with pytest.raises(AssertionError, match="no more than credit"):
        send(subscription, 11)


def test_bytes_fill_the_window_before_the_records_do() -> None:
    subscription = a_subscription(window_bytes=1000)

    first = send(subscription, 1, size_bytes=999)
    credit = subscription.credit(0)
    second = send(subscription, 1, size_bytes=5000)

    assert (first, credit) == (None, 9)
    assert second == 2
    assert subscription.credit(0) == 0
    ack(subscription, 2)
    assert subscription.credit(0) == 10


def test_a_target_says_how_much_of_the_window_it_uses() -> None:
    """A slow one has no more under way than it wants; asked in quarters, it never runs dry."""
    subscription = a_subscription(window=100, interval=50)
    send(subscription, 50)
    subscription.on_ack(0, seq=50, received=50, room=20)

    room = subscription.credit(0)
    asked = [send(subscription, 1) for _ in range(6)]

    assert room == 20
    assert asked == [None] * 4 + [55, None]


def test_a_window_that_became_smaller_opens_when_enough_is_acknowledged() -> None:
    subscription = a_subscription(window=100, interval=10)
    for _ in range(5):
        send(subscription, 10)

    subscription.on_ack(0, seq=10, received=10, room=20)
    before = subscription.credit(0)
    subscription.on_ack(0, seq=40, received=40, room=20)

    assert (before, subscription.credit(0)) == (-20, 10)


def test_a_slow_target_gets_a_whole_batch() -> None:
    """What costs the same for each batch would cost more for smaller ones."""
    subscription = a_subscription(window=100, interval=50, least=20)
    first = subscription.credit(0)
    takes = subscription.takes(0, 20)
    send(subscription, 20)
    subscription.on_ack(0, seq=20, received=20, room=1)

    room = subscription.credit(0)
    asked = send(subscription, 20)

    assert (first, takes, room, asked) == (1, True, 20, 40)


def test_a_batch_that_has_to_wait_gets_its_window_and_no_more() -> None:
    subscription = a_subscription(window=100, interval=50, least=20)
    subscription.takes(0, 10)
    send(subscription, 10)

    takes = subscription.takes(0, 90)

    assert (takes, subscription.credit(0)) == (False, 10)


def test_a_slow_target_among_many_gets_one_of_its_own_batches() -> None:
    subscription = a_subscription(window=100, interval=50, least=40)
    for records in (5, 4):
        subscription.takes(0, 9)
        send(subscription, records)
    subscription.ask(0, 0)

    subscription.on_ack(0, seq=9, received=9, room=1)

    assert subscription.credit(0) == 9


def test_batches_that_have_become_small_are_what_counts() -> None:
    subscription = a_subscription(window=100, interval=50, least=40)
    rooms = []
    for records in (40, 2, 2, 2):
        subscription.takes(0, records)
        send(subscription, records)
        seq = subscription.ask(0, 0)
        subscription.on_ack(0, seq=seq, received=seq, room=3)
        rooms.append(subscription.credit(0))

    assert rooms == [40, 40, 3, 3]


def test_no_target_gets_more_than_the_window() -> None:
    subscription = a_subscription(window=100, interval=50)
    send(subscription, 50)

    subscription.on_ack(0, seq=50, received=50, room=5000)

    assert subscription.credit(0) == 100


def test_a_window_grows_with_each_answer() -> None:
    """A task may lay records by at first, and work on them later; the opening says nothing yet."""
    subscription = a_subscription(window=100, interval=10, least=30)
    subscription.on_ack(0, seq=0, received=0)
    rooms = [subscription.credit(0)]
    while rooms[-1] < 100:
        send(subscription, 1)
        seq = subscription.ask(0, 0)
        subscription.on_ack(0, seq=seq, received=seq, room=5000)
        rooms.append(subscription.credit(0))

    assert rooms == [1, 2, 4, 8, 16, 32, 64, 100]


def test_a_window_of_which_the_target_says_nothing_grows_as_far_as_it_is_used() -> None:
    subscription = a_subscription(window=100, interval=10, least=30)
    for seq in range(1, 20):
        send(subscription, 1)
        subscription.on_ack(0, seq=seq, received=seq)

    assert subscription.credit(0) == 2


def test_quiet_link_asks_for_its_rest() -> None:
    """The clock waits for the answer, however few records there were."""
    subscription = a_subscription(targets=2)
    send(subscription, 1, target=1, now_ms=0)

    early, due, again = (subscription.on_tick(now_ms) for now_ms in (4, 5, 6))

    assert (early, due, again) == ([], [(1, 1)], [])


@dataclass
class SubscriptionModel:
    window: int
    subscription: Subscription
    times: list[list[int]] = field(default_factory=lambda: [[], []])
    sizes: list[list[int]] = field(default_factory=lambda: [[], []])
    acked: list[int] = field(default_factory=lambda: [0, 0])
    asked: list[list[int]] = field(default_factory=lambda: [[], []])
    now_ms: int = 0

    def send(self, target: int, times: list[int], size_bytes: int) -> None:
        times = times[: self.subscription.credit(target)]
        if times:
            asked = send(
                self.subscription,
                len(times),
                target=target,
                oldest_ms=min(times),
                size_bytes=size_bytes,
                now_ms=self.now_ms,
            )
            self.times[target] += times
            self.sizes[target] += [size_bytes] + [0] * (len(times) - 1)
            self._note(target, asked)

    def tick(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        for target, seq in self.subscription.on_tick(self.now_ms):
            self._note(target, seq)

    def answer(self, target: int, which: int) -> None:
        """Answer some request that was asked, perhaps again, perhaps passing others over."""
        if self.asked[target]:
            seq = self.asked[target][which % len(self.asked[target])]
            ack(self.subscription, seq, target=target)
            self.acked[target] = max(self.acked[target], seq)

    def check(self) -> None:
        oldest = MAX_MS
        for target, times in enumerate(self.times):
            pending = len(times) - self.acked[target]
            bytes_pending = sum(self.sizes[target][self.acked[target] :])
            assert self.subscription.pending(target) == pending
            assert 0 <= pending <= self.window
            room = self.window - pending if bytes_pending < 1000 else 0
            assert self.subscription.credit(target) == room
            oldest = min([oldest, *times[self.acked[target] :]])
        assert self.subscription.oldest_unacked_ms == oldest
        assert self.subscription.is_settled == (oldest == MAX_MS)

    def _note(self, target: int, seq: int | None) -> None:
        if seq is not None:
            assert seq == len(self.times[target]), "asks about all that was sent"
            self.asked[target].append(seq)


TARGETS = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(
        st.just("send"), TARGETS, st.lists(st.integers(0, 100), max_size=12), st.integers(0, 700)
    ),
    st.tuples(st.just("answer"), TARGETS, st.integers(0, 20)),
    st.tuples(st.just("tick"), st.integers(0, 120)),
)


@given(st.lists(STEPS, max_size=40), st.integers(1, 9), st.integers(0, 10))
def test_window_and_oldest_record_are_those_of_a_list_of_all_records(
    steps: list[tuple[str, ...]], interval: int, more: int
) -> None:
    """Invariant: 0 <= pending <= window; the clock never passes a record that is not acknowledged.

    Acks come in any order, again, or never; so does the oracle's count move.
    """
    window = interval + more
    model = SubscriptionModel(
        window, a_subscription(targets=2, window=window, interval=interval, window_bytes=1000)
    )

    for name, *values in steps:
        getattr(model, name)(*values)
        model.check()


# -- the receiver ----------------------------------------------------------------------------


def open_counts() -> ReceiverCounts:
    counts = ReceiverCounts()
    counts.on_open(SOURCE, SESSION)
    return counts


def test_gap_is_message_loss() -> None:
    counts = open_counts()
    counts.on_data(SOURCE, SESSION, 1)

    with pytest.raises(MessageLost, match=r"task 0\.0: message 3 came after 1"):
        counts.on_data(SOURCE, SESSION, 3)


def test_new_session_counts_from_zero() -> None:
    counts = open_counts()
    counts.on_data(SOURCE, SESSION, 1)
    counts.on_processed(SOURCE, SESSION, 10)

    assert counts.on_open(SOURCE, NEW)

    assert counts.processed(SOURCE, NEW) == 0
    assert counts.on_data(SOURCE, NEW, 1) == "accept"


def test_only_records_of_the_session_count_as_processed() -> None:
    counts = open_counts()
    counts.on_open(SOURCE, NEW)

    counts.on_processed(SOURCE, SESSION, 7)
    counts.on_processed(SOURCE, NEW, 3)

    assert counts.processed(SOURCE, NEW) == 3


def test_nothing_of_an_earlier_attempt_is_taken_though_nothing_else_has_come() -> None:
    counts = ReceiverCounts(NEW)

    assert not counts.on_open(SOURCE, SESSION)
    assert counts.on_data(SOURCE, SESSION, 1) == "stale"
    assert counts.processed(SOURCE, SESSION) is None

    assert counts.on_open(SOURCE, NEW)
    assert counts.on_data(SOURCE, NEW, 1) == "accept"


# -- both ends -------------------------------------------------------------------------------


class FaultyLink:
    """One sender and one receiver; each frame is delivered as often as the plan says.

    A frame is 0 times (lost), once, or twice (repeated at once) delivered; after the plan's
    end everything goes well.
    """

    def __init__(self, plan: Iterator[int]) -> None:
        self._plan = plan
        self._subscription = a_subscription(window=8, interval=3)
        self._counts = ReceiverCounts()
        self._seq = 0
        self._now_ms = 0
        self.sent: list[int] = []
        self.processed: list[int] = []
        self._answers: deque[tuple[int, int]] = deque()
        self._frame(self._open)

    def send(self, records: int) -> None:
        records = min(records, self._subscription.credit(0))
        if not records:
            return
        self._seq += 1
        values = list(range(len(self.sent), len(self.sent) + records))
        self.sent += values
        self._frame(partial(self._take, self._seq, values))
        asked = send(self._subscription, records, now_ms=self._now_ms)
        if asked is not None:
            self._frame(partial(self._answer, asked))
        self._take_answers()

    def settle(self) -> None:
        for _ in range(200):
            if self._subscription.is_settled:
                return
            self._now_ms += 10
            for _, asked in self._subscription.on_tick(self._now_ms):
                self._frame(partial(self._answer, asked))
            self._take_answers()
        raise AssertionError("the link stalls for ever")

    def _frame(self, deliver: Callable[[], None]) -> None:
        for _ in range(next(self._plan, 1)):
            deliver()

    def _open(self) -> None:
        self._counts.on_open(SOURCE, SESSION)

    def _take(self, seq: int, values: list[int]) -> None:
        if self._counts.on_data(SOURCE, SESSION, seq) == "accept":
            self.processed += values
            self._counts.on_processed(SOURCE, SESSION, len(values))

    def _answer(self, asked: int) -> None:
        processed = self._counts.processed(SOURCE, SESSION)
        assert processed is not None
        self._frame(partial(self._answers.append, (asked, processed)))

    def _take_answers(self) -> None:
        while self._answers:
            seq, received = self._answers.popleft()
            self._subscription.on_ack(0, seq=seq, received=received)


@given(
    st.lists(st.sampled_from([1, 1, 1, 0, 2]), max_size=40),
    st.lists(st.integers(1, 4), max_size=20),
)
def test_loss_never_stays_undetected(plan: list[int], sizes: list[int]) -> None:
    """Frames lost and doubled: all records come once and in order, or `MessageLost` is raised.

    A count alone would take one lost and one doubled frame for none; and nothing stalls.
    """
    try:
        link = FaultyLink(iter(plan))
        for size in sizes:
            link.send(size)
        link.settle()
    except MessageLost:
        assert 0 in plan, "no loss is reported where there was none"
    else:
        assert link.processed == link.sent
