"""Stages that fold records by key: running, or per window."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial, reduce
from itertools import islice, repeat
from operator import itemgetter, length_hint
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from gearpy.core.base.copies import ATOMS, own
from gearpy.core.base.fields import keys_of
from gearpy.core.base.one_key import are_plain, is_one_key, one_key
from gearpy.core.window.sliding import SlidingPieces
from gearpy.core.window.windows import DisjointWindows, OverlappingWindows
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.table import newest_of, oldest_of
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.kinds.changed import ChangedPairs, HeldDict
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.sides import Side
from gearpy.task.api.window_result import local_bounds
from gearpy.task.chain.chain import check_no_messages
from gearpy.task.chain.event_gate import EventGate, Waits, late_times
from gearpy.task.chain.stage import Stage, step_bulk
from gearpy.task.time.late import LATE, WindowLate

KeyFunction: TypeAlias = Callable[[Any], Any]
#: Values by key, as loops use them.
Kept: TypeAlias = dict[Any, Any] | HeldDict
#: Folds records with their event times into values by key, and returns the keys of those taken.
#: Called with the dict of values, records, times, and a function of a bad one's ``(error, place)``.
FoldLoop: TypeAlias = Callable[
    [Kept, list[Any], list[int], Callable[[BaseException, int], None]], Iterable[Any]
]
#: The same, but returns results, ``(key, result)``, and the places of records that have none.
RunningLoop: TypeAlias = Callable[
    [Kept, list[Any], list[int], Callable[[BaseException, int], None]],
    tuple[list[tuple[Any, Any]], list[int]],
]
_MISSING: Final = object()
#: Types of numbers that have two zeros, which are one key.
_SIGNED_ZEROS: Final = frozenset({float, Decimal})
_key_in: Final = itemgetter(0)


class LateArgs(TypedDict):
    """The arguments that all stages of windows take; see `WindowedStage`."""

    limit: int
    late: NotRequired[WindowLate]
    late_tag: NotRequired[str]
    waits: NotRequired[Waits]


class Fold(Struct, frozen=True, kw_only=True):
    """An aggregation, record by record: ``first`` makes a value of a record, ``add`` goes on.

    Attributes:
        kind: "count" is known to stages that have a faster way for it.
        first: called with a record; where ``timed``, also with its event time.
        add: called with a value and a record; where ``timed``, also with its event time. It may
            change the value and return it.
        merge: joins the values of two panes, which are not used any more; the second came later.
        result: makes the result of a pane's value, which goes on. None: the value itself.
        loop: makes a loop that folds a whole batch in, quicker than record by record.
        running: makes a loop that also gives the result after each record.
        commutes: the order of records makes no difference, so parts may be merged in any.
        is_pure: neither ``add`` nor ``merge`` changes what it is given.
        records_in: how many records some values stand for, where these are late.
        takes_parts: a `PanePart` stands for several records in panes.
    """

    kind: Literal["count", "fold"]
    first: Callable[..., Any]
    add: Callable[..., Any]
    merge: Callable[[Any, Any], Any] | None = None
    result: Callable[[Any], Any] | None = None
    timed: bool = False
    loop: "Callable[[KeyFunction], FoldLoop] | None" = None
    running: "Callable[[KeyFunction], RunningLoop] | None" = None
    commutes: bool = False
    is_pure: bool = False
    records_in: Callable[[list[Any]], int] = len
    takes_parts: bool = False


class FoldingStage(Stage):
    """A stage that folds records by key; rejects the records on which user code raises.

    Args:
        key: of a record; None for one value over all records.
    """

    def __init__(self, context: TaskContext, name: str, key: KeyFunction | None) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._key = key or _no_key

    def _bulk(self, tag: str) -> BulkState:
        is_keyed = self._key is not _no_key
        return step_bulk(self._context, tag, self.place, operator=self.name, is_keyed=is_keyed)

    def _reject(self, error: BaseException, record: Any, time: int) -> None:
        self._rejects.blame(self.name, error, record, time, place=self.place)


class RunningStage(FoldingStage):
    """Folds each key over the whole stream. Subclasses fold a record in, in ``process``."""

    def __init__(self, context: TaskContext, name: str, key: KeyFunction, fold: Fold) -> None:
        super().__init__(context, name, key)
        self._fold = fold
        self._values: dict[Any, Any] = {}
        self._changes: ChangedPairs | None = None

    def snapshot(self) -> None:
        assert self._changes is not None, "restore comes first"
        self._changes.tell()

    def restore(self, state: Any) -> None:
        kept = self._bulk("running")
        restored = [pairs for _, pairs in kept.restored()]
        self._values = restored[0] if restored else {}
        self._changes = ChangedPairs(self._values, kept, is_restored=bool(restored))
        kept.holds(lambda: (self._values,), self._changes.tell_again)

    @property
    def _current(self) -> Kept:
        changes = self._changes
        return self._values if changes is None or changes.held is None else changes.held


class RunningFold(RunningStage):
    """Folds each key over the whole stream; yields ``(key, value)`` after every record.

    A record that user code raises on leaves the value of its key as it was, provided that
    the fold's functions change nothing themselves.
    """

    def process(self, batch: Batch) -> Iterator[Batch]:
        add, first, state = self._fold.add, self._fold.first, self._current
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = keys_of(self._key, records)
        out: list[tuple[Any, Any]] = []
        dropped: set[int] = set()
        for key, record in zip(keys or records, records, strict=True):
            try:
                if keys is None:
                    key = key_of(record)  # noqa: PLW2901 - it is the key from here on
                before = state.get(key, _MISSING)
                if before is _MISSING:
                    key = one_key(key)  # noqa: PLW2901 - the same
                    before = state.get(key, _MISSING)
                after = first(record) if before is _MISSING else add(before, record)
                state[key] = after
                # The next record may change the kept value, within this batch.
                out.append((key, after if type(after) in ATOMS else own(after)))
            except USER_ERRORS as error:
                at = len(out) + len(dropped)
                self._reject(error, record, timestamps[at])
                dropped.add(at)
        if out:
            check_no_messages(self.name, [value for _, value in out[:16]], timestamps)
            if self._changes is not None:
                self._changes.note(map(_key_in, out), len(out))
            yield batch.giving(out, without(timestamps, dropped) if dropped else timestamps)


class PerBatchStage(Stage):
    """Gives the last result of each key in a batch, at the newest event time of its records.

    Args:
        inner: gives ``(key, value)`` after every record.
    """

    def __init__(self, inner: Stage) -> None:
        self.name = inner.name
        self._inner = inner

    def process(self, batch: Batch) -> Iterator[Batch]:
        for results in self._inner.process(batch):
            last = dict(results.values)
            newest = newest_of_keys(map(_key_in, results.values), results.timestamps)
            keys = last if are_plain(last) else map(_without_sign_of_zero, last)
            values = list(zip(keys, last.values(), strict=True))
            yield results.giving(values, [*newest.values()])

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, state: Any) -> None:
        self._inner.place = self.place
        self._inner.restore(state)


def newest_of_keys(keys: Iterable[Any], times: Iterable[int]) -> dict[Any, int]:
    """Return keys in the order in which they first come, with the newest time of each."""
    newest = dict[Any, int]()
    for key, time in zip(keys, times, strict=True):
        if key not in newest or time > newest[key]:
            newest[key] = time
    return newest


def _without_sign_of_zero(key: Any) -> Any:
    """Return a key so that readers of results take it for the one that it is in state."""
    if type(key) is tuple:
        return tuple(map(_without_sign_of_zero, key))
    return abs(key) if type(key) in _SIGNED_ZEROS and key == 0 else key


def shared_state(states: Sequence[Any]) -> Any | None:
    """Merge snapshots of old tasks into one for each new task; None if that is not possible.

    The least watermark is safe for windows and joins that are done with closed windows. It is not
    for a `WindowStage` that allows lateness, which would close windows again. Each `WindowFold`
    forgets the windows that it has no value of.
    """
    return reduce(_shared_by_both, states) if states else None


def _shared_by_both(one: Any, other: Any) -> Any | None:
    match one, other:
        case [dict() as starts, int() as time_ms], [dict() as more, int() as other_ms]:
            oldest_ms = {start: min(ms, starts.get(start, ms)) for start, ms in more.items()}
            return [{**starts, **oldest_ms}, min(time_ms, other_ms)]
        case [str() as join, int() as time_ms], [str() as same, int() as other_ms] if join == same:
            return [join, min(time_ms, other_ms)]
        case [int() as time_ms], [int() as other_ms]:
            return [min(time_ms, other_ms)]
        case _:
            return None


class WindowedStage(FoldingStage):
    """A stage that folds records by key and window; lets late records wait, counts and passes them.

    Args:
        context: of the task; has the state.
        key: of a record; None for one value over all records.
        late: the rule for records that come too late for all of their windows: "restamp" gives
            them the time of the watermark, "side" sends them to a side output.
        waits: which records wait for event time; all, where the fold sees their order.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: KeyFunction | None,
        *,
        limit: int,
        late: WindowLate = "drop",
        late_tag: str = LATE,
        waits: Waits = "late",
    ) -> None:
        super().__init__(context, name, key)
        self._limit = limit
        self._late = late
        self._late_tag = late_tag
        self._gate = EventGate(context, key, waits=waits)
        self._waits_all = waits == "all"
        context.in_any_order = True  # State has groups of keys: so they come back in their order.

    def _in_time(self, batch: Batch) -> Batch:
        return self._gate.take(batch) if self._waits_all or batch.has_late else batch

    def _send_aside(self, values: list[Any], timestamps: list[int], watermark_ms: int) -> None:
        self._context.sees_late = True  # From here on.
        times = late_times(timestamps, watermark_ms)
        for value, time in zip(values, times, strict=True):
            self._context.output(Message(Side(self._late_tag, value), time))


