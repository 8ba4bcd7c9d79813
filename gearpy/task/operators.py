"""The tasks that the stream language lowers to: a chain of stages, fed by a source or by inputs.

A stage takes columns of records and yields columns of records; all of a chain run in one task,
one after the other on each batch.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api import FINISHED, Sink, Source, SourceReader, Task, TaskContext
from gearpy.task.failure import USER_ERRORS, operator_error
from gearpy.task.output import Columns
from gearpy.task.rejects import Midway
from gearpy.task.snapshots import decode_state, encode_state

__all__ = ["ChainTask", "SinkStage", "SourceTask", "Stage"]

_STAGES: Final = "stages"  # Keys of snapshots.
_OPEN: Final = "open"
_FINISHED: Final = "finished"
_PROGRESS: Final = "progress"
_WATERMARK: Final = "watermark"


class Stage(Protocol):
    """One step of a chain. Deals with records on which user code raises by itself."""

    name: str  #: For people.
    place: int  #: Number in the chain, which sets it; for `Midway`.

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Take records, yield what follows from them now."""
        ...

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Learn how far event time has come, yield what was waiting for it."""
        ...

    def snapshot(self) -> Any:
        """Return what is kept between records, as plain data; None for nothing."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a snapshot, None at the first start; called once, before all else."""
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
        """Make the stages; each goes on from where it was."""
        self._stages = self._make_stages(self.context)
        kept = (self.context.resume or {}).get(_STAGES, [b""] * len(self._stages))
        if len(kept) != len(self._stages):
            raise ConfigError(
                f"snapshot has {len(kept)} steps, the program has {len(self._stages)}: "
                "it is of another program"
            )
        for place, (stage, state) in enumerate(zip(self._stages, kept, strict=True)):
            stage.place = place
            stage.restore(decode_state(state))

    def snapshot(self) -> dict[str, Any]:
        """Return what each stage keeps, encoded, so that an error names the stage."""
        return {_STAGES: [encode_state(stage.name, stage.snapshot()) for stage in self._stages]}

    def on_batch(self, batch: Batch) -> Iterator[Batch]:
        """Push the records through all stages."""
        first = batch.values[0] if len(batch) == 1 else None
        if isinstance(first, Midway):
            return self._push(first.place, [first.value], batch.timestamps)
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
    After a restart the readers go on from their snapshots, or, if the source is not replayable,
    from wherever it is. Gearpump: `DataSourceTask`.
    """

    def __init__(
        self,
        context: TaskContext,
        source: Source,
        make_stages: Callable[[TaskContext], Sequence[Stage]],
    ) -> None:
        super().__init__(context, make_stages)
        self._source = source
        self._parts: list[_Part] = []
        self._finished: list[str] = []
        self._progress = (0, 0)  # Of the partitions that have ended.
        self._watermark_ms = MIN_MS

    def on_start(self, start_time_ms: int) -> None:
        """Open this task's partitions, each where it was."""
        super().on_start(start_time_ms)
        first, step = self.context.task_id.task_index, self.context.parallelism
        mine = sorted(self._source.partitions())[first::step]
        kept = self.context.resume or {}
        places: dict[str, Any] = kept.get(_OPEN, {})
        self._finished = list(kept.get(_FINISHED, ()))
        self._progress = kept.get(_PROGRESS, (0, 0))
        self._watermark_ms = kept.get(_WATERMARK, MIN_MS)
        self._check_partitions(mine, [*places, *self._finished])
        for name in mine:  # One by one, so that those opened are closed if one fails.
            if name not in self._finished:
                place = places.get(name) if self._source.replayable else None
                self._parts.append(_Part(name, self._source.open(name, place)))

    def snapshot(self) -> dict[str, Any]:
        """Return where each partition is, too."""
        return super().snapshot() | {
            _OPEN: {part.name: part.reader.snapshot() for part in self._parts},
            _FINISHED: self._finished,
            _PROGRESS: self._progress,
            _WATERMARK: self._watermark_ms,
        }

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
        if not self._parts:
            watermark = MAX_MS
        if watermark > self._watermark_ms:
            self._watermark_ms = watermark
            yield from self.on_watermark(watermark)
            self.context.update_watermark(watermark)
        self.context.set_idle(bool(self._parts) and not self._live())
        if not self._parts:
            return FINISHED
        return self.context.limits.idle_poll_ms if batch is None else 0

    def on_stop(self, *, completed: bool) -> None:
        """Close stages and partitions."""
        try:
            super().on_stop(completed=completed)
        finally:
            for part in self._parts:
                part.reader.close()

    def _live(self) -> list[SourceReader]:
        return [part.reader for part in self._parts if not part.reader.idle]

    def _read(self) -> Batch | None:
        self._parts.sort(key=lambda part: part.reader.watermark_ms)
        for at, part in enumerate(self._parts):
            if part.reader.finished:
                continue
            batch = part.reader.read_batch(self.context.limits.read_batch_records)
            if batch is not None and len(batch):
                self._check(batch)
                self._parts.append(self._parts.pop(at))
                return batch
        return None

    def _check_partitions(self, mine: Sequence[str], kept: Sequence[str]) -> None:
        if lost := sorted(set(kept) - set(mine)):
            raise ConfigError(
                f"source {self._source.description} was read at partition {lost[0]!r}, "
                "which it does not have any more: its partitions must stay the same over restarts"
            )

    def _check(self, batch: Batch) -> None:
        values, times = len(batch.values), len(batch.timestamps)
        if values != times:
            raise ConfigError(
                f"source {self._source.description} gave {values} values but {times} timestamps"
            )

    def _drop_finished(self) -> None:
        done, total = self._progress
        for part in [part for part in self._parts if part.reader.finished]:
            self._parts.remove(part)
            self._finished.append(part.name)
            done, total = done + part.reader.progress[0], total + part.reader.progress[1]
            part.reader.close()
        self._progress = (done, total)
        counters = self.context.counters
        counters.done = done + sum(part.reader.progress[0] for part in self._parts)
        counters.total = total + sum(part.reader.progress[1] for part in self._parts)


