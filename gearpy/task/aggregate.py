"""Stages that fold records by key: running, or per window."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from gearpy.core.window import WindowAssigner
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api import TaskContext
from gearpy.task.failure import USER_ERRORS, operator_error
from gearpy.task.output import Columns
from gearpy.task.rejects import Rejects
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

    def __init__(
        self, name: str, key: KeyFunction, fold: Fold, rejects: Rejects | None = None
    ) -> None:
        self.name = name
        self._rejects = rejects or Rejects()
        self._key = key
        self._fold = fold
        self._values: dict[Any, Any] = {}

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
            yield out, _without(timestamps, dropped) if dropped else timestamps

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Nothing waits."""
        return iter(())

    def snapshot(self) -> dict[Any, Any]:
        """Return what each key has come to."""
        return self._values

    def restore(self, state: dict[Any, Any] | None) -> None:
        """Go on from there."""
        self._values = state or {}

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""

    def _reject(self, error: BaseException, record: Any, time: int) -> None:
        blamed = operator_error(self.name, error, record=record, event_time_ms=time)
        self._rejects.take(record, time, blamed, place=self.place)


class WindowFold:
    """Folds each key within each window; yields `WindowResult`s when the watermark closes it.

    No record is kept, only one value for each key and open window. A record whose window has
    closed is late: it is counted and dropped. Results carry the last ms of their window. A record
    that user code raises on leaves the windows as they were, provided that the fold's functions
    change nothing themselves. Gearpump: `WindowOperator`, which buffers all records until the
    window fires.

    Args:
        key: None for one value over all records.
        limit: results handed over at once.
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
    ) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._windows = windows
        self._key = key or _no_key
        self._fold = fold
        self._limit = limit
        self._open: dict[int, dict[Any, Any]] = {}
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
            del self._open[start], self._oldest_ms[start]

    def snapshot(self) -> list[Any]:
        """Return the open windows, their oldest records, and the watermark that says what is late.

        All windows are of one kind, which the program tells.
        """
        # A `Counter` is no plain data.
        windows = {start: dict(values) for start, values in self._open.items()}
        return [windows, self._oldest_ms, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        """Go on from there."""
        if state is not None:
            windows, self._oldest_ms, self._watermark_ms = state
            self._open = {start: self._values(kept) for start, kept in windows.items()}

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
            self._context.counters.late_records += len(values)
            return
        state = self._open.get(start)
        if state is None:
            state = self._open[start] = self._values({})
        self._oldest_ms[start] = min(low, self._oldest_ms.get(start, MAX_MS))
        if isinstance(state, Counter):
            self._count(state, values, timestamps)
        else:
            self._fold_into(state, values, timestamps)
        if not state:  # No record was good.
            del self._open[start], self._oldest_ms[start]

    def _values(self, kept: dict[Any, Any]) -> dict[Any, Any]:
        return Counter(kept) if self._fold.kind == "count" else kept

    def _count(self, state: Counter[Any], values: list[Any], timestamps: list[int]) -> None:
        """Do what `_fold_into` does for a count, at the speed of `Counter.update`."""
        # A list, since `map` takes a `StopIteration` of the key function for its end.
        keys, keyless = self._keys(values, timestamps)
        if keyless:
            values, timestamps = _without(values, keyless), _without(timestamps, keyless)
        pending = iter(keys)
        while length_hint(pending):
            try:
                state.update(pending)
            except USER_ERRORS as error:  # A key that cannot be hashed. Go on behind it.
                self._reject(error, values, timestamps, pending)

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

    def _fold_into(self, state: dict[Any, Any], values: list[Any], timestamps: list[int]) -> None:
        key_of, add, first = self._key, self._fold.add, self._fold.first
        pending = iter(values)
        for value in pending:
            try:
                key = key_of(value)
                before = state.get(key, _MISSING)
                state[key] = first(value) if before is _MISSING else add(before, value)
            except USER_ERRORS as error:
                self._reject(error, values, timestamps, pending)

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
