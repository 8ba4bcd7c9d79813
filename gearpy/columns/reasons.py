"""Why Arrow has refused the cells of a column, where it does not tell the value, or what helps."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final

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
