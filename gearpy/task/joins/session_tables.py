"""The stage that joins two streams in columns, by records of a key that are in one session.

All records of open sessions are in tables, as they came. When one may close, the records that its
key has on both sides are sorted by time: a session ends where the next record is not near.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.sides import LEFT, RIGHT, SIDES
from gearpy.core.window.windows import SessionWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.table_gate import HeldRows
from gearpy.task.joins.group_cells import TIME, cells_of_groups, kept_by_side
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema
from gearpy.task.joins.runs import Array, Numbers, more
from gearpy.task.joins.streams import JoinSpec
from gearpy.task.joins.window_tables import PairingStage, SideRecords
from gearpy.task.time.pieces import session_numbers

_CHUNK: Final = 0  # There is one.
_FIELDS: Final = 5  # Of a session, as `SessionJoin` has told it.
_OVER: Final = -1  #: The code of a record whose session is over.
#: More tables of a side become one.
_TABLES_MAX: Final = 256


class SessionTablesStage(PairingStage):
    """Joins two streams of tables as `SessionJoin` does.

    An epoch stores all records of the groups of keys that have changed, as one table of each side.
    A step goes on in either form.
    """

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        super().__init__(context, name, spec, schema)
        assert isinstance(spec.windows, SessionWindows), "others are in pieces of time"
        self._gap_ms = spec.windows.gap_ms
        self._open: tuple[list[SideRecords], list[SideRecords]] = ([], [])  # With times for places.
        self._ends: Numbers = np.zeros(0, np.int64)  # No open session of a key ends before.
        self._end_ms = MAX_MS  # None of any key does.
        self._touched: list[Numbers] = []
        self._told: tuple[set[Any], set[Any]] = (set(), set())
        self._gone: list[tuple[Any, list[Any]]] = []

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        yield from self._due(watermark_ms)
        self._watermark_ms = watermark_ms
        yield from self._closed(watermark_ms)

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Keep the records that event time has passed; late ones where it was when they came."""
        found = [(side, self._gate.due_of(side, watermark_ms)) for side in SIDES]
        sides = [(side, held, self._are_late(held)) for side, held in found if held is not None]
        late = [
            (place, side, held.part(at, at + 1))
            for side, held, are_late in sides
            for at in np.flatnonzero(are_late).tolist()
            for place in held.places[at : at + 1].to_pylist()
        ]
        taken = dict.fromkeys(SIDES, 0)
        for place, side, record in sorted(late, key=itemgetter(0, 1)):
            for other, held, are_late in sides:
                taken[other] = self._take(
                    other, held, are_late, taken[other], held.before(place + 1)
                )
            at_ms = max(place, self._watermark_ms)
            yield from self._closed(at_ms)
            self._take_late(side, record, at_ms)
        for side, held, are_late in sides:
            self._take(side, held, are_late, taken[side], len(held))

    def _are_late(self, held: HeldRows) -> Array:
        """Tell which records have a session of their own that may be over."""
        times = held.times.to_numpy()
        found: Array = times < held.places.to_numpy()
        found |= more(times, self._gap_ms) <= self._watermark_ms
        return found

    def _take(self, side: int, held: HeldRows, are_late: Array, start: int, stop: int) -> int:
        """Keep the records that are not late among some."""
        at = start + np.flatnonzero(~are_late[start:stop])
        if len(at):
            some = held.take(pa.array(at))
            self._keep(side, some.rows, some.times.to_numpy(), self._watermark_ms)
        return stop

    def _take_late(self, side: int, held: HeldRows, at_ms: int) -> None:
        (time_ms,) = held.times.to_pylist()
        (code,) = self._codes.of(held.rows).tolist()
        first = max(time_ms - self._gap_ms + 1, MIN_MS)
        last = min(time_ms + self._gap_ms - 1, MAX_MS)
        is_near = (
            ((part.codes == code) & (part.places >= first) & (part.places <= last)).any()
            for parts in self._open
            for part in parts
        )
        if min(time_ms + self._gap_ms, MAX_MS) > at_ms or any(is_near):
            self._keep(side, held.rows, held.times.to_numpy(), at_ms)
        else:
            self._context.counters.late_records += 1

    def _keep(self, side: int, rows: pa.RecordBatch, times: Numbers, at_ms: int) -> None:
        """Keep records; their sessions are open at a time."""
        codes = self._codes.of(rows)
        self._open[side].append(SideRecords(rows, codes, times))
        if len(self._open[side]) > _TABLES_MAX:
            self._whole(side)
        self._touched.append(np.unique(codes))
        more_keys = len(self._codes) - len(self._ends)
        self._ends = np.append(self._ends, np.full(more_keys, MAX_MS))
        ends = np.maximum(more(times, self._gap_ms), min(at_ms + 1, MAX_MS))
        np.minimum.at(self._ends, codes, ends)
        self._end_ms = min(self._end_ms, int(ends.min()))

    # -- sessions that close ---------------------------------------------------------------------

    def _closed(self, at_ms: int) -> Iterator[Batch]:
        """Yield the results of the sessions that end by now: by ends, starts, and first records."""
        if at_ms < self._end_ms:
            return
        is_due = np.append(self._ends <= at_ms, [False])  # And those that are over are not.
        where = [[np.flatnonzero(is_due[part.codes]) for part in parts] for parts in self._open]
        sides = [self._joined_parts(side, where[side]) for side in SIDES]
        numbers, firsts, ends = self._sessions(sides)
        is_over = ends <= at_ms
        self._ends[is_due[:-1]] = MAX_MS
        codes = np.concatenate([part.codes for part in sides])
        stays = ~is_over[numbers]
        np.minimum.at(self._ends, codes[stays], ends[numbers[stays]])
        self._end_ms = int(self._ends.min(initial=MAX_MS))
        over = np.flatnonzero(is_over)
        if not len(over):
            return
        over = over[np.lexsort([firsts[over], ends[over]])]
        place_of = np.zeros(len(ends), np.int64)
        place_of[over] = np.arange(len(over))
        self._touched.append(np.unique(codes[~stays]))
        rows, groups, start = list[pa.RecordBatch](), list[Numbers](), 0
        for side, part in enumerate(sides):
            mine = numbers[start : start + len(part.codes)]
            start += len(part.codes)
            goes = is_over[mine]
            groups.append(place_of[mine[goes]])
            rows.append(part.taken(goes).rows)
            self._end(side, where[side], goes)
        yield from self._pairs(rows, groups, width=1, starts=firsts[over], ends=ends[over])

    def _end(self, side: int, where: list[Array], goes: Array) -> None:
        """Mark records whose session is over; take them out where they are most."""
        parts, at = self._open[side], 0
        for part, some in zip(parts, where, strict=True):
            part.codes[some[goes[at : at + len(some)]]] = _OVER
            at += len(some)
        if 2 * sum(int((part.codes == _OVER).sum()) for part in parts) > sum(
            len(part.codes) for part in parts
        ):
            self._whole(side)

    def _whole(self, side: int) -> SideRecords:
        """Return the records of a side, in their order; they are one part from then on."""
        parts = self._open[side]
        whole = self._joined_parts(side, [np.flatnonzero(part.codes != _OVER) for part in parts])
        parts[:] = [whole] if len(whole.codes) else []
        return whole

    def _joined_parts(self, side: int, where: list[Array]) -> SideRecords:
        """Return some records of each part of a side, in their order."""
        pairs = zip(self._open[side], where, strict=True)
        some = [
            SideRecords(part.rows.take(pa.array(at)), part.codes[at], part.places[at])
            for part, at in pairs
            if len(at)
        ]
        none = np.zeros(0, np.int64)
        codes, times = (np.concatenate([none, *(each[n] for each in some)]) for n in (1, 2))
        return SideRecords(self._rows(some, side), codes, times)

    def _sessions(self, sides: list[SideRecords]) -> tuple[Numbers, Numbers, Numbers]:
        """Return the session of each record, of the left side first, and the bounds of each."""
        codes, times = (np.concatenate(each) for each in zip(*(s[1:] for s in sides), strict=True))
        numbers = session_numbers(codes, times, times, self._gap_ms).to_numpy() - 1
        count = int(numbers.max(initial=-1)) + 1
        firsts, lasts = np.full(count, MAX_MS), np.full(count, MIN_MS)
        np.minimum.at(firsts, numbers, times)
        np.maximum.at(lasts, numbers, times)
        return numbers, firsts, more(lasts, self._gap_ms)

    @property
    def _first_ms(self) -> int:
        has_one = self._end_ms < MAX_MS or any(self._whole(side).codes.size for side in SIDES)
        return self._end_ms - 1 if has_one else MAX_MS

    # -- state and epochs ------------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        self._gate.tell()
        for namespace, keys in self._gone:
            self._kept.delete(keys, namespace)
        self._gone = []
        touched = np.unique(np.concatenate([*self._touched, np.zeros(0, np.int64)]))
        changed = np.unique(self._codes.groups(touched)) if len(touched) else touched
        self._touched = []
        for side, name in enumerate(SIDE_NAMES):
            part = self._whole(side)
            groups = self._codes.groups(part.codes)
            is_told = np.isin(groups, changed)
            rows = part.taken(is_told).rows.append_column(TIME, pa.array(part.places[is_told]))
            cells = cells_of_groups(rows, groups[is_told], of=changed)
            told = {key: cell for key, cell in cells.items() if cell is not None}
            gone = self._told[side].intersection(cells.keys() - told.keys())
            self._kept.delete([*gone], (name, _CHUNK))
            self._kept.put_all([*told], [*told.values()], (name, _CHUNK))
            self._told[side].difference_update(gone)
            self._told[side].update(told)
        self._forget_codes()
        return [self._description, self._watermark_ms]

    def _forget_codes(self) -> None:
        used = [part.codes for parts in self._open for part in parts]
        if (moved := self._codes.forget(used)) is not None:
            known = np.unique(np.concatenate([*used, np.zeros(0, np.int64)]))
            ends, self._ends = self._ends, np.full(len(self._codes), MAX_MS)
            self._ends[moved[known]] = ends[known]
            for parts in self._open:
                parts[:] = [part._replace(codes=moved[part.codes]) for part in parts]

    def restore(self, state: list[Any] | None) -> None:
        super().restore(state)
        for namespace, cells in self._kept.restored():
            if namespace[0] in SIDE_NAMES:
                side = SIDE_NAMES.index(namespace[0])
                self._told[side].update(cells)
                rows, times = kept_by_side(cells)
                self._keep(side, rows, times, self._watermark_ms)
            else:
                self._load_rows(cells)
                self._gone.append((namespace, [*cells]))
        if not self._gone:
            self._touched = []
        sides = [self._whole(side) for side in SIDES]
        numbers, _, ends = self._sessions(sides)
        self._ends[:] = MAX_MS
        np.minimum.at(self._ends, np.concatenate([each.codes for each in sides]), ends[numbers])
        self._end_ms = int(ends.min(initial=MAX_MS))
        self._gate.restore(self.place, self.name)

    def _load_rows(self, cells: dict[Any, list[Any]]) -> None:
        """Take over what `SessionJoin` has kept, which tells the times of sessions only."""
        rows: tuple[list[Any], list[Any]] = ([], [])
        times: tuple[list[int], list[int]] = ([], [])
        for key, flat in cells.items():
            for at in range(0, len(flat), _FIELDS):
                start, end, _, left, right = flat[at : at + _FIELDS]
                sides = [*((LEFT, each) for each in left), *((RIGHT, each) for each in right)]
                # So spread they are nowhere farther apart than they were.
                last, gaps = max(start, end - self._gap_ms), max(1, len(sides) - 1)
                for place, (side, record) in enumerate(sides):
                    rows[side].append((side, key, record))
                    times[side].append(start + (last - start) * place // gaps)
        for side in SIDES:
            if rows[side]:
                table = self._sides[side].table(rows[side])
                self._keep(side, table, np.array(times[side]), self._watermark_ms)

    def _tables(self) -> Iterable[pa.RecordBatch]:
        return (part.rows for parts in self._open for part in parts)

    def _tell_again(self) -> None:
        self._touched = [self._whole(side).codes for side in SIDES]
