"""A stage overrides what it needs; a chain calls nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch, Origin
from gearpy.task.api.interfaces import Sink, SinkWriter
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.sink import SinkStage
from tests.task.build import Bench, a_context
from tests.task.stage_build import NotedSink


class Passing(Stage):
    """Overrides nothing but `process`; notes whatever else it is asked."""

    name = "passing"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if hasattr(Stage, name) and not name.startswith("__"):
            object.__getattribute__(self, "asked").append(name)
        return object.__getattribute__(self, name)

    def process(self, batch: Batch) -> Iterator[Batch]:
        return iter((batch,))


def test_a_stage_is_asked_for_what_it_overrides() -> None:
    stage = Passing()
    bench = Bench(lambda context: ChainTask(context, lambda _: [stage])).open()
    stage.asked.clear()

    bench.send(7, watermark_ms=20)
    bench.run()
    bench.runner.clock()

    assert bench.target.values == [7]
    assert set(stage.asked) <= {"process", "name", "defers"}


def test_what_is_overridden_is_found_in_base_classes_too() -> None:
    class Held(Stage):
        @property
        def hold_ms(self) -> int:
            return 5

    class More(Held):
        def process(self, batch: Batch) -> Iterator[Batch]:
            return iter(())

    assert More().overrides("hold_ms")
    assert not More().overrides("drain")
    assert (Stage().hold_ms, Stage().wake_ms, Stage().has_room) == (MAX_MS, None, True)


def test_a_stage_without_process_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Stage has no process"):
        Stage().process(Batch([1], [1]))


class Opened(NotedSink):
    def __init__(self, writer: SinkWriter) -> None:
        super().__init__()
        self.writer = writer

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return self.writer


class Plain(SinkWriter):
    def write_batch(self, batch: Batch) -> None:
        """Keep nothing."""


class Told(Plain):
    def consumers(self) -> list[Any]:
        return []


def test_a_sink_does_what_its_writer_does() -> None:
    def overridden(sink: Sink) -> set[str]:
        stage = SinkStage(a_context(), sink, "out")
        asked = ("commit", "consumers", "on_watermark", "epoch_fill", "waits_for")
        return {name for name in asked if stage.overrides(name)}

    assert overridden(Opened(Plain())) == set()
    assert overridden(Opened(Told())) == {"consumers"}


def test_results_are_late_and_from_where_their_records_are() -> None:
    origin = Origin(1, 2, 3)
    batch = Batch(["a", "b"], [1, 2], has_late=True, origin=origin)

    assert batch.giving(["x"], [2]) == Batch(["x"], [2], has_late=True, origin=origin)
    assert batch.part(1, 2) == Batch(["b"], [2], has_late=True, origin=origin)
