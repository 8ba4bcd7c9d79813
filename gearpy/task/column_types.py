"""Which column keeps the values of a Python type, exactly; and which values a column keeps."""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from gearpy.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["check_column", "field_of", "fields_of"]

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


def check_column(kind: Any, values: Sequence[Any]) -> None:
    """Refuse values that Arrow would change to fit into a column of this type.

    Raises:
        TypeError: a value is of a wrong type.
        ValueError: a number has a fraction, or a time has a zone or none.
    """
    import pyarrow.types as at  # type: ignore[import-untyped]  # noqa: PLC0415

    if at.is_nested(kind):
        _check_nested(kind, [value for value in values if value is not None])
        return
    check = next((check for holds, check in _CHECKS.items() if getattr(at, holds)(kind)), None)
    if check is not None:
        _look(check, kind, values)


def _look(check: "_Check", kind: Any, values: Sequence[Any]) -> None:
    if set(map(type, values)) - {_NONE} <= check.quick:
        return
    for value in values:
        if value is not None:
            check.one(kind, value)


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
    """Return a type without None, and whether it was there."""
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


# -- what Arrow would change without a word ---------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _Check:
    """What values of a column must be.

    Attributes:
        classes: theirs.
        what: the same for people.
        quick: classes of values that need no further look.
        refused: those that are subclasses, and still do not fit.
        look: raises where a value of the right class does not fit.
    """

    classes: tuple[type, ...]
    what: str
    quick: frozenset[type] = frozenset()
    refused: type | tuple[type, ...] = ()
    look: Callable[[Any, Any], None] | None = None

    def one(self, kind: Any, value: Any) -> None:
        """Refuse a value that does not fit."""
        if not isinstance(value, self.classes) or isinstance(value, self.refused):
            raise TypeError(
                f"{short_repr(value)} is of type {type(value).__name__}, not {self.what}"
            )
        if self.look is not None:
            self.look(kind, value)


def _look_at_integer(_: Any, value: Any) -> None:
    if not isinstance(value, Integral) and value % 1 != 0:
        raise ValueError(f"{value!r} is no whole number")


def _look_at_time_of_day(_: Any, value: Any) -> None:
    if value.tzinfo is not None:
        raise ValueError(f"{value!r} has a time zone, which the column does not keep")


def _look_at_moment(kind: Any, value: Any) -> None:
    if (value.utcoffset() is None) != (kind.tz is None):
        has, needs = ("no", "one") if kind.tz is not None else ("a", "none")
        raise ValueError(f"{value!r} has {has} time zone, the column needs {needs}")


_WHOLE: Final = _Check(
    (Real, Decimal), "a whole number", frozenset({int}), bool, look=_look_at_integer
)
_TEXT: Final = _Check((str,), "text", frozenset({str}))
_BYTES: Final = _Check((bytes, bytearray, memoryview), "bytes", frozenset({bytes}))
_CHECKS: Final[Mapping[str, _Check]] = {
    "is_integer": _WHOLE,
    "is_floating": _Check((Real,), "a number", frozenset({int, float}), bool),
    "is_string": _TEXT,
    "is_large_string": _TEXT,
    "is_binary": _BYTES,
    "is_large_binary": _BYTES,
    "is_date": _Check((date,), "a date", frozenset({date}), datetime),
    "is_time": _Check((time,), "a time of day", look=_look_at_time_of_day),
    "is_timestamp": _Check((datetime,), "a datetime", look=_look_at_moment),
    "is_duration": _Check((timedelta,), "a timedelta", frozenset({timedelta})),
}
_LIST: Final = _Check((list,), "a list", frozenset({list}))
_STRUCT: Final = _Check((Mapping,), "a dict", frozenset({dict}))


def _check_nested(kind: Any, present: list[Any]) -> None:
    import pyarrow.types as at  # noqa: PLC0415 - the type is there, so Arrow is

    if at.is_struct(kind):
        _check_struct(kind, present)
    elif at.is_map(kind):
        pairs = [pair for value in present for pair in _pairs(value)]
        check_column(kind.key_type, [key for key, _ in pairs])
        check_column(kind.item_type, [item for _, item in pairs])
    elif hasattr(kind, "value_type"):  # A list of any kind.
        _look(_LIST, kind, present)
        check_column(kind.value_type, [item for value in present for item in value])


def _check_struct(kind: Any, present: list[Any]) -> None:
    names = frozenset(kind.field(place).name for place in range(kind.num_fields))
    _look(_STRUCT, kind, present)
    for value in present:
        if not value.keys() <= names:
            unknown = next(name for name in value if name not in names)
            raise ValueError(f"field {unknown!r} is not in {kind}")
    for name in sorted(names):
        check_column(kind.field(name).type, [value.get(name) for value in present])


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else value
