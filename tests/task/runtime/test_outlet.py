"""What a task promises on its links, whatever its code, its targets and their acks do."""

from collections.abc import Iterator
from threading import Lock
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.flow.partition import BroadcastPartitioner, CoLocationPartitioner, HashPartitioner
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import Batch, DataMessage, LinkMessage, Message
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.task.api.sides import MAIN, Side, SidePartitioner
from gearpy.task.runtime.outlet import Outlet, OutputEdge
from gearpy.testing.simulation import SMALL_LIMITS
from tests.task.build import Bench, some_limits


class Varied(Task):
    """Answers each record as the record says, keeps some until the watermark passes them.

    A record's value is ``(how, count)``. All that is sent is noted in ``sent``; nothing is older
    than the watermark of the time, as is right.
    """

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.sent: list[Message] = []
        self.done: list[Message] = []
        self.kept: list[Message] = []

    def on_next(self, message: Message) -> Iterator[Message] | None:
        how, count = message.value
        if how == "lazy":
            return self._lazily(message, count)
        if how == "keep":
            self.kept.append(message)
        else:
            for _ in range(count):
                self.context.output(self._next(message.timestamp))
        self.done.append(message)
        return None

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        due = [message for message in self.kept if message.timestamp < watermark_ms]
        for at in range(0, len(due), 3):
            yield Batch.of(*(self._next(message.timestamp) for message in due[at : at + 3]))
            for message in due[at : at + 3]:
                self.kept.remove(message)

    @property
    def hold_ms(self) -> int:
        return min((message.timestamp for message in self.kept), default=MAX_MS)

    def _lazily(self, message: Message, count: int) -> Iterator[Message]:
        for _ in range(count):
            yield self._next(message.timestamp)
        self.done.append(message)

    def _next(self, time_ms: int) -> Message:
        self.sent.append(Message(len(self.sent), time_ms))
        return self.sent[-1]


class Observed:
    """A bench whose every message is compared with what was promised before it."""

    def __init__(self, *, window: int, interval: int, batch: int, targets: list[int]) -> None:
        self.bench = Bench(
            Varied,
            upstream=2,
            targets=targets,
            partitioner=BroadcastPartitioner(),
            limits=some_limits(window=window, interval=interval, batch=batch),
        ).open()
        self.given: list[Message] = []
        self.promised = [0, 0]
        self.idle = [False, False]
        self.clock_ms = MIN_MS

    @property
    def task(self) -> Varied:
        task = self.bench.runner.task
        assert isinstance(task, Varied)
        return task

    def send(self, source: int, records: list[Any], advance: int) -> None:
        """Send records that are not older than the link's watermark, then a newer watermark.

        A link that was idle goes on where the others are, so that nothing is late.
        """
        if self.idle[source]:
            self.idle[source] = False
            self.promised[source] = max(self.promised)
        low = self.promised[source]
        messages = [Message((how, count), low + ahead) for how, count, ahead in records]
        self.promised[source] += advance
        self.given += messages
        self.bench.send(*messages, watermark_ms=self.promised[source], source=source)

    def pause(self, source: int) -> None:
        self.idle[source] = True
        self.bench.send(watermark_ms=self.promised[source], idle=True, source=source)

    def advance(self, advance: int) -> None:
        for source in (0, 1):
            self.send(source, [], advance)

    def turn(self, passed_ms: int) -> None:
        self.bench.pass_time(passed_ms)

    def consume(self, target: int, messages: int) -> None:
        targets = list(self.bench.targets)
        self.bench.consume(targets[target % len(targets)], messages)

    def end(self) -> None:
        for source in (0, 1):
            self.bench.send(watermark_ms=MAX_MS, source=source)
        for _ in range(5):
            self.bench.run()
            self.bench.now_ms += 5

    def check(self) -> None:
        oldest = self.task.hold_ms
        for target in self.bench.targets.values():
            assert target.late == [], "a record older than the watermark before it"
            assert target.messages == self.task.sent[: len(target.messages)]
            sent = target.messages + [
                record
                for message in target.queue
                if isinstance(message, DataMessage) and isinstance(message.batch, Batch)
                for record in message.batch.messages()
            ]
            assert sent == self.task.sent[: len(sent)], "order of a link"
            unacked = self.task.sent[len(target.messages) :]
            oldest = min([oldest, *(message.timestamp for message in unacked)])
        waiting = self.given[len(self.task.done) :]
        oldest = min([oldest, *(message.timestamp for message in waiting)])
        clock_ms = self.bench.runner.clock().clock_ms
        assert self.clock_ms <= clock_ms, "the clock goes backwards"
        assert clock_ms <= oldest, "the clock passes a record that is on its way"
        self.clock_ms = clock_ms


RECORDS = st.lists(
    st.tuples(st.sampled_from(["now", "lazy", "keep"]), st.integers(0, 9), st.integers(0, 9)),
    max_size=6,
)
STEPS = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 1), RECORDS, st.integers(0, 9)),
    st.tuples(st.just("advance"), st.integers(1, 9)),
    st.tuples(st.just("pause"), st.integers(0, 1)),
    st.tuples(st.just("turn"), st.integers(0, 6)),
    st.tuples(st.just("consume"), st.integers(0, 3), st.integers(1, 6)),
)


