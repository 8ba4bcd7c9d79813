"""Casts of expressions: to which types, and how one value or a column becomes one.

A value that does not fit is refused: nothing is cut off, and no number wraps.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]
from msgspec import Struct

from gearpy.columns.types import field_of
from gearpy.errors import ConfigError
from gearpy.expressions.arrow_types import Datum, Kernel, Ruled, mapped
from gearpy.expressions.patterns import DAY, MOMENT, NUMBER, WHOLE, moments, where_alike
from gearpy.expressions.time_functions import in_utc
from gearpy.expressions.time_kernels import are_in_years

_NAMES: Final[Mapping[str, type]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "datetime": datetime,
    "date": date,
    "bytes": bytes,
}
_INT: Final = re.compile(r"[+-]?[0-9]+")
_WHOLE_LENGTH: Final = len("2026-01-31T09:30:00")
_TRUTHS: Final = {"true": True, "false": False}


class CastTarget(Struct, frozen=True):
    """The type of a cast, as it was given and as Arrow has it.

    Attributes:
        strict: a value that does not fit is refused, and not None.
    """

    given: str
    kind: Any
    strict: bool = True

    def __str__(self) -> str:
        return self.given if self.strict else f"{self.given} or none"

    def value(self, value: Any) -> Any:
        """Return one value as this type.

        Raises:
            ValueError: it does not fit.
        """
        if self.strict:
            return self._fitting(value)
        try:
            return self._fitting(value)
        except (ValueError, ArithmeticError):
            return None

    def rule(self, kind: pa.DataType) -> Ruled:
        to, kernel = self._strict_rule(kind)
        if self.strict:
            return to, kernel
        by_cell = mapped(self.value, to)

        def apply(datum: Datum) -> Datum:
            try:
                return kernel(datum)
            except (pa.ArrowException, ValueError, ArithmeticError):
                return by_cell(datum)

        return to, apply

    def _fitting(self, value: Any) -> Any:
        found, kind = _python_of(self.kind)(value), self.kind
        if at.is_primitive(kind) or at.is_decimal(kind):
            try:
                kept = pa.scalar(found, kind).as_py() if kind != pa.float64() else found
            except (pa.ArrowException, OverflowError) as error:
                raise ValueError(f"{value!r:.100} does not fit {kind}") from error
            if kept != found and (at.is_timestamp(kind) or at.is_time(kind)):
                raise ValueError(f"{value!r:.100} does not fit {kind}: truncate it before")
            found = found if at.is_temporal(kind) else kept
        return found

    def _strict_rule(self, kind: pa.DataType) -> Ruled:
        to = self.kind
        if kind == to:
            return to, lambda datum: datum
        if at.is_nested(kind) or at.is_nested(to) or not _is_castable(kind, to):
            raise TypeError(f"there is no cast of {kind} to {to}")
        if at.is_integer(kind) and at.is_integer(to):
            return to, lambda datum: pc.cast(datum, to)
        if at.is_integer(kind) and at.is_floating(to) and to == pa.float64():
            return to, lambda datum: pc.cast(datum, to, safe=False)
        if at.is_boolean(kind) and (at.is_integer(to) or at.is_string(to)):
            return to, lambda datum: pc.cast(datum, to)
        by_cell = mapped(self.value, to)
        if at.is_integer(kind) and at.is_string(to):
            return to, lambda datum: pc.cast(datum, to)
        if at.is_string(kind):
            return to, self._of_texts(by_cell)
        if at.is_timestamp(kind) and at.is_string(to) and kind.unit != "ns":
            return to, lambda datum: _texts_of(datum, by_cell)
        return to, by_cell

    def _of_texts(self, by_cell: Kernel) -> Kernel:
        to = self.kind
        if at.is_integer(to):
            return where_alike(WHOLE, lambda text: pc.cast(pc.cast(text, pa.int64()), to), by_cell)
        if to == pa.float64():
            return where_alike(NUMBER, lambda text: pc.cast(text, to), by_cell)
        if at.is_date32(to):
            return where_alike(DAY, lambda text: pc.cast(text, to), by_cell)
        if at.is_timestamp(to):
            bare = pa.timestamp("us", to.tz)
            return where_alike(
                MOMENT, lambda text: pc.cast(moments(text).view(pa.int64()).view(bare), to), by_cell
            )
        return by_cell


def _texts_of(times: Datum, by_cell: Kernel) -> Datum:
    """Return the ISO form of times, which has microseconds where there are some."""
    if isinstance(times, pa.Scalar):
        return by_cell(times)
    counts = pc.cast(times, pa.timestamp("us", times.type.tz)).view(pa.int64())
    if not are_in_years(counts):
        return by_cell(times)
    # NumPy takes a third of the time of Arrow.
    texts = pa.array(np.datetime_as_string(counts.fill_null(0).to_numpy().view("M8[us]")))
    texts = texts.cast(pa.string())
    is_whole = pc.ends_with(texts, pattern=".000000")
    texts = pc.if_else(is_whole, pc.utf8_slice_codeunits(texts, 0, _WHOLE_LENGTH), texts)
    if times.type.tz is not None:
        texts = pc.binary_join_element_wise(texts, "+00:00", "")
    return pc.if_else(times.is_valid(), texts, pa.scalar(None, pa.string()))


def target_of(to: Any, *, strict: bool = True) -> CastTarget:
    """Return the type that is meant by a Python class, a name, or a type of Arrow.

    Raises:
        ConfigError: there is no such type.
    """
    given = to.__name__ if isinstance(to, type) else str(to)
    try:
        kind = field_of("cast", _NAMES.get(to, to) if isinstance(to, str) else to).type
    except ConfigError as error:
        text = str(error).removeprefix("column 'cast': ")
        raise ConfigError(f"cast({given}): {text}") from None
    if at.is_nested(kind):
        raise ConfigError(f"cast({given}): there is no cast to {kind}")
    return CastTarget(given, kind, strict)


def _is_castable(kind: pa.DataType, to: pa.DataType) -> bool:
    groups = (
        (at.is_integer, at.is_floating, at.is_decimal, at.is_boolean),
        (at.is_timestamp, at.is_date, at.is_string),
        (at.is_time, at.is_string),
        (at.is_string, at.is_integer, at.is_floating, at.is_decimal, at.is_boolean, at.is_binary),
        (at.is_string,),
        (at.is_duration,),
    )
    to = pa.string() if at.is_large_string(to) else to
    return any(
        any(holds(kind) for holds in group) and any(holds(to) for holds in group)
        for group in groups
    )


def _python_of(kind: pa.DataType) -> Callable[[Any], Any]:
    for holds, function in _MAKERS.items():
        if holds(kind):
            return function
    if at.is_timestamp(kind):
        return _datetime if kind.tz is not None else lambda value: _datetime(value, is_naive=True)
    return _unfit


def _unfit(value: Any) -> NoReturn:
    raise ValueError(f"{value!r:.100} cannot be cast so")


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if _INT.fullmatch(value):
            return int(value)
    elif isinstance(value, int | float | Decimal):
        if isinstance(value, int):
            return int(value)
        if value == value and abs(value) != float("inf") and value == int(value):  # noqa: PLR0124
            return int(value)
        raise ValueError(f"{value!r:.100} is no whole number: use .floor(), .ceil() or .round()")
    raise ValueError(f"{value!r:.100} is no whole number")


def _to_float(value: Any) -> float:
    if isinstance(value, str) and ("_" in value or value != value.strip()):
        raise ValueError(f"{value!r:.100} is no number")
    if not isinstance(value, str | int | float | Decimal):
        _unfit(value)
    return float(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, date | time):
        return str(in_utc(value).isoformat() if isinstance(value, datetime) else value.isoformat())
    return str(value if isinstance(value, str | int | float | Decimal) else _unfit(value))


def _to_bool(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    if isinstance(value, int | float | Decimal):
        return bool(value)
    _unfit(value)


def _datetime(value: Any, *, is_naive: bool = False) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif not isinstance(value, datetime):
        _unfit(value)
    found: datetime = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    found = found.astimezone(UTC)
    return found.replace(tzinfo=None) if is_naive else found


def _to_date(value: Any) -> date:
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).date()
    if isinstance(value, date):
        return value
    return date.fromisoformat(value) if isinstance(value, str) else _unfit(value)


def _to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else _unfit(value)


def _to_time(value: Any) -> Any:
    if isinstance(value, time):
        return value
    return time.fromisoformat(value) if isinstance(value, str) else _unfit(value)


_MAKERS: Final[Mapping[Callable[[Any], bool], Callable[[Any], Any]]] = {
    at.is_integer: _to_int,
    at.is_floating: _to_float,
    at.is_decimal: lambda value: Decimal(str(value)),
    at.is_string: _to_text,
    at.is_large_string: _to_text,
    at.is_boolean: _to_bool,
    at.is_date: _to_date,
    at.is_binary: _to_bytes,
    at.is_time: _to_time,
    at.is_duration: lambda value: value if isinstance(value, timedelta) else _unfit(value),
}
