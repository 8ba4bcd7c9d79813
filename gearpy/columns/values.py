"""The values that a column keeps as they are: one rule for all that makes columns of records.

Arrow makes a value fit where it can: it counts a number as a time, takes the zone of a time away,
cuts off what is finer than the column's unit, reads bytes as text and a tuple as a list. Here such
a value is refused, with what to do. What Arrow refuses by itself is left to it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


_NONE: Final = type(None)
#: Values without other values inside, which Arrow knows.
_PLAIN: Final = frozenset({str, int, float, bool, bytes, _NONE, datetime, date, Decimal})
_US_OF: Final = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 1}
#: The largest number that is not infinite, by the bits of a column of fractions.
_FLOAT_MAX: Final = {16: 65504.0, 32: 3.4028234663852886e38}
_NO_TIME: Final = (
    "a number is no time as long as nobody knows its unit, so map it, ms as in "
    "datetime.fromtimestamp(ms / 1000, UTC)"
)
_BUFFERS: Final = (bytes, bytearray, memoryview)
_DECODE: Final = "decode it, or give a schema with bytes"
_DATE: Final = "a datetime has more than the date, take .date()"
_TAKE_ZONE: Final = (
    "a time zone, and the column has none: take .astimezone(UTC).replace(tzinfo=None), or give a "
    "schema with times of UTC"
)
_GIVE_ZONE: Final = (
    "no time zone, and the column has times of UTC: say which it has, as with .replace(tzinfo=UTC)"
)


def array_of(field: "pa.Field", cells: list[Any]) -> "pa.Array":
    """Return the cells of a column as an array.

    Raises:
        TypeError: a value is of a wrong type.
        ValueError: a value does not fit, or is missing where the column needs one.
        pyarrow.ArrowException: Arrow refuses a value.
    """
    import pyarrow as pa  # noqa: PLC0415 - the field is there, so Arrow is

    check_column(field.type, cells)
    try:
        array = pa.array(cells, field.type)
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError) as error:
        if pa.types.is_decimal(field.type):
            _blame_decimal(field.type, cells)
        raise ValueError(reason_of(error, cells, is_given=True)) from error
    _check_nulls(field, array, "a value is")
    return array


def _blame_decimal(kind: "pa.DataType", cells: list[Any]) -> None:
    """Refuse the first number that has too many digits, which Arrow does not name."""
    import pyarrow as pa  # noqa: PLC0415 - the type is there, so Arrow is

    for cell in cells:
        try:
            pa.array([cell], kind)
        except (pa.ArrowInvalid, ArithmeticError, ValueError, TypeError) as error:
            if isinstance(cell, Decimal) and not isfinite(cell):
                continue
            raise ValueError(
                f"{cell} has more than {kind.precision - kind.scale} digits before the point or "
                f"{kind.scale} behind it: give a schema with another pyarrow.decimal128(digits, "
                "behind), or map it to a text"
            ) from error


def _check_nulls(field: "pa.Field", array: "pa.Array", which: str) -> None:
    """Refuse a missing value in a field that needs one, also inside of lists and records."""
    import pyarrow.types as at  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

    if array.null_count and not field.nullable:
        raise ValueError(
            f"{which} missing or None, which the schema does not allow: make the type "
            "``... | None``, or the field nullable"
        )
    kind = field.type
    if at.is_struct(kind):
        present = array.drop_null() if array.null_count else array
        for place in range(kind.num_fields):
            inner = kind.field(place)
            _check_nulls(inner, present.field(place), f"the {inner.name!r} of a record is")
    elif at.is_map(kind):
        _check_nulls(kind.item_field, array.items, "a value of a dict is")
    elif at.is_nested(kind) and hasattr(kind, "value_field"):  # A list of any kind.
        _check_nulls(kind.value_field, array.flatten(), "a value of a list is")


def refuse_unknown(names: Iterable[Any], known: Iterable[str]) -> None:
    columns = frozenset(known)
    for name in names:
        if name not in columns:
            raise ValueError(
                f"field {name!r} is not in the schema, which has "
                f"{', '.join(sorted(columns)) or 'none'}: leave it out, or give a schema with it"
            )


def check_column(kind: "pa.DataType", values: Sequence[Any]) -> None:
    """Refuse values that Arrow would change to fit into a column of this type.

    Args:
        values: in Python; None is a missing one. Records inside of them are dicts: `plain_cells`.

    Raises:
        TypeError: a value is of a wrong type.
        ValueError: a value is of the right type, but the column would keep a part of it only.
    """
    import pyarrow.types as at  # noqa: PLC0415 - the type is there

    if at.is_dictionary(kind):
        check_column(kind.value_type, values)
        return
    if not at.is_nested(kind):
        check = next((check for holds, check in _CHECKS.items() if getattr(at, holds)(kind)), None)
        if check is not None:
            _look(check, kind, values)
        return
    present = [value for value in values if value is not None]
    if at.is_struct(kind):
        names = frozenset(kind.field(place).name for place in range(kind.num_fields))
        _look(_STRUCT, kind, present)
        for value in present:
            if not value.keys() <= names:
                refuse_unknown(value, names)
        for name in sorted(names):
            check_column(kind.field(name).type, [value.get(name) for value in present])
    elif at.is_map(kind):
        _look(_MAP, kind, present)
        dicts = (value.items() if isinstance(value, Mapping) else value for value in present)
        pairs = [pair for each in dicts for pair in each]
        check_column(kind.key_type, [key for key, _ in pairs])
        check_column(kind.item_type, [item for _, item in pairs])
    elif hasattr(kind, "value_type"):  # A list of any kind.
        _look(_LIST, kind, present)
        check_column(kind.value_type, [item for value in present for item in value])


def check_cast(given: "pa.DataType", kind: "pa.DataType") -> None:
    """Refuse the type of a column if Arrow would change its values to those of another type."""
    import pyarrow.types as at  # noqa: PLC0415 - the type is there, so Arrow is

    if at.is_dictionary(given) or at.is_dictionary(kind):
        check_cast(*(each.value_type if at.is_dictionary(each) else each for each in (given, kind)))
    elif at.is_timestamp(kind):
        if at.is_timestamp(given):
            _check_zone(kind, is_aware=given.tz is not None, shown=f"a column of {given}")
        elif not at.is_null(given):
            raise ValueError(
                f"a column of {given} has no times as long as nobody knows its unit: cast it, ms "
                "as in column.cast(pyarrow.timestamp('ms', 'UTC'))"
            )
    elif at.is_nested(given) and _family(given) == _family(kind):
        for name, inner in _inner_types(given).items():
            if name not in (wanted := _inner_types(kind)):
                raise ValueError(f"a column of {given} has {name!r}, which is not in {kind}")
            check_cast(inner, wanted[name])
    elif not (
        given == kind or at.is_null(given) or _family(given) in _TAKES.get(_family(kind), ())
    ):
        raise ValueError(f"a column of {given} has other values than one of {kind}: cast it before")


def same_kind(one: "pa.DataType", other: "pa.DataType") -> bool:
    import pyarrow.types as at  # noqa: PLC0415 - the type is there, so Arrow is

    one, other = (each.value_type if at.is_dictionary(each) else each for each in (one, other))
    if at.is_null(one) or at.is_null(other):
        return True
    families = {_family(one), _family(other)}
    if families == {_TIMESTAMP}:
        return (one.tz is None) == (other.tz is None)
    return len(families) == 1 or families <= {"whole", "fraction", "decimal"}


def cast_column(column: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    """Return a column with another type; its values are the same.

    Raises:
        ValueError: its type is another kind of values.
        pyarrow.ArrowException: a value does not fit, as a fraction does not into a whole number.
    """
    check_cast(column.type, kind)
    return column if column.type == kind else column.cast(kind)


def plain_cells(values: list[Any]) -> list[Any]:
    return values if set(map(type, values)) <= _PLAIN else list(map(_plain_cell, values))


def has_fields(value: Any) -> bool:
    return (isinstance(value, tuple) and hasattr(value, "_fields")) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    )


def field_names(record: Any) -> tuple[str, ...]:
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return tuple(record._fields)
    if dataclasses.is_dataclass(record):
        return tuple(field.name for field in dataclasses.fields(record))
    raise TypeError(
        f"{type(record).__name__} has no fields: map it to a dict, dataclass or NamedTuple before"
    )


def _plain_cell(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key: _plain_cell(item) for key, item in value.items()}
    if has_fields(value):
        return {name: _plain_cell(getattr(value, name)) for name in field_names(value)}
    if isinstance(value, tuple):  # It stays one: a pair of a map must be.
        return tuple(map(_plain_cell, value))
    if isinstance(value, list):
        return list(map(_plain_cell, value))
    return value


# -- single values ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _Check:
    """The rule for values of one kind of column.

    Attributes:
        quick: classes of values that need no further look.
        pass_all: tells whether all values of a batch fit, where that is known without a look at
            each of them.
        refused: those that are subclasses, and still do not fit.
        look: raises where a value of the right class does not fit.
    """

    classes: tuple[type, ...]
    what: str
    quick: frozenset[type] = frozenset()
    refused: type | tuple[type, ...] = ()
    pass_all: Callable[[Any, Sequence[Any]], bool] | None = None
    look: Callable[[Any, Any], None] | None = None
    fix: Callable[[Any], str] | None = None

    def one(self, kind: Any, value: Any) -> None:
        if not isinstance(value, self.classes) or isinstance(value, self.refused):
            fix = "" if self.fix is None else self.fix(value)
            raise TypeError(
                f"{short_repr(value)} is of type {type(value).__name__}, not {self.what}"
                f"{fix and ': '}{fix}"
            )
        if self.look is not None:
            self.look(kind, value)


def _look(check: _Check, kind: Any, values: Sequence[Any]) -> None:
    if set(map(type, values)) - {_NONE} <= check.quick:
        return
    if check.pass_all is not None and check.pass_all(kind, values):
        return
    for value in values:
        if value is not None:
            check.one(kind, value)


def _are_moments(kind: Any, values: Sequence[Any]) -> bool:
    """Tell whether all are plain datetimes in UTC, or all without a zone, as the column needs."""
    present = [value for value in values if value is not None]
    if set(map(type, present)) != {datetime} or kind.unit not in {"us", "ns"}:
        return False
    zone = None if kind.tz is None else UTC
    return all(value.tzinfo is zone for value in present)


def _look_at_integer(_: Any, value: Any) -> None:
    if not isinstance(value, Integral) and value % 1 != 0:
        raise ValueError(f"{value!r} is no whole number")


def _look_at_short_float(kind: Any, value: Any) -> None:
    if isfinite(value) and abs(value) > _FLOAT_MAX[kind.bit_width]:
        raise ValueError(f"{value!r} is too large for {kind}, where it is infinite")


def _look_at_time_of_day(kind: Any, value: Any) -> None:
    if value.tzinfo is not None:
        raise ValueError(f"{value!r} has a time zone, which the column does not keep")
    _check_unit(kind, value.microsecond, value)


def _look_at_moment(kind: Any, value: Any) -> None:
    is_aware = value.utcoffset() is not None
    _check_zone(kind, is_aware=is_aware, shown=value)
    if is_aware:
        try:
            value.astimezone(UTC)
        except OverflowError:
            raise ValueError(
                f"{value!r} is in no year from 1 to 9999 of UTC, in which columns have times: map "
                "it to None, or to a text"
            ) from None
    _check_unit(kind, value.microsecond, value)
    if kind.unit != "ns" and getattr(value, "nanosecond", 0):  # A pandas.Timestamp has them.
        raise ValueError(f"{value!r} is finer than {kind.unit}: {_ROUND}")


_ROUND: Final = "round it, or give a schema with a finer unit"


def _check_unit(kind: Any, microseconds: int, value: Any) -> None:
    if microseconds % _US_OF[kind.unit]:
        raise ValueError(f"{value!r} is finer than {kind.unit}: {_ROUND}")


def _check_zone(kind: Any, *, is_aware: bool, shown: object) -> None:
    """Refuse times with a zone for a column of times without one, and the other way round."""
    if is_aware != (kind.tz is not None):
        raise ValueError(f"{shown} has {_TAKE_ZONE if is_aware else _GIVE_ZONE}")


_Fix: TypeAlias = Callable[[Any], str]


def _fix(cure: str, *kinds: type) -> _Fix:
    """Return a function of a refused value that gives the cure for one of these types."""
    return lambda value: cure if isinstance(value, kinds) else ""


_WHOLE: Final = _Check(
    (Real, Decimal), "a whole number", frozenset({int}), bool, look=_look_at_integer
)
_TEXT: Final = _Check(
    (str,), "text", frozenset({str}), fix=_fix(_DECODE, bytes, bytearray, memoryview)
)
_BYTES: Final = _Check(
    _BUFFERS,
    "bytes",
    frozenset({bytes}),
    fix=_fix("encode it", str),
)
_SHORT_FLOAT: Final = _Check((Real,), "a number", frozenset(), bool, look=_look_at_short_float)
#: By the name of a function of `pyarrow.types`; the first that holds counts.
_CHECKS: Final[Mapping[str, _Check]] = {
    "is_integer": _WHOLE,
    "is_float16": _SHORT_FLOAT,
    "is_float32": _SHORT_FLOAT,
    "is_floating": _Check((Real,), "a number", frozenset({int, float}), bool),
    "is_string": _TEXT,
    "is_large_string": _TEXT,
    "is_string_view": _TEXT,
    "is_binary": _BYTES,
    "is_large_binary": _BYTES,
    "is_binary_view": _BYTES,
    "is_fixed_size_binary": _BYTES,
    "is_date": _Check((date,), "a date", frozenset({date}), datetime, fix=_fix(_DATE, datetime)),
    "is_time": _Check((time,), "a time of day", look=_look_at_time_of_day),
    "is_timestamp": _Check(
        (datetime,),
        "a datetime",
        pass_all=_are_moments,
        look=_look_at_moment,
        fix=_fix(_NO_TIME, Real, Decimal),
    ),
    "is_duration": _Check(
        (timedelta,),
        "a timedelta",
        look=lambda kind, value: _check_unit(kind, value.microseconds, value),
    ),
}
_LIST: Final = _Check(
    (list,),
    "a list",
    frozenset({list}),
    fix=lambda value: (
        _fix("a set has no order, take sorted(...)", set, frozenset)(value)
        or _fix("map it to a list", Iterable)(value)
    ),
)
_STRUCT: Final = _Check((Mapping,), "a dict", frozenset({dict}))
_MAP: Final = _Check((Mapping, list), "a dict", frozenset({dict}))


# -- whole columns ----------------------------------------------------------------------------

_TIMESTAMP: Final = "timestamp"
#: Names for types with values of one kind, by the functions of `pyarrow.types` that tell them.
_FAMILIES: Final[Mapping[str, Sequence[str]]] = {
    "whole": ("is_integer",),
    "fraction": ("is_floating",),
    "decimal": ("is_decimal",),
    "text": ("is_string", "is_large_string", "is_string_view"),
    "bytes": ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"),
    "date": ("is_date",),
    _TIMESTAMP: ("is_timestamp",),
    "time": ("is_time",),
    "duration": ("is_duration",),
    "struct": ("is_struct",),
    "map": ("is_map",),
    "list": ("is_nested",),  # All else that is nested is a list.
}
#: Whose values a column of a kind keeps; Arrow refuses those that do not fit.
_TAKES: Final[Mapping[str, frozenset[str]]] = {
    "whole": frozenset({"whole", "fraction"}),
    "fraction": frozenset({"whole", "fraction"}),
    "decimal": frozenset({"whole", "decimal"}),
    **{name: frozenset({name}) for name in ("text", "bytes", "date", "time", "duration")},
}


def _family(kind: Any) -> str:
    import pyarrow.types as at  # noqa: PLC0415 - the type is there, so Arrow is

    for name, tests in _FAMILIES.items():
        if any(getattr(at, test)(kind) for test in tests):
            return name
    return str(kind)


def _inner_types(kind: Any) -> dict[str, Any]:
    family = _family(kind)
    if family == "struct":
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return {field.name: field.type for field in fields}
    if family == "map":
        return {"key": kind.key_type, "value": kind.item_type}
    return {"item": kind.value_type}


_INT64_END: Final = 1 << 63
_US_PER_S: Final = 1_000_000


def reason_of(error: Exception, cells: Any, *, is_given: bool = False) -> str:
    """Return the mistake in the cells of a column: the value and the cure, if they are known.

    Args:
        is_given: the type of the column is.
    """
    found = (
        mistake for each in _values_in(cells) if (mistake := _mistake_of(each, is_given=is_given))
    )
    return next(found, f"{error}" if is_given else f"{error}: map it to values of one type")


def _values_in(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from (key, *_values_in(item))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _values_in(each)


def _mistake_of(value: Any, *, is_given: bool) -> str:
    shown = f"{value!r:.200}"
    if isinstance(value, Enum):
        return f"{shown} is of no type that columns have: map it to its name or its value"
    if isinstance(value, int) and not -_INT64_END <= value < _INT64_END:
        return (
            f"{shown} has more than 64 bits: map it to a text, or give a schema with decimal(38, 0)"
        )
    if isinstance(value, Decimal) and not isfinite(value):
        return f"{shown} is no number of digits: map it to None, or to a float"
    if isinstance(value, str) and not is_utf8(value):
        return (
            f"{shown} has half a character, which no text in UTF-8 has: map it, as by "
            ".encode('utf-8', 'replace').decode()"
        )
    if isinstance(value, timedelta) and abs(value.total_seconds()) * _US_PER_S >= _INT64_END:
        return f"{shown} has more microseconds than 64 bits: map it to a number of days or seconds"
    if (
        isinstance(value, Mapping)
        and not is_given
        and not all(isinstance(key, str) for key in value)
    ):
        return (
            f"{shown} has a key that is no text: map its keys to texts, or give a schema with "
            "pyarrow.map_(keys, values)"
        )
    if isinstance(value, complex):
        return f"{shown} is of no type that columns have: map it to numbers"
    return ""


def is_utf8(text: str) -> bool:
    """Tell whether a text has no half of a pair of UTF-16, which no file takes."""
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False