class WindowFold(WindowedStage):
    """Folds each key within each window; yields `WindowResult`s when the watermark closes it.

    For windows that fire once. No record is kept, only one value for each key and open window; of
    windows that overlap, for each key and piece of time between two of their boundaries. A record
    whose windows have all closed is late: it is counted, and dropped unless something else was
    asked for. Results carry the last ms of their window. A record that user code raises on leaves
    the windows as they were, provided that the fold's functions change nothing themselves.
    Gearpump: `WindowOperator`, which buffers all records until the window fires.

    Args:
        windows: tumbling or sliding ones, or the one of all time.
        fold: for sliding windows, one that commutes; where ``timed``, one with a loop.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        windows: DisjointWindows | OverlappingWindows,
        key: KeyFunction | None,
        fold: Fold,
        **others: Unpack[LateArgs],
    ) -> None:
        super().__init__(context, name, key, **others)
        assert fold.loop is not None or not fold.timed, "a timed fold has a loop"
        self._pieces = (
            SlidingPieces(windows) if isinstance(windows, OverlappingWindows) else windows
        )
        self._fold = fold
        self._result_of, self._bounds_of = local_bounds(windows)
        self._loop = fold.loop(self._key) if fold.loop is not None else None
        self._kept: BulkState | None = None
        self._open: dict[int, dict[Any, Any]] = {}
        self._changes: dict[int, ChangedPairs] = {}
        self._oldest_ms: dict[int, int] = {}
        self._watermark_ms = MIN_MS

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Fold the records into their windows; late ones may have to wait for that.

        Yields nothing but the records that had to come before a late one.
        """
        batch = self._in_time(batch)
        self._fold_in(batch.values, batch.timestamps)
        return self._due(self._watermark_ms) if len(self._gate) else iter(())

    def _fold_in(self, values: list[Any], timestamps: list[int]) -> None:
        if not timestamps:
            return
        start_of = self._pieces.start_of
        low = oldest_of(timestamps, MAX_MS)
        start = start_of(low)
        if start == start_of(newest_of(timestamps, low)):
            self._add(start, values, timestamps, low)
        else:
            self._add_split(values, timestamps)

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        for at_ms, batch in self._gate.due(watermark_ms):
            yield from self._closed(max(at_ms, self._watermark_ms))
            self._fold_in(batch.values, batch.timestamps)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results of the windows that end at or before the watermark, in order."""
        try:
            if len(self._gate):
                yield from self._due(watermark_ms)
            yield from self._closed(watermark_ms)
        except USER_ERRORS as error:  # No record is to blame for the function that makes results.
            raise operator_error(self.name, error) from error

    def _closed(self, watermark_ms: int) -> Iterator[Batch]:
        pieces, before_ms, self._watermark_ms = self._pieces, self._watermark_ms, watermark_ms
        if isinstance(pieces, SlidingPieces):
            closing = pieces.closing(self._open, before_ms, watermark_ms)
            ended = self._ended(watermark_ms) if closing else []
        else:
            closing = ended = self._ended(watermark_ms)
        results: list[Any] = []  # Small windows share batches, which have a cost of their own.
        times: list[int] = []
        gone = 0
        for end, start in closing:
            # Where time ends, several windows end at once, and may share pieces.
            while gone < len(ended) and ended[gone][0] < end:
                self._end(ended[gone][1])
                gone += 1
            if isinstance(pieces, SlidingPieces):
                for at, changes in self._changes.items():
                    if start <= at < end:
                        changes.settle()
                values = pieces.joined(self._open, start, end, self._fold)
            else:
                self._changes[start].settle()
                values = self._open[start]
            result = self._fold.result
            given = values.values() if result is None else map(result, values.values())
            # Most of the fields are the same for all. `zip` ends with the keys.
            bounds = () if self._bounds_of is None else self._bounds_of(start, end)
            alike = map(repeat, (start, end, 0, "on-time", False, *bounds))
            rows = map(self._result_of, zip(values, given, *alike, strict=False))
            while some := list(islice(rows, self._limit - len(results))):
                results += some
                times += [end - 1] * len(some)
                if len(results) == self._limit:
                    yield Batch(results, times)
                    results, times = [], []
        for _, start in ended[gone:]:
            self._end(start)
        if results:
            yield Batch(results, times)

    def _ended(self, watermark_ms: int) -> list[tuple[int, int]]:
        """Return end and start of the pieces that are in no window that goes on, in order."""
        ended = []
        for start in sorted(self._open):
            end = self._pieces.end_of(start)
            if end > watermark_ms:
                break  # Those that begin later end no earlier.
            ended.append((end, start))
        return ended

    def snapshot(self) -> Any:
        """Return the oldest record times of open windows, and the watermark.

        Keyed state has the changes of the windows. All are of one kind, which the program tells.
        """
        for changes in self._changes.values():
            changes.tell()
        self._gate.tell()
        return [self._oldest_ms, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        if state is not None:
            self._oldest_ms, self._watermark_ms = state
        for start, pairs in self._state().restored():
            self._begin(start, pairs)
        self._gate.restore(self.place, self.name)
        # It may have been shared with other tasks.
        self._oldest_ms = {start: self._oldest_ms[start] for start in self._open}

    @property
    def open_windows(self) -> int:
        pieces = self._pieces
        if not isinstance(pieces, SlidingPieces):
            return sum(map(len, self._open.values()))
        open_now = pieces.closing(self._open, self._watermark_ms, MAX_MS)
        inside = ([self._open[at] for at in self._open if a <= at < b] for b, a in open_now)
        return sum(len(set().union(*each)) for each in inside)

    @property
    def hold_ms(self) -> int:
        return min(self._gate.first_ms, *self._oldest_ms.values(), MAX_MS)

    def _add_split(self, values: list[Any], timestamps: list[int]) -> None:
        pieces = self._pieces
        until_of = pieces.until if isinstance(pieces, SlidingPieces) else pieces.end_of
        parts: dict[int, tuple[list[Any], list[int]]] = {}
        start = until = MIN_MS
        part: tuple[list[Any], list[int]] = ([], [])
        for value, time in zip(values, timestamps, strict=True):
            if not start <= time < until:
                start = pieces.start_of(time)
                until = until_of(start)
                part = parts.setdefault(start, ([], []))
            part[0].append(value)
            part[1].append(time)
        for start, (part_values, part_times) in parts.items():
            self._add(start, part_values, part_times, min(part_times))

    def _add(self, start: int, values: list[Any], timestamps: list[int], low: int) -> None:
        if self._pieces.end_of(start) <= self._watermark_ms:
            self._take_late(values, timestamps)
            return
        state = self._open.get(start)
        if state is None:
            state = self._begin(start)
        self._oldest_ms[start] = min(low, self._oldest_ms.get(start, MAX_MS))
        changes = self._changes[start]
        if changes.held is not None:
            keys = self._fold_beside(state, changes.held, values, timestamps)
        elif isinstance(state, Counter):
            keys = self._count(state, values, timestamps)
        else:
            keys = self._fold_into(state, values, timestamps)
        changes.note(keys, len(values))
        if not state:  # No record was good.
            self._end(start)

    def _begin(self, start: int, restored: dict[Any, Any] | None = None) -> dict[Any, Any]:
        values = restored or {}
        values = self._open[start] = Counter(values) if self._fold.kind == "count" else values
        self._changes[start] = ChangedPairs(
            values, self._state(), start, is_restored=restored is not None
        )
        return values

    def _end(self, start: int) -> None:
        del self._open[start], self._oldest_ms[start]
        self._changes.pop(start).tell_end()

    def _tell_again(self) -> None:
        for changes in self._changes.values():
            changes.tell_again()

    def _state(self) -> BulkState:
        if self._kept is None:
            self._kept = self._bulk("windows")
            self._kept.holds(self._open.values, self._tell_again)
        return self._kept

    def _take_late(self, values: list[Any], timestamps: list[int]) -> None:
        self._context.counters.late_records += self._fold.records_in(values)
        if self._late == "side":
            self._send_aside(values, timestamps, self._watermark_ms)
        elif self._late == "restamp":
            time = self._watermark_ms
            start = self._pieces.start_of(time)
            if self._pieces.end_of(start) > time:  # Else event time has ended.
                self._add(start, values, [time] * len(values), time)

    def _count(
        self, state: Counter[Any], values: list[Any], timestamps: list[int]
    ) -> Iterable[Any]:
        """Count as `_fold_into` would, at the speed of `Counter.update`."""
        # A list, since `map` takes a `StopIteration` of the key function for its end.
        keys, keyless = self._keys(values, timestamps)
        if keyless:
            values, timestamps = without(values, keyless), without(timestamps, keyless)
        pending = iter(keys)
        unhashable: list[int] = []
        known = len(state)
        while length_hint(pending):
            try:
                state.update(pending)
            except USER_ERRORS as error:  # A key that cannot be hashed. Go on behind it.
                self._reject_last(error, values, timestamps, pending)
                unhashable.append(len(keys) - length_hint(pending) - 1)
        if unhashable:
            keys, values = without(keys, unhashable), without(values, unhashable)
            timestamps = without(timestamps, unhashable)
        new = len(state) - known
        if new and not are_plain(islice(reversed(state), new)):
            return self._recounted(state, new, keys, partial(self._reject_at, values, timestamps))
        return keys

    @staticmethod
    def _recounted(
        counts: Counter[Any],
        new: int,
        keys: list[Any],
        reject: Callable[[BaseException, int], None],
    ) -> list[Any]:
        again = {key for key in islice(reversed(counts), new) if not is_one_key(key)}
        for key in again:
            del counts[key]
        good: list[Any] = []
        for at, key in enumerate(keys):
            one = key
            if key in again:
                try:
                    one = one_key(key)
                except ConfigError as error:
                    reject(error, at)
                    continue
                counts[one] += 1
            good.append(one)
        return good

    def _fold_beside(
        self,
        state: dict[Any, Any],
        held: HeldDict,
        values: list[Any],
        timestamps: list[int],
    ) -> Iterable[Any]:
        """Fold the records into a window that is being copied."""
        if not isinstance(state, Counter):
            return self._fold_into(held, values, timestamps)
        counted = Counter[Any]()
        keys = self._count(counted, values, timestamps)
        for key, count in counted.items():
            held[key] = held.get(key, 0) + count
        return keys

    def _keys(self, values: list[Any], timestamps: list[int]) -> tuple[list[Any], list[int]]:
        """Return the keys of the records, and the places of records without a key."""
        found, key_of = keys_of(self._key, values)
        if found is not None:
            return found, []
        keys: list[Any] = []
        keyless: list[int] = []
        pending = iter(values)
        while len(keys) + len(keyless) < len(values):
            try:
                keys.extend(map(key_of, pending))  # As far as it goes.
                if len(keys) + len(keyless) < len(values):  # `map` takes it for its end.
                    raise StopIteration
            except USER_ERRORS as error:
                self._reject_last(error, values, timestamps, pending)
                keyless.append(len(keys) + len(keyless))
        return keys, keyless

    def _fold_into(self, state: Kept, values: list[Any], timestamps: list[int]) -> Iterable[Any]:
        if self._loop is not None:
            return self._loop(
                state, values, timestamps, partial(self._reject_at, values, timestamps)
            )
        add, first = self._fold.add, self._fold.first
        known, key_of = keys_of(self._key, values)
        keys: list[Any] = []
        pending = iter(values)
        for key, value in zip(known or repeat(None), pending, strict=False):
            try:
                if known is None:
                    key = key_of(value)  # noqa: PLW2901 - it is the key from here on
                before = state.get(key, _MISSING)
                if before is _MISSING:
                    key = one_key(key)  # noqa: PLW2901 - the same
                    before = state.get(key, _MISSING)
                state[key] = first(value) if before is _MISSING else add(before, value)
                keys.append(key)
            except USER_ERRORS as error:
                self._reject_last(error, values, timestamps, pending)
        return keys

    def _reject_last(
        self,
        error: BaseException,
        values: list[Any],
        timestamps: list[int],
        pending: Iterator[Any],
    ) -> None:
        self._reject_at(values, timestamps, error, len(values) - length_hint(pending) - 1)

    def _reject_at(
        self, values: list[Any], timestamps: list[int], error: BaseException, at: int
    ) -> None:
        self._reject(error, values[at], timestamps[at])


def without(items: list[Any], dropped: Iterable[int]) -> list[Any]:
    left_out = set(dropped)
    return [item for at, item in enumerate(items) if at not in left_out]


def _no_key(_: Any) -> None:
    return None
