"""The stage for windows of any kind, with any trigger."""

from collections.abc import Iterator, Sequence
from operator import length_hint
from typing import Any, Unpack

from gearpy.core.base.fields import keys_of
from gearpy.core.base.one_key import one_key, one_keys
from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.counted import CountPanes
from gearpy.core.window.panes import Fired
from gearpy.core.window.sessions import SessionPanes
from gearpy.core.window.windows import (
    AlignedWindows,
    CountWindows,
    DisjointWindows,
    OverlappingWindows,
    SessionWindows,
    Windows,
)
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
from gearpy.messages.late_time import late_places
from gearpy.messages.table import Table, Times
from gearpy.task.aggregates.fold import (
    Fold,
    KeyFunction,
    LateArgs,
    WindowedStage,
    WindowFold,
)
from gearpy.task.aggregates.pane_stores import AlignedStore, KeyStore
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import result_maker
from gearpy.task.chain.event_gate import marked_late
from gearpy.task.chain.stage import Stage


def window_stage(
    context: TaskContext,
    name: str,
    windows: Windows,
    key: KeyFunction | None,
    fold: Fold,
    **others: Unpack[LateArgs],
) -> Stage:
    """Return the fastest stage that does it; arguments as of `WindowStage`."""
    in_pieces = fold.kind == "count" or (fold.commutes and fold.merge is not None)
    is_quick = isinstance(windows, DisjointWindows) or (
        isinstance(windows, OverlappingWindows) and in_pieces
    )
    if is_quick and windows.is_plain:
        assert isinstance(windows, DisjointWindows | OverlappingWindows)
        return WindowFold(context, name, windows, key, fold, **others)
    return WindowStage(context, name, windows, key, fold, **others)


