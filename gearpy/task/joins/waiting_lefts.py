"""Left records of an as-of join in columns that wait for right ones that are not older."""

from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.ids import MAX_MS
from gearpy.messages.table import joined_rows
from gearpy.task.joins.join_schema import side_column
from gearpy.task.joins.runs import Array, Numbers, SortedRun, more
from gearpy.task.joins.side_tables import SideSchema

_FIELDS: Final = 5  # Of a record that was told, as `AsOfJoin` has it.


@dataclass(frozen=True)
class Lefts:
    """Left records and their nearest matches so far, in the order in which they came.

    Attributes:
        rows: the columns of the key, and the records.
        found: the matches; null where there is none.
        found_ms: their times; those of the records where there is none.
    """

    rows: pa.RecordBatch
    codes: Numbers
    times: Numbers
    numbers: Numbers
    found: pa.Array
    found_ms: Numbers

    def __len__(self) -> int:
        return len(self.times)

    @property
    def has_found(self) -> Array:
        known: Array = self.found.is_valid().to_numpy(zero_copy_only=False)
        return known

    def taken(self, which: Array) -> "Lefts":
        at = np.flatnonzero(which) if which.dtype == bool else which
        places = pa.array(at)
        return Lefts(
            self.rows.take(places),
            self.codes[at],
            self.times[at],
            self.numbers[at],
            self.found.take(places),
            self.found_ms[at],
        )

    def joined(self, other: "Lefts") -> "Lefts":
        return Lefts(
            joined_rows([self.rows, other.rows]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.times, other.times]),
            np.concatenate([self.numbers, other.numbers]),
            pa.concat_arrays([self.found, other.found]),
            np.concatenate([self.found_ms, other.found_ms]),
        )

    def recoded(self, codes: Numbers) -> "Lefts":
        return Lefts(
            self.rows, codes[self.codes], self.times, self.numbers, self.found, self.found_ms
        )

    def ends(self, tolerance_ms: int | None) -> Numbers:
        """Return the times until which a nearer right record may come."""
        no_end = np.full(len(self), MAX_MS - 1)
        far = no_end if tolerance_ms is None else more(self.times, tolerance_ms)
        back = self.times - self.found_ms
        near = self.times + back - 1
        # Times may be anything, so sums may be beyond all of them, and have wrapped round.
        near = np.where((back < 0) | (near < self.times - 1), no_end, near)
        return np.where(self.has_found, near, far)

    def decided(
        self, fresh: SortedRun | None, tolerance_ms: int | None, watermark_ms: int
    ) -> tuple["Lefts", "Lefts"]:
        """Return those that are decided, in order, with their matches; and the others."""
        ends = self.ends(tolerance_ms)
        is_known = self.has_found & (self.found_ms == self.times)  # None is nearer.
        is_hit, moments, found, found_ms = is_known & False, self.times, self.found, self.found_ms
        if fresh is not None:
            at = np.searchsorted(fresh.order, fresh.places(self.codes, self.times))
            at[at == len(fresh)] = 0
            is_hit = ~is_known & (fresh.codes[at] == self.codes) & (fresh.times[at] >= self.times)
            moments = np.where(is_hit, fresh.times[at], moments)
            is_nearer = is_hit & (moments <= ends)
            rights = fresh.rows.columns[-1].take(pa.array(fresh.at[at[is_nearer]]))
            place = np.arange(len(self))
            place[is_nearer] = len(self) + np.arange(len(rights))
            found = pa.concat_arrays([found, rights]).take(pa.array(place))
            found_ms = np.where(is_nearer, moments, found_ms)
        is_over = ~(is_known | is_hit) & ((ends < watermark_ms) | (watermark_ms == MAX_MS))
        moments = np.where(is_over, ends, moments)
        order = np.lexsort((self.numbers, is_known, moments, is_over))
        is_decided = is_known | is_hit | is_over
        all_of = Lefts(self.rows, self.codes, self.times, self.numbers, found, found_ms)
        return all_of.taken(order[is_decided[order]]), all_of.taken(~is_decided)

    # -- as plain data -------------------------------------------------------------------------

    def cells(self, sides: list[SideSchema]) -> dict[Any, list[Any]]:
        rights = iter(sides[RIGHT].records_of(self.found.drop_null()))
        numbers, times = self.numbers.tolist(), self.times.tolist()
        found = zip(self.has_found.tolist(), self.found_ms.tolist(), strict=True)
        flat: dict[Any, list[Any]] = {}
        rows = zip(sides[LEFT].rows(self.rows), numbers, times, found, strict=True)
        for (_, key, record), number, time, (has_one, found_ms) in rows:
            match = (found_ms, next(rights)) if has_one else (None, None)
            flat.setdefault(key, []).extend((number, time, record, *match))
        return flat


def told_lefts(
    pairs: dict[Any, list[Any]], sides: list[SideSchema]
) -> tuple[pa.RecordBatch, list[Any]]:
    """Return the rows of what was told of keys, and the other fields of `Lefts` but the codes."""
    records = [
        (*flat[at : at + _FIELDS], key)
        for key, flat in pairs.items()
        for at in range(0, len(flat), _FIELDS)
    ]
    records.sort(key=itemgetter(0))
    numbers, times, values, found_ms, found, keys = zip(*records, strict=True)
    rows = sides[LEFT].table(list(zip(repeat(LEFT), keys, values, strict=False)))
    rights = sides[RIGHT].records
    assert rights is not None
    known_ms = [time if at is None else at for time, at in zip(times, found_ms, strict=True)]
    arrays = (np.array(each, np.int64) for each in (times, numbers, known_ms))
    own, number, matched = arrays
    return rows, [own, number, side_column(rights, found), matched]
