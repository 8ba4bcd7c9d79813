"""The schema of tables with columns that were computed for a step, which its records have not."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.expressions.binding import BoundColumns, bound_columns
from gearpy.expressions.nodes import Node


@dataclass(frozen=True)
class ComputedSchema(RowSchema):
    """The columns of records, and behind them some that are computed of these.

    Attributes:
        records: the schema of the records.
        computed: the others, with their names.
    """

    records: RowSchema | None = None
    computed: tuple[tuple[str, Node], ...] = ()

    def records_in(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self.records is not None
        return batch.select(self.records.arrow.names)

    def rows(self, batch: pa.RecordBatch) -> list[Any]:
        assert self.records is not None
        return self.records.rows(self.records_in(batch))

    def table(self, values: Sequence[Any]) -> pa.RecordBatch:
        assert self.records is not None
        return self._bound.columns(self.records.table(values))

    @cached_property
    def _bound(self) -> BoundColumns:
        assert self.records is not None
        return bound_columns(self.computed, self.records.arrow, keeps=True)
