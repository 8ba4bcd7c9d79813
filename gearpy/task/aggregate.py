"""Stages that fold records by key: running, or per window."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from gearpy.core.window import WindowAssigner
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.state.bulk import BulkState
from gearpy.task.api import TaskContext
from gearpy.task.changes import Changes
from gearpy.task.failure import USER_ERRORS, operator_error
from gearpy.task.late import LATE, WindowLate
from gearpy.task.output import Columns
from gearpy.task.sides import Side
from gearpy.wire.records import register_record

__all__ = ["Fold", "KeyFunction", "RunningFold", "WindowFold", "WindowResult"]

KeyFunction: TypeAlias = Callable[[Any], Any]
_MISSING: Final = object()


K = TypeVar("K")
V = TypeVar("V")


class WindowResult(NamedTuple, Generic[K, V]):
    """What one key came to in one window ``[start, end)``; times in ms since the epoch.

    ``key`` is None for a stream without keys. The window over everything has
    ``start = MIN_MS`` and ``end = MAX_MS``.
    """

    key: K
    value: V
    start: int
    end: int


register_record(WindowResult, "gearpy.WindowResult")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """An aggregation, record by record: ``first`` makes a value of a record, ``add`` goes on.

    ``kind`` "count" is known to stages that have a faster way for it.
    """

    kind: Literal["count", "fold"]
    first: Callable[[Any], Any]
    add: Callable[[Any, Any], Any]


class RunningFold:
    """Folds each key over the whole stream; yields ``(key, value)`` after every record.

    A record that user code raises on leaves what its key has come to as it was, provided that
    the fold's functions change nothing themselves.
    """

    hold_ms = MAX_MS
    place = 0

    def __init__(self, context: TaskContext, name: str, key: KeyFunction, fold: Fold) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._key = key
        self._fold = fold
        self._values: dict[Any, Any] = {}
        self._changes: Changes | None = None

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Yield one update for each record."""
        key_of, add, first, state = self._key, self._fold.add, self._fold.first, self._values
        out = []
        dropped: list[int] = []
        for record in values:
            try:
                key = key_of(record)
                before = state.get(key, _MISSING)
                after = first(record) if before is _MISSING else add(before, record)
                state[key] = after
                out.append((key, after))
            except USER_ERRORS as error:
                at = len(out) + len(dropped)
                self._reject(error, record, timestamps[at])
                dropped.append(at)
        if out:
            if self._changes is not None:
                self._changes.note(out)
            yield out, _without(timestamps, dropped) if dropped else timestamps

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Nothing waits."""
        return iter(())

    def snapshot(self) -> None:
        """Let keyed state have what has changed; there is nothing else."""
        assert self._changes is not None, "restore comes first"
        self._changes.tell()

    def restore(self, state: Any) -> None:
        """Go on from what keyed state has."""
        kept = self._context.state.scope("running").bulk(str(self.place), operator=self.name)
        restored = [pairs for _, pairs in kept.restored()]
        self._values = restored[0] if restored else {}
        self._changes = Changes(self._values, kept, gathers=dict, is_restored=bool(restored))

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""

    def _reject(self, error: BaseException, record: Any, time: int) -> None:
        blamed = operator_error(self.name, error, record=record, event_time_ms=time)
        self._rejects.take(record, time, blamed, place=self.place)


class WindowFold:
    """Folds each key within each window; yields `WindowResult`s when the watermark closes it.

    No record is kept, only one value for each key and open window. A record whose window has
    closed is late: it is counted, and dropped unless something else was asked for. Results carry
    the last ms of their window. A record that user code raises on leaves the windows as they
    were, provided that the fold's functions change nothing themselves. Gearpump:
    `WindowOperator`, which buffers all records until the window fires.

    Args:
        key: None for one value over all records.
        limit: results handed over at once.
        late: what becomes of late records: "restamp" gives them the time of the watermark, "side"
            sends them to a side output.
        late_tag: of that side output.
    """

    place = 0

    def __init__(
        self,
        context: TaskContext,
        name: str,
        windows: WindowAssigner,
        key: KeyFunction | None,
        fold: Fold,
        *,
        limit: int,
        late: WindowLate = "drop",
        late_tag: str = LATE,
    ) -> None:
        self.name = name
        self._late = late
        self._late_tag = late_tag
        self._context = context
        self._rejects = context.rejects
        self._windows = windows
        self._key = key or _no_key
        self._fold = fold
        self._limit = limit
        self._kept: BulkState | None = None
        self._open: dict[int, dict[Any, Any]] = {}
        self._changes: dict[int, Changes] = {}
        self._oldest_ms: dict[int, int] = {}
        self._watermark_ms = MIN_MS

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Fold the records into their windows; yields nothing."""
        start_of = self._windows.start_of
        low, high = min(timestamps), max(timestamps)
        start = start_of(low)
        if start == start_of(high):
            self._add(start, values, timestamps, low)
        else:
            self._add_split(values, timestamps)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Yield the results of the windows that end at or before the watermark, in order."""
        end_of = self._windows.end_of
        self._watermark_ms = watermark_ms
        for start in sorted(s for s in self._open if end_of(s) <= watermark_ms):
            end = end_of(start)
            results = [
                WindowResult(key, value, start, end) for key, value in self._open[start].items()
            ]
            for at in range(0, len(results), self._limit):
                portion = results[at : at + self._limit]
                yield portion, [end - 1] * len(portion)
            self._end(start)

    def snapshot(self) -> list[Any]:
        """Return the oldest records of open windows, and the watermark that says what is late.

        What has changed in the windows, keyed state has. All are of one kind, which the program
        tells.
        """
        for changes in self._changes.values():
            changes.tell()
        return [self._oldest_ms, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        """Go on from there, and from what keyed state has."""
        if state is not None:
            self._oldest_ms, self._watermark_ms = state
        for start, pairs in self._bulk().restored():
            self._begin(start, pairs)

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""

    @property
    def hold_ms(self) -> int:
        """Oldest record of an open window."""
        return min(self._oldest_ms.values(), default=MAX_MS)

    def _add_split(self, values: list[Any], timestamps: list[int]) -> None:
        start_of = self._windows.start_of
        parts: dict[int, tuple[list[Any], list[int]]] = {}
        for value, time in zip(values, timestamps, strict=True):
            start = start_of(time)
            part = parts.get(start)
            if part is None:
                part = parts[start] = ([], [])
            part[0].append(value)
            part[1].append(time)
        for start, (part_values, part_times) in parts.items():
            self._add(start, part_values, part_times, min(part_times))

    def _add(self, start: int, values: list[Any], timestamps: list[int], low: int) -> None:
        if self._windows.end_of(start) <= self._watermark_ms:
            self._take_late(values, timestamps)
            return
        state = self._open.get(start)
        if state is None:
            state = self._begin(start)
        self._oldest_ms[start] = min(low, self._oldest_ms.get(start, MAX_MS))
        if isinstance(state, Counter):
            keys = self._count(state, values, timestamps)
        else:
            keys = self._fold_into(state, values, timestamps)
        self._changes[start].note(keys)
        if not state:  # No record was good.
            self._end(start)

    def _begin(self, start: int, restored: dict[Any, Any] | None = None) -> dict[Any, Any]:
        """Open a window."""
        values = restored or {}
        values = self._open[start] = Counter(values) if self._fold.kind == "count" else values
        self._changes[start] = Changes(
            values, self._bulk(), start, gathers=set, is_restored=restored is not None
        )
        return values

    def _end(self, start: int) -> None:
        """Forget a window."""
        del self._open[start], self._oldest_ms[start]
        self._changes.pop(start).tell_end()

    def _bulk(self) -> BulkState:
        if self._kept is None:
            self._kept = self._context.state.scope("windows").bulk(
                str(self.place), operator=self.name, is_keyed=self._key is not _no_key
            )
        return self._kept

    def _take_late(self, values: list[Any], timestamps: list[int]) -> None:
        self._context.counters.late_records += len(values)
        if self._late == "side":
            for value, time in zip(values, timestamps, strict=True):
                self._context.output(Message(Side(self._late_tag, value), time))
        elif self._late == "restamp":
            time = self._watermark_ms
            start = self._windows.start_of(time)
            if self._windows.end_of(start) > time:  # Else event time has ended.
                self._add(start, values, [time] * len(values), time)

    def _count(
        self, state: Counter[Any], values: list[Any], timestamps: list[int]
    ) -> Iterable[Any]:
        """Do what `_fold_into` does for a count, at the speed of `Counter.update`."""
        # A list, since `map` takes a `StopIteration` of the key function for its end.
        keys, keyless = self._keys(values, timestamps)
        if keyless:
            values, timestamps = _without(values, keyless), _without(timestamps, keyless)
        pending = iter(keys)
        unhashable: list[int] = []
        while length_hint(pending):
            try:
                state.update(pending)
            except USER_ERRORS as error:  # A key that cannot be hashed. Go on behind it.
                self._reject(error, values, timestamps, pending)
                unhashable.append(len(keys) - length_hint(pending) - 1)
        return _without(keys, unhashable) if unhashable else keys

    def _keys(self, values: list[Any], timestamps: list[int]) -> tuple[list[Any], list[int]]:
        """Return the keys of the records, and the places of those that have none."""
        key_of, keys = self._key, []
        keyless: list[int] = []
        pending = iter(values)
        for value in pending:
            try:
                keys.append(key_of(value))
            except USER_ERRORS as error:
                self._reject(error, values, timestamps, pending)
                keyless.append(len(keys) + len(keyless))
        return keys, keyless

    def _fold_into(
        self, state: dict[Any, Any], values: list[Any], timestamps: list[int]
    ) -> Iterable[Any]:
        """Fold the records into a window; return the keys."""
        key_of, add, first = self._key, self._fold.add, self._fold.first
        keys: list[Any] = []
        pending = iter(values)
        for value in pending:
            try:
                key = key_of(value)
                before = state.get(key, _MISSING)
                state[key] = first(value) if before is _MISSING else add(before, value)
                keys.append(key)
            except USER_ERRORS as error:
                self._reject(error, values, timestamps, pending)
        return keys

    def _reject(
        self,
        error: BaseException,
        values: list[Any],
        timestamps: list[int],
        pending: Iterator[Any],
    ) -> None:
        at = len(values) - length_hint(pending) - 1
        value, time = values[at], timestamps[at]
        blamed = operator_error(self.name, error, record=value, event_time_ms=time)
        self._rejects.take(value, time, blamed, place=self.place)


def _without(items: list[Any], dropped: list[int]) -> list[Any]:
    left_out = set(dropped)
    return [item for at, item in enumerate(items) if at not in left_out]


def _no_key(_: Any) -> None:
    return None
