"""The types of columns that keep the values of Python types exactly."""

import dataclasses
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from gearpy.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_NONE: Final = type(None)
_UNIONS: Final = frozenset({typing.Union, types.UnionType})
#: Python types and what makes the Arrow type that keeps their values.
_SIMPLE: Final[dict[type, Callable[[Any], Any]]] = {
    str: lambda pa: pa.string(),
    int: lambda pa: pa.int64(),
    float: lambda pa: pa.float64(),
    bool: lambda pa: pa.bool_(),
    bytes: lambda pa: pa.binary(),
    datetime: lambda pa: pa.timestamp("us", tz="UTC"),
    date: lambda pa: pa.date32(),
    time: lambda pa: pa.time64("us"),
    timedelta: lambda pa: pa.duration("us"),
}


def fields_of(schema: type) -> list[Any]:
    name = schema.__name__
    optional: frozenset[str] = frozenset()
    if typing.is_typeddict(schema):
        names = list(schema.__annotations__)
        optional = schema.__optional_keys__  # type: ignore[attr-defined]
    elif dataclasses.is_dataclass(schema):
        names = [each.name for each in dataclasses.fields(schema)]
    elif hasattr(schema, "_fields"):
        names = list(schema._fields)
    else:
        raise ConfigError(
            f"{name} is no schema: it is neither a dataclass nor a NamedTuple or TypedDict class"
        )
    try:
        hints = typing.get_type_hints(schema, include_extras=True)
    except NameError as error:
        raise ConfigError(f"{name}: its annotations name what is not there: {error}")  # noqa: B904 - says all
    for each in dataclasses.fields(schema) if dataclasses.is_dataclass(schema) else ():
        if not each.init:
            raise ConfigError(f"{name}: field {each.name!r} cannot be given when a row is made")
    try:
        return [field_of(key, hints[key], optional=key in optional) for key in names]
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def field_of(name: str, kind: Any, *, optional: bool = False) -> "pa.Field":
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    has_none = False
    while get_origin(kind) in {typing.Required, typing.NotRequired}:
        kind = get_args(kind)[0]
    if get_origin(kind) in _UNIONS:
        others = [each for each in get_args(kind) if each is not _NONE]
        has_none = len(others) < len(get_args(kind))
        kind = others[0] if len(others) == 1 else kind
    try:
        return pa.field(name, _arrow_type(kind), nullable=has_none or optional)
    except ConfigError as error:
        raise ConfigError(f"column {name!r}: {error}") from error


# -- from Python types to Arrow types ---------------------------------------------------------


def _arrow_type(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    if isinstance(kind, str):
        with suppress(ValueError):  # Of another text nothing below has a type.
            kind = pa.type_for_alias(kind)  # Such as "int64" or "timestamp[us]".
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, typing.NewType):
        return _arrow_type(kind.__supertype__)
    if typing.is_typeddict(kind):
        return pa.struct(fields_of(kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin is typing.Annotated:
        told = next((each for each in inner[1:] if isinstance(each, pa.DataType)), None)
        return told or _arrow_type(inner[0])
    if origin is Literal and len(classes := set(map(type, inner))) == 1:
        return _arrow_type(classes.pop())
    if origin is list:
        return pa.list_(field_of("item", inner[0]))
    if origin is dict:
        return pa.map_(_arrow_type(inner[0]), field_of("value", inner[1]))
    make = _SIMPLE.get(kind) if isinstance(kind, type) else None
    if make is None:
        raise ConfigError(_no_column(kind))
    return make(pa)


def _no_column(kind: Any) -> str:
    name = kind.__name__ if isinstance(kind, type) else short_repr(kind)
    advice = "use text, a number, bool, bytes, a time, list[...], dict[..., ...] or a TypedDict"
    if isinstance(kind, str):
        advice = "as text, give a name of Arrow's, such as 'string', 'int64' or 'timestamp[us]'"
    elif kind is Decimal:
        advice = "say how many digits: Annotated[Decimal, pyarrow.decimal128(18, 2)]"
    elif get_origin(kind) in _UNIONS:
        advice = "a column has values of one type, or None"
    return f"there is no column type that keeps values of {name}: {advice}"
