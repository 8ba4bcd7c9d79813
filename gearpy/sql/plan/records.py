"""Functions of single records behind steps of a plan: plain objects, which travel with programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.window_result import JoinResult

Row: TypeAlias = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def everything(_: Any) -> None:
    """Return the one key of all records."""


@lru_cache(maxsize=1024)  # Many results have the same bounds.
def moment(ms: int) -> datetime | None:
    """Return a time of windows; None for the ends of time."""
    return None if ms in (MIN_MS, MAX_MS) else _EPOCH + ms * _MS


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Makes rows of the results of groups.

    Attributes:
        keys: fields of the key.
        has_values: there are aggregates; else groups alone are asked for.
        start: field for the start of the window; empty without windows.
        end: likewise.
    """

    keys: tuple[str, ...]
    has_values: bool
    start: str = ""
    end: str = ""

    def __call__(self, result: Any) -> Row:
        key, values = result[0], result[1]
        if len(self.keys) == 1:
            row = {self.keys[0]: key}
        else:
            row = dict(zip(self.keys, key or (), strict=True))
        if self.start:
            row[self.start], row[self.end] = moment(result[2]), moment(result[3])
        if self.has_values:
            row.update(values)
        return row


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Makes rows of pairs.

    Attributes:
        left: pairs of a field of the left record and one of the row.
        right: likewise of the right record.
        start: fields for the start of the window; none without windows.
        end: likewise.
    """

    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()

    def __call__(self, pair: JoinResult[Any, Any, Any]) -> Row:
        _, left, right, start, end = pair
        row = {into: None if left is None else left[name] for name, into in self.left}
        row |= {into: None if right is None else right[name] for name, into in self.right}
        row |= dict.fromkeys(self.start, moment(start)) | dict.fromkeys(self.end, moment(end))
        return row


#: A field, whether the largest comes first, and whether null does.
OrderField: TypeAlias = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True)
class Rank:
    """Gives plain data of a record that is the larger, the earlier the record comes."""

    fields: tuple[OrderField, ...]

    def __call__(self, row: Row) -> tuple[Any, ...]:
        return tuple(
            piece
            for name, is_descending, nulls_first in self.fields
            for piece in _pieces(row[name], is_descending, nulls_first)
        )


def _pieces(value: Any, is_descending: bool, nulls_first: bool) -> tuple[Any, Any]:  # noqa: FBT001 - of fields
    """Return two pieces, of which pairs are compared: whether there is a value, and which."""
    match value:
        case None:
            return (1, 0) if nulls_first else (-1, 0)
        case float() if value != value:  # noqa: PLR0124 - NaN is the greatest number
            return 0, (1 if is_descending else -1, 0.0)
        case bool() | int() | float():
            return 0, (0, value if is_descending else -value)
        case datetime():
            plain: Any = (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            plain = value.toordinal()
        case time():
            plain = value.isoformat("microseconds")
        case str() | bytes() | timedelta() | Decimal():
            plain = value
        case _:
            plain = repr(value)
    if is_descending:
        return 0, plain
    return 0, _reversed(plain) if isinstance(plain, str | bytes) else -plain


def _reversed(text: str | bytes) -> tuple[int, ...]:
    """Return a key that sorts texts in descending order, a prefix after what it begins."""
    codes = text if isinstance(text, bytes) else map(ord, text)
    return (*(-code for code in codes), 1)


@dataclass(frozen=True, slots=True)
class Listed:
    """Gives the rows of a list, the first ones alone.

    Attributes:
        rank: orders them; None: they are in order.
        offset: how many are left out at first.
        limit: how many follow at most.
        place: field for the place of a row, from 1; empty for none.
        start: field for the start of the window; empty for none.
        end: likewise.
        fields: of rows; empty: all.
    """

    rank: Rank | None
    offset: int
    limit: int | None
    place: str = ""
    start: str = ""
    end: str = ""
    fields: tuple[str, ...] = ()

    def __call__(self, result: Any) -> Iterator[Row]:
        value = result[1]
        rows: list[Row] = value["rows"] if isinstance(value, dict) else value
        if self.rank is not None:
            rows = sorted(rows, key=self.rank, reverse=True)
        stop = None if self.limit is None else self.offset + self.limit
        for place, row in enumerate(rows[self.offset : stop], self.offset + 1):
            found = {**row, self.place: place} if self.place else row
            if self.start:
                found |= {self.start: moment(result[2]), self.end: moment(result[3])}
            yield {name: found[name] for name in self.fields} if self.fields else found


@dataclass(frozen=True, slots=True)
class Computing:
    """Puts into a field what a user's function makes of others; ``fields`` are those that stay."""

    field: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    fields: tuple[str, ...]

    def __call__(self, row: Row) -> Row:
        value = self.function(*(row[name] for name in self.arguments))
        return {name: value if name == self.field else row[name] for name in self.fields}