@settings(max_examples=40)
@given(
    steps=st.lists(STEPS, min_size=20, max_size=60),
    interval=st.integers(1, 4),
    more=st.integers(0, 6),
    batch=st.integers(1, 8),
    targets=st.sampled_from([[1], [2], [1, 1]]),
)
def test_no_promise_of_a_link_is_ever_broken(
    steps: list[tuple[Any, ...]], interval: int, more: int, batch: int, targets: list[int]
) -> None:
    """Whatever is held back and cut by credit: links keep order, watermarks hold, clocks wait.

    No record older than a watermark that its link has told; watermarks and clock never go
    back; the clock never passes a record that is kept, held or not acknowledged.
    """
    observed = Observed(window=interval + more, interval=interval, batch=batch, targets=targets)

    for name, *values in steps:
        getattr(observed, name)(*values)
        observed.check()
    observed.end()
    observed.check()

    assert observed.clock_ms == MAX_MS
    for target in observed.bench.targets.values():
        assert target.messages == observed.task.sent
        assert target.watermark_ms == MAX_MS
    assert len(observed.task.done) == len(observed.given)


class Uncopied:
    def __deepcopy__(self, memo: object) -> "Uncopied":
        raise TypeError("not twice")


def test_targets_of_one_record_do_not_share_what_can_change() -> None:
    outbox: list[LinkMessage] = []
    edges = [
        OutputEdge(processor=1, parallelism=2, partitioner=BroadcastPartitioner()),
        OutputEdge(processor=2, parallelism=1, partitioner=CoLocationPartitioner()),
    ]
    record, text = {"n": [1]}, "fixed"

    _outlet(edges, outbox).emit(Batch([record, text], [0, 0]), 0)

    sent = _sent(outbox)
    assert sent == [[record, text]] * 3
    assert len({id(values[0]) for values in sent}) == 3
    assert len({id(values[0]["n"]) for values in sent}) == 3
    assert {id(values[1]) for values in sent} == {id(text)}


def test_records_of_side_outputs_are_not_copied_for_who_does_not_get_them() -> None:
    """Each edge gets other records; only of those that two get one has a copy."""
    outbox: list[LinkMessage] = []
    inner = CoLocationPartitioner()
    edges = [
        OutputEdge(processor=at, parallelism=1, partitioner=SidePartitioner(inner, tags))
        for at, tags in enumerate([{MAIN}, {"a"}, {"a", "b"}], start=1)
    ]
    main, one, other = {"n": 1}, {"n": 2}, {"n": 3}

    _outlet(edges, outbox).emit(Batch([main, Side("a", one), Side("b", other)], [0, 0, 0]), 0)

    first, second, third = _sent(outbox)
    assert first[0] is main
    assert second[0] is one
    assert third == [one, other]
    assert third[0] is not one
    assert third[1] is other


def test_a_record_that_cannot_be_copied_is_refused() -> None:
    outbox: list[LinkMessage] = []
    edges = [OutputEdge(processor=1, parallelism=2, partitioner=BroadcastPartitioner())]

    with pytest.raises(OperatorError, match="Uncopied cannot be copied"):
        _outlet(edges, outbox).emit(Batch([Uncopied()], [0]), 0)

    assert not outbox


def test_what_could_not_go_to_another_process_is_refused_within_one() -> None:
    """The first record of each type is tried; nothing is sent, and no restart would help."""
    outbox: list[LinkMessage] = []
    edges = [OutputEdge(processor=1, parallelism=1, partitioner=CoLocationPartitioner())]
    outlet = _outlet(edges, outbox)
    outlet.emit(Batch(["a", 1, {"n": 1}], [0, 0, 0]), 0)
    outbox.clear()

    with pytest.raises(OperatorError, match=r"record\['lock'\] cannot be sent") as raised:
        _outlet(edges, outbox).emit(Batch([1, {"lock": Lock()}], [5, 6]), 0)

    assert raised.value.is_final
    assert raised.value.event_time_ms == 6
    assert "lock" in raised.value.record
    assert not outbox


def _outlet(edges: list[OutputEdge], outbox: list[LinkMessage]) -> Outlet:
    return Outlet(
        task_id=TaskId(0, 0),
        session=SessionId(1),
        edges=edges,
        limits=some_limits(window=100, interval=100, batch=100),
        outbox=outbox,
        epoch=1,
    )


def _sent(outbox: list[LinkMessage]) -> list[list[Any]]:
    return [
        each.batch.values
        for each in outbox
        if isinstance(each, DataMessage) and isinstance(each.batch, Batch)
    ]


@pytest.mark.parametrize(("links", "every"), [(1, 1), (16, 1), (17, 2), (32, 2), (160, 10)])
def test_many_links_are_told_what_is_promised_less_often(links: int, every: int) -> None:
    """The promises of a task without records are bounded, however many tasks are behind it."""
    sent: list[LinkMessage] = []
    edge = OutputEdge(processor=1, parallelism=links, partitioner=HashPartitioner())
    outlet = Outlet(
        task_id=TaskId(0, 0),
        session=SessionId(1),
        edges=[edge],
        limits=SMALL_LIMITS,
        outbox=sent,
        epoch=0,
    )
    told, start_ms = list[int](), 1_000
    for number in range(21):
        now_ms = start_ms + number * SMALL_LIMITS.watermark_interval_ms
        outlet.announce(number, idle=False)
        outlet.on_tick(now_ms)
        if any(type(each) is DataMessage for each in sent):
            told.append(number)
        sent.clear()

    assert told == [*range(0, 21, every)]
