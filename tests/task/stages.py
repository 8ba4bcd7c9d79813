"""Sources, sinks and stages that do what a test tells them."""

from collections.abc import Callable, Sequence
from typing import Any

from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api import Sink, SinkWriter, Source, SourceReader, TaskContext, TaskLimits
from gearpy.task.fused import FusedStage, RowOperator
from gearpy.task.operators import ChainTask, SinkStage, SourceTask, Stage
from tests.task.build import Bench

__all__ = [
    "NotedSink",
    "Scripted",
    "ScriptedSource",
    "Written",
    "a_source_bench",
    "chained",
    "chained_sink",
    "mapped",
]


class Scripted(SourceReader):
    """Does one after the other what its script says.

    A list of pairs is a batch; a number is a watermark for the batch after it; "idle" and "end"
    are what they say; None is nothing at present; an exception is raised.
    """

    def __init__(self, script: Sequence[Any], calls: list[Any], name: str) -> None:
        self.script = list(script)
        self.calls = calls
        self.name = name
        self.promised_ms = MIN_MS
        self.read = 0

    def read_batch(self, max_records: int) -> Batch | None:
        """Do the next step."""
        assert not self.finished, "not called any more"
        self.calls.append(f"read {self.name}")
        self.idle = False
        batch = None
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        if isinstance(step, list):
            batch = Batch([value for value, _ in step], [time for _, time in step])
            self.read += len(batch)
        if step == "idle":
            self.idle = True
        while self.script and isinstance(self.script[0], int):
            self.promised_ms = self.script.pop(0)
        if self.script and self.script[0] == "end":
            self.finished = True
        return batch

    def snapshot(self) -> Any:
        """Return how much was read."""
        return self.read

    @property
    def watermark_ms(self) -> int:
        """As the script says."""
        return self.promised_ms

    @property
    def progress(self) -> tuple[int, int]:
        """Records of ten."""
        return self.read, 10

    def close(self) -> None:
        """Note it."""
        self.calls.append(f"close {self.name}")


class ScriptedSource(Source):
    """One script, or a reader, for each partition."""

    def __init__(self, **scripts: Any) -> None:
        self.scripts = scripts
        self.calls: list[Any] = []
        self.places: dict[str, Any] = {}

    def partitions(self) -> list[str]:
        """Return their names, in no order."""
        return sorted(self.scripts, reverse=True)

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        """Open one, or fail."""
        self.calls.append(f"open {partition}")
        self.places[partition] = resume
        script = self.scripts[partition]
        if script == ["broken"]:
            raise OSError(f"no partition {partition}")
        if isinstance(script, SourceReader):
            return script
        return Scripted(script, self.calls, partition)


class Written(SinkWriter):
    """Notes its calls; raises in one of them."""

    def __init__(self, calls: list[Any], fails: str) -> None:
        self.calls = calls
        self.fails = fails

    def write_batch(self, batch: Batch) -> None:
        """Note the values."""
        self._call("write", tuple(batch.values))

    def on_watermark(self, watermark_ms: int) -> None:
        """Note it."""
        self._call("watermark", watermark_ms)

    def close(self, *, completed: bool) -> None:
        """Note it."""
        self._call("close", completed)

    def _call(self, name: str, value: object) -> None:
        self.calls.append((name, value))
        if name == self.fails:
            raise OSError(f"cannot {name}")


class NotedSink(Sink):
    """Notes what its writers are called with."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[Any] = []
        self.fails = fails

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        """Return a writer."""
        self.calls.append(("open", (task_index, parallelism)))
        if self.fails == "open":
            raise OSError("cannot open")
        return Written(self.calls, self.fails)


def a_source_bench(
    source: Source, *, stages: Any = None, poll_ms: int = 10, **kwargs: Any
) -> Bench:
    """Return a source task at work, which reads 4 records at a time."""

    def make(context: TaskContext) -> SourceTask:
        return SourceTask(context, source, stages or (lambda _: []))

    limits = TaskLimits(batch_records=4, read_batch_records=4, idle_poll_ms=poll_ms)
    return Bench(make, upstream=0, task_limits=limits, **kwargs).open()


def mapped(function: Any) -> FusedStage:
    """Return a stage of one map."""
    return FusedStage([RowOperator("map", "map", function)], limit=4)


def chained(*stages: Stage) -> Callable[[TaskContext], ChainTask]:
    """Return what makes a chain of these stages."""
    return lambda context: ChainTask(context, lambda _: stages)


def chained_sink(sink: Sink, *stages: Stage) -> Callable[[TaskContext], ChainTask]:
    """Return what makes a chain that ends in a sink."""
    return lambda context: ChainTask(context, lambda _: [*stages, SinkStage(context, sink, "out")])
