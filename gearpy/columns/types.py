"""The types of columns that keep the values of Python types exactly."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
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
    """Return the columns for a dataclass, NamedTuple or TypedDict class.

    Raises:
        ConfigError: it is none of these, or a field has no column that keeps its values.
    """
    name = schema.__name__
    if typing.is_typeddict(schema):
        optional: frozenset[str] = schema.__optional_keys__  # type: ignore[attr-defined]
    elif dataclasses.is_dataclass(schema) or hasattr(schema, "_fields"):
        optional = frozenset()
    else:
        raise ConfigError(
            f"{name} is no schema: it is neither a dataclass nor a NamedTuple or TypedDict class"
        )
    hints = _hints(schema)
    try:
        return [field_of(key, hints[key], optional=key in optional) for key in _names(schema)]
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def field_of(name: str, kind: Any, *, optional: bool = False) -> "pa.Field":
    """Return the column for a name and a type.

    Raises:
        ConfigError: no column keeps values of this type.
    """
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    kind, has_none = _without_none(kind)
    try:
        return pa.field(name, _arrow_type(kind), nullable=has_none or optional)
    except ConfigError as error:
        raise ConfigError(f"column {name!r}: {error}") from error


# -- from Python types to Arrow types ---------------------------------------------------------


def _hints(schema: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(schema, include_extras=True)
    except NameError as error:
        raise ConfigError(f"{schema.__name__}: its annotations name what is not there: {error}")  # noqa: B904 - says all


def _names(schema: type) -> list[str]:
    if dataclasses.is_dataclass(schema):
        for each in dataclasses.fields(schema):
            if not each.init:
                raise ConfigError(f"field {each.name!r} cannot be given when a row is made")
        return [each.name for each in dataclasses.fields(schema)]
    fields = getattr(schema, "_fields", None)
    return list(schema.__annotations__ if fields is None else fields)


def _without_none(kind: Any) -> tuple[Any, bool]:
    while get_origin(kind) in {typing.Required, typing.NotRequired}:
        kind = get_args(kind)[0]
    if get_origin(kind) not in _UNIONS:
        return kind, False
    others = [each for each in get_args(kind) if each is not _NONE]
    has_none = len(others) < len(get_args(kind))
    return (others[0] if len(others) == 1 else kind), has_none


def _arrow_type(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, typing.NewType):
        return _arrow_type(kind.__supertype__)
    if typing.is_typeddict(kind):
        return pa.struct(fields_of(kind))
    composed = _COMPOSED.get(get_origin(kind))
    if composed is not None:
        return composed(kind)
    make = _SIMPLE.get(kind) if isinstance(kind, type) else None
    if make is None:
        raise ConfigError(_no_column(kind))
    return make(pa)


def _annotated(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    inner, *extras = get_args(kind)
    return next((each for each in extras if isinstance(each, pa.DataType)), None) or _arrow_type(
        inner
    )


def _literal(kind: Any) -> Any:
    classes = set(map(type, get_args(kind)))
    if len(classes) > 1:
        raise ConfigError(_no_column(kind))
    return _arrow_type(classes.pop())


def _list(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    return pa.list_(field_of("item", get_args(kind)[0]))


def _map(kind: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    key, item = get_args(kind)
    return pa.map_(_arrow_type(key), field_of("value", item))


_COMPOSED: Final[Mapping[Any, Callable[[Any], Any]]] = {
    typing.Annotated: _annotated,
    Literal: _literal,
    list: _list,
    dict: _map,
}


def _no_column(kind: Any) -> str:
    name = kind.__name__ if isinstance(kind, type) else short_repr(kind)
    advice = "use text, a number, bool, bytes, a time, list[...], dict[..., ...] or a TypedDict"
    if kind is Decimal:
        advice = "say how many digits: Annotated[Decimal, pyarrow.decimal128(18, 2)]"
    elif get_origin(kind) in _UNIONS:
        advice = "a column has values of one type, or None"
    return f"there is no column type that keeps values of {name}: {advice}"
