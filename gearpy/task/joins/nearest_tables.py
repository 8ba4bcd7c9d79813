"""The stage that joins two streams in columns, each left record with one right record.

Of the right side the newest record of each key is kept, in runs of which newer ones count first; so
all matches of a table that are not newer are found by a binary search in each of them. Left records
for which a newer one may be nearer wait for it.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.changes import RecordLog
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.core.window.event_order import Held
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.table_gate import HeldRows
from gearpy.task.joins.join_schema import JoinSchema
from gearpy.task.joins.runs import Numbers, SortedRun, joined_runs, less
from gearpy.task.joins.sides_stage import GatedSidesStage
from gearpy.task.joins.streams import JoinSpec
from gearpy.task.joins.waiting_lefts import Lefts, told_lefts

#: Namespaces of the newest right records, as joins of rows have them.
_NEWEST: Final = {"asof": ("newest",), "latest": ("table",)}
#: That of left records that wait for newer right ones.
_WAITING: Final = ("waiting",)
#: The rank of records that a join of rows has let in already: they come before all others.
_FIRST: Final = (-1,)
_ROWS: Final = 1 << 16  #: So many results are yielded at once.


class NearestTablesStage(GatedSidesStage):
    """Joins two streams of tables as `AsOfJoin` does, or as `LatestJoin`.

    What is kept is that of these joins: it is told, and comes back, as theirs, and a step goes on
    from it in either form.
    """

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        super().__init__(context, name, spec, schema)
        self._is_asof = spec.kind == "asof"
        self._looks_back = spec.direction != "forward"
        self._looks_ahead = spec.direction != "backward"
        self._tolerance_ms = spec.tolerance_ms
        self._namespace = _NEWEST[spec.kind]
        self._right_type = schema.arrow.field("right").type
        self._runs: list[SortedRun] = []  # One record of a key each; the last one has the newest.
        self._waiting: Lefts | None = None
        self._touched: dict[int, None] = {}  # Codes of keys whose left records are others now.
        self._told: set[Any] = set()  # Keys that have a cell of left records.
        self._number = 0
        self._gone: list[tuple[Any, list[Any]]] = []

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        yield from self._due(watermark_ms)
        self._watermark_ms = watermark_ms

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results of the left records that event time has passed."""
        rights = self._gate.due_of(RIGHT, watermark_ms)
        fresh = None
        if rights is not None and len(rights := self._in_time(rights)):
            fresh = self._codes.run(rights.rows, rights.times.to_numpy())
        lefts = self._gate.due_of(LEFT, watermark_ms)
        if lefts is not None and self._is_asof:
            lefts = self._in_time(lefts)
        runs = [*self._runs, *([] if fresh is None else [fresh])]
        if self._looks_ahead:
            yield from self._of_waiting(lefts, runs, fresh, watermark_ms)
        else:
            for at in range(0, 0 if lefts is None else len(lefts), _ROWS):
                assert lefts is not None
                yield from self._results(lefts.part(at, min(at + _ROWS, len(lefts))), runs)
        if fresh is not None and self._looks_back:
            self._add(_newest_of(fresh))

    def _in_time(self, found: HeldRows) -> HeldRows:
        """Leave out, and count, what came too late."""
        times = found.times.to_numpy()
        late = (times < found.places.to_numpy()) | (times < self._watermark_ms)
        if not late.any():
            return found
        self._context.counters.late_records += int(late.sum())
        return found.take(pa.array(np.flatnonzero(~late)))

    def _results(self, lefts: HeldRows, runs: list[SortedRun]) -> Iterator[Batch]:
        codes = self._codes.of(lefts.rows, adds=False)
        own, promised = lefts.times.to_numpy(), lefts.places.to_numpy()
        # One that is late for `LatestJoin` finds what counts where it comes.
        places = np.maximum(promised, self._watermark_ms)
        at, times, parts = _matches(codes, places, runs)
        self._forget_far(at, times, places)
        rows, is_found = lefts.rows, at >= 0
        if not (self._comes_alone[LEFT] or is_found.all()):
            kept = np.flatnonzero(is_found)
            if not len(kept):
                return
            rows = rows.take(pa.array(kept))
            at, times, own, promised = at[kept], times[kept], own[kept], promised[kept]
            is_found = is_found[kept]
        found = pa.concat_arrays([*parts, pa.nulls(0, self._right_type)])
        rights = found.take(pa.array(at, mask=~is_found))
        start = np.where(is_found, times, own) if self._is_asof else own
        bounds = pa.array(start), pa.array(own + 1)
        columns = [*rows.columns, rights, *bounds]
        late = own < promised
        times_of = Times(pa.array(own), pa.array(promised) if late.any() else None)
        table = Table(self._schema.made(columns))
        yield Batch(table, times_of, has_late=bool(late.any()))

    def _forget_far(self, found: Numbers, found_ms: Numbers, times: Numbers) -> None:
        if self._tolerance_ms is not None:
            found[found_ms < less(times, self._tolerance_ms)] = -1

    def _of_waiting(
        self,
        lefts: HeldRows | None,
        runs: list[SortedRun],
        fresh: SortedRun | None,
        watermark_ms: int,
    ) -> Iterator[Batch]:
        """Yield the results of those that wait for nothing any more."""
        waiting = self._waiting
        if lefts is not None and len(lefts):
            come = self._matched(lefts, runs if self._looks_back else [])
            self._touched |= dict.fromkeys(np.unique(come.codes).tolist())
            waiting = come if waiting is None else waiting.joined(come)
        if waiting is None or not len(waiting):
            return
        decided, self._waiting = waiting.decided(fresh, self._tolerance_ms, watermark_ms)
        self._touched |= dict.fromkeys(np.unique(decided.codes).tolist())
        if not self._comes_alone[LEFT]:
            decided = decided.taken(decided.has_found)
        for at in range(0, len(decided), _ROWS):
            some = decided.taken(np.arange(at, min(at + _ROWS, len(decided))))
            newest = np.maximum(some.times, some.found_ms)
            bounds = pa.array(np.minimum(some.times, some.found_ms)), pa.array(newest + 1)
            columns = [*some.rows.columns, some.found, *bounds]
            table = Table(self._schema.made(columns))
            yield Batch(table, Times(pa.array(newest)))

    def _matched(self, lefts: HeldRows, runs: list[SortedRun]) -> Lefts:
        """Return left records with the newest right ones that are not newer."""
        codes, own = self._codes.of(lefts.rows), lefts.times.to_numpy()
        at, times, parts = _matches(codes, own, runs)
        self._forget_far(at, times, own)
        found = pa.concat_arrays([*parts, pa.nulls(0, self._right_type)])
        rights = found.take(pa.array(at, mask=at < 0))
        numbers = self._number + np.arange(len(own))
        self._number += len(own)
        return Lefts(lefts.rows, codes, own, numbers, rights, np.where(at < 0, own, times))

    def _add(self, run: SortedRun) -> None:
        """Add the newest records of some keys, joined with runs before it that are not larger."""
        joined, count = [run], len(run)
        while self._runs and len(self._runs[-1]) <= count:
            joined.append(self._runs.pop())
            count += len(joined[-1])
        self._runs.append(joined[0] if len(joined) == 1 else _newest_of(joined_runs(joined[::-1])))

    @property
    def _first_ms(self) -> int:
        waiting = self._waiting
        return MAX_MS if waiting is None or not len(waiting) else int(waiting.times.min())

    # -- state and epochs ----------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        self._gate.tell()
        gone, self._gone = self._gone, []
        for namespace, keys in gone:
            self._kept.delete(keys, namespace)
        if self._tolerance_ms is not None:
            self._forget(self._watermark_ms - self._tolerance_ms)
        fresh = [
            run.taken(which) for run in self._runs if len(which := np.flatnonzero(~run.is_told))
        ]
        if fresh:
            newest = _newest_of(joined_runs(fresh))
            cells = zip(newest.times.tolist(), self._rights(newest), strict=True)
            found = [(key, [time, record]) for time, (_, key, record) in cells]
            keys, values = map(list, zip(*found, strict=True))
            self._kept.put_all(keys, values, self._namespace)
            for run in self._runs:
                run.is_told[:] = True
        self._tell_waiting()
        used = [run.codes for run in self._runs]
        if self._waiting is not None:
            used.append(self._waiting.codes)
        if (moved := self._codes.forget(used)) is not None:
            for run in self._runs:
                run.recoded(moved)
            self._waiting = None if self._waiting is None else self._waiting.recoded(moved)
        return [self._description, self._watermark_ms]

    def _tell_waiting(self) -> None:
        if not self._touched:
            return
        touched, self._touched = np.array([*self._touched]), {}
        waiting = self._waiting
        cells = {}
        if waiting is not None:
            cells = waiting.taken(np.isin(waiting.codes, touched)).cells(self._sides)
        gone = {*self._codes.keys(touched)} & self._told - cells.keys()
        if gone:
            self._kept.delete([*gone], _WAITING)
        if cells:
            self._kept.put_all([*cells], [*cells.values()], _WAITING)
        self._told = (self._told - gone) | cells.keys()

    def _rights(self, run: SortedRun) -> list[Any]:
        return self._sides[RIGHT].rows(run.rows.take(pa.array(run.at)))

    def _forget(self, before_ms: int) -> None:
        """Forget right records that are too far away from all left ones that may come."""
        if not self._runs:
            return
        run = _newest_of(joined_runs(self._runs))
        over = run.is_told & (run.times < before_ms)
        if over.any():
            keys = [key for _, key, _ in self._rights(run.taken(np.flatnonzero(over)))]
            self._kept.delete(keys, self._namespace)
        kept = run.since(before_ms)
        self._runs = [] if kept is None else [kept]

    def restore(self, state: list[Any] | None) -> None:
        super().restore(state)
        log = RecordLog()
        for namespace, pairs in self._kept.restored():
            if namespace == self._namespace:
                self._load(pairs)
            elif namespace == _WAITING:
                self._load_waiting(pairs)
            elif log.load(namespace, pairs):  # The gate will tell them.
                self._gone.append((namespace, list(pairs)))
        self._gate.restore(self.place, self.name)
        self._gate.load(
            Held(
                each.time_ms,
                RIGHT - each.side,
                _FIRST,
                each.seq,
                each.time_ms,
                (each.side, each.key, each.value),
            )
            for _, each in log.resume()
            if each.time_ms >= self._watermark_ms
        )

    def _load(self, pairs: dict[Any, list[Any]]) -> None:
        """Take back the newest right records; a key that `LatestJoin` has removed has None."""
        there = [(RIGHT, key, record) for key, (_, record) in pairs.items() if record is not None]
        times = [time for time, record in pairs.values() if record is not None]
        removed = [key for key, (_, record) in pairs.items() if record is None]
        if removed:
            self._gone.append((self._namespace, removed))
        if there:
            rows, found = self._sides[RIGHT].table(there), np.array(times, np.int64)
            self._add(self._codes.run(rows, found, is_told=True))

    def _load_waiting(self, pairs: dict[Any, list[Any]]) -> None:
        rows, (times, numbers, found, found_ms) = told_lefts(pairs, self._sides)
        codes = self._codes.of(rows)
        self._waiting = Lefts(rows, codes, times, numbers, found, found_ms)
        self._number = int(numbers.max()) + 1
        self._told = {*pairs}

    def _tables(self) -> list[pa.RecordBatch]:
        waiting = [] if self._waiting is None else [self._waiting.rows]
        return [*(run.rows for run in self._runs), *waiting]

    def _tell_again(self) -> None:
        self._gone, self._told = [], set()
        if self._waiting is not None:
            self._touched = dict.fromkeys(np.unique(self._waiting.codes).tolist())
        for run in self._runs:
            run.is_told[:] = False


