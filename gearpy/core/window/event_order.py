"""Records that wait until event time has passed their place in it, and then come by that.

The place of a record is its own time; of a late one, what its partition had promised before it. So
it is known at the source, record by record. Of one place they come in the order of the partitions,
and of one partition as they were read.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, compress, groupby, pairwise, repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from gearpy.ids import MAX_MS
from gearpy.messages.late_time import OrderedTimes, ordered


class Held(NamedTuple):
    """A record that waits.

    Attributes:
        place_ms: where in event time it comes; not before its own time.
        side: which of several kinds it is; at one place smaller ones come first.
        rank: its partition, and how much of that was read before it; empty if nobody knows.
        turn: the number of the record, among all that were ever held here.
    """

    place_ms: int
    side: int
    rank: tuple[int, ...]
    turn: int
    time_ms: int
    value: Any


#: A `Held` as a plain tuple. No two have the same turn, so values are never compared.
_Record: TypeAlias = tuple[int, int, tuple[int, ...], int, int, Any]

_place: Final = itemgetter(0)
_time: Final = itemgetter(4)
_value: Final = itemgetter(5)
#: Of time, key and record.
_time_and_key: Final = itemgetter(0, 1)
_held: Final = itemgetter(2)
_known_order: Final = itemgetter(0, 1, 2)


class Due(NamedTuple):
    """Records whose turn has come, in order."""

    values: list[Any]
    times: list[int]
    places: list[int]  #: The list of times itself, where none of them is known to be late.


@dataclass(slots=True)
class _Run:
    """Records of one side and rank in the order of their places, from ``at`` on."""

    places: list[int]
    times: list[int]
    values: list[Any]
    side: int
    rank: tuple[int, ...]
    turn: int
    at: int = 0

    def go_on(self, at: int) -> None:
        """Forget the records before a place, lest one of the far future keeps them all."""
        if 2 * at < len(self.places):
            self.at = at
            return
        is_late = self.places is not self.times
        self.values, self.times = self.values[at:], self.times[at:]
        self.places = self.places[at:] if is_late else self.times
        self.turn, self.at = self.turn + at, 0

    def records(self, end: int) -> Iterator[_Record]:
        at = self.at
        turns = range(self.turn + at, self.turn + end)
        places, times, values = self.places[at:end], self.times[at:end], self.values[at:end]
        return zip(places, repeat(self.side), repeat(self.rank), turns, times, values, strict=False)


class EventOrder:
    """Keeps records until event time has passed them; gives them in order.

    Records of which nobody knows the partition, and which are at one place, come in the order of
    what they are.

    Invariant: what is given is a function of the records and of how far event time has come, not
    of the order in which records of different partitions came.

    Args:
        content_of: what a value is, as bytes; for values that come from no partition.
        keys_of: tells most values of a list apart at less cost, by keys that can be sorted, so
            that the content counts only where they are the same.
    """

    def __init__(
        self,
        content_of: Callable[[Any], bytes],
        keys_of: Callable[[list[Any]], list[Any]] = lambda values: [b""] * len(values),
    ) -> None:
        self._content_of = content_of
        self._keys_of = keys_of
        self._loaded: list[_Record] = []  # In order.
        self._runs: list[tuple[int, int, _Run]] = []  # A heap by the place of the next record.
        self._turn = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_Record]:
        yield from self._loaded
        for _, _, run in self._runs:
            yield from run.records(len(run.values))

    @property
    def first_ms(self) -> int:
        loaded, runs = self._loaded, self._runs
        return min(loaded[0][0] if loaded else MAX_MS, runs[0][0] if runs else MAX_MS)

    def hold(
        self,
        values: list[Any],
        timestamps: list[int],
        places: list[int],
        *,
        rank: tuple[int, ...] = (),
        sides: list[int] | None = None,
    ) -> None:
        """Let records of one partition wait, in the order in which they were read.

        Args:
            places: where in event time each of them comes, in ms; the list of times itself, where
                none is late.
            sides: see `Held`; None if there is only one.
        """
        kinds = {0} if sides is None else set(sides)
        if len(kinds) > 1:
            for kind in kinds:
                here = list(map(kind.__eq__, sides or ()))
                some, times = list(compress(values, here)), list(compress(timestamps, here))
                at = times if places is timestamps else list(compress(places, here))
                self.hold(some, times, at, rank=rank, sides=[kind])
            return
        is_late = places is not timestamps
        if type(places) is not OrderedTimes and type(places := ordered(places)) is list:
            order = _order_of(places)
            values, timestamps, places = _taken(order, values, timestamps, places, is_late=is_late)
        run = _Run(places, timestamps if is_late else places, values, min(kinds), rank, self._turn)
        heappush(self._runs, (places[0], self._turn, run))
        self._turn += len(values)
        self._count += len(values)

    def due(self, passed_ms: int, *, is_inclusive: bool = False) -> Due:
        """Take out the records that event time has passed, in order; all, where it has ended.

        Args:
            is_inclusive: also those whose place is there, as nothing comes before them any more.
        """
        until_ms = passed_ms + 1 if is_inclusive or passed_ms >= MAX_MS else passed_ms
        if not self._count or self.first_ms >= until_ms:
            return Due([], [], [])
        runs, due = self._runs, list[tuple[_Run, int]]()
        while runs and runs[0][0] < until_ms:
            run = heappop(runs)[2]
            places = run.places
            end = len(places) if places[-1] < until_ms else bisect_left(places, until_ms, run.at)
            due.append((run, end))
        if self._loaded or not all(run.rank for run, _ in due):
            found = self._by_record(due, until_ms)
        else:
            found = _joined([self._part(*each) for each in sorted(due, key=_by_rank)])
        for run, end in due:
            if end < len(run.places):
                run.go_on(end)
                heappush(runs, (run.places[run.at], run.turn + run.at, run))
        self._count -= len(found.values)
        return found

    def load(self, records: Iterable[Held]) -> None:
        """Take back records that were held before; they may be of several tasks."""
        known = sorted([*self, *records], key=itemgetter(0, 1, 2, 3))
        self._loaded = [(*held[:3], turn, *held[4:]) for turn, held in enumerate(known)]
        self._runs = []
        self._turn = self._count = len(known)

    @staticmethod
    def _part(run: _Run, end: int) -> Due:
        at = run.at
        if not at and end == len(run.places):
            return Due(run.values, run.times, run.places)
        times = run.times[at:end]
        places = times if run.places is run.times else run.places[at:end]
        return Due(run.values[at:end], times, places)

    def _by_record(self, due: list[tuple[_Run, int]], until_ms: int) -> Due:
        end = bisect_left(self._loaded, until_ms, key=_place)
        records = self._loaded[:end]
        del self._loaded[:end]
        records += chain.from_iterable([run.records(end) for run, end in due])
        records.sort()  # What is in order already, is so quickly.
        if not all(map(itemgetter(2), records)):
            records = self._by_content(records)
        places, _, _, _, times, values = map(list, zip(*records, strict=True))
        return Due(values, times, places)

    def _by_content(self, due: list[_Record]) -> list[_Record]:
        ordered: list[_Record] = []
        for (_, _, rank), same in groupby(due, key=_known_order):
            group = list(same)
            if rank or len(group) == 1:
                ordered += group
                continue
            times = list(map(_time, group))
            keys = self._keys_of(list(map(_value, group)))
            keyed = list(zip(times, keys, group, strict=True))
            keyed.sort(key=_time_and_key)
            if len(set(keys)) == len(keys):
                ordered += map(_held, keyed)
                continue
            for _, alike in groupby(keyed, key=_time_and_key):
                ties = list(map(_held, alike))
                if len(ties) > 1:
                    ties.sort(key=lambda held: self._content_of(held[5]))
                ordered += ties
        return ordered


def _by_rank(part: tuple[_Run, int]) -> tuple[int, tuple[int, ...], int]:
    run, _ = part
    return run.side, run.rank, run.turn


def _joined(parts: list[Due]) -> Due:
    """Join parts that are in the order in which they count at one place; no Python for a record."""
    if len(parts) == 1:
        return parts[0]
    values, times, places = (list(chain.from_iterable(each)) for each in zip(*parts, strict=True))
    is_late = any(part.times is not part.places for part in parts)
    if all(one.places[-1] <= behind.places[0] for one, behind in pairwise(parts)):
        return Due(values, times, places if is_late else times)
    return Due(*_taken(_order_of(places), values, times, places, is_late=is_late))


def _order_of(places: list[int]) -> list[int]:
    return sorted(range(len(places)), key=places.__getitem__)


def _taken(
    order: list[int], values: list[Any], times: list[int], places: list[int], *, is_late: bool
) -> tuple[list[Any], list[int], list[int]]:
    """Return records in an order; where none is late, places are the times."""
    taken = list(map(times.__getitem__, order))
    at = list(map(places.__getitem__, order)) if is_late else taken
    return list(map(values.__getitem__, order)), taken, at
