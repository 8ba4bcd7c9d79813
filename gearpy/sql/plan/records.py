"""Functions of single records behind steps of a plan: plain objects, which travel with programs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate, groupby
from operator import ne
from typing import Any, Final, TypeAlias

from gearpy.core.base.copies import own
from gearpy.core.base.one_key import one_key
from gearpy.core.window.accumulators import Aggregate
from gearpy.expressions.expr import Expr
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.api.window_result import CoGroup, JoinResult

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

    @property
    def column(self) -> str:
        return self.fields[0][0]

    @property
    def is_ascending(self) -> bool:
        return not self.fields[0][1]

    def number_of(self, ranked: Any) -> int | float | None:
        has_value, found = ranked[:2]
        is_number = not has_value and type(found) is tuple and found[0] == 0
        return found[1] if is_number else None

    def __call__(self, row: Row) -> tuple[Any, ...]:
        found: tuple[Any, ...] = ()
        for name, is_descending, nulls_first in self.fields:
            found += _pieces(row[name], is_descending, nulls_first)
        return found


def _pieces(value: Any, is_descending: bool, nulls_first: bool) -> tuple[Any, Any]:  # noqa: FBT001 - of fields
    """Return two pieces, of which pairs are compared: whether there is a value, and which."""
    if type(value) is int:  # By far the most.
        return 0, (0, value if is_descending else -value)
    match value:
        case None:
            return (1, 0) if nulls_first else (-1, 0)
        case float() if value != value:  # noqa: PLR0124 - NaN is the greatest number
            return 0, (1 if is_descending else -1, 0.0)
        case bool() | int() | float():
            return 0, (0, value if is_descending else -value)
        case datetime():
            plain: Any = _microseconds(value)
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


def _microseconds(time: datetime) -> int:
    """Return the microseconds since 1970; of a time without a zone as its clock shows them."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(
        microseconds=1
    )


def _number(value: Any, is_descending: bool) -> Any:  # noqa: FBT001 - of a field
    """Return what differs by how far two values are apart, and grows; None of null."""
    if isinstance(value, datetime):
        value = _microseconds(value)
    elif isinstance(value, date):
        value = value.toordinal() * 86_400_000_000
    return None if value is None else -value if is_descending else value


def _reversed(text: str | bytes) -> tuple[int, ...]:
    """Return a key that sorts texts in descending order, a prefix after what it begins."""
    codes = text if isinstance(text, bytes) else map(ord, text)
    return (*(-code for code in codes), 1)


@dataclass(frozen=True, slots=True)
class Listed:
    """Gives the rows of a list in order, so many after the first ones that are left out."""

    rank: Rank
    offset: int
    limit: int | None

    def __call__(self, result: Any) -> Iterator[Row]:
        rows = sorted(result[1]["rows"], key=self.rank, reverse=True)
        return iter(rows[self.offset : None if self.limit is None else self.offset + self.limit])


#: What running functions over rows need of all that they see: the row, if the result is not of it,
#: the first one, how many.
ROW: Final = "#row"
FIRST: Final = "#first"
COUNT: Final = "#count"


