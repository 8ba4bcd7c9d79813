"""The last records of each key after every record, and what they come to."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import repeat
from typing import Any, Final

from msgspec import Struct

from gearpy.core.base.copies import own, own_each
from gearpy.core.base.fields import keys_of
from gearpy.core.base.one_key import one_key, one_keys
from gearpy.messages.data import Batch
from gearpy.state.encoding.keys import encode_key
from gearpy.task.aggregates.fold import Fold, KeyFunction
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_state

#: Parts of records that are folded once, for all windows that have all of them.
_PART: Final = 16
#: Keys whose records are at hand; those of others are read again.
_AT_HAND_MAX: Final = 10_000


class RollingSpan(Struct, frozen=True, kw_only=True):
    """Which records belong to a window that ends with the newest: so many, or so far back."""

    records: int = 0
    time_ms: int = 0

    def gone(self, times: list[int]) -> int:
        """Return how many records are not in it, given the times of all; they never fall."""
        if self.records:
            return max(0, len(times) - self.records)
        oldest_ms = times[-1] - self.time_ms
        at = 0
        while times[at] <= oldest_ms:
            at += 1
        return at


class RollingWindow(Struct):
    """Records of a key, oldest first, and their parts.

    Attributes:
        first: number of the oldest record among all of the key.
        times: at which they are in the window: their event times, or that of a newer one before.
        rows: each record with its own event time.
        parts: what whole parts come to, by their numbers.
        middle: what some parts in a row come to: the first, the one behind the last, and the value.
    """

    first: int
    times: list[int]
    rows: list[tuple[Any, int]]
    parts: dict[int, Any]
    middle: tuple[int, int, Any] = (0, 0, None)


class RollingFold:
    """Folds the records of a window, most of them in parts that were folded before.

    Parts end at each sixteenth record of a key. So what a window comes to is a function of its
    records and of their numbers, to the last digit, whatever was at hand before a restart.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold = fold

    def value(self, window: RollingWindow, gone: int) -> Any:
        """Return the result of all records but the first, which have gone."""
        rows, start = window.rows, window.first + gone
        end = window.first + len(rows)
        low, high = -(-start // _PART), end // _PART  # Whole parts.
        merge = self._fold.merge
        if merge is None or low >= high:
            value = self._folded(rows[gone:])
        else:
            value = self._middle(window, low, high)
            if start < low * _PART:
                value = merge(self._folded(rows[gone : low * _PART - window.first]), value)
            if high * _PART < end:
                value = merge(value, self._folded(rows[high * _PART - window.first :]))
        return value if self._fold.result is None else own(self._fold.result(value))

    def _middle(self, window: RollingWindow, low: int, high: int) -> Any:
        """Return a copy of what some whole parts come to."""
        if window.middle[:2] != (low, high):
            merge, parts = self._fold.merge, window.parts
            assert merge is not None
            for at in [each for each in parts if each < low]:
                del parts[at]
            joined = None
            for at in range(low, high):
                if at not in parts:
                    begin = at * _PART - window.first
                    parts[at] = self._folded(window.rows[begin : begin + _PART])
                joined = own(parts[at]) if joined is None else merge(joined, own(parts[at]))
            window.middle = (low, high, joined)
        return own(window.middle[2])

    def _folded(self, rows: list[tuple[Any, int]]) -> Any:
        fold, timed = self._fold, self._fold.timed
        record, time = rows[0]
        value = fold.first(record, time) if timed else fold.first(record)
        for record, time in rows[1:]:
            value = fold.add(value, record, time) if timed else fold.add(value, record)
        return value


class RollingStage(Stage):
    """Gives the last records of a record's key after each one, or what they come to.

    Each record is an entry of state, under its number among those of its key; a value has the
    numbers of the first that is in the window, and of the next one. A window by time is forgotten
    when all of it has gone. A record that comes late is in the window as if it had come with the
    newest one before it. One that a function raises on is in no window.

    Args:
        fold: what the records come to; None for a list of them.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: KeyFunction,
        span: RollingSpan,
        fold: Fold | None,
    ) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._key = key
        self._span = span
        self._fold = None if fold is None else RollingFold(fold)
        self._at_hand: dict[bytes, RollingWindow] = {}

    def restore(self, state: Any) -> None:
        self._state = step_state(self._context, "rolling", self.place)
        # A record may be in the window until the one that came last before it left has gone.
        span = timedelta(milliseconds=self._span.time_ms)
        self._numbers = self._state.value("numbers", ttl=span or None)
        self._records = self._state.map("records", ttl=2 * span or None)

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield a result for each record."""
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = keys_of(self._key, records, one_keys)
        out: list[Any] = []
        times: list[int] = []
        for key, record, time in zip(keys or repeat(None), records, timestamps, strict=False):
            try:
                of = key if keys is not None else one_key(key_of(record))
                out.append(self._rolled(of, record, time))
                times.append(time)
            except USER_ERRORS as error:
                self._rejects.blame(self.name, error, record, time, place=self.place)
        if out:
            yield batch.giving(out, times)

    def _rolled(self, key: Any, record: Any, time: int) -> Any:
        place = encode_key(key)
        self._state.enter(place, time)
        window = self._window(place)
        rows, times = window.rows, window.times
        at_ms = max(int(time), times[-1]) if times else int(time)
        times.append(at_ms)
        rows.append((own(record), int(time)))
        try:
            gone = self._span.gone(times)
            result: Any
            if self._fold is None:
                result = own_each([each for each, _ in rows[gone:]])
            else:
                result = key, self._fold.value(window, gone)
            following = window.first + len(rows)
            self._state.time_ms = at_ms
            self._records.put(following - 1, (record, at_ms, int(time)))
        except BaseException:
            # What was folded with it may have changed.
            del self._at_hand[place]
            raise
        for number in range(window.first, window.first + gone):
            self._records.remove(number)
        window.first += gone
        del rows[:gone], times[:gone]
        self._numbers.set((window.first, following))
        return result

    def _window(self, place: bytes) -> RollingWindow:
        """Return the window of a key, which is then the newest of those at hand."""
        numbers, window = self._numbers.get(), self._at_hand.pop(place, None)
        if numbers is None:
            window = RollingWindow(0, [], [], {})
        elif window is None:
            kept = [self._records.get(number) for number in range(*numbers)]
            rows, times = [(each[0], each[2]) for each in kept], [each[1] for each in kept]
            window = RollingWindow(numbers[0], times, rows, {})
        self._at_hand[place] = window
        if len(self._at_hand) > _AT_HAND_MAX:
            del self._at_hand[next(iter(self._at_hand))]
        return window
