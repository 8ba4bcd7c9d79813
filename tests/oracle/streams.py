"""Streams as plain data: which records come, when, and what is promised in between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gearpy.columns.row_schema import RowSchema
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source, SourceReader

#: A record, a dict whose ``id`` no other has; ``t`` is its event time.
Row: TypeAlias = dict[str, Any]

#: What a record has in it.
COLUMNS: Final = {"id": int, "k": str, "g": int, "v": int | None, "x": float | None, "t": int}


@dataclass(frozen=True, slots=True)
class Records:
    source: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Promise:
    """A source says that nothing older will come; it may not keep that."""

    source: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Idle:
    source: int


@dataclass(frozen=True, slots=True)
class Tick:
    duration_ms: int


@dataclass(frozen=True, slots=True)
class End:
    source: int


Step: TypeAlias = Records | Promise | Idle | Tick | End


class ScriptSource(Source):
    """Gives the steps of each partition, with pauses, from any of them on.

    Args:
        pauses: how often a reader has nothing, before each batch.
    """

    replayable = True
    bounded = True

    def __init__(
        self, partitions: Sequence[Sequence[Step]], *, pauses: int, schema: RowSchema | None = None
    ) -> None:
        self._partitions = partitions
        self._pauses = pauses
        self._schema = schema

    @property
    def schema(self) -> RowSchema | None:
        return self._schema

    def partitions(self) -> Sequence[str]:
        return [str(number) for number in range(len(self._partitions))]

    def open(self, partition: str, resume: int | None) -> SourceReader:
        return _ScriptReader(
            self._partitions[int(partition)], resume or 0, self._pauses, self._schema
        )


class _ScriptReader(SourceReader):
    def __init__(
        self, steps: Sequence[Step], at: int, pauses: int, schema: RowSchema | None
    ) -> None:
        self._steps = steps
        self._at = at
        self._pauses = self._rests = pauses
        self._schema = schema

    def read_batch(self, max_records: int) -> Batch | None:
        """Return one step's records; a promise is kept to itself."""
        if self._rests:
            self._rests -= 1
            return None
        self._rests = self._pauses
        step = self._steps[self._at] if self._at < len(self._steps) else None
        self._at += 1
        self.finished = self._at > len(self._steps)
        if not isinstance(step, Records):
            return None
        times = [row["t"] for row in step.rows]
        if self._schema is None:
            return Batch.of(*map(Message, step.rows, times))
        return Batch(Table(self._schema.table(step.rows)), Times.of(times))

    def snapshot(self) -> int:
        return self._at

    @property
    def watermark_ms(self) -> int:
        promised = [step.time_ms for step in self._steps[: self._at] if isinstance(step, Promise)]
        return max(promised, default=MIN_MS)
