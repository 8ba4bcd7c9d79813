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
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.encoding.keys import encode_key
from gearpy.task.aggregates.fold import Fold, KeyFunction
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_state

#: Parts of records that are folded once, for all windows that have all of them.
_PART: Final = 16
#: Of a record in a run: the form in which it is kept, when it is in the window, its event time.
_FIELDS: Final = 3
#: Keys whose records are at hand; those of others are read again.
_AT_HAND_MAX: Final = 10_000
#: Keys whose newest records are not in keyed state yet. All are written when an epoch ends, which
#: should take some ms at most.
_UNWRITTEN_MAX: Final = 2_000


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
        tail: what the last part comes to that is not whole: its number, how many records it has,
            and the value.
        runs: of the runs of records that are in keyed state, the numbers of their first ones.
        unwritten: the newest records, which are not in keyed state, as the fields of a run.
    """

    first: int
    times: list[int]
    rows: list[tuple[Any, int]]
    parts: dict[int, Any]
    middle: tuple[int, int, Any] = (0, 0, None)
    tail: tuple[int, int, Any] = (0, 0, None)
    runs: list[int] = []
    unwritten: list[Any] = []

    def begin_again(self) -> None:
        """Forget the records. The next one begins a part, as the first one of a key does."""
        self.first = -(-(self.first + len(self.rows)) // _PART) * _PART
        for each in (self.times, self.rows, self.parts, self.unwritten):
            each.clear()


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
                value = merge(value, self._tail(window, high))
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

    def _tail(self, window: RollingWindow, part: int) -> Any:
        """Return a copy of what the records of a part come to that is not whole."""
        behind = window.rows[part * _PART - window.first :]
        known, count, value = window.tail
        if known == part and count == len(behind) - 1:
            record, time = behind[-1]
            add = self._fold.add
            value = add(value, record, time) if self._fold.timed else add(value, record)
        else:
            value = self._folded(behind)
        window.tail = (part, len(behind), value)
        return own(value)

    def _folded(self, rows: list[tuple[Any, int]]) -> Any:
        fold, timed = self._fold, self._fold.timed
        record, time = rows[0]
        value = fold.first(record, time) if timed else fold.first(record)
        for record, time in rows[1:]:
            value = fold.add(value, record, time) if timed else fold.add(value, record)
        return value


class RollingStage(Stage):
    """Gives the last records of a record's key after each one, or what they come to.

    The records of a key that have come since they were written last are one entry of state, a run,
    under the number of the first of them; so those that come and go between are never written. A
    window by time is forgotten when all of it has gone. A record that comes late is in the window
    as if it had come with the newest one before it. One that a function raises on is in no window.

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
        self._unwritten: dict[bytes, RollingWindow] = {}

    def restore(self, state: Any) -> None:
        self._state = step_state(self._context, "rolling", self.place)
        # A record may be in the window until the one that came last before it left has gone.
        ttl = timedelta(milliseconds=2 * self._span.time_ms) or None
        self._runs = self._state.map("runs", ttl=ttl)

    def snapshot(self) -> None:
        while self._unwritten:
            self._write(*self._unwritten.popitem())

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield a result for each record."""
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = keys_of(self._key, records, one_keys)
        out: list[Any] = []
        times: list[int] = []
        for key, record, time in zip(keys or repeat(None), records, timestamps, strict=False):
            try:
                of = key if keys is not None else one_key(key_of(record))
                out.append(self._rolled(of, record, int(time)))
                times.append(time)
            except USER_ERRORS as error:
                self._rejects.blame(self.name, error, record, time, place=self.place)
        if out:
            yield batch.giving(out, times)

    def _rolled(self, key: Any, record: Any, time_ms: int) -> Any:
        place, is_fixed = encode_key(key), MSGPACK.keeps(record)
        # One that cannot be stored is refused now, and not when the epoch ends.
        kept = record if is_fixed else MSGPACK.encode(record)
        row = (record if is_fixed else own(record), time_ms)
        window = self._at_hand.pop(place, None) or self._read(place, time_ms)
        rows, times, span = window.rows, window.times, self._span
        self._state.time_ms = time_ms
        if times and span.time_ms and times[-1] + span.time_ms <= self._state.event_ms:
            window.begin_again()
        at_ms = max(time_ms, times[-1]) if times else time_ms
        times.append(at_ms)
        rows.append(row)
        try:
            gone = span.gone(times)
            result: Any
            if self._fold is None:
                result = own_each([each for each, _ in rows[gone:]])
            else:
                result = key, self._fold.value(window, gone)
        except BaseException:
            # What was folded with it may have changed: the window is read again.
            del rows[-1], times[-1]
            self._write(place, window)
            raise
        window.first += gone
        del rows[:gone], times[:gone]
        window.unwritten += (kept, at_ms, time_ms)
        self._at_hand[place] = self._unwritten[place] = window
        for windows, most in ((self._unwritten, _UNWRITTEN_MAX), (self._at_hand, _AT_HAND_MAX)):
            if len(windows) > most:
                oldest = next(iter(windows))
                self._write(oldest, windows.pop(oldest))
        return result

    def _read(self, place: bytes, time_ms: int) -> RollingWindow:
        self._state.enter(place, time_ms)
        window, end = RollingWindow(0, [], [], {}), 0
        for number, run in self._runs.items():
            kept = zip(run[::_FIELDS], run[2::_FIELDS], strict=True)
            rows = [(MSGPACK.decode(of) if type(of) is bytes else of, ms) for of, ms in kept]
            window.rows += rows
            window.times += run[1::_FIELDS]
            window.runs.append(number)
            end = number + len(rows)
        window.first = end - len(window.rows)
        return window

    def _write(self, place: bytes, window: RollingWindow) -> None:
        """Put the newest records into keyed state, and take the runs out that have gone."""
        self._unwritten.pop(place, None)
        first, runs, unwritten = window.first, window.runs, window.unwritten
        if not unwritten:
            return
        self._state.enter(place, window.times[-1])
        came = first + len(window.rows) - len(unwritten) // _FIELDS
        start = max(first, came)
        while runs and [*runs[1:2], start][0] <= first:
            self._runs.remove(runs.pop(0))
        self._runs.put(start, tuple(unwritten[_FIELDS * (start - came) :]))
        runs.append(start)
        unwritten.clear()
