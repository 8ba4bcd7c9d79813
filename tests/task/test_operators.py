"""Chains of stages, sources and sinks as tasks."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.core.window import TumblingWindows
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.data import Batch, Message
from gearpy.task.aggregate import Fold, WindowFold, WindowResult
from gearpy.task.api import (
    TaskContext,
)
from gearpy.task.fused import FusedStage, RowOperator
from gearpy.task.operators import ChainTask, SinkStage, SourceTask, Stage
from gearpy.task.output import Columns
from tests.task import stages
from tests.task.build import Bench, a_context, some_limits
from tests.task.stages import NotedSink, Scripted, ScriptedSource, a_source_bench, mapped

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


# -- sources ---------------------------------------------------------------------------------


def test_source_is_opened_read_and_closed() -> None:
    """In this order; a partition that has finished is closed at once."""
    source = ScriptedSource(a=[[("x", 1)], [("y", 2)], "end"])

    bench = a_source_bench(source).run()
    bench.runner.stop(completed=True)

    assert source.calls == ["open a", "read a", "read a", "close a"]
    assert bench.target.values == ["x", "y"]
    assert bench.target.watermark_ms == MAX_MS


def test_partitions_are_dealt_to_the_tasks() -> None:
    """Partition k belongs to task k modulo parallelism, by the order of their names."""
    opened = []

    for index in (0, 1):
        source = ScriptedSource(a=["end"], b=["end"], c=["end"])
        task = SourceTask(a_context(task_index=index, parallelism=2), source, lambda _: [])
        task.on_start(MIN_MS)
        opened.append(source.calls)

    assert opened == [["open a", "open c"], ["open b"]]


def test_task_without_partitions_ends_at_once() -> None:
    """It must not hold the clock."""
    bench = a_source_bench(ScriptedSource())

    bench.run()

    assert bench.target.watermark_ms == MAX_MS


def test_empty_partition_that_is_finished_is_not_read() -> None:
    """That is the contract of a reader."""
    reader = Scripted([], [], "a")
    reader.finished = True

    bench = a_source_bench(ScriptedSource(a=reader)).run()

    assert bench.target.watermark_ms == MAX_MS
    assert reader.calls == ["close a"]


def test_partition_furthest_behind_is_read_first() -> None:
    """Otherwise windows fill while one partition runs ahead."""
    source = ScriptedSource(
        a=[[("a1", 1)], 100, [("a2", 101)], "end"], b=[[("b1", 1)], 50, [("b2", 51)], 150, "end"]
    )

    bench = a_source_bench(source).run()

    assert bench.target.values == ["a1", "b1", "b2", "a2"]
    assert bench.target.late == []


def test_partitions_without_a_watermark_take_turns() -> None:
    """The first one would else be the only one that is read, for ever."""
    source = ScriptedSource(
        a=[[("a1", 0)], [("a2", 0)], [("a3", 0)], "end"],
        b=[[("b1", 0)], [("b2", 0)], [("b3", 0)], "end"],
    )

    bench = a_source_bench(source).run()

    assert bench.target.values == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_watermark_is_the_least_of_the_partitions() -> None:
    """As with links."""
    source = ScriptedSource(a=[[("a", 10)], 10], b=[[("b", 20)], 20])

    bench = a_source_bench(source).run()

    assert bench.runner.clock().watermark_ms == 10


def test_idle_partition_holds_nothing_back() -> None:
    """The others' watermark goes on."""
    source = ScriptedSource(a=["idle"], b=[[("b", 20)], 20])

    bench = a_source_bench(source).run()

    assert bench.runner.clock().watermark_ms == 20
    assert not bench.runner.clock().idle


def test_source_is_idle_when_all_its_partitions_are() -> None:
    """The flag goes with the first record that comes again."""
    source = ScriptedSource(a=["idle", [("a", 20)], 20])

    bench = a_source_bench(source).run()
    idle = bench.target.idle
    bench.pass_time(10)
    bench.run()

    assert idle
    assert [data.idle for data in bench.target.data if len(data.batch)] == [False]
    assert not bench.target.idle


