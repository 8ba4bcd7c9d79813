"""What joins in columns keep: records sorted by the numbers of their keys, and by time."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.core.base.fields import key_getter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, joined_rows
from gearpy.state.stores.many import groups_of_keys
from gearpy.task.joins.join_schema import key_numbers

#: Codes and times of a run make one number, where its times are within so many ms.
_WIDTH_MAX: Final = 1 << 31
#: So many pairs are yielded at once; one record may have more.
PAIRS: Final = 1 << 16
Numbers: TypeAlias = NDArray[np.int64]
Array: TypeAlias = NDArray[Any]


class SortedRun:
    """Records of one side, sorted by the code of their key, and then by time.

    Attributes:
        rows: their columns, as they came.
        at: where in these each record is; so with all arrays here.
        is_waiting: the record comes out alone if no partner comes.
        is_told: it was told as one that does not wait.
        ranks: their different times; None where these are near each other.
        order: for each record a number that is in the order of keys and times.
    """

    def __init__(self, rows: pa.RecordBatch, arrays: Sequence[Array]) -> None:
        self.rows = rows
        self.at, self.codes, self.times, self.is_waiting, self.is_told = arrays
        self.oldest_ms, self.newest_ms = int(self.times.min()), int(self.times.max())
        is_wide = self.newest_ms - self.oldest_ms > _WIDTH_MAX
        self.ranks = np.unique(self.times) if is_wide else None
        self.order = self.places(self.codes, self.times)
        if (self.order[1:] < self.order[:-1]).any():
            order = np.argsort(self.order, kind="stable")  # What is in order in parts is merged.
            self.at, self.codes, self.times, self.is_waiting, self.is_told = (
                array[order] for array in arrays
            )
            self.order = self.order[order]

    def __len__(self) -> int:
        return len(self.times)

    @property
    def arrays(self) -> list[Array]:
        return [self.at, self.codes, self.times, self.is_waiting, self.is_told]

    @property
    def hold_ms(self) -> int:
        """The time of the oldest record that waits, `MAX_MS` if none does."""
        waiting = self.times[self.is_waiting]
        return int(waiting.min()) if len(waiting) else MAX_MS

    def places(self, codes: Numbers, times: Numbers) -> Numbers:
        """Return where in the order the first record of a key would be that is not older."""
        if self.ranks is not None:
            return codes * (len(self.ranks) + 1) + np.searchsorted(self.ranks, times)
        width = self.newest_ms - self.oldest_ms + 1
        inside: Numbers = np.minimum(np.maximum(times, self.oldest_ms), self.newest_ms + 1)
        return codes * (width + 1) + (inside - self.oldest_ms)

    def since(self, from_ms: int) -> "SortedRun | None":
        if self.oldest_ms >= from_ms:
            return self
        kept = np.flatnonzero(self.times >= from_ms)
        return self.taken(kept) if len(kept) else None

    def taken(self, places: Numbers) -> "SortedRun":
        rows = self.rows.take(pa.array(self.at[places]))
        return SortedRun(
            rows, [np.arange(len(rows)), *(array[places] for array in self.arrays[1:])]
        )

    def recoded(self, codes: Numbers) -> None:
        """Take other codes, which are in the order of those before."""
        self.codes = codes[self.codes]
        self.order = self.places(self.codes, self.times)


class Codes:
    """Numbers of keys, from 0 on.

    Args:
        columns: how many the key has; they come first.
    """

    def __init__(self, columns: int) -> None:
        self._key_of = key_getter(*key_numbers(columns))
        self._code_of: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._code_of)

    def of(self, rows: pa.RecordBatch, *, adds: bool = True) -> Numbers:
        """Return the number of the key of each row; -1 for one that is unknown and not added."""
        found = distinct_keys(Table(rows), self._key_of)
        assert found is not None, "the types of the key can be keys"
        code_of = self._code_of
        if adds:
            codes = [code_of.setdefault(key, len(code_of)) for key in found[0]]
        else:
            codes = [code_of.get(key, -1) for key in found[0]]
        places = found[1].to_numpy(zero_copy_only=False)
        of_rows: Numbers = np.array(codes, np.int64)[places]
        return of_rows

    def run(
        self,
        rows: pa.RecordBatch,
        times: Numbers,
        *,
        is_waiting: bool = False,
        is_told: bool = False,
    ) -> SortedRun:
        """Return records with their times, all of which wait, or were told, or neither."""
        flags = [np.full(len(times), flag) for flag in (is_waiting, is_told)]
        return SortedRun(rows, [np.arange(len(times)), self.of(rows), times, *flags])

    def groups(self, codes: Numbers) -> Numbers:
        used, places = np.unique(codes, return_inverse=True)
        groups = groups_of_keys(self.keys(used))
        found: Numbers = np.array(groups, np.int64)[places]
        return found

    def keys(self, codes: Numbers) -> list[Any]:
        known = list(self._code_of)
        return [known[code] for code in codes.tolist()]

    def forget(self, used: Sequence[Numbers]) -> Numbers | None:
        """Forget the codes that nothing uses, where these are most.

        Returns:
            The new codes by the old ones; None if nothing was forgotten.
        """
        if len(self._code_of) <= 2 * sum(map(len, used)):
            return None
        kept = np.unique(np.concatenate([*map(np.unique, used), np.zeros(0, np.int64)]))
        keys = list(self._code_of)
        moved = np.zeros(len(keys), np.int64)
        moved[kept] = np.arange(len(kept))
        self._code_of = {keys[code]: place for place, code in enumerate(kept.tolist())}
        return moved


def add_run(runs: list[SortedRun], run: SortedRun, from_ms: int) -> None:
    """Add a run, joined with those before it that are not larger, so that there are few."""
    joined, count = [run], len(run)
    while runs and len(runs[-1]) <= count:
        if (before := runs.pop().since(from_ms)) is not None:
            joined.append(before)
            count += len(before)
    runs.append(joined_runs(joined[::-1]))


def joined_runs(runs: list[SortedRun]) -> SortedRun:
    if len(runs) == 1:
        return runs[0]
    starts = np.cumsum([0, *map(len, runs)])
    at = [run.at + start for run, start in zip(runs, starts, strict=False)]
    columns = [at, *zip(*(run.arrays[1:] for run in runs), strict=True)]
    return SortedRun(joined_rows([run.rows for run in runs]), list(map(np.concatenate, columns)))


def paired(low: Numbers, counts: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield each place with those of its partners, which are so many from ``low`` on; in parts."""
    ends = np.cumsum(counts)
    cuts = [0]
    while cuts[-1] < len(ends):
        done = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, done + PAIRS, "right"))))
    for start, stop in pairwise(cuts):
        count = counts[start:stop]
        mine = np.repeat(np.arange(start, stop), count)
        first = np.repeat(low[start:stop] - (np.cumsum(count) - count), count)
        yield mine, first + np.arange(len(mine))


def less(times: Numbers, by_ms: int) -> Numbers:
    """Return older times, none before all time."""
    return np.maximum(times, min(MIN_MS + by_ms, MAX_MS)) - by_ms


def more(times: Numbers, by_ms: int) -> Numbers:
    """Return newer times, none behind all time."""
    return np.minimum(times, max(MAX_MS - by_ms, MIN_MS)) + by_ms
