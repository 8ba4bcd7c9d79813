"""The tasks that the stream language lowers to: a chain of stages, fed by a source or by inputs.

A stage takes columns of records and yields columns of records; all of a chain run in one task,
one after the other on each batch.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api import FINISHED, Sink, Source, SourceReader, Task, TaskContext
from gearpy.task.failure import USER_ERRORS, operator_error
from gearpy.task.output import Columns

__all__ = ["ChainTask", "SinkStage", "SourceTask", "Stage"]


class Stage(Protocol):
    """One step of a chain."""

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Take records, yield what follows from them now."""
        ...

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Learn how far event time has come, yield what was waiting for it."""
        ...

    def close(self, *, completed: bool) -> None:
        """Release everything."""
        ...

    @property
    def hold_ms(self) -> int:
        """Oldest event time that is kept here and not yielded; `MAX_MS` if none."""
        ...


class ChainTask(Task):
    """Runs a chain of stages over its inputs.

    Args:
        make_stages: makes this task's own stages; called by `on_start`.
    """

    counts_output = True  # A sink is one of the stages.

    def __init__(
        self, context: TaskContext, make_stages: Callable[[TaskContext], Sequence[Stage]]
    ) -> None:
        super().__init__(context)
        self._make_stages = make_stages
        self._stages: Sequence[Stage] = ()

    def on_start(self, start_time_ms: int) -> None:
        """Make the stages."""
        self._stages = self._make_stages(self.context)

    def on_batch(self, batch: Batch) -> Iterator[Batch]:
        """Push the records through all stages."""
        return self._push(0, batch.values, batch.timestamps)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Tell each stage, and push what it yields through the stages behind it."""
        for index, stage in enumerate(self._stages):
            for values, timestamps in stage.on_watermark(watermark_ms):
                yield from self._push(index + 1, values, timestamps)

    def on_stop(self, *, completed: bool) -> None:
        """Close all stages, also when one of them raises."""
        errors = []
        for stage in self._stages:
            try:
                stage.close(completed=completed)
            except USER_ERRORS as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @property
    def hold_ms(self) -> int:
        """Oldest event time that a stage keeps."""
        return min((stage.hold_ms for stage in self._stages), default=MAX_MS)

    def _push(self, index: int, values: list[Any], timestamps: list[int]) -> Iterator[Batch]:
        if index == len(self._stages):
            yield Batch(values, timestamps)
            return
        for out, times in self._stages[index].process(values, timestamps):
            yield from self._push(index + 1, out, times)


class SourceTask(ChainTask):
    """Reads its share of a source's partitions and runs a chain over it.

    Partition ``k`` belongs to the task whose index is ``k`` modulo the parallelism. The
    partition that is furthest behind in event time is read first; equal ones take turns.
    Gearpump: `DataSourceTask`.
    """

    def __init__(
        self,
        context: TaskContext,
        source: Source,
        make_stages: Callable[[TaskContext], Sequence[Stage]],
    ) -> None:
        super().__init__(context, make_stages)
        self._source = source
        self._readers: list[SourceReader] = []
        self._finished = (0, 0)  # Progress of the partitions that have ended.
        self._watermark_ms = MIN_MS

    def on_start(self, start_time_ms: int) -> None:
        """Open this task's partitions."""
        super().on_start(start_time_ms)
        first, step = self.context.task_id.task_index, self.context.parallelism
        mine = sorted(self._source.partitions())[first::step]
        for partition in mine:  # One by one, so that those opened are closed if one fails.
            self._readers.append(self._source.open(partition, None))

    def produce(self) -> Generator[Batch, None, int]:
        """Read one batch of one partition and pass it on, then the watermark."""
        batch = self._read()
        if batch is not None:
            self.context.set_idle(False)
            self.context.counters.records_in += len(batch)
            yield from self.on_batch(batch)
        self._drop_finished()
        watermark = min(
            (reader.watermark_ms for reader in self._live()), default=self._watermark_ms
        )
        if not self._readers:
            watermark = MAX_MS
        if watermark > self._watermark_ms:
            self._watermark_ms = watermark
            yield from self.on_watermark(watermark)
            self.context.update_watermark(watermark)
        self.context.set_idle(bool(self._readers) and not self._live())
        if not self._readers:
            return FINISHED
        return self.context.limits.idle_poll_ms if batch is None else 0

    def on_stop(self, *, completed: bool) -> None:
        """Close stages and partitions."""
        try:
            super().on_stop(completed=completed)
        finally:
            for reader in self._readers:
                reader.close()

    def _live(self) -> list[SourceReader]:
        return [reader for reader in self._readers if not reader.idle]

    def _read(self) -> Batch | None:
        self._readers.sort(key=lambda reader: reader.watermark_ms)
        for at, reader in enumerate(self._readers):
            if reader.finished:
                continue
            batch = reader.read_batch(self.context.limits.read_batch_records)
            if batch is not None and len(batch):
                self._check(batch)
                self._readers.append(self._readers.pop(at))
                return batch
        return None

    def _check(self, batch: Batch) -> None:
        values, times = len(batch.values), len(batch.timestamps)
        if values != times:
            raise ConfigError(
                f"source {self._source.description} gave {values} values but {times} timestamps"
            )

    def _drop_finished(self) -> None:
        done, total = self._finished
        for reader in [reader for reader in self._readers if reader.finished]:
            self._readers.remove(reader)
            done, total = done + reader.progress[0], total + reader.progress[1]
            reader.close()
        self._finished = (done, total)
        counters = self.context.counters
        counters.done = done + sum(reader.progress[0] for reader in self._readers)
        counters.total = total + sum(reader.progress[1] for reader in self._readers)


class SinkStage:
    """Hands records to a sink's writer; the end of a chain."""

    hold_ms = MAX_MS

    def __init__(self, context: TaskContext, sink: Sink, name: str) -> None:
        self._name = name
        self._counters = context.counters
        with self._blamed():
            self._writer = sink.open(context.task_id.task_index, context.parallelism)

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Write the records."""
        with self._blamed():
            self._writer.write_batch(Batch(values, timestamps))
        self._counters.records_out += len(values)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Tell the writer."""
        with self._blamed():
            self._writer.on_watermark(watermark_ms)
        return iter(())

    def close(self, *, completed: bool) -> None:
        """Close the writer."""
        with self._blamed():
            self._writer.close(completed=completed)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except USER_ERRORS as error:
            raise operator_error(self._name, error) from error
