"""A persistent task holds no record back, and each record counts once."""

import doctest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy.task.api.persistent
from gearpy.core.flow.alignment import EpochEnd, LinkAlignment
from gearpy.core.gearpump.monoid_state import NonWindowState
from gearpy.core.gearpump.monoids import CountsGroup, SumGroup
from gearpy.core.gearpump.window_state import Interval, Window, WindowState
from gearpy.core.window.watermark import WatermarkTracker
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.persistent import PersistentTask, ValueSerializer
from gearpy.testing import TaskDriver
from tests.task.build import a_context

A, B = TaskId(0, 0), TaskId(0, 1)


class Total(PersistentTask[NonWindowState[int]]):
    def persistent_state(self) -> NonWindowState[int]:
        return NonWindowState(SumGroup(), ValueSerializer())

    def process_message(self, state: NonWindowState[int], message: Message) -> list[Message]:
        state.update(message.timestamp, message.value)
        return [Message(state.value, message.timestamp)]


class WindowTotals(PersistentTask[WindowState[int]]):
    def persistent_state(self) -> WindowState[int]:
        return WindowState(SumGroup(), ValueSerializer(), Window(10, 5))

    def process_message(self, state: WindowState[int], message: Message) -> None:
        state.update(message.timestamp, message.value)

    def process_watermark(self, state: WindowState[int], watermark_ms: int) -> Iterator[Message]:
        for window, total in state.closing(watermark_ms):
            yield Message((*window, total), window.end_ms - 1)


class Words(PersistentTask[NonWindowState[dict[str, int]]]):
    def persistent_state(self) -> NonWindowState[dict[str, int]]:
        return NonWindowState(CountsGroup(), ValueSerializer())

    def process_message(self, state: NonWindowState[dict[str, int]], message: Message) -> None:
        state.update(message.timestamp, {message.value: 1})


def test_example_runs() -> None:
    assert doctest.testmod(gearpy.task.api.persistent) == (0, 8)


# -- one input, run by the runner ------------------------------------------------------------


def test_state_comes_back_after_a_restart() -> None:
    driver = TaskDriver(Words)
    driver.send_all(*map(Message, "abca"))
    resume = driver.cut()
    driver.send("lost")

    restarted = TaskDriver(Words, resume=resume)
    restarted.send("b")

    assert isinstance(restarted.task, Words)
    assert restarted.task.state.value == {"a": 2, "b": 2, "c": 1}


def test_watermark_shows_the_state_before_it_moves() -> None:
    driver = TaskDriver(WindowTotals)
    driver.send_all(Message(1, 3), Message(10, 7), Message(100, 12))

    driver.watermark(10)
    first = driver.take()
    driver.watermark(1000)

    assert first == [Message((-5, 5, 1), 4), Message((0, 10, 11), 9)]
    assert [message.value for message in driver.take()] == [(5, 15, 110), (10, 20, 100)]


def test_windows_come_back_where_they_were() -> None:
    driver = TaskDriver(WindowTotals)
    driver.send_all(Message(1, 3), Message(10, 7))
    driver.watermark(10)

    restarted = TaskDriver(WindowTotals, resume=driver.cut())
    restarted.send_all(Message(100, 4), Message(1000, 14))
    restarted.end()

    assert [m.value for m in restarted.take()] == [(5, 15, 1010), (10, 20, 1000)]
    assert restarted.clock.late_records == 1


def test_large_answers_to_a_watermark_are_sent_in_portions() -> None:
    context = a_context(batch=4)
    task = WindowTotals(context)
    task.on_start(MIN_MS)
    for time_ms in range(0, 50, 10):
        task.on_next(Message(1, time_ms))

    assert [len(batch) for batch in task.on_watermark(MAX_MS)] == [4, 4, 2]


def test_state_is_there_from_the_start_on() -> None:
    task = Total(a_context())

    with pytest.raises(AssertionError, match="on_start"):
        _ = task.state