def test_source_without_records_is_asked_again_later() -> None:
    """It does not spin."""
    source = ScriptedSource(a=[None, [("a", 1)]])
    bench = a_source_bench(source, poll_ms=10)

    assert bench.turn() == 10
    bench.run()
    assert bench.target.values == []
    bench.pass_time(10)
    bench.run()
    assert bench.target.values == ["a"]


def test_progress_is_the_sum_of_the_partitions() -> None:
    """Also of those that have ended and are closed."""
    source = ScriptedSource(a=[[("a", 1), ("a", 1)], "end"], b=[[("b", 1)]])

    bench = a_source_bench(source).run()

    clock = bench.runner.clock()
    assert (clock.done, clock.total, clock.records_in) == (3, 20, 3)


def test_source_stops_reading_while_downstream_is_full() -> None:
    """Memory is bounded from the first step on."""
    source = ScriptedSource(a=[[(n, 0)] * 4 for n in range(100)])
    bench = a_source_bench(source, limits=some_limits(window=20, batch=4))

    for _ in range(10):
        bench.turn()

    assert source.calls.count("read a") <= 20 // 4 + 1


def test_window_behind_a_source_closes_with_its_watermark() -> None:
    """In one task; results come before the watermark does."""
    source = ScriptedSource(a=[[("x", 1), ("y", 2)], 12, [("z", 12)], "end"])

    bench = a_source_bench(
        source,
        stages=lambda context: [
            WindowFold(context, "count", TumblingWindows(10), None, COUNT, limit=4)
        ],
    ).run()

    assert bench.target.values == [WindowResult(None, 2, 0, 10), WindowResult(None, 1, 10, 20)]
    assert bench.target.late == []


def test_watermark_of_a_source_is_told_once_and_never_goes_back() -> None:
    """Also when a partition that was idle comes back from further behind."""
    sink = NotedSink()
    source = ScriptedSource(
        a=["idle", "idle", [("a", 5)], 5, [("a", 8)], "end"], b=[[("b", 20)], 20, [("b", 21)]]
    )

    bench = a_source_bench(source, stages=lambda context: [SinkStage(context, sink, "sink")])
    for _ in range(5):
        bench.run()
        bench.pass_time(10)

    assert [value for name, value in sink.calls if name == "watermark"] == [20]


def test_partition_that_cannot_be_opened_leaves_none_open() -> None:
    """Those before it are closed."""
    source = ScriptedSource(a=[], b=["broken"])

    bench = Bench(lambda context: SourceTask(context, source, lambda _: []), upstream=0)
    with pytest.raises(OperatorError, match="OSError: no partition b"):
        bench.open()
    bench.runner.stop(completed=False)

    assert source.calls == ["open a", "open b", "close a"]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ([OSError("disk is gone")], "OSError: disk is gone"),
        ([[("a", 1.5)]], "timestamp 1.5 is no int"),
    ],
    ids=["raises", "seconds"],
)
def test_source_that_fails_is_named(script: list[Any], text: str) -> None:
    """It is user code, too."""
    bench = a_source_bench(ScriptedSource(a=script))

    with pytest.raises(OperatorError, match=text) as raised:
        bench.run()

    assert raised.value.operator == "bench"


def test_ragged_batch_of_a_source_loses_nothing_silently() -> None:
    """Values without a time would be left out by the first loop."""

    class Ragged(Scripted):
        def read_batch(self, max_records: int) -> Batch | None:
            return Batch([1, 2, 3], [0])

    bench = a_source_bench(ScriptedSource(a=Ragged([], [], "a")))

    with pytest.raises(OperatorError, match="ScriptedSource gave 3 values but 1 timestamps"):
        bench.run()


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