class WindowStage(WindowedStage):
    """Folds each key within each window; yields `WindowResult`s when a trigger says so.

    No record is kept, only their folded values. Results that are put out when time has passed
    come by end and start of the windows, then in the order in which the keys came. A record
    that user code raises on leaves the windows as they were, provided that the fold's functions
    change nothing themselves. Gearpump: `WindowOperator`, which buffers all records.

    Args:
        fold: the fold of the records of a pane.

    Raises:
        ConfigError: the windows need a function that the fold lacks.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        windows: Windows,
        key: KeyFunction | None,
        fold: Fold,
        **others: Unpack[LateArgs],
    ) -> None:
        super().__init__(context, name, key, **others)
        self._is_by_event = windows.clock == "event"
        self._lateness_ms = windows.allowed_lateness_ms
        self._panes = _panes_of(windows, fold)
        self._records_in = fold.records_in
        self._result_of = result_maker(windows)
        self._may_be_late = bool(self._lateness_ms) or windows.accumulation == "retracting"
        self._store: AlignedStore | KeyStore | None = None

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Take the records; yield the results that they cause. Late ones may have to wait."""
        if self._is_by_event:
            batch = self._in_time(batch)
        yield from (self._fired if batch.origin.is_by_arrival else self._taken)(batch)
        if len(self._gate):
            yield from self._due(self._panes.clock_ms)

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Take the late records whose turn has come, each when event time is where it was late."""
        for at_ms, batch in self._gate.due(watermark_ms):
            yield from self._advance(at_ms, self._context.now_ms())
            for results in self._taken(batch):
                yield marked_late(results, at_ms)

    def _taken(self, batch: Batch) -> Iterator[Batch]:
        """Take records; in the order of event time all that is due up to each comes before it."""
        if not (self._waits_all and self._is_by_event and self._panes.fires_early):
            yield from self._fired(batch)
            return
        for at, time_ms in enumerate(batch.timestamps):
            while self._panes.next_ms <= time_ms:
                next_ms = self._panes.next_ms
                yield from self._advance(next_ms, self._context.now_ms(), batch.origin)
            yield from self._fired(batch.part(at, at + 1))

    def _fired(self, batch: Batch) -> Iterator[Batch]:
        panes, origin = self._panes, batch.origin
        records, times, now_ms = batch.values, batch.timestamps, self._context.now_ms()
        keys, key_of = keys_of(self._key, records, one_keys)
        places = iter(range(len(records)))
        out: list[Fired] = []
        while length_hint(places):
            try:
                if keys is None:
                    at = next(places)
                    key = one_key(key_of(records[at]))
                else:
                    if panes.add_plainly(places, keys, records, times):
                        break
                    at = len(records) - length_hint(places) - 1
                    key = keys[at]
                fired = panes.add(key, records[at], times[at], now_ms)
                if fired is None:
                    fired = self._take_late(key, records[at], times[at], now_ms)
            except USER_ERRORS as error:
                at = len(records) - length_hint(places) - 1
                self._reject(error, records[at], times[at])
                continue
            if fired:
                out += fired
                if len(out) >= self._limit:
                    yield self._results(out, origin)
                    out = []
        if out:
            yield self._results(out, origin)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results of windows that close, and of triggers that are due."""
        if len(self._gate):
            yield from self._due(watermark_ms)
        if watermark_ms < MAX_MS or not isinstance(self._panes, CountPanes):
            yield from self._advance(watermark_ms, self._context.now_ms())
            return
        # The rest of them is as old as its records, at any event time.
        for results in self._advance(watermark_ms, self._context.now_ms()):
            yield marked_late(results, MAX_MS - 1)

    def on_time(self, now_ms: int) -> Iterator[Batch]:
        return self._advance(MIN_MS, now_ms)

    def snapshot(self) -> list[int]:
        """Return the clock of the windows, and their allowed lateness, if any.

        Keyed state has their changes.
        """
        assert self._store is not None, "restore comes first"
        self._store.tell()
        self._gate.tell()
        lateness_ms = self._lateness_ms
        return [self._panes.clock_ms, *([lateness_ms] if lateness_ms else [])]

    def restore(self, state: list[int] | None) -> None:
        clock_ms, *_ = state or (MIN_MS,)
        bulk = self._bulk("panes")
        if isinstance(self._panes, AlignedPanes):
            self._panes.restore(clock_ms, bulk.restored())
            self._store = AlignedStore(self._panes, bulk)
        else:
            self._panes.restore(clock_ms, dict(bulk.restored()).get(None, {}))
            self._store = KeyStore(self._panes, bulk)
        self._gate.restore(self.place, self.name)

    @property
    def open_windows(self) -> int:
        return self._panes.count

    @property
    def hold_ms(self) -> int:
        return min(self._panes.hold_ms, self._gate.first_ms)

    @property
    def wake_ms(self) -> int | None:
        wake_ms = self._panes.wake_ms
        return wake_ms if wake_ms < MAX_MS else None

    def _advance(self, event_ms: int, now_ms: int, origin: Origin = NOWHERE) -> Iterator[Batch]:
        out: list[Fired] = []
        try:
            for each in self._panes.advance(event_ms, now_ms):
                if each is not None:
                    out.append(each)
                if each is None or len(out) >= self._limit:
                    yield self._results(out, origin)
                    out = []
            if out:
                yield self._results(out, origin)
        except USER_ERRORS as error:  # No record is to blame for the function of results.
            raise operator_error(self.name, error) from error

    def _results(self, fired: Sequence[Fired], origin: Origin) -> Batch:
        if not fired:
            return Batch([], [])
        rows, times = zip(*fired, strict=True)
        has_late = self._may_be_late and bool(late_places(times))
        values = self._made(rows)
        made = Times.of(times) if type(values) is Table else list(times)
        return Batch(values, made, has_late, origin)

    def _made(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        return list(map(self._result_of, rows))

    def _take_late(
        self, key: Any, record: Any, time_ms: int, now_ms: int
    ) -> Sequence[Fired] | None:
        self._context.counters.late_records += self._records_in([record])
        if self._late == "side":
            self._send_aside([record], [time_ms], self._panes.clock_ms)
        elif self._late == "restamp":
            return self._panes.add(key, record, self._panes.clock_ms, now_ms)
        return None


def _panes_of(windows: Windows, fold: Fold) -> AlignedPanes | SessionPanes | CountPanes:
    if isinstance(windows, AlignedWindows):
        return AlignedPanes(windows, fold)
    if isinstance(windows, SessionWindows):
        return SessionPanes(windows, fold)
    if isinstance(windows, CountWindows):
        return CountPanes(windows, fold)
    raise ConfigError(
        f"{windows!r} are no windows: take tumbling, sliding, session, count_window or "
        "global_window"
    )
