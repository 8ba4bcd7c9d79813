"""Messages that are too large to be sent are divided; a record alone is refused, and none other."""

from random import Random

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.flow.link import ReceiverCounts
from gearpy.core.flow.partition import Part, Partitioner
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    LinkMessage,
    Message,
)
from gearpy.messages.table import ROWS_PER_CREDIT, Table, Times
from gearpy.task.runtime.outlet import Outlet, OutputEdge
from tests.task.build import SESSION, TASK, some_limits

LIMIT = 100


class ByTurns(Partitioner):
    def __init__(self) -> None:
        self.next = 0

    is_unicast = True

    def fork(self, rng: Random) -> "ByTurns":
        return self

    def partition(
        self, values: list[int], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        self.next = (self.next + 1) % parallelism
        return [(self.next, values, timestamps)]


class Receiver:
    """One target: counts as an inlet does, and never gets more than `LIMIT` in a message."""

    def __init__(self) -> None:
        self.counts = ReceiverCounts()
        self.values: list[int] = []
        self.promised_ms = MIN_MS

    def take(self, message: LinkMessage) -> Ack | None:
        """Process a message; return the answer if it is a question."""
        match message:
            case InitialAckRequest():
                self.counts.on_open(message.source, message.session)
            case DataMessage():
                assert isinstance(message.batch, Batch)
                assert self.counts.on_data(message.source, message.session, message.seq) == "accept"
                assert min(message.batch.timestamps, default=MAX_MS) >= self.promised_ms
                self.values += sizes_of(message)
                self.promised_ms = max(self.promised_ms, message.watermark_ms)
                self.counts.on_processed(message.source, message.session, message.counted)
            case AckRequest():
                received = self.counts.processed(message.source, message.session)
                assert received is not None
                return Ack(SESSION, message.target, TASK, message.seq, received)
        return None


def size_of(message: Message) -> int:
    return int(message.value["n"] if isinstance(message.value, dict) else message.value)


def sizes_of(message: DataMessage) -> list[int]:
    assert isinstance(message.batch, Batch)
    return [size_of(each) for each in message.batch.messages()]


def a_batch(sizes: list[int], *, is_table: bool, at_ms: int) -> Batch:
    times = list(range(at_ms, at_ms + len(sizes)))
    if is_table:
        return Batch(Table(pa.record_batch({"n": pa.array(sizes, pa.int64())})), Times.of(times))
    return Batch(sizes, times)


class Links:
    """An outlet, its targets, and a transport between them that sends nothing above `LIMIT`."""

    def __init__(self, *, window: int, interval: int, batch: int) -> None:
        limits = some_limits(window=window, interval=min(interval, window), batch=batch)
        self.sent: list[LinkMessage] = []
        self.outlet = Outlet(
            task_id=TASK,
            session=SESSION,
            edges=[OutputEdge(processor=2, parallelism=2, partitioner=ByTurns())],
            limits=replace(limits, columnar_batch_records=batch),
            outbox=self.sent,
            epoch=1,
        )
        self.receivers = {TaskId(2, 0): Receiver(), TaskId(2, 1): Receiver()}
        self.refused: list[int] = []
        self.now_ms = 0
        self.outlet.open()

    def emit(self, batch: Batch, until_ms: int) -> None:
        self.outlet.emit(batch, self.now_ms)
        self.outlet.announce(until_ms, idle=False)
        while self.outlet.is_blocked:
            self.pass_time(30)

    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.outlet.on_tick(self.now_ms)
        while self.sent:
            message = self.sent[0]
            if isinstance(message, DataMessage) and sum(sizes_of(message)) > LIMIT:
                self.sent[:] = self.outlet.divided(
                    list(self.sent), lambda each: self.refused.append(size_of(each))
                )
            else:
                answer = self.receivers[self.sent.pop(0).target].take(message)
                if answer is not None:
                    self.outlet.on_ack(answer, self.now_ms)


@example([([60] * 10, False, 0)], 200, 1, 5)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 130), min_size=1, max_size=3 * ROWS_PER_CREDIT),
            st.booleans(),
            st.integers(0, 5),
        ),
        max_size=6,
    ),
    st.integers(1, 200),
    st.integers(1, 40),
    st.integers(5, 300),
)
def test_all_but_records_too_large_arrive_in_order_and_are_acknowledged(
    batches: list[tuple[list[int], bool, int]], batch: int, interval: int, window: int
) -> None:
    """Rows and tables, which count for less than their rows; with everything else on the links."""
    links = Links(window=window, interval=interval, batch=batch)
    at_ms = 0
    for sizes, is_table, waits in batches:
        end_ms = at_ms + len(sizes)
        links.emit(a_batch(sizes, is_table=is_table, at_ms=at_ms), end_ms)
        if waits % 2:  # Else it goes out with the next one.
            links.pass_time(waits * 10)
        at_ms = end_ms
    links.outlet.announce(MAX_MS, idle=False)
    for _ in range(50):
        links.pass_time(30)

    given_sizes = [size for sizes, _, _ in batches for size in sizes]
    assert sorted(links.refused) == sorted(size for size in given_sizes if size > LIMIT)
    for index, receiver in enumerate(links.receivers.values()):
        mine = [sizes for at, (sizes, _, _) in enumerate(batches) if (at + 1) % 2 == index]
        assert receiver.values == [size for sizes in mine for size in sizes if size <= LIMIT]
        assert receiver.promised_ms == MAX_MS
    assert links.outlet.has_ended
