"""Columns that a table is partitioned by: taken out of its files, or derived from other columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.errors import ConfigError

#: The argument of `hive_folder` and `delta_table`.
PartitionBy: TypeAlias = str | Sequence[str] | Mapping[str, str]

_DERIVED: Final = re.compile(r"(?P<unit>[a-z]+)\((?P<column>.+)\)", re.DOTALL)
#: They are like Spark's functions of these names, in UTC.
_UNITS: Final = {
    "date": (lambda times: times.cast(pa.date32()), pa.date32()),
    "year": (lambda times: pc.year(times).cast(pa.int32()), pa.int32()),
    "month": (lambda times: pc.month(times).cast(pa.int32()), pa.int32()),
    "day": (lambda times: pc.day(times).cast(pa.int32()), pa.int32()),
    "hour": (lambda times: pc.hour(times).cast(pa.int32()), pa.int32()),
}
_UTC: Final = pa.timestamp("us", "UTC")
#: Stands for a missing value, and for an empty text, which no folder can tell apart.
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

#: What Spark and Hive escape; also NUL, which no file system takes.
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
_ESCAPES: Final = str.maketrans({char: f"%{ord(char):02X}" for char in _ESCAPED})
_SEGMENT_BYTES_MAX: Final = 255  # The longest name in most file systems.
#: Readers pass over folders whose names begin so.
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column that a table is partitioned by; ``unit`` is what is taken of a column's times."""

    name: str
    column: str
    unit: str | None = None


class PartitionPiece(NamedTuple):
    """Rows of one partition, without its columns."""

    folder: str  #: "" in a table without partitions.
    values: tuple[str | None, ...]  #: As texts, in the order of the columns.
    rows: pa.RecordBatch


def partition_fields(operator: str, by: PartitionBy | None) -> tuple[PartitionField, ...]:
    if by is None:
        return ()
    given = [by] if isinstance(by, str) else by
    pairs = given.items() if isinstance(given, Mapping) else [(None, text) for text in given]
    fields = tuple(_field(operator, name, text) for name, text in pairs)
    names = [field.name for field in fields]
    mistakes = [
        f"{operator}: partition_by names {name!r} twice" for name in names if names.count(name) > 1
    ]
    mistakes += [
        f"{operator}: partition column {name!r} would be a folder that readers pass over: begin "
        "its name with a letter"
        for name in names
        if not name or name.startswith(_HIDDEN)
    ]
    if mistakes:
        raise ConfigError(*dict.fromkeys(mistakes))
    return fields


def key_names(key: str | Sequence[str] | None) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key or ())


def _field(operator: str, name: str | None, text: Any) -> PartitionField:
    if not isinstance(text, str):
        raise ConfigError(f"{operator}: partition_by has {text!r}, need names of columns")
    match = _DERIVED.fullmatch(text)
    if match is None:
        return PartitionField(name or text, text)
    unit, column = match["unit"], match["column"]
    if unit not in _UNITS:
        raise ConfigError(
            f"{operator}: partition_by has {text!r}, can take {', '.join(_UNITS)} of a time"
        )
    return PartitionField(name or f"{column}_{unit}", column, unit)


