"""Records that wait until event time has passed their place in it, and then come by that.

The place of a record is its own time; of a late one, what its partition had promised before it. So
it is known at the source, record by record. Of one place they come in the order of the partitions,
and of one partition as they were read.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, count, groupby, islice, repeat
from operator import itemgetter, lt, not_
from typing import Any, Final, NamedTuple

from gearpy.ids import MAX_MS


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


_place: Final = itemgetter(0)
_time: Final = itemgetter(4)
_value: Final = itemgetter(5)
#: Of time, key and record.
_time_and_key: Final = itemgetter(0, 1)
_held: Final = itemgetter(2)
_sure_order: Final = itemgetter(0, 1, 2, 3)
_known_order: Final = itemgetter(0, 1, 2)
_made: Final = tuple.__new__
#: Records that wait without an order, beside an eighth of those that have one.
_FRESH_MAX: Final = 4096


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
        self._sorted: list[Held] = []
        self._fresh: list[Held] = []
        self._fresh_ms = MAX_MS  # The first place among the fresh ones.
        self._turn = 0

    def __len__(self) -> int:
        return len(self._sorted) + len(self._fresh)

    def __iter__(self) -> Iterator[Held]:
        yield from self._sorted
        yield from self._fresh

    @property
    def first_ms(self) -> int:
        return min(self._sorted[0].place_ms if self._sorted else MAX_MS, self._fresh_ms)

    def hold(
        self,
        values: list[Any],
        timestamps: list[int],
        places: list[int],
        *,
        rank: tuple[int, ...] = (),
        sides: Iterable[int] | None = None,
    ) -> None:
        """Let records of one partition wait, in the order in which they were read.

        Args:
            places: where in event time each of them comes, in ms.
            sides: see `Held`; None if there is only one.
        """
        turns = count(self._turn)
        self._turn += len(values)
        columns = zip(
            places, sides or repeat(0), repeat(rank), turns, timestamps, values, strict=False
        )
        self._fresh += map(_made, repeat(Held), columns)
        self._fresh_ms = min(self._fresh_ms, min(places))

    def due(self, passed_ms: int, *, is_inclusive: bool = False) -> list[Held]:
        """Take out the records that event time has passed, in order; all, where it has ended.

        Args:
            is_inclusive: also those whose place is there, as nothing comes before them any more.
        """
        until_ms = passed_ms + 1 if is_inclusive or passed_ms >= MAX_MS else passed_ms
        if self.first_ms >= until_ms:
            return []
        places: list[int] = []
        if self._fresh and self._fresh_ms < until_ms:
            places = list(map(_place, self._fresh))
            is_behind = not self._sorted or self._sorted[-1][0] < places[0]
            # Records of one place may be of several partitions; then they are sorted.
            if is_behind and all(map(lt, places, islice(places, 1, None))):
                self._sorted += self._fresh
                self._fresh, self._fresh_ms, places = [], MAX_MS, []
        end = bisect_left(self._sorted, until_ms, key=_place)
        due = self._sorted[:end]
        del self._sorted[:end]
        if places:
            fresh = self._fresh
            is_due = list(map(until_ms.__gt__, places))
            due += compress(fresh, is_due)
            rest = self._fresh = list(compress(fresh, map(not_, is_due)))
            self._fresh_ms = min(map(_place, rest), default=MAX_MS)
            due.sort(key=_sure_order)
            # What will wait long is sorted once, rather than looked at again and again.
            if len(rest) > _FRESH_MAX + len(self._sorted) // 8:
                self._sorted = sorted(self._sorted + rest, key=_sure_order)
                self._fresh, self._fresh_ms = [], MAX_MS
        return due if all(map(itemgetter(2), due)) else self._by_content(due)

    def load(self, records: Iterable[Held]) -> None:
        """Take back records that were held before; they may be of several tasks."""
        known = sorted([*self, *records], key=_sure_order)
        self._sorted = []
        self._fresh = [held._replace(turn=turn) for turn, held in enumerate(known)]
        self._turn = len(known)
        self._fresh_ms = min(map(_place, known), default=MAX_MS)

    def _by_content(self, due: list[Held]) -> list[Held]:
        ordered: list[Held] = []
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
                    ties.sort(key=lambda held: self._content_of(held.value))
                ordered += ties
        return ordered
