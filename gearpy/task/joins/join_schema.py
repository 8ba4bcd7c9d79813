"""The schema of the results of a join in columns: a record of each side as one column."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from gearpy.columns.row_schema import RowSchema
from gearpy.core.join.sides import How
from gearpy.messages.table import cells_of
from gearpy.task.api.window_result import JoinResult

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

SIDE_NAMES: Final = ("left", "right")
_FIELDS: Final = 4  # Behind the key.


def key_names(columns: int) -> tuple[str, ...]:
    return ("key",) if columns == 1 else tuple(f"key_{at + 1}" for at in range(columns))


def key_numbers(columns: int) -> tuple[str, ...]:
    """Return the names of the columns of a key on the way to the task of a join."""
    return tuple(map(str, range(columns)))


def is_plain_key(kind: "pa.DataType | None") -> bool:
    """Tell whether all values of a type are one key if they are equal as values of Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date32)
    return kind is not None and any(test(kind) for test in tests)


@dataclass(frozen=True)
class JoinSchema(RowSchema):
    """The columns of results: the key, ``left``, ``right``, ``start`` and ``end``.

    Rows are `JoinResult`s, with records as those of both streams are in rows.
    """

    left: RowSchema | None = None
    right: RowSchema | None = None

    @classmethod
    def of(
        cls, left: RowSchema, right: RowSchema, keys: "Sequence[pa.Field]", how: How
    ) -> "JoinSchema":
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

        from gearpy.columns.results import marked_pairs  # noqa: PLC0415 - the same

        fields = [
            *(each.with_name(own) for each, own in zip(keys, key_names(len(keys)), strict=True)),
            pa.field("left", pa.struct(list(left.arrow)), nullable=how in ("right", "outer")),
            pa.field("right", pa.struct(list(right.arrow)), nullable=how in ("left", "outer")),
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
        ]
        return cls(marked_pairs(pa.schema(fields), len(keys)), JoinResult, left, right)

    @property
    def key_columns(self) -> int:
        return len(self.arrow) - _FIELDS

    def rows(self, batch: "pa.RecordBatch") -> list[Any]:
        keys = list(map(cells_of, batch.columns[:-_FIELDS]))
        assert self.left is not None
        assert self.right is not None
        sides = [
            _records(schema, batch.column(name))
            for schema, name in ((self.left, "left"), (self.right, "right"))
        ]
        key = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        bounds = (batch.column(name).to_pylist() for name in ("start", "end"))
        rows = zip(key, *sides, *bounds, strict=True)
        return list(map(tuple.__new__, repeat(JoinResult), rows))

    def table(self, values: Sequence[Any]) -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

        names = self.arrow.names[:-_FIELDS]
        keys, left, right, start, end = zip(*values, strict=True)
        assert self.left is not None
        assert self.right is not None
        parts = [keys] if len(names) == 1 else list(zip(*keys, strict=True))
        columns = [
            *(
                pa.array(part, self.arrow.field(name).type)
                for part, name in zip(parts, names, strict=True)
            ),
            side_column(self.left, left),
            side_column(self.right, right),
            *(pa.array(part, pa.int64()) for part in (start, end)),
        ]
        return self.made(columns)

    def made(self, columns: Sequence[Any]) -> "pa.RecordBatch":
        """Return a table of these columns that tells sinks that it has pairs."""
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

        names, metadata = self.arrow.names, self.arrow.metadata
        return pa.RecordBatch.from_arrays(columns, names, metadata=metadata)


def _records(schema: RowSchema, column: "pa.Array") -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there

    records = schema.rows(pa.RecordBatch.from_struct_array(column.drop_null()))
    if not column.null_count:
        return records
    there = iter(records)
    return [next(there) if is_there else None for is_there in column.is_valid().to_pylist()]


def side_column(schema: RowSchema, records: Sequence[Any]) -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415 - the schema is there, so Arrow is

    there = schema.table([each for each in records if each is not None]).to_struct_array()
    places, at = list[int | None](), 0
    for each in records:
        places.append(None if each is None else at)
        at += each is not None
    return there.take(pa.array(places, pa.int64()))
