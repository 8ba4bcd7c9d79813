"""Chains of stages, sources and sinks as tasks."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.stages.sink import SinkStage
from tests.task import stage_build as stages
from tests.task.build import Bench
from tests.task.stage_build import NotedSink, mapped


def test_records_pass_all_stages() -> None:
    bench = Bench(
        lambda context: ChainTask(
            context, lambda _: [mapped(lambda n: n + 1), mapped(lambda n: n * 10)]
        )
    ).open()

    bench.send(1, 2)
    bench.run()

    assert bench.target.values == [20, 30]


class Pausing(stages.Spread):
    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        return iter([Batch([], [])] * 3)


def test_others_may_go_on_while_a_stage_finds_nothing() -> None:
    seen = SeenStage()
    bench = Bench(lambda context: ChainTask(context, lambda _: [Pausing(), seen]), turn_ms=0).open()
    bench.send(watermark_ms=5)

    turns = 0
    while bench.runner.turn() == 0:
        turns += 1

    assert turns >= 3
    assert seen.batches == []


class SeenStage(stages.Spread):
    def __init__(self) -> None:
        self.batches: list[Any] = []

    def process(self, batch: Batch) -> Iterator[Batch]:
        self.batches.append(batch.values)
        return iter(())


class Closing(FusedStage):
    def __init__(self, closed: list[str], name: str, error: Exception | None) -> None:
        super().__init__([RowOperator("map", name, str)], limit=4)
        self.closed = closed
        self.name = name
        self.error = error

    def close(self, *, completed: bool) -> None:
        self.closed.append(self.name)
        if self.error is not None:
            raise self.error


def test_all_stages_are_closed_though_one_fails() -> None:
    closed: list[str] = []
    stages = [Closing(closed, "a", OSError("first")), Closing(closed, "b", OSError("second"))]
    bench = Bench(lambda context: ChainTask(context, lambda _: stages)).open()

    with pytest.raises(OperatorError, match="OSError: first"):
        bench.runner.stop(completed=True)

    assert closed == ["a", "b"]


def test_sink_is_opened_written_and_closed() -> None:
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
    sink = NotedSink(fails)
    bench = Bench(lambda context: ChainTask(context, lambda c: [SinkStage(c, sink, "my sink")]))

    with pytest.raises(OperatorError, match=f"OSError: cannot {fails}") as raised:
        work_and_stop(bench)

    assert raised.value.operator == "my sink"
    assert raised.value.source.startswith(f"{stages.__file__}:")


def work_and_stop(bench: Bench) -> None:
    bench.open()
    bench.send("a", watermark_ms=5)
    bench.run()
    bench.runner.stop(completed=True)
