"""Chains of stages, sources and sinks as tasks."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.core.window.windows import TumblingWindows
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, TaskId
from gearpy.messages.data import Message
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.api.interfaces import (
    TaskContext,
)
from gearpy.task.api.output import Columns
from gearpy.task.api.window_result import WindowResult
from gearpy.task.chain.chain import ChainTask, Stage
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.stages.sink import SinkStage
from tests.task import stage_build as stages
from tests.task.build import Bench
from tests.task.stage_build import NotedSink, mapped

COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)


# -- chains ----------------------------------------------------------------------------------


def test_records_pass_all_stages() -> None:
    """One after the other, a batch at a time."""
    bench = Bench(
        lambda context: ChainTask(
            context, lambda _: [mapped(lambda n: n + 1), mapped(lambda n: n * 10)]
        )
    ).open()

    bench.send(1, 2)
    bench.run()

    assert bench.target.values == [20, 30]


def test_chain_without_stages_passes_on() -> None:
    """A merge of streams does nothing but that."""
    bench = Bench(lambda context: ChainTask(context, lambda _: [])).open()

    bench.send(1, 2)
    bench.run()

    assert bench.target.values == [1, 2]


def windows_of_windows(context: TaskContext) -> list[Stage]:
    """Return a count for each 10 ms, then how many of those there are in each 100 ms."""
    return [
        WindowFold(context, "inner", TumblingWindows(10), None, COUNT, limit=4),
        WindowFold(context, "outer", TumblingWindows(100), None, COUNT, limit=4),
    ]


def test_watermark_passes_the_stages_in_order() -> None:
    """What it closes in one stage is in time for the next one."""
    bench = Bench(lambda context: ChainTask(context, windows_of_windows)).open()

    bench.send(Message("a", 5), Message("b", 95), watermark_ms=90)
    bench.run()
    hold_ms = bench.runner.clock().clock_ms
    bench.send(watermark_ms=100)
    bench.run()

    assert hold_ms == 9
    assert bench.target.values == [WindowResult(None, 2, 0, 100)]
    assert bench.runner.clock().late_records == 0


class Closing(FusedStage):
    """Raises when it is closed, perhaps."""

    def __init__(self, closed: list[str], name: str, error: Exception | None) -> None:
        super().__init__([RowOperator("map", name, str)], limit=4)
        self.closed = closed
        self.name = name
        self.error = error

    def close(self, *, completed: bool) -> None:
        """Note it."""
        self.closed.append(self.name)
        if self.error is not None:
            raise self.error


def test_all_stages_are_closed_though_one_fails() -> None:
    """The first error is told."""
    closed: list[str] = []
    stages = [Closing(closed, "a", OSError("first")), Closing(closed, "b", OSError("second"))]
    bench = Bench(lambda context: ChainTask(context, lambda _: stages)).open()

    with pytest.raises(OperatorError, match="OSError: first"):
        bench.runner.stop(completed=True)

    assert closed == ["a", "b"]


# -- sinks -----------------------------------------------------------------------------------


def test_sink_is_opened_written_and_closed() -> None:
    """In this order, with watermarks as they come."""
    sink = NotedSink()
    bench = Bench(
        lambda context: ChainTask(context, lambda c: [SinkStage(c, sink, "sink")]), targets=()
    ).open()

    bench.send("a", "b", watermark_ms=5)
    bench.send("c", watermark_ms=MAX_MS)
    bench.run()
    bench.runner.stop(completed=True)

    assert sink.calls == [
        ("open", (0, 1)),
        ("write", ("a", "b")),
        ("watermark", 5),
        ("write", ("c",)),
        ("watermark", MAX_MS),
        ("close", True),
    ]
    assert bench.runner.clock().clock_ms == MAX_MS


@pytest.mark.parametrize("fails", ["open", "write", "watermark", "close"])
def test_sink_that_fails_is_named(fails: str) -> None:
    """Whichever of its calls it is."""
    sink = NotedSink(fails)
    bench = Bench(lambda context: ChainTask(context, lambda c: [SinkStage(c, sink, "my sink")]))

    with pytest.raises(OperatorError, match=f"OSError: cannot {fails}") as raised:
        work_and_stop(bench)

    assert raised.value.operator == "my sink"
    assert raised.value.source.startswith(f"{stages.__file__}:")


def work_and_stop(bench: Bench) -> None:
    """Make every call once."""
    bench.open()
    bench.send("a", watermark_ms=5)
    bench.run()
    bench.runner.stop(completed=True)


class Exploding:
    """A stage without an end."""

    name = "exploding"
    place = 0
    hold_ms = MAX_MS

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Yield for ever."""
        while True:
            yield values, timestamps

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Yield for ever."""
        while True:
            yield ["x"], [0]

    def snapshot(self) -> None:
        """Nothing is kept."""

    def restore(self, state: Any) -> None:
        """Nothing was kept."""

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""


def test_chain_is_suspended_in_the_midst_of_a_stage() -> None:
    """Stages are pulled, not run."""
    bench = Bench(lambda context: ChainTask(context, lambda _: [Exploding(), mapped(str)])).open()

    bench.send(1)
    bench.turn()

    assert bench.runner.is_blocked
    assert bench.runner.clock().records_out <= 51
    assert bench.targets.keys() == {TaskId(2, 0)}