@dataclass(slots=True, eq=False)
class _Part:
    """A partition that is read."""

    name: str
    reader: SourceReader


class SinkStage:
    """Hands records to a sink's writer; the end of a chain.

    A writer that raises on one record alone has not taken it. On several, nobody knows which one
    it was, so that is a failure; unless the writer is `atomic`: then they are tried one by one.
    """

    hold_ms = MAX_MS
    place = 0

    def __init__(self, context: TaskContext, sink: Sink, name: str) -> None:
        self.name = name
        self._counters = context.counters
        self._rejects = context.rejects
        with self._blamed():
            self._writer = sink.open(context.task_id.task_index, context.parallelism)

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Write the records."""
        try:
            self._writer.write_batch(Batch(values, timestamps))
            self._counters.records_out += len(values)
        except USER_ERRORS as error:
            self._reject(error, values, timestamps)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Tell the writer."""
        with self._blamed():
            self._writer.on_watermark(watermark_ms)
        return iter(())

    def snapshot(self) -> Any:
        """Let the writer make durable what it has."""
        with self._blamed():
            return self._writer.snapshot()

    def restore(self, state: Any) -> None:
        """Let the writer go on from there, or begin afresh."""
        with self._blamed():
            self._writer.restore(state)

    def close(self, *, completed: bool) -> None:
        """Close the writer."""
        with self._blamed():
            self._writer.close(completed=completed)

    def _reject(self, error: BaseException, values: list[Any], timestamps: list[int]) -> None:
        if len(values) == 1:
            record, time = values[0], timestamps[0]
            blamed = operator_error(self.name, error, record=record, event_time_ms=time)
            self._rejects.take(record, time, blamed, place=self.place)
        elif self._rejects.may_go_on and self._writer.atomic and isinstance(error, OperatorError):
            for value, time in zip(values, timestamps, strict=True):
                self.process([value], [time])
        else:
            raise operator_error(self.name, error) from error

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except USER_ERRORS as error:
            raise operator_error(self.name, error) from error
