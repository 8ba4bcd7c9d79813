"""Counts of rows in two parts: some where the rows are, merged where their key belongs.

So not each record travels, but a number for each key and window now and then: when event time
moves, when an epoch ends, or when there are many keys.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import replace

from gearpy.core.base.one_key import one_key
from gearpy.core.window.aggregates import count
from gearpy.core.window.windows import DisjointWindows
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.messages.late_time import late_places
from gearpy.task.aggregates.fold import Fold, Kept, KeyFunction, WindowFold
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.api.interfaces import TaskContext

#: Keys that wait; more of them would be of little use, and take long to send.
_WAITING_MAX: Final = 16_384

#: Finds the key in the rows of `PartialCount`.
key_of_part: Final[KeyFunction] = itemgetter(0)
_number_of_part: Final = itemgetter(1)


class PartialCount(WindowFold):
    """Counts records by window and key; yields ``(key, number)`` with the time of the oldest.

    Nothing of it is in a snapshot: the chain sends waiting counts when an epoch ends; see `drain`.
    Late records are sent at once, each with its own time, since it may still be taken.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        windows: DisjointWindows,
        key: KeyFunction,
        *,
        limit: int,
    ) -> None:
        super().__init__(context, name, windows, key, fold_of(count()), limit=limit)
        self._has_late = False

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Count the records; yield the counts, if there are many, or late ones."""
        late = late_places(batch.timestamps) if batch.has_late else ()
        if late:
            batch = yield from self._sent(late, batch)
        self._fold_in(batch.values, batch.timestamps)
        if self._has_late or sum(map(len, self._open.values())) >= _WAITING_MAX:
            yield from self.drain()

    def _sent(self, late: list[int], batch: Batch) -> Generator[Batch, None, Batch]:
        values, timestamps = batch.values, batch.timestamps
        pairs: list[Any] = []
        times: list[int] = []
        for at in late:
            counted: Counter[Any] = Counter()
            self._count(counted, [values[at]], [timestamps[at]])
            pairs += counted.items()
            times += [timestamps[at]] * len(counted)
        if pairs:
            yield batch.giving(pairs, times)
        is_late = set(late)
        others = [at for at in range(len(values)) if at not in is_late]
        return Batch([values[at] for at in others], [timestamps[at] for at in others])

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._watermark_ms = watermark_ms
        return self.drain()

    def drain(self) -> Iterator[Batch]:
        """Yield all that has been counted, window by window, then as the keys came."""
        self._has_late = False
        while self._open:
            start = next(iter(self._open))
            pairs, time_ms = iter(self._open[start].items()), self._oldest_ms[start]
            while counts := list(islice(pairs, self._limit)):
                yield Batch(counts, [time_ms] * len(counts))
            del self._open[start], self._oldest_ms[start]

    def snapshot(self) -> None:
        assert not self._open, "what waits is sent before the epoch ends"

    def restore(self, state: Any) -> None:
        """Nothing was kept."""

    def _add(self, start: int, values: list[Any], timestamps: list[int], low: int) -> None:
        known = self._open.get(start)
        counted: Counter[Any] = known if isinstance(known, Counter) else Counter()
        self._count(counted, values, timestamps)
        if counted:
            self._open[start] = counted
            self._oldest_ms[start] = min(low, self._oldest_ms.get(start, MAX_MS))
            self._has_late |= self._pieces.end_of(start) <= self._watermark_ms


def merging_counts(fold: Fold) -> Fold:
    """Return a fold of partial counts with the results of this fold over the records."""
    return replace(
        fold,
        kind="fold",
        first=_number_of_part,
        add=lambda total, part: total + part[1],
        loop=lambda _: _merge,
        records_in=lambda parts: sum(map(_number_of_part, parts)),
    )


def _merge(
    counts: Kept,
    parts: list[tuple[Any, int]],
    *_: object,
) -> Iterable[Any]:
    count_of = counts.get
    for key, number in parts:
        before = count_of(key)
        if before is None:
            key = one_key(key)  # noqa: PLW2901 -- on the way, NaN became another one
            before = count_of(key, 0)
        counts[key] = before + number
    return map(key_of_part, parts)