def _newest_of(run: SortedRun) -> SortedRun:
    is_newest = np.append(run.codes[1:] != run.codes[:-1], [True])
    return run if is_newest.all() else run.taken(np.flatnonzero(is_newest))


def _matches(
    codes: Numbers, times: Numbers, runs: list[SortedRun]
) -> tuple[Numbers, Numbers, list[pa.Array]]:
    """Find the newest right record of each key that is not newer.

    Returns:
        Where it is in the parts, joined, -1 for none; its time; and the parts.
    """
    found, found_ms = np.full(len(codes), -1), np.zeros(len(codes), np.int64)
    parts: list[pa.Array] = []
    count, pending = 0, np.arange(len(codes))
    for run in reversed(runs):
        if not len(pending):
            break
        place = np.searchsorted(run.order, run.places(codes[pending], times[pending] + 1)) - 1
        is_hit = (place >= 0) & (run.codes[place] == codes[pending])
        hits, at = pending[is_hit], place[is_hit]
        if not len(hits):
            continue
        used, places = np.unique(at, return_inverse=True)
        found[hits], found_ms[hits] = count + places, run.times[at]
        parts.append(run.rows.columns[-1].take(pa.array(run.at[used])))
        count += len(used)
        pending = pending[~is_hit]
    return found, found_ms, parts
