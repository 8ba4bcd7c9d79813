"""The columns of results of windows: where sinks write them, and where they travel as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.columns.values import array_of
from gearpy.core.base.fields import names_of_key
from gearpy.messages.table import cells_of

WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
TIME: Final = pa.timestamp("us", "UTC")
#: Columns around those of the key and of the value.
BEFORE: Final = (pa.field(WINDOW_START, TIME), pa.field(WINDOW_END, TIME))
BEHIND: Final = (
    pa.field("firing", pa.int32()),
    pa.field("timing", pa.string()),
    pa.field("retracts", pa.bool_()),
)
#: Results of windows with a zone have these, too.
LOCAL: Final = (pa.field("local_start", pa.string()), pa.field("local_end", pa.string()))
#: Schemas of tables of results have it in their metadata; those of running ones the other.
_MARK: Final = b"gearpy.results"
_RUNNING: Final = b"gearpy.running"
#: And those of tables of pairs, of which a sink makes the columns of results of joins.
_PAIRS: Final = b"gearpy.pairs"


class ResultColumns(NamedTuple):
    """The columns of a table of results of windows.

    Attributes:
        key: those of the key; several for a tuple.
        behind: what comes behind them.
        is_single: the value is that of its one column; else it is a dict.
    """

    key: Sequence[str]
    value: Sequence[str]
    behind: Sequence[pa.Field]
    is_single: bool


def results_schema(
    key: Sequence[Any], value: Mapping[str, Any], *, is_local: bool, is_single: bool
) -> pa.Schema | None:
    """Return the schema of a table of results; None if two columns would have one name.

    Args:
        key: the types of the parts of the key.
        value: names and types of the columns of the value.
    """
    fields = [
        *BEFORE,
        *(pa.field(name, kind) for name, kind in zip(names_of_key(key), key, strict=True)),
        *(pa.field(name, kind) for name, kind in value.items()),
        *BEHIND,
        *(LOCAL if is_local else ()),
    ]
    if len({field.name for field in fields}) < len(fields):
        return None
    return marked(pa.schema(fields), len(key), is_single=is_single)


def marked(schema: pa.Schema, keys: int, *, is_single: bool) -> pa.Schema:
    """Return the schema of a table of results, whose key has so many columns."""
    behind = len(BEHIND) + (len(LOCAL) if LOCAL[0].name in schema.names else 0)
    values = len(schema) - len(BEFORE) - keys - behind
    return schema.with_metadata({_MARK: f"{keys} {values} {int(is_single)}".encode()})


def result_columns(schema: pa.Schema) -> ResultColumns | None:
    """Return the columns of a table of results; None if it is none."""
    shape = (schema.metadata or {}).get(_MARK)
    if shape is None:
        return None
    keys, values, is_single = map(int, shape.split())
    end = len(BEFORE) + keys + values
    names = schema.names[len(BEFORE) : end]
    behind = (*BEHIND, *LOCAL)[: len(schema.names) - end]
    return ResultColumns(names[:keys], names[keys:], behind, bool(is_single))


def marked_pairs(schema: pa.Schema, keys: int) -> pa.Schema:
    """Return the schema of a table of pairs, whose first columns are so many of the key."""
    return schema.with_metadata({_PAIRS: f"{keys}".encode()})


def pair_keys(schema: pa.Schema) -> Sequence[str] | None:
    """Return the columns of the key of a table of pairs; None if it is none."""
    keys = (schema.metadata or {}).get(_PAIRS)
    return None if keys is None else schema.names[: int(keys)]


def is_of_results(schema: pa.Schema) -> bool:
    """Tell whether a table has results of windows or joins."""
    return result_columns(schema) is not None or pair_keys(schema) is not None


def unmarked(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table that may be changed, as any other."""
    marks = {_MARK, _RUNNING, _PAIRS} & (schema.metadata or {}).keys()
    if not marks:
        return schema
    rest = {name: value for name, value in schema.metadata.items() if name not in marks}
    return schema.with_metadata(rest or None)


def running_schema(
    key: Sequence[Any], value: Mapping[str, Any], *, is_single: bool
) -> "RunningSchema | None":
    """Return the schema of results without windows; None if two columns would have one name."""
    fields = [
        *(pa.field(name, kind) for name, kind in zip(names_of_key(key), key, strict=True)),
        *(pa.field(name, kind) for name, kind in value.items()),
    ]
    if len({field.name for field in fields}) < len(fields):
        return None
    shape = f"{len(key)} {len(value)} {int(is_single)}".encode()
    return RunningSchema(pa.schema(fields, {_RUNNING: shape}), tuple)


def running_columns(schema: pa.Schema) -> ResultColumns | None:
    """Return the columns of a table of results without windows; None if it is none."""
    shape = (schema.metadata or {}).get(_RUNNING)
    if shape is None:
        return None
    keys, _, is_single = map(int, shape.split())
    return ResultColumns(schema.names[:keys], schema.names[keys:], (), bool(is_single))


def cells_of_results(
    columns: ResultColumns, keys: Sequence[Any], values: Sequence[Any]
) -> list[list[Any]]:
    """Return the cells of the columns of keys and values."""
    parts = [keys] if len(columns.key) == 1 else zip(*keys, strict=True) if columns.key else ()
    named = [values] if columns.is_single else [[e[n] for e in values] for n in columns.value]
    return [list(each) for each in (*parts, *named)]


@dataclass(frozen=True)
class RunningSchema(RowSchema):
    """The columns of results without windows; rows are pairs of a key and a value."""

    @property
    def columns(self) -> ResultColumns:
        columns = running_columns(self.arrow)
        assert columns is not None, "it is marked"
        return columns

    def rows(self, batch: pa.RecordBatch) -> list[Any]:
        names = self.columns
        cells = dict(zip(batch.schema.names, map(cells_of, batch.columns), strict=True))
        keys, values = ([cells[name] for name in each] for each in (names.key, names.value))
        key = keys[0] if len(keys) == 1 else zip(*keys, strict=True)
        value = (
            values[0]
            if names.is_single
            else (dict(zip(names.value, row, strict=True)) for row in zip(*values, strict=True))
        )
        return list(zip(key, value, strict=True))

    def table(self, values: Sequence[Any]) -> pa.RecordBatch:
        keys, found = ([pair[at] for pair in values] for at in range(2))
        return self.made(keys, found)

    def made(self, keys: Sequence[Any], values: Sequence[Any]) -> pa.RecordBatch:
        cells = cells_of_results(self.columns, keys, values)
        arrays = [column_of(field, each) for field, each in zip(self.arrow, cells, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def column_of(field: pa.Field, cells: list[Any]) -> pa.Array:
    """Return results as a column.

    Raises:
        ValueError: they do not fit; it names the column.
    """
    try:
        return array_of(field, cells)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(f"column {field.name!r} is {field.type}: {error}") from error
