"""Types of columns that Spark takes as they are.

Spark's Python data sources convert nothing: a column has exactly the type that Spark's own has in
Arrow, or the job fails. So window logs and tables have no other types.
"""

from collections.abc import Callable
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.widening import is_open
from gearpy.errors import ConfigError

_TIME: Final = pa.timestamp("us", "UTC")
_DECIMAL_DIGITS_MAX: Final = 38
#: By the type of Arrow: the one to write, and what Spark calls it.
_PLAIN: Final = {
    pa.bool_(): (pa.bool_(), "boolean"),
    pa.int8(): (pa.int8(), "byte"),
    pa.int16(): (pa.int16(), "short"),
    pa.int32(): (pa.int32(), "integer"),
    pa.int64(): (pa.int64(), "long"),
    pa.uint8(): (pa.int16(), "short"),
    pa.uint16(): (pa.int32(), "integer"),
    pa.uint32(): (pa.int64(), "long"),
    pa.float16(): (pa.float32(), "float"),
    pa.float32(): (pa.float32(), "float"),
    pa.float64(): (pa.float64(), "double"),
    pa.string(): (pa.string(), "string"),
    pa.large_string(): (pa.string(), "string"),
    pa.string_view(): (pa.string(), "string"),
    pa.binary(): (pa.binary(), "binary"),
    pa.large_binary(): (pa.binary(), "binary"),
    pa.binary_view(): (pa.binary(), "binary"),
    pa.date32(): (pa.date32(), "date"),
    pa.date64(): (pa.date32(), "date"),
}
#: Why a type is refused, and what to write instead; by the test for it.
_REFUSED: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (pa.types.is_uint64, "Spark has no such numbers: map it to int64, or to decimal(20, 0)"),
    (pa.types.is_time, "Spark reads no times of day: map it to a text, or to its milliseconds"),
    (pa.types.is_duration, "Spark reads no durations: map it to its milliseconds"),
    (pa.types.is_interval, "Spark reads no intervals: map it to its milliseconds"),
    (
        lambda kind: pa.types.is_struct(kind) and not kind.num_fields,
        "it has no fields, which no file of Parquet takes: give a schema, or leave it out",
    ),
    (pa.types.is_null, "all its values are None, so nobody knows its type: give a schema"),
)


def exact_schema(
    schema: pa.Schema, *, name: str = "window log", is_settled: bool = True
) -> pa.Schema:
    """Return the schema with types that Spark takes as they are; every column may be null.

    Args:
        is_settled: whether all types are known; else those stay that later values tell.
    """
    names = [field.name.casefold() for field in schema]
    mistakes = [
        f"{name}: there are two columns {field.name!r}: Spark does not tell upper from lower case, "
        "so give one another name"
        for place, field in enumerate(schema)
        if field.name.casefold() in names[:place]
    ]
    fields = []
    for field in schema:
        try:
            is_open_yet = not is_settled and is_open(field.type)
            fields.append(pa.field(field.name, field.type if is_open_yet else _exact(field.type)))
        except ValueError as error:
            mistakes.append(f"{name}: column {field.name!r} is {field.type}: {error}")
    if mistakes:
        raise ConfigError(*mistakes)
    return pa.schema(fields)


def _exact(kind: Any) -> Any:
    for is_refused, fix in _REFUSED:
        if is_refused(kind):
            raise ValueError(fix)
    if kind in _PLAIN:
        return _PLAIN[kind][0]
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return _exact(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us") if kind.tz is None else _TIME
    if pa.types.is_decimal(kind):
        if kind.precision > _DECIMAL_DIGITS_MAX or not 0 <= kind.scale <= kind.precision:
            raise ValueError(
                f"Spark's decimals have {_DECIMAL_DIGITS_MAX} digits at most, and no more of them "
                "behind the point than there are: map it to one that fits, or to a text"
            )
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_struct(kind):
        inner = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([pa.field(each.name, _exact(each.type)) for each in inner])
    if pa.types.is_map(kind):
        key = pa.field("key", _exact(kind.key_type), nullable=False)
        return pa.map_(key, pa.field("value", _exact(kind.item_type)))
    if hasattr(kind, "value_type"):  # A list of any kind.
        return pa.list_(pa.field("element", _exact(kind.value_type)))
    raise ValueError("Spark has nothing like it: map it to numbers, texts, or lists of them")


def spark_schema(fields: Any) -> dict[str, Any]:
    """Return the schema of Spark for one of Arrow, or for the fields of a struct."""
    return {
        "type": "struct",
        "fields": [
            {"name": each.name, "type": _spark(each.type), "nullable": True, "metadata": {}}
            for each in fields
        ],
    }


def _spark(kind: Any) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind][1]
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return spark_schema(kind.field(place) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        key, value = _spark(kind.key_type), _spark(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return {"type": "array", "elementType": _spark(kind.value_type), "containsNull": True}
