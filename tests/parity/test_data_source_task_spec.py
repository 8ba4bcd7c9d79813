"""Promises of Gearpump's `DataSourceTaskSpec` and `DataSinkTaskSpec`."""

from collections.abc import Sequence
from typing import Any

from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.sources.task import SourceTask
from gearpy.task.stages.sink import SinkStage
from tests.task.build import Bench


class Letters(Source, SourceReader):
    """A source of one batch that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def partitions(self) -> Sequence[str]:
        """Return one."""
        return ["only"]

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        """Note it."""
        self.calls.append("open")
        return self

    def read_batch(self, max_records: int) -> Batch | None:
        """Note it, and finish."""
        self.calls.append("read")
        self.finished = True
        return Batch(["a", "b"], [1, 2])

    def snapshot(self) -> None:
        """Nothing to resume from."""

    def close(self) -> None:
        """Note it."""
        self.calls.append("close")


class Noted(Sink, SinkWriter):
    """A sink that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        """Note it."""
        self.calls.append("open")
        return self

    def write_batch(self, batch: Batch) -> None:
        """Note the values."""
        self.calls.append(batch.values)

    def close(self, *, completed: bool) -> None:
        """Note it."""
        self.calls.append("close")


def test_source_is_set_up_read_and_torn_down() -> None:
    """`DataSourceTaskSpec`: open, read, close; the operator is applied to what is read."""
    source = Letters()
    upper = FusedStage([RowOperator("map", "upper", str.upper)], limit=10)
    bench = Bench(lambda context: SourceTask(context, source, lambda _: [upper]), upstream=0)

    bench.open().run()
    bench.runner.stop(completed=True)

    assert source.calls == ["open", "read", "close"]
    assert bench.target.values == ["A", "B"]
    assert bench.target.watermark_ms == MAX_MS


def test_sink_is_set_up_written_and_torn_down() -> None:
    """`DataSinkTaskSpec`: open, write, close."""
    sink = Noted()
    bench = Bench(
        lambda context: ChainTask(context, lambda c: [SinkStage(c, sink, "sink")]), targets=()
    )

    bench.open().send("a", "b")
    bench.run()
    bench.runner.stop(completed=True)

    assert sink.calls == ["open", ["a", "b"], "close"]