# -- ValueSerializer -------------------------------------------------------------------------


@given(st.recursive(st.integers() | st.text(), lambda inner: st.tuples(inner) | st.lists(inner)))
def test_values_come_back_from_bytes(value: Any) -> None:
    serializer = ValueSerializer()

    assert serializer.from_bytes(serializer.to_bytes(value)) == value


# -- two inputs, not aligned: what the runner does, by hand ------------------------------------


class Sent(NamedTuple):
    link: TaskId
    epoch: int
    message: Message
    watermark_ms: int = MIN_MS


class Unaligned:
    """Gives a task its records at once, and watermarks and ends of epochs in their turn.

    A link's promise counts when the epoch that it was made in has begun: what is told downstream
    in an epoch must not follow from anything of a later one.
    """

    def __init__(
        self, make: type[PersistentTask[Any]], *, epoch: int = 1, resume: Any = None
    ) -> None:
        self.context: TaskContext = a_context()
        self.context.epoch, self.context.resume = epoch, resume
        self.task = make(self.context)
        self.task.on_start(MIN_MS)
        self.snapshots: dict[int, bytes] = {}
        self.outputs: list[tuple[int, Any]] = []  # Epoch and value, in the order they are sent.
        self._epoch = epoch
        self._links: LinkAlignment[Sent] = LinkAlignment([A, B], epoch, is_holding_back=False)
        self._watermarks = WatermarkTracker([A, B])
        self._promises: list[Sent] = []
        self._waiting: list[tuple[int, Any]] = []

    def take(self, sent: Sent) -> None:
        for passed in self._links.take(sent.link, sent, sent.epoch):
            if isinstance(passed, EpochEnd):
                self._end_epoch(passed.epoch)
            else:
                self._process(passed)

    def _process(self, sent: Sent) -> None:
        self.context.epoch = sent.epoch
        outputs = list(self.task.on_next(sent.message) or ())
        self._waiting += [(sent.epoch, message.value) for message in outputs]
        self.context.epoch = self._epoch
        self._promises.append(sent)
        self._begin_epoch()

    def _end_epoch(self, epoch: int) -> None:
        self.context.epoch = epoch
        self.snapshots[epoch] = self.task.snapshot()
        self.context.epoch = self._epoch = epoch + 1
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.outputs += [each for each in self._waiting if each[0] <= self._epoch]
        self._waiting = [each for each in self._waiting if each[0] > self._epoch]
        due = [each for each in self._promises if each.epoch <= self._epoch]
        self._promises = [each for each in self._promises if each.epoch > self._epoch]
        for sent in due:
            if self._watermarks.on_link(sent.link, sent.watermark_ms, idle=False):
                for batch in self.task.on_watermark(self._watermarks.watermark_ms):
                    self.outputs += [(self._epoch, value) for value in batch.values]


LAST_EPOCH = 6  # Both links get there, so that all epochs before it end.


#: How many epochs later, how far ahead of the watermark, how far that goes, and the value.
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 4), st.integers(1, 9)),
    max_size=8,
)


@st.composite
def two_links(draw: st.DrawFn) -> list[Sent]:
    """Return messages of two links: epochs and watermarks rise on each, in any order between."""
    streams = {link: _stream(link, draw(STEPS)) for link in (A, B)}
    return _mixed(streams, draw(st.randoms(use_true_random=False)))


def _stream(link: TaskId, steps: Iterable[tuple[int, int, int, int]]) -> list[Sent]:
    """Return the messages of one link, none late, and one of the last epoch at the end."""
    epoch, watermark_ms, stream = 1, 0, []
    for epochs, ahead_ms, progress_ms, value in steps:
        epoch = min(epoch + epochs, LAST_EPOCH)
        message = Message(value, watermark_ms + ahead_ms)
        watermark_ms += progress_ms
        stream.append(Sent(link, epoch, message, watermark_ms))
    return [*stream, Sent(link, LAST_EPOCH, Message(0, watermark_ms), MAX_MS)]