class Partitioning:
    """Cuts tables of one schema into partitions; without fields, into one."""

    def __init__(self, operator: str, fields: Sequence[PartitionField], schema: pa.Schema) -> None:
        self._fields = tuple(fields)
        _check(operator, self._fields, schema)
        taken = {field.column for field in fields if field.unit is None}
        self._kept = [name for name in schema.names if name not in taken]
        if not self._kept:
            raise ConfigError(f"{operator}: no column is left that is not partitioned by")
        self.names = tuple(field.name for field in fields)
        #: Of files.
        self.file_schema = pa.schema([schema.field(name) for name in self._kept])
        own = [
            pa.field(
                each.name,
                schema.field(each.column).type if each.unit is None else _UNITS[each.unit][1],
            )
            for each in fields
        ]
        #: Of the whole table as readers see it.
        self.table_schema = pa.schema([*self.file_schema, *own])

    def cut(self, batch: pa.RecordBatch) -> list[PartitionPiece]:
        """Return the pieces of a table; the order of rows stays within each."""
        rows = batch.select(self._kept)
        if not self._fields:
            return [PartitionPiece("", (), rows)]
        keys = [_derived(field, batch).dictionary_encode("encode") for field in self._fields]
        texts = [[_text(value) for value in key.dictionary.to_pylist()] for key in keys]
        codes = keys[0].indices.cast(pa.int64())  # One number for the values of all columns.
        for key in keys[1:]:
            codes = pc.add(pc.multiply(codes, len(key.dictionary)), key.indices.cast(pa.int64()))
        places = pc.unique(codes)
        if len(places) == 1:
            return [self._piece(texts, int(places[0].as_py()), rows)]
        order = pc.array_sort_indices(codes)  # Stable, so rows keep their order.
        rows, counts = rows.take(order), pc.value_counts(codes.take(order))
        pieces, start = [], 0
        for code, count in zip(
            counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
        ):
            pieces.append(self._piece(texts, code, rows.slice(start, count)))
            start += count
        return pieces

    def _piece(
        self, texts: list[list[str | None]], code: int, rows: pa.RecordBatch
    ) -> PartitionPiece:
        values: list[str | None] = []
        for column in reversed(texts):
            code, place = divmod(code, len(column))
            values.append(column[place])
        found = tuple(reversed(values))
        return PartitionPiece(partition_folder(zip(self.names, found, strict=True)), found, rows)


def _check(operator: str, fields: Sequence[PartitionField], schema: pa.Schema) -> None:
    mistakes = []
    at = pa.types
    for field in fields:
        kind = schema.field(field.column).type if field.column in schema.names else None
        if kind is None:
            mistakes.append(
                f"{operator}: partition_by has {field.column!r}, columns are "
                f"{', '.join(schema.names)}"
            )
        elif field.unit is None and not any(
            test(kind) for test in (at.is_string, at.is_integer, at.is_boolean, at.is_date32)
        ):
            mistakes.append(
                f"{operator}: column {field.column!r} is {kind}, a partition needs texts, whole "
                "numbers, booleans or dates: take a part of it, such as 'date(...)' of a time"
            )
        elif field.unit is not None and not (at.is_timestamp(kind) or at.is_date32(kind)):
            mistakes.append(
                f"{operator}: column {field.column!r} is {kind}, {field.unit}(...) needs a time"
            )
        elif field.unit is not None and field.name in schema.names:
            mistakes.append(
                f"{operator}: records have a column {field.name!r} already: give another name, "
                f"such as partition_by={{'{field.name}_2': '{field.unit}({field.column})'}}"
            )
        elif field.unit is None and field.name != field.column:
            mistakes.append(
                f"{operator}: partition column {field.name!r} is column {field.column!r} under "
                "another name: give it its own"
            )
    if mistakes:
        raise ConfigError(*mistakes)


def _derived(field: PartitionField, batch: pa.RecordBatch) -> pa.Array:
    column = batch.column(field.column)
    if field.unit is None:
        return column
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("us"))
    elif column.type.tz is not None:
        column = column.cast(_UTC)
    return _UNITS[field.unit][0](column)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or value == "" else str(value)


def partition_folder(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the path of the folder for some values, by column, the outermost first."""
    names = []
    for column, value in values:
        text = (value or "").translate(_ESCAPES) or NULL_PARTITION
        names.append(f"{column.translate(_ESCAPES)}={text}")
        if len(names[-1].encode(errors="surrogatepass")) > _SEGMENT_BYTES_MAX:
            raise ValueError(
                f"value {value!r:.60} of partition column {column!r} makes a folder's name of more "
                f"than {_SEGMENT_BYTES_MAX} bytes: partition by something shorter"
            )
    return "/".join(names)
