"""The tables in which the records of both sides of a join come to it, and their way back to rows.

They are of two kinds: the columns of the key, which are numbered, and beside them all columns of a
record as one, ``left`` or ``right``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, cells_of
from gearpy.task.chain.stage import Stage
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema, key_numbers, side_column


class SideStage(Stage):
    """Makes the tables of one side of a join of the records of a stream.

    Args:
        side: "left" or "right".
        key: names of the columns of the key.
        schema: of the records; of rows that come out of quarantine.
    """

    def __init__(self, name: str, side: str, key: Sequence[str], schema: RowSchema) -> None:
        self.name = name
        self._side = side
        self._key = key
        self._columns = RowSchema(schema.arrow)

    def process(self, batch: Batch) -> Iterator[Batch]:
        table = as_table(batch.values, self._columns).batch
        records = table.select(self._columns.arrow.names)  # Without what was computed for the key.
        columns = [*map(table.column, self._key), records.to_struct_array()]
        names = [*key_numbers(len(self._key)), self._side]
        yield batch.giving(Table(pa.RecordBatch.from_arrays(columns, names)), batch.timestamps)


@dataclass(frozen=True)
class SideSchema(RowSchema):
    """The columns of the tables of one side. Rows are ``(side, key, record)``, see `as_left`.

    Attributes:
        records: the schema of the records.
    """

    side: int = 0
    records: RowSchema | None = None

    @classmethod
    def of(cls, joined: JoinSchema, side: int) -> "SideSchema":
        keys = [joined.arrow.field(at) for at in range(joined.key_columns)]
        numbered = (each.with_name(f"{at}") for at, each in enumerate(keys))
        name = SIDE_NAMES[side]
        record = pa.field(name, joined.arrow.field(name).type)
        return cls(pa.schema([*numbered, record]), tuple, side, (joined.left, joined.right)[side])

    def rows(self, batch: pa.RecordBatch) -> list[Any]:
        *keys, column = batch.columns
        parts = list(map(cells_of, keys))
        of_rows = parts[0] if len(parts) == 1 else zip(*parts, strict=True)
        return list(zip(repeat(self.side), of_rows, self.records_of(column), strict=False))

    def records_of(self, column: pa.Array) -> list[Any]:
        assert self.records is not None
        return self.records.rows(pa.RecordBatch.from_struct_array(column))

    def table(self, values: Sequence[Any]) -> pa.RecordBatch:
        _, keys, records = zip(*values, strict=True)
        assert self.records is not None
        *fields, _ = self.arrow
        parts = [keys] if len(fields) == 1 else list(zip(*keys, strict=True))
        columns = [pa.array(part, field.type) for part, field in zip(parts, fields, strict=True)]
        columns.append(side_column(self.records, records))
        return pa.RecordBatch.from_arrays(columns, names=self.arrow.names)
