"""The last records of each key after every record, and what they come to."""

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import groupby, repeat
from types import NoneType
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from gearpy.core.base.copies import own, own_each
from gearpy.core.base.fields import keys_of
from gearpy.core.base.one_key import one_key, one_keys
from gearpy.core.window.accumulators import itself
from gearpy.messages.data import Batch
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.encoding.keys import encode_key
from gearpy.task.aggregates.fold import Fold, KeyFunction
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_state

#: Parts of records that are folded once, for all windows that have all of them.
PART: Final = 16
#: Types of the names and values of rows that are encoded when they are stored, and not before.
_NAMES: Final = frozenset({str})
_STORED: Final = frozenset({NoneType, bool, int, float, str, bytes, Decimal, date})
_ZONES: Final = frozenset({NoneType, timezone, ZoneInfo})
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
    """Records of a key, oldest first, and what was folded of them.

    Attributes:
        first: number of the oldest record among all of the key.
        times: at which they are in the window: their event times, or that of a newer one before.
        rows: each record with its own event time.
        parts: what whole parts come to, by their numbers.
        head: what the last records of a part come to, from each on: its number, and the values.
        tail: what the last part comes to that is not whole: its number, how many records it has,
            and the value.
        anchor: the part at which the whole ones are divided; those before it are in ``ahead``.
        ahead: what the parts from each up to the anchor come to.
        behind: what the parts from the anchor come to, up to that of the number.
        middle: what some whole parts come to: the first, the one behind the last, and the value.
        runs: of the runs of records that are in keyed state, the numbers of their first ones.
        unwritten: the newest records, which are not in keyed state, as the fields of a run.
    """

    first: int
    times: list[int]
    rows: list[tuple[Any, int]]
    parts: dict[int, Any]
    head: tuple[int, dict[int, Any]] = (-1, {})
    tail: tuple[int, int, Any] = (-1, 0, None)
    anchor: int = -1
    ahead: dict[int, Any] = {}
    behind: tuple[int, Any] = (0, None)
    middle: tuple[int, int, Any] = (0, 0, None)
    runs: list[int] = []
    unwritten: list[Any] = []

    def begin_again(self) -> None:
        """Forget the records. The next one begins a part, as the first one of a key does."""
        self.first = -(-(self.first + len(self.rows)) // PART) * PART
        self.anchor = -1
        for each in (self.times, self.rows, self.parts, self.unwritten):
            each.clear()


class RollingFold:
    """Folds the records of a window, most of them in parts that were folded before.

    Parts end at each sixteenth record of a key. Whole ones are divided at the number among theirs
    that most powers of two divide: it stays for long, so what comes before it is joined once, from
    each part on, and what is behind it grows. So a record costs a few steps however long a window
    is; and what a window comes to is a function of its records and of their numbers, to the last
    digit, whatever was at hand before a restart.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._copy: Callable[[Any], Any] = itself if fold.is_pure else own

    def value(self, window: RollingWindow, gone: int) -> Any:
        """Return the result of all records but the first, which have gone."""
        rows, start = window.rows, window.first + gone
        end = window.first + len(rows)
        low, high = -(-start // PART), end // PART  # Whole parts.
        merge, value = self._fold.merge, None
        if merge is None or low > high:
            value = self._folded(rows[gone:])
        else:
            if start < low * PART:
                value = self._head(window, start, low)
            if low < high:
                middle = self._middle(window, low, high)
                value = middle if value is None else merge(value, middle)
            if high * PART < end:
                tail = self._tail(window, high)
                value = tail if value is None else merge(value, tail)
        return value if self._fold.result is None else own(self._fold.result(value))

    def _head(self, window: RollingWindow, start: int, low: int) -> Any:
        """Return a copy of what the records up to the first whole part come to."""
        part, values = window.head
        if part != low or start not in values:
            merge, joined, values = self._fold.merge, None, {}
            assert merge is not None
            for at in range(low * PART - 1, start - 1, -1):
                one = self._folded([window.rows[at - window.first]])
                values[at] = joined = one if joined is None else merge(one, self._copy(joined))
            window.head = (low, values)
        return self._copy(values[start])

    def _middle(self, window: RollingWindow, low: int, high: int) -> Any:
        """Return a copy of what some whole parts come to."""
        if window.middle[:2] == (low, high):
            return self._copy(window.middle[2])
        merge, parts = self._fold.merge, window.parts
        assert merge is not None
        # What grows would be kept once for each part ahead.
        anchor = _most_even(low, high) if self._fold.is_pure else low
        if window.anchor != anchor:
            for at in [each for each in parts if each < low]:
                del parts[at]
            joined, window.ahead = None, {}
            for at in range(anchor - 1, low - 1, -1):
                part = self._part(window, at)
                window.ahead[at] = joined = part if joined is None else merge(part, joined)
            window.anchor, window.behind = anchor, (anchor, None)
        reached, value = window.behind
        for at in range(reached, high):
            part = self._copy(self._part(window, at))
            value = part if value is None else merge(value, part)
        window.behind = (high, value)
        if low in window.ahead:
            ahead = window.ahead[low]
            value = ahead if value is None else merge(ahead, value)
        window.middle = (low, high, value)
        return self._copy(value)

    def _part(self, window: RollingWindow, at: int) -> Any:
        if at not in window.parts:
            begin = at * PART - window.first
            window.parts[at] = self._folded(window.rows[begin : begin + PART])
        return window.parts[at]

    def _tail(self, window: RollingWindow, part: int) -> Any:
        """Return a copy of what the records of a part come to that is not whole."""
        begin = part * PART - window.first
        known, count, value = window.tail
        if known == part and count == len(window.rows) - begin - 1:
            record, time = window.rows[-1]
            add = self._fold.add
            value = add(value, record, time) if self._fold.timed else add(value, record)
        else:
            value = self._folded(window.rows[begin:])
        window.tail = (part, len(window.rows) - begin, value)
        return self._copy(value)

    def _folded(self, rows: list[tuple[Any, int]]) -> Any:
        fold, timed = self._fold, self._fold.timed
        record, time = rows[0]
        value = fold.first(record, time) if timed else fold.first(record)
        for record, time in rows[1:]:
            value = fold.add(value, record, time) if timed else fold.add(value, record)
        return value


def _most_even(low: int, high: int) -> int:
    """Return the number from one to the other that the greatest power of two divides."""
    if not low:
        return 0
    power = ((low - 1) ^ high).bit_length() - 1
    return high >> power << power


class RollingStage(Stage):
    """Gives the last records of a record's key after each one, or what they come to.

    The records of a key that have come since they were written last are one entry of state, a run,
    under the number of the first of them; so those that come and go between are never written. A
    window by time is forgotten when all of it has gone. A record that comes late is in the window
    as if it had come with the newest one before it. One that a function raises on is in no window.

    Args:
        fold: what the records come to; None for a list of them.
        gives_record: results are of the record, and not of its key.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: KeyFunction,
        span: RollingSpan,
        fold: Fold | None,
        *,
        gives_record: bool = False,
    ) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._key = key
        self._span = span
        self._gives_record = gives_record
        self._fold = None if fold is None else RollingFold(fold)
        self._at_hand: dict[Any, RollingWindow] = {}
        self._unwritten: dict[Any, RollingWindow] = {}

    def restore(self, state: Any) -> None:
        self._state = step_state(self._context, "rolling", self.place)
        # A record may be in the window until the one that came last before it left has gone.
        ttl = timedelta(milliseconds=2 * self._span.time_ms) or None
        self._runs = self._state.map("runs", ttl=ttl)

    def snapshot(self) -> None:
        while self._unwritten:
            self._write(*self._unwritten.popitem())

    def process(self, batch: Batch) -> Iterator[Batch]:
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
        if _is_plain(record):
            row = kept = record.copy()
        else:
            row = record if (is_fixed := MSGPACK.keeps(record)) else own(record)
            # One that cannot be stored is refused now, and not when the epoch ends.
            kept = row if is_fixed else MSGPACK.encode(row)
        window = self._at_hand.pop(key, None) or self._read(key, time_ms)
        rows, times, span = window.rows, window.times, self._span
        self._state.time_ms = time_ms
        if times and span.time_ms and times[-1] + span.time_ms <= self._state.event_ms:
            window.begin_again()
        at_ms = max(time_ms, times[-1]) if times else time_ms
        times.append(at_ms)
        rows.append((row, time_ms))
        try:
            gone = span.gone(times)
            result: Any
            if self._fold is None:
                result = own_each([each for each, _ in rows[gone:]])
            else:
                result = record if self._gives_record else key, self._fold.value(window, gone)
        except BaseException:
            # What was folded with it may have changed: the window is read again.
            del rows[-1], times[-1]
            self._write(key, window)
            raise
        window.first += gone
        del rows[:gone], times[:gone]
        window.unwritten += (kept, at_ms, time_ms)
        self._at_hand[key] = self._unwritten[key] = window
        if len(self._unwritten) > _UNWRITTEN_MAX:
            self._write(*next(iter(self._unwritten.items())))
        if len(self._at_hand) > _AT_HAND_MAX:
            oldest = next(iter(self._at_hand))
            self._write(oldest, self._at_hand.pop(oldest))
        return result

    def _read(self, key: Any, time_ms: int) -> RollingWindow:
        self._state.enter(encode_key(key), time_ms)
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

    def _write(self, key: Any, window: RollingWindow) -> None:
        """Put the newest records into keyed state."""
        self._unwritten.pop(key, None)
        if window.unwritten:
            end, newest_ms = window.first + len(window.rows), window.times[-1]
            self._put(key, window.runs, window.unwritten, range(window.first, end), newest_ms)
            window.unwritten.clear()

    def _put(
        self, key: Any, runs: list[int], unwritten: list[Any], numbers: range, newest_ms: int
    ) -> None:
        """Put records into keyed state that it has not, and take the runs out that have gone.

        Args:
            numbers: those of all records of the window.
        """
        self._state.enter(encode_key(key), newest_ms)
        came = numbers.stop - len(unwritten) // _FIELDS
        first, start = numbers.start, max(numbers.start, came)
        while runs and [*runs[1:2], start][0] <= first:
            self._runs.remove(runs.pop(0))
        run = (
            MSGPACK.encode(each) if type(each) is dict else each
            for each in unwritten[_FIELDS * (start - came) :]
        )
        self._runs.put(start, tuple(run))
        runs.append(start)


