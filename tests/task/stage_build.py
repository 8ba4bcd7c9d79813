"""Sources, sinks and stages that do what a test tells them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import has_late
from gearpy.task.api.interfaces import (
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    TaskContext,
    TaskLimits,
)
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.chain.stage import Stage
from gearpy.task.sources.task import SourceTask
from gearpy.task.stages.sink import SinkStage
from gearpy.task.time.late import SourceLate
from tests.task.build import Bench


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
        return self.read

    @property
    def watermark_ms(self) -> int:
        return self.promised_ms

    @property
    def progress(self) -> tuple[int, int]:
        return self.read, 10

    def close(self) -> None:
        self.calls.append(f"close {self.name}")


class ScriptedSource(Source):
    def __init__(self, **scripts: Any) -> None:
        self.scripts = scripts
        self.calls: list[Any] = []
        self.places: dict[str, Any] = {}

    def partitions(self) -> list[str]:
        return sorted(self.scripts, reverse=True)

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        self.calls.append(f"open {partition}")
        self.places[partition] = resume
        script = self.scripts[partition]
        if script == ["broken"]:
            raise OSError(f"no partition {partition}")
        if isinstance(script, SourceReader):
            return script
        return Scripted(script, self.calls, partition)


class Bounded(SourceReader):
    """Gives records that are at most so far out of order; some may be late."""

    def __init__(
        self,
        records: Sequence[tuple[Any, int]],
        *,
        out_of_order_ms: int = 0,
        place: tuple[int, int] = (0, MIN_MS),
        ends: bool = True,
    ) -> None:
        self.out_of_order_ms = out_of_order_ms
        self.records = list(records)
        self.ends = ends
        self.batch_records = sys.maxsize
        self.at, watermark_ms = place
        self.order = BoundedOutOfOrder(out_of_order_ms)
        self.order.watermark_ms = watermark_ms

    def read_batch(self, max_records: int) -> Batch | None:
        records = self.records[self.at : self.at + min(max_records, self.batch_records)]
        self.at += len(records)
        self.finished = self.ends and self.at == len(self.records)
        times = [time for _, time in records]
        self.order.on_records(times)
        return Batch([value for value, _ in records], times) if records else None

    def snapshot(self) -> tuple[int, int]:
        return self.at, self.order.watermark_ms

    @property
    def watermark_ms(self) -> int:
        return self.order.watermark_ms


class BoundedSource(Source):
    replayable = True

    def __init__(
        self, *partitions: Sequence[tuple[Any, int]], out_of_order_ms: int = 0, ends: bool = True
    ) -> None:
        self.records = {f"p{at}": records for at, records in enumerate(partitions)}
        self.out_of_order_ms = out_of_order_ms
        self.ends = ends

    def partitions(self) -> list[str]:
        return list(self.records)

    def open(self, partition: str, resume: Any | None) -> Bounded:
        return Bounded(
            self.records[partition],
            out_of_order_ms=self.out_of_order_ms,
            place=resume or (0, MIN_MS),
            ends=self.ends,
        )


class Written(SinkWriter):
    def __init__(self, calls: list[Any], fails: str) -> None:
        self.calls = calls
        self.fails = fails

    def write_batch(self, batch: Batch) -> None:
        self._call("write", tuple(batch.values))

    def on_watermark(self, watermark_ms: int) -> None:
        self._call("watermark", watermark_ms)

    def close(self, *, completed: bool) -> None:
        self._call("close", completed)

    def _call(self, name: str, value: object) -> None:
        self.calls.append((name, value))
        if name == self.fails:
            raise OSError(f"cannot {name}")


class NotedSink(Sink):
    def __init__(self, fails: str = "") -> None:
        self.calls: list[Any] = []
        self.fails = fails

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        self.calls.append(("open", (task_index, parallelism)))
        if self.fails == "open":
            raise OSError("cannot open")
        return Written(self.calls, self.fails)


class Delayed(Stage):
    """Yields each record so many ms of wall time after it came; keeps it in snapshots."""

    name = "delayed"

    def __init__(self, context: TaskContext, delay_ms: int = 10) -> None:
        self._context = context
        self._delay_ms = delay_ms
        self.waiting: list[tuple[int, Any, int]] = []
        self.called: list[int] = []

    @property
    def wake_ms(self) -> int | None:
        return self.waiting[0][0] if self.waiting else None

    @property
    def hold_ms(self) -> int:
        return min((time for _, _, time in self.waiting), default=MAX_MS)

    def process(self, batch: Batch) -> Iterator[Batch]:
        due_ms = self._context.now_ms() + self._delay_ms
        self.waiting += [
            (due_ms, *pair) for pair in zip(batch.values, batch.timestamps, strict=True)
        ]
        return iter(())

    def on_time(self, now_ms: int) -> Iterator[Batch]:
        self.called.append(now_ms)
        while self.waiting and self.waiting[0][0] <= now_ms:
            _, value, time = self.waiting.pop(0)
            yield Batch([value], [time])

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        if watermark_ms == MAX_MS:
            for _, value, time in self.waiting:
                yield Batch([value], [time])
            self.waiting = []

    def snapshot(self) -> Any:
        return [list(each) for each in self.waiting]

    def restore(self, state: Any) -> None:
        self.waiting = [(due_ms, value, time) for due_ms, value, time in state or ()]


class Spread(Stage):
    name = "spread"

    def process(self, batch: Batch) -> Iterator[Batch]:
        for value, time in zip(batch.values, batch.timestamps, strict=True):
            yield Batch([value], [time])


class Held(Spread):
    """Keeps records until the watermark has passed them, as a window does."""

    name = "held"

    def __init__(self) -> None:
        self.kept: list[tuple[Any, int]] = []
        self.watermark_ms = MIN_MS

    @property
    def hold_ms(self) -> int:
        return min((time for _, time in self.kept), default=MAX_MS)

    def process(self, batch: Batch) -> Iterator[Batch]:
        self.kept += zip(batch.values, batch.timestamps, strict=True)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self.watermark_ms = watermark_ms
        while self.kept and self.kept[0][1] < watermark_ms:
            value, time = self.kept.pop(0)
            yield Batch([value], [time])

    def snapshot(self) -> Any:
        return [self.watermark_ms, [list(each) for each in self.kept]]

    def restore(self, state: Any) -> None:
        self.watermark_ms, kept = state or (MIN_MS, [])
        self.kept = [(value, time) for value, time in kept]


def a_source_bench(
    source: Source,
    *,
    stages: Any = None,
    poll_ms: int = 10,
    brisk_poll_ms: int | None = None,
    woken_poll_ms: int = 10,
    read: int = 4,
    held: int = 1_000_000,
    late: SourceLate = "keep",
    idle_after_ms: int | None = None,
    **kwargs: Any,
) -> Bench:
    """Return a source task at work, which reads 4 records at a time."""

    def make(context: TaskContext) -> SourceTask:
        return SourceTask(
            context, source, stages or (lambda _: []), late=late, idle_after_ms=idle_after_ms
        )

    limits = TaskLimits(
        batch_records=4,
        read_batch_records=read,
        idle_poll_ms=poll_ms,
        brisk_poll_ms=poll_ms if brisk_poll_ms is None else brisk_poll_ms,
        woken_poll_ms=woken_poll_ms,
        held_records_max=held,
    )
    return Bench(make, upstream=0, task_limits=limits, **kwargs).open()


#: Values and their event times.
Columns: TypeAlias = tuple[list[Any], list[int]]


def columns_of(batches: Iterable[Batch]) -> Iterator[Columns]:
    return ((batch.values, batch.timestamps) for batch in batches)


def results_of(stage: Stage, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
    return columns_of(stage.process(Batch(values, timestamps, has_late(timestamps))))


def mapped(function: Any) -> FusedStage:
    return FusedStage([RowOperator("map", "map", function)], limit=4)


def chained(*stages: Stage) -> Callable[[TaskContext], ChainTask]:
    return lambda context: ChainTask(context, lambda _: stages)


def chained_sink(sink: Sink, *stages: Stage) -> Callable[[TaskContext], ChainTask]:
    return lambda context: ChainTask(context, lambda _: [*stages, SinkStage(context, sink, "out")])
