"""Epochs that a task was not asked to end: they end with the next one; no record falls between."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext
from tests.task.build import TARGET, Bench, some_limits


class _Gathers(Task):
    """Keeps what it gets until an epoch ends, and has nothing of it in its snapshot."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self._gathered: list[Message] = []

    def on_next(self, message: Message) -> None:
        self._gathered.append(message)

    def before_snapshot(self) -> Iterator[Batch]:
        if self._gathered:
            yield Batch.of(*self._gathered)
        self._gathered = []


class _GathersAtOnce(_Gathers):
    def produce(self) -> int:
        for number in (1, 2, 3):
            self.on_next(Message(number, number))
        return FINISHED


class _PassesOn(Task):
    """Waits for no link; what it puts out early waits itself."""

    aligned: ClassVar[bool] = False

    def on_next(self, message: Message) -> None:
        self.context.output(message)


def _until(bench: Bench, epoch: int) -> list[Any]:
    """Return what has left up to the end of an epoch, in order of value."""
    return sorted(value for at, values in bench.target.epochs if at <= epoch for value in values)


def test_source_sends_what_it_gathered_before_the_end() -> None:
    """It was kept for an epoch that never began: the records were lost, the stream never ended."""
    bench = Bench(_GathersAtOnce, upstream=0).open().run()

    bench.runner.cut(3)
    bench.run()
    bench.pass_time(10)
    bench.run()

    assert [each.epoch for each in bench.runner.snapshots] == [3]
    assert _until(bench, 3) == [1, 2, 3]
    assert bench.runner.clock().clock_ms == bench.target.watermark_ms == MAX_MS


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.integers(1, 4)),
        st.tuples(st.just("end"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("turn")),
        st.tuples(st.just("consume"), st.integers(1, 4)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("make", [_Gathers, _PassesOn])
@settings(max_examples=50)
@given(_STEPS, st.integers(1, 4), st.integers(0, 5))
def test_all_records_up_to_the_end_of_an_epoch_have_left_before_it(
    make: Callable[[TaskContext], Task], steps: list[tuple[Any, ...]], interval: int, more: int
) -> None:
    """Property: whichever epochs the links skip, and whichever are held, none is behind its end.

    The tasks keep nothing: a record that is behind the end would be lost with a restart from there.
    """
    limits = some_limits(window=interval + more, interval=interval, batch=2)
    bench = Bench(make, upstream=2, limits=limits).open()
    epochs, sent = [1, 1], list[tuple[int, int]]()

    for name, *values in steps:
        if name == "send":
            source, count = values
            numbers = range(len(sent), len(sent) + count)
            bench.send(*numbers, source=source, epoch=epochs[source])
            sent += [(epochs[source], number) for number in numbers]
        elif name == "end":
            epochs[values[0]] += values[1]
            bench.send(source=values[0], epoch=epochs[values[0]])
        elif name == "turn":
            bench.turn()
        else:
            bench.consume(TARGET, values[0])
    for source in (0, 1):
        bench.send(source=source, epoch=max(epochs) + 1)
    bench.run()

    ended = [each.epoch for each in bench.runner.snapshots]
    assert ended[-1] == max(epochs)
    for epoch in ended:
        assert _until(bench, epoch) == [number for at, number in sent if at <= epoch]