def total(sent: Iterable[Sent], until: int) -> int:
    return sum(each.message.value for each in sent if each.epoch <= until)


def test_record_of_a_later_epoch_does_not_wait() -> None:
    run = Unaligned(Total)
    for sent in [
        Sent(A, 1, Message(1)),
        Sent(A, 2, Message(10)),
        Sent(B, 1, Message(100)),
        Sent(B, 2, Message(1000)),
    ]:
        run.take(sent)

    assert run.task.state.left == 1111
    assert ValueSerializer().from_bytes(run.snapshots[1]) == 101
    assert run.outputs == [(1, 1), (1, 101), (2, 11), (2, 1111)]


@given(two_links())
def test_checkpoints_hold_exactly_the_records_of_their_epochs(messages: list[Sent]) -> None:
    """Property: however far one link is ahead of the other."""
    run = Unaligned(Total)

    for sent in messages:
        run.take(sent)

    ends = {
        epoch: ValueSerializer().from_bytes(snapshot) for epoch, snapshot in run.snapshots.items()
    }
    assert ends == {epoch: total(messages, epoch) for epoch in ends}
    assert max(ends) == LAST_EPOCH - 1


@given(two_links(), st.randoms(use_true_random=False))
def test_each_record_counts_once_after_a_restart(messages: list[Sent], order: Any) -> None:
    """Property: from any checkpoint, with the links in another order."""
    run = Unaligned(Total)
    for sent in messages:
        run.take(sent)

    for epoch, snapshot in run.snapshots.items():
        restarted = Unaligned(Total, epoch=epoch + 1, resume=snapshot)
        for sent in _replayed(messages, epoch, order):
            restarted.take(sent)
        assert restarted.task.state.left == total(messages, LAST_EPOCH)
        ends = {at: ValueSerializer().from_bytes(each) for at, each in restarted.snapshots.items()}
        assert ends == {at: total(messages, at) for at in ends}


@given(two_links(), st.randoms(use_true_random=False))
def test_windows_are_the_same_after_a_restart(messages: list[Sent], order: Any) -> None:
    """Property: what was put out up to the checkpoint, and after it, is each window once."""
    run = Unaligned(WindowTotals)
    for sent in messages:
        run.take(sent)
    once = [value for _, value in run.outputs]
    assert once == _window_totals(messages)

    for epoch, snapshot in run.snapshots.items():
        restarted = Unaligned(WindowTotals, epoch=epoch + 1, resume=snapshot)
        for sent in _replayed(messages, epoch, order):
            restarted.take(sent)
        before = [value for at, value in run.outputs if at <= epoch]
        assert before + [value for _, value in restarted.outputs] == once


def _replayed(messages: Sequence[Sent], epoch: int, order: Any) -> list[Sent]:
    """Return the messages after an epoch, each link in its order, the links mixed anew."""
    streams = {
        link: [sent for sent in messages if sent.link == link and sent.epoch > epoch]
        for link in (A, B)
    }
    return _mixed(streams, order)


def _mixed(streams: Mapping[TaskId, list[Sent]], order: Any) -> list[Sent]:
    turns = [link for link, stream in streams.items() for _ in stream]
    order.shuffle(turns)
    return [streams[link].pop(0) for link in turns]


def _window_totals(messages: Iterable[Sent]) -> list[tuple[int, int, int]]:
    window = Window(10, 5)
    records = [sent.message for sent in messages]
    starts = {
        start
        for record in records
        for start in range(record.timestamp - 9, record.timestamp + 1)
        if start % window.step_ms == 0
    }
    return [
        (
            *Interval(start, start + 10),
            sum(each.value for each in records if start <= each.timestamp < start + 10),
        )
        for start in sorted(starts)
    ]
