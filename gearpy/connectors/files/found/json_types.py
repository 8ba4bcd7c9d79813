"""The columns of JSON: which Arrow reads, and how those come to be that it does not.

Dates and times of day are texts, as sinks write them. Arrow takes numbers for these, and has no
dicts at all: objects with columns of such types are read by Python, one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.json as pa_json  # type: ignore[import-untyped]

from gearpy.columns.values import array_of
from gearpy.connectors.files.column_times import moments_of, times_of_texts
from gearpy.errors import ConfigError
from gearpy.messages.table import changed_leaves, in_microseconds, with_leaves

_DAY: Final = "1970-01-01T"


@dataclass(frozen=True, slots=True)
class JsonColumns:
    """The columns of a schema: those that Arrow reads, and those that it has nothing for.

    Arrow takes every value as one that may be missing; that is checked later.
    """

    schema: pa.Schema
    by_arrow: pa.Schema
    by_python: frozenset[str]

    @property
    def finer(self) -> pa.Schema:
        fields = [field.with_type(with_leaves(field.type, finer)) for field in self.by_arrow]
        return pa.schema(fields)

    def column(self, field: pa.Field, read: pa.Array) -> pa.Array:
        try:
            return changed_leaves(read, field.type, _changed)
        except pa.ArrowInvalid as error:
            text = str(error).replace(_DAY, "").replace("timestamp[us]", str(field.type))
            raise ValueError(f"column {field.name!r}: {text}") from error

    def column_of(self, field: pa.Field, values: Sequence[Any]) -> pa.Array:
        cells = [value.get(field.name) for value in values]
        texts = pa.field(field.name, with_leaves(field.type, _as_text), nullable=True)
        try:
            return self.column(field, array_of(texts, cells))
        except (pa.ArrowException, TypeError, ArithmeticError) as error:
            raise ValueError(f"column {field.name!r} is {field.type}: {error}") from error


@lru_cache(maxsize=256)
def json_columns(schema: pa.Schema) -> JsonColumns:
    fields = [pa.field(field.name, with_leaves(field.type, _read)) for field in schema]
    by_python = frozenset(field.name for field in fields if not _is_by_arrow(field))
    by_arrow = pa.schema([field for field in fields if field.name not in by_python])
    return JsonColumns(schema, by_arrow, by_python)


def check_json(operator: str, schema: pa.Schema) -> None:
    for field in schema:
        if _has_span(field.type):
            raise ConfigError(
                f"{operator}: column {field.name!r} is {field.type}, and JSON has no form for a "
                "span of time: read it as a number or a text, and map it"
            )


def _has_span(kind: pa.DataType) -> bool:
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return True
    return any(_has_span(kind.field(at).type) for at in range(kind.num_fields))


def _is_by_arrow(field: pa.Field) -> bool:
    try:
        pa_json.read_json(
            pa.BufferReader(b"{}\n"),
            parse_options=pa_json.ParseOptions(explicit_schema=pa.schema([field])),
        )
    except pa.ArrowNotImplementedError:
        return False
    return True


def _read(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_date(kind) or pa.types.is_time(kind)
    return pa.string() if is_text else kind


def _as_text(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.string() if pa.types.is_temporal(kind) else kind


def finer(kind: pa.DataType) -> pa.DataType:
    if getattr(kind, "unit", "") != "us":
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    return pa.time64("ns") if pa.types.is_time(kind) else kind


def _changed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    at = pa.types
    if not at.is_string(column.type):
        return in_microseconds(column).cast(kind)
    if at.is_time(kind):
        days = pc.binary_join_element_wise(_DAY, column, "")
        return moments_of(days, None).cast(pa.time64("us")).cast(kind)
    if at.is_timestamp(kind):
        read = moments_of(column, None) if kind.tz is None else times_of_texts(column)
        return read.cast(kind)
    return column.cast(pa.date32()).cast(kind) if at.is_date(kind) else column.cast(kind)