class OverStage(Stage):
    """Makes rows of the results after each record.

    Args:
        inner: gives a result after each record; records of one time come in one batch, but for
            late ones.
        row: makes a row of a result.
        peers: changes the rows of one time, of which each sees the others; None: it does not.
    """

    def __init__(
        self,
        inner: Stage,
        row: Callable[[Any], Any],
        peers: Callable[[list[Any]], list[Any]] | None,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._row = row
        self._peers = peers

    def process(self, batch: Batch) -> Iterator[Batch]:
        for results in self._inner.process(batch):
            rows, times = list(map(self._row, results.values)), results.timestamps
            if self._peers is not None and len(set(times)) < len(times):
                start, peers = 0, self._peers
                for _, same in groupby(times):
                    end = start + sum(1 for _ in same)
                    if end > start + 1:
                        rows[start:end] = peers(rows[start:end])
                    start = end
            yield results.giving(rows, times)

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, state: Any) -> None:
        self._inner.place = self.place
        self._inner.restore(state)


def _is_plain(record: Any) -> bool:
    """Tell whether a record is a dict of texts, numbers and times, which can be stored later."""
    if type(record) is not dict or not _NAMES.issuperset(map(type, record)):
        return False
    for value in record.values():
        kind = type(value)
        if kind not in _STORED and not (kind is datetime and type(value.tzinfo) in _ZONES):
            return False
    return True
