"""The bases of stages that join two streams in columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.sides import SIDES
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_bulk
from gearpy.task.chain.table_gate import SidesGate
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema
from gearpy.task.joins.runs import Codes
from gearpy.task.joins.side_tables import SideSchema
from gearpy.task.joins.streams import JoinSpec, join_key, watermark_kept


class SidesStage(Stage, ABC):
    """Joins two streams of tables; ``schema`` is that of the results."""

    defers = True

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        self.name = name
        self._context = context
        self._description = spec.description
        self._comes_alone = (spec.how in ("left", "outer"), spec.how in ("right", "outer"))
        self._schema = schema
        self._codes = Codes(schema.key_columns)
        self._watermark_ms = MIN_MS

    @property
    @abstractmethod
    def _first_ms(self) -> int:
        """The time of the oldest result that may come of what is kept."""

    @abstractmethod
    def _tables(self) -> Iterable[pa.RecordBatch]: ...

    @abstractmethod
    def _tell_again(self) -> None: ...

    @property
    def hold_ms(self) -> int:
        return self._first_ms

    @property
    def passed_ms(self) -> int:
        """The event time behind the join. Only grows: no later result is older."""
        return min(self._watermark_ms, self._first_ms)

    def restore(self, state: list[Any] | None) -> None:
        self._watermark_ms = watermark_kept(state, self._description)
        self._kept = step_bulk(self._context, "joins", self.place, operator=self.name)
        self._kept.holds_tables(self._tables, self._tell_again)


class GatedSidesStage(SidesStage):
    """One in which both sides wait for event time in a gate."""

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        super().__init__(context, name, spec, schema)
        self._sides = [SideSchema.of(schema, side) for side in SIDES]
        self._gate = SidesGate(context, join_key, self._sides)

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Let records wait; yield what follows from those that come too late for that."""
        table = batch.values
        assert type(table) is Table
        side = SIDE_NAMES.index(table.batch.schema.names[-1])
        self._gate.hold(table, Times.of(batch.timestamps), side, batch.origin.rank)
        passed_ms = self._watermark_ms
        return self._due(passed_ms) if self._gate.first_ms < passed_ms else iter(())

    @abstractmethod
    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Take the records that event time has passed, and yield what follows from them."""

    @property
    def hold_ms(self) -> int:
        return min(self._gate.first_ms, self._first_ms)
