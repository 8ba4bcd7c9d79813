"""Aggregates of windows in two halves, with Spark's exchange between them.

A `Combiner` folds the records of a part of the input, and gives their values in pieces; a
`Merger` gets all pieces of some keys, and tells the results. Pieces are bytes, so that keys and
values may be of any type that can travel. Without Spark: this runs in its Python workers.

A piece has entries ``(first_ms, last_ms, key, value)``. Of aligned windows both times are the
window's start, or that of a part of sliding windows that is in all the same of them; of sessions
those of their oldest and newest record. Where there is no way to merge, the value is a record.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from gearpy.core.base.copies import own
from gearpy.core.base.one_key import one_key, one_keys
from gearpy.core.base.stable_hash import stable_hash
from gearpy.core.window.windows import AlignedWindows, OverlappingWindows, SessionWindows
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.spark.query.plan import GroupStep
from gearpy.task.aggregates.fold import Fold
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.window_result import result_maker
from gearpy.wire.values.payload import decode_batch, encode_batch

_ENTRIES_MAX: Final = 4096
_ROWS_MAX: Final = 4096
_Entry = tuple[int, int, Any, Any]
_MISSING: Final = object()

#: Sort keys of the parts of a session: their time, and the order in which they came.
_time: Final = itemgetter(0)
_order: Final = itemgetter(1)


class GroupPiece(NamedTuple):
    """Some entries of one bucket of keys, as bytes."""

    bucket: int
    entries: int
    body: bytes


class Combiner:
    """Folds the records of one part of the input by window and key.

    Args:
        buckets: into how many groups keys are spread.
    """

    def __init__(self, step: GroupStep, buckets: int) -> None:
        self._step = step
        self._buckets = buckets
        self._part = _part_of(step)

    def add(self, values: Sequence[Any], times: Sequence[int]) -> None:
        if not values:
            return
        try:
            self._part.add(values, times)
        except USER_ERRORS as error:
            raise operator_error(self._step.name, error) from error

    def pieces(self) -> Iterator[GroupPiece]:
        waiting: dict[int, list[_Entry]] = {}
        for entry in self._part.entries():
            bucket = stable_hash(entry[2]) % self._buckets
            entries = waiting.setdefault(bucket, [])
            entries.append(entry)
            if len(entries) == _ENTRIES_MAX:
                yield _piece(bucket, waiting.pop(bucket))
        for bucket, entries in waiting.items():
            yield _piece(bucket, entries)
        self._part = _part_of(self._step)


class Merger:
    """Merges the pieces of all parts of the input, for some of the keys."""

    def __init__(self, step: GroupStep) -> None:
        self._name = step.name
        self._fold = step.made_fold()
        windows = self._windows = step.windows
        self._merge: _Sessions | _Aligned = (
            _Sessions(self._fold, windows.gap_ms)
            if isinstance(windows, SessionWindows)
            else _Aligned(self._fold, _aligned(windows), in_slots=_in_slots(step, self._fold))
        )

    def add(self, entries: int, body: bytes) -> None:
        try:
            for first_ms, last_ms, key, value in decode_batch(body, entries).values:
                self._merge.add(first_ms, last_ms, one_key(key), value)
        except USER_ERRORS as error:
            raise operator_error(self._name, error) from error

    def results(self) -> Iterator[Batch]:
        rows = self._rows()
        while results := list(islice(rows, _ROWS_MAX)):
            yield Batch(results, [row.end - 1 for row in results])

    def _rows(self) -> Iterator[Any]:
        result, result_of = self._fold.result, result_maker(self._windows)
        try:
            for start, end, key, value in self._merge.windows():
                shown = value if result is None else result(value)
                yield result_of((key, shown, start, end, 0, "on-time", False))
        except USER_ERRORS as error:
            raise operator_error(self._name, error) from error


def _piece(bucket: int, entries: list[_Entry]) -> GroupPiece:
    body = b"".join(encode_batch(entries, [0] * len(entries)))
    return GroupPiece(bucket, len(entries), body)


def _aligned(windows: object) -> AlignedWindows:
    assert isinstance(windows, AlignedWindows), "other windows were refused"
    return windows


def _in_slots(step: GroupStep, fold: Fold) -> bool:
    return isinstance(step.windows, OverlappingWindows) and fold.commutes and fold.merge is not None


# -- the half before the exchange ------------------------------------------------------------------


def _part_of(step: GroupStep) -> "_AlignedPart | _SessionPart | _RecordsPart":
    fold = step.made_fold()
    key = step.key or _no_key
    if isinstance(step.windows, SessionWindows):
        return _SessionPart(fold, key, step.windows.gap_ms)
    if fold.merge is None:
        return _RecordsPart(key)
    windows = _aligned(step.windows)
    slots_of: Callable[[int], Sequence[int]] = windows.starts_of
    if isinstance(windows, OverlappingWindows) and _in_slots(step, fold):
        piece_of = windows.piece_of
        slots_of = lambda time_ms: (piece_of(time_ms),)  # noqa: E731 - of two, and named there
    return _AlignedPart(fold, key, slots_of)


class _RecordsPart:
    """Keeps the records of a part, since their aggregates cannot be merged."""

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._key = key
        self._entries: list[_Entry] = []

    def add(self, values: Sequence[Any], times: Sequence[int]) -> None:
        key = self._key
        pairs = zip(values, times, strict=True)
        self._entries += [(time, time, one_key(key(value)), value) for value, time in pairs]

    def entries(self) -> Iterator[_Entry]:
        return iter(self._entries)


class _AlignedPart:
    """Folds the records of a part by window, or by slots between the boundaries of windows."""

    def __init__(
        self, fold: Fold, key: Callable[[Any], Any], slots_of: Callable[[int], Sequence[int]]
    ) -> None:
        self._fold = fold
        self._key = key
        self._slots_of = slots_of
        self._loop = fold.loop(key) if fold.loop is not None else None
        self._open: dict[int, dict[Any, Any]] = {}

    def add(self, values: Sequence[Any], times: Sequence[int]) -> None:
        low, high = self._slots_of(min(times)), self._slots_of(max(times))
        if low == high:
            for slot in low:
                self._add(slot, list(values), list(times))
            return
        parts: dict[int, tuple[list[Any], list[int]]] = {}
        slots_of = self._slots_of
        for value, time in zip(values, times, strict=True):
            for slot in slots_of(time):
                part = parts.get(slot)
                if part is None:
                    part = parts[slot] = ([], [])
                part[0].append(value)
                part[1].append(time)
        for slot, (of, at) in parts.items():
            self._add(slot, of, at)

    def entries(self) -> Iterator[_Entry]:
        for slot, values in self._open.items():
            for key, value in values.items():
                yield slot, slot, key, value

    def _add(self, slot: int, values: list[Any], times: list[int]) -> None:
        state = self._open.setdefault(slot, Counter() if self._fold.kind == "count" else {})
        if isinstance(state, Counter):
            state.update(one_keys([self._key(value) for value in values]))
        elif self._loop is not None:
            self._loop(state, values, times, _raise)
        else:
            for key, value, time in zip(
                one_keys([self._key(value) for value in values]), values, times, strict=True
            ):
                state[key] = _grown(self._fold, state.get(key, _MISSING), value, time)


class _SessionPart:
    """Keeps the records by key until all have come; sessions are found in order of time."""

    def __init__(self, fold: Fold, key: Callable[[Any], Any], gap_ms: int) -> None:
        self._fold = fold
        self._key = key
        self._gap_ms = gap_ms
        self._kept: dict[Any, list[tuple[int, int, Any]]] = {}
        self._taken = 0

    def add(self, values: Sequence[Any], times: Sequence[int]) -> None:
        kept = self._kept
        keys = one_keys([self._key(value) for value in values])
        for at, (key, value, time) in enumerate(zip(keys, values, times, strict=True), self._taken):
            kept.setdefault(key, []).append((time, at, value))
        self._taken += len(values)

    def entries(self) -> Iterator[_Entry]:
        for key, records in self._kept.items():
            records.sort(key=_time)
            bounds = ((time, time) for time, _, _ in records)
            for first, last in _runs(bounds, self._gap_ms):
                session = records[first:last]
                first_ms, last_ms = session[0][0], session[-1][0]
                value = _MISSING
                for time, _, record in sorted(session, key=_order):
                    value = _grown(self._fold, value, record, time)
                yield first_ms, last_ms, key, value


# -- the half behind it ----------------------------------------------------------------------------


class _Aligned:
    """Folds the pieces of each key and window into one value."""

    def __init__(self, fold: Fold, windows: AlignedWindows, *, in_slots: bool) -> None:
        self._fold = fold
        self._windows = windows
        self._in_slots = in_slots
        self._open: dict[int, dict[Any, Any]] = {}

    def add(self, first_ms: int, _: int, key: Any, value: Any) -> None:
        merge = self._fold.merge
        is_whole = merge is not None and not self._in_slots
        for start in (first_ms,) if is_whole else self._windows.starts_of(first_ms):
            state = self._open.setdefault(start, {})
            before = state.get(key, _MISSING)
            if merge is None:
                state[key] = _grown(self._fold, before, value, first_ms)
            else:  # A slot is in several windows, each of which may change what it has.
                mine = own(value) if self._in_slots else value
                state[key] = mine if before is _MISSING else merge(before, mine)

    def windows(self) -> Iterator[tuple[int, int, Any, Any]]:
        end_of = self._windows.end_of
        for end, start in sorted((end_of(start), start) for start in self._open):
            for key, value in self._open[start].items():
                yield start, end, key, value


class _Sessions:
    """The sessions of each key, as far as the parts of the input know them."""

    def __init__(self, fold: Fold, gap_ms: int) -> None:
        assert fold.merge is not None, "checked when the step was made"
        self._merge = fold.merge
        self._gap_ms = gap_ms
        self._kept: dict[Any, list[tuple[int, int, int, Any]]] = {}
        self._taken = 0

    def add(self, first_ms: int, last_ms: int, key: Any, value: Any) -> None:
        self._kept.setdefault(key, []).append((first_ms, self._taken, last_ms, value))
        self._taken += 1

    def windows(self) -> Iterator[tuple[int, int, Any, Any]]:
        found = []
        for order, (key, parts) in enumerate(self._kept.items()):
            parts.sort(key=_time)
            bounds = ((first_ms, last_ms) for first_ms, _, last_ms, _ in parts)
            for first, last in _runs(bounds, self._gap_ms):
                session = parts[first:last]
                end = min(max(part[2] for part in session) + self._gap_ms, MAX_MS)
                # Values are merged in the order in which their records came.
                (_, _, _, value), *others = sorted(session, key=_order)
                for _, _, _, other in others:
                    value = self._merge(value, other)
                found.append((end, session[0][0], order, key, value))
        for end, start, _, key, value in sorted(found, key=lambda each: each[:3]):
            yield start, end, key, value


def _runs(bounds: Iterable[tuple[int, int]], gap_ms: int) -> Iterator[tuple[int, int]]:
    """Yield the places at which a session begins and ends, of bounds in order of time.

    Two belong together if less than the gap is between them.
    """
    begun, at, last_ms = 0, 0, None
    for at, (first, last) in enumerate(bounds):
        if last_ms is not None and first - last_ms >= gap_ms:
            yield begun, at
            begun = at
        last_ms = last if last_ms is None else max(last_ms, last)
    if last_ms is not None:
        yield begun, at + 1


def _grown(fold: Fold, before: Any, record: Any, time_ms: int) -> Any:
    if before is _MISSING:
        return fold.first(record, time_ms) if fold.timed else fold.first(record)
    return fold.add(before, record, time_ms) if fold.timed else fold.add(before, record)


def _raise(error: BaseException, _: int) -> None:
    raise error


def _no_key(_: Any) -> None:
    return None