#: Functions of where the rows of the same order as each begin and end.
_PLACES: Final[Mapping[str, Callable[[list[int], list[int]], Iterable[Any]]]] = {
    "rank": lambda starts, _: (start + 1 for start in starts),
    "dense_rank": lambda starts, _: accumulate(map(int, map(ne, starts, [-1, *starts]))),
    "percent_rank": lambda starts, _: (start / max(1, len(starts) - 1) for start in starts),
    "cume_dist": lambda _, ends: (end / len(ends) for end in ends),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverColumn:
    """A function over the rows around each row.

    Attributes:
        field: for its results.
        of: field of the value that it takes of a row; empty for none.
        offset: of "lag" and "lead", how far behind the row that is taken comes; of "ntile" into how
            many parts rows are cut; of "nth_value" the place of the row.
        default: field of the value where there is no such row; empty for null.
        aggregate: that it is; None: it takes the place or a single one of the rows.
        rank: orders the rows.
        is_range: bounds count by what rows are ordered by, and not by their number.
        start: how far behind the row the first one is; None: it is the first of all.
        end: likewise of the last one.
    """

    field: str
    name: str
    of: str
    offset: int
    default: str
    aggregate: Aggregate | None
    rank: Rank
    is_range: bool
    start: int | None
    end: int | None

    def results(self, rows: list[Row]) -> list[Any]:
        count = len(rows)
        match self.name:
            case "row_number":
                return [*range(1, count + 1)]
            case "ntile":  # The first parts have one more, where they are not alike.
                size, longer = divmod(count, self.offset)
                sizes = [size + (part < longer) for part in range(self.offset)]
                return [part for part, size in enumerate(sizes, 1) for _ in range(size)]
            case "lag" | "lead":
                others = [(row, place + self.offset) for place, row in enumerate(rows)]
                return [
                    rows[other][self.of]
                    if 0 <= other < count
                    else row[self.default]
                    if self.default
                    else None
                    for row, other in others
                ]
        starts, ends = self._peers(rows)
        if self.name in _PLACES:
            return [*_PLACES[self.name](starts, ends)]
        frames = self._frames(rows, starts, ends)
        if self.aggregate is not None:
            return [*self._aggregated(rows, frames, self.aggregate)]
        values = [row[self.of] for row in rows]
        if self.name == "nth_value":
            places = [(low + self.offset - 1, high) for low, high in frames]
            return [values[at] if at < high else None for at, high in places]
        is_first = self.name.startswith("first")
        return [
            None if low >= high else values[low if is_first else high - 1] for low, high in frames
        ]

    def _peers(self, rows: list[Row]) -> tuple[list[int], list[int]]:
        """Return where the rows of the same order as each begin, and where they end."""
        starts: list[int] = []
        ends: list[int] = []
        for _, peers in groupby(rows, self.rank):
            start, count = len(starts), sum(1 for _ in peers)
            starts += [start] * count
            ends += [start + count] * count
        return starts, ends

    def _frames(
        self, rows: list[Row], starts: list[int], ends: list[int]
    ) -> Iterator[tuple[int, int]]:
        count = len(rows)
        numbers: list[Any] = []
        if self.is_range and (self.start or self.end):
            name, is_descending, _ = self.rank.fields[0]
            numbers = [_number(row[name], is_descending) for row in rows]
        there = [place for place, number in enumerate(numbers) if number is not None] or [0]
        known = (there[0], there[-1] + 1)  # Nulls are peers of each other, and of nothing else.

        def edge(place: int, bound: int | None, near: int, far: int, find: Any) -> int:
            if bound is None:
                return far
            if not self.is_range:
                return min(max(0, place + bound + (far > 0)), count)
            if not bound or numbers[place] is None:
                return near
            return int(find(numbers, numbers[place] + bound, *known))

        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            low = edge(place, self.start, start, 0, bisect_left)
            yield low, edge(place, self.end, end, count, bisect_right)

    def _aggregated(
        self, rows: list[Row], frames: Iterator[tuple[int, int]], aggregate: Aggregate
    ) -> Iterator[Any]:
        fold = fold_of(aggregate)
        begun = done = -1
        kept = None
        for low, high in frames:
            if low >= high:
                yield aggregate.result(aggregate.create())
                continue
            if low != begun or high < done:  # Else it goes on with what there is.
                begun = done = low
            for place in range(done, high):
                taken = (rows[place], place) if fold.timed else (rows[place],)
                kept = fold.first(*taken) if place == low else fold.add(kept, *taken)
            done = high
            yield own(kept if fold.result is None else fold.result(kept))


@dataclass(frozen=True, slots=True)
class OverRows:
    """Gives the rows of a list with the results of functions over them.

    Attributes:
        fields: of rows.
        start: field for the start of the window; empty for none.
        end: likewise.
    """

    columns: tuple[OverColumn, ...]
    fields: tuple[str, ...]
    start: str
    end: str

    def __call__(self, result: Any) -> Iterator[Row]:
        is_ranked = not isinstance(result[1], dict)  # The first rows come in order, as copies.
        rows: list[Row] = result[1] if is_ranked else [{**row} for row in result[1]["rows"]]
        for each in self.columns:
            if not is_ranked:
                rows.sort(key=each.rank, reverse=True)
            for row, value in zip(rows, each.results(rows), strict=True):
                row[each.field] = value
        for row in rows:
            if self.start:
                row[self.start], row[self.end] = moment(result[2]), moment(result[3])
            yield {name: row[name] for name in self.fields}


@dataclass(frozen=True, slots=True)
class RunningRow:
    """Gives a row with the results of functions over those up to it."""

    columns: tuple[OverColumn, ...]

    fields: tuple[str, ...]

    def __call__(self, result: tuple[Any, dict[str, Any]]) -> Row:
        of, values = result
        row = values.get(ROW, of)
        found = {name: row[name] for name in self.fields}
        for each in self.columns:
            if not each.of:
                found[each.field] = values[each.field]
            elif each.name == "lag" and values[COUNT] + each.offset < 1:
                found[each.field] = row[each.default] if each.default else None
            else:
                last = each.name.startswith("last")
                found[each.field] = (row if last else values[FIRST])[each.of]
        return found


@dataclass(frozen=True, slots=True)
class PeerRows:
    """Gives rows of the same time the results of the last one of their keys."""

    fields: tuple[str, ...]
    keys: tuple[str, ...]

    def __call__(self, rows: list[Row]) -> list[Row]:
        keys = [one_key(tuple(map(row.__getitem__, self.keys))) for row in rows]
        last = dict(zip(keys, rows, strict=True))
        results = {key: {name: row[name] for name in self.fields} for key, row in last.items()}
        return [{**row, **results[key]} for key, row in zip(keys, rows, strict=True)]


@dataclass(frozen=True, slots=True)
class TableKey:
    """Gives what is equal in a row of a table, and nulls of a row that does not count.

    Attributes:
        values: what is equal.
        where: which rows count; None: all.
    """

    values: tuple[Expr, ...]
    where: Expr | None

    def __call__(self, row: Any) -> Any:
        counts = self.where is None or self.where(row)
        found = tuple(value(row) if counts else None for value in self.values)
        return found if len(found) > 1 else found[0]


@dataclass(frozen=True, slots=True)
class Marking:
    """Gives some fields of a record, and in another one whether there is a row for it."""

    fields: tuple[str, ...]
    mark: str

    def __call__(self, record: Row, row: Any) -> Row:
        return {name: record[name] for name in self.fields} | {self.mark: row is not None}


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Gives the rows of one side of a window and whether there are others of the same key."""

    fields: tuple[str, ...]
    start: str
    end: str
    mark: str

    def __call__(self, found: CoGroup[Any, Row, Row]) -> Iterator[Row]:
        more = {
            self.start: moment(found.start),
            self.end: moment(found.end),
            self.mark: bool(found.right),
        }
        for row in found.left:
            yield {name: row[name] for name in self.fields} | more


@dataclass(frozen=True, slots=True)
class Unnested:
    """Gives a row for each item of a list, beside the fields of the record.

    Attributes:
        of: the field with the list.
        into: that of its items.
        keeps: there is a row of nothing where the list is empty or missing.
    """

    fields: tuple[str, ...]
    of: str
    into: str
    keeps: bool

    def __call__(self, row: Row) -> Iterator[Row]:
        others = {name: row[name] for name in self.fields}
        for item in row[self.of] or ([None] if self.keeps else ()):
            yield others | {self.into: item}


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
