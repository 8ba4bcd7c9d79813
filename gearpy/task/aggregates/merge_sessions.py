"""Sessions merged in columns, of the parts that tables have of them.

A part is a row: the key, the oldest and newest event time, and partials of its records. Parts of a
key whose times are nearer than the gap are one session. State stores what it stores of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.window.panes import FRESH, NEWEST_MS, ORDER, VALUE
from gearpy.core.window.sessions import each_session
from gearpy.core.window.windows import SessionWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Times
from gearpy.state.encoding.coders import pack_atom
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.stores.tables import as_tuples, joined, packed
from gearpy.task.aggregates.columns import (
    FIRST,
    LAST,
    RECORDS,
    ColumnGroups,
    codes_of,
)
from gearpy.task.aggregates.merge_tables import TableMerge, TablesStage
from gearpy.task.time.pieces import session_numbers

#: The number of a session among all, in the order in which they were begun; whether state has some
#: of it; and whether some of it has come since the last epoch.
_ORDER: Final = "#order"
_TOLD: Final = "#told"
_KEPT: Final = "#kept"  # The column of what is stored.
_FRESH: Final = "#fresh"
#: What has come is merged when it has so many rows, and more than a part of what is open.
_MERGED_FROM: Final = 1 << 16
_FRESH_SHARE: Final = 4
_MARKS: Final = (pa.field(_ORDER, pa.int64()), *(pa.field(e, pa.int8()) for e in (_TOLD, _FRESH)))
#: How a part of a session goes into it.
_JOINED: Final = ((FIRST, "min"), (LAST, "max"), (_ORDER, "min"), (_TOLD, "max"), (_FRESH, "max"))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table with a row for each key, which has what is stored of it."""

    merge: TableMerge

    @property
    def key(self) -> Sequence[str]:
        return self.merge.key

    def keys(self, table: pa.RecordBatch) -> list[Any]:
        return self.merge.keys(table)

    def packed(self, table: pa.RecordBatch) -> pa.BinaryArray:
        return table.column(_KEPT)


class MergeSessionsStage(TablesStage):
    """Merges parts of sessions, in columns; yields results when the watermark closes them.

    Results come by end and start of their sessions, then in the order in which these were begun.
    """

    def _begin(self, groups: ColumnGroups) -> None:
        assert isinstance(groups.windows, SessionWindows)
        self._gap_ms = groups.windows.gap_ms
        self._key_names = tuple(groups.key)
        self._all = pa.schema([*self._schema, *_MARKS])
        self._have(pa.RecordBatch.from_pylist([], self._all))
        self._fresh: list[pa.RecordBatch] = []
        self._fresh_next_ms = self._fresh_oldest_ms = MAX_MS  # Their least end and time.
        self._begun = 0
        self._gone: list[pa.RecordBatch] = []  # Sessions that have closed, of which state has some.

    # -- what comes --------------------------------------------------------------------------

    def _keep(self, table: pa.RecordBatch, times: Times) -> None:
        order = np.arange(self._begun, self._begun + len(table))
        marks = [
            pa.array(order),
            *(pa.array(np.full(len(table), each, np.int8)) for each in (0, 1)),
        ]
        self._begun += len(table)
        table = pa.RecordBatch.from_arrays([*table.columns, *marks], schema=self._all)
        at = 0
        for late in np.flatnonzero(self._ends(table) <= self._watermark_ms).tolist():
            self._put(table.slice(at, late - at))
            part, at = table.slice(late, 1), late + 1
            if self._is_in_open(part):
                self._put(part)
            else:
                self._context.counters.late_records += part.column(RECORDS)[0].as_py()
        self._put(table.slice(at))

    def _put(self, table: pa.RecordBatch) -> None:
        if not len(table):
            return
        self._fresh.append(table)
        self._fresh_next_ms = min(self._fresh_next_ms, int(self._ends(table).min()))
        self._fresh_oldest_ms = min(self._fresh_oldest_ms, pc.min(table.column(FIRST)).as_py())
        if sum(map(len, self._fresh)) > max(_MERGED_FROM, len(self._open) // _FRESH_SHARE):
            self._settle()

    def _have(self, table: pa.RecordBatch) -> None:
        """Keep sessions, of which no two overlap, by their ends: so those that close are first."""
        ends = self._ends(table)
        order = np.argsort(ends, kind="stable")
        self._open = table.take(pa.array(order))
        self._open_ends = ends[order]
        firsts = self._open.column(FIRST).to_numpy()
        self._oldest_from = np.minimum.accumulate(firsts[::-1])[::-1]  # From each one on.
        self._over = 0  # So many of them have closed.

    def _is_in_open(self, part: pa.RecordBatch) -> bool:
        """Tell whether a part that is late alone belongs to a session that is open."""
        kept = self._settle()
        (start, end) = part.column(FIRST)[0].as_py(), self._ends(part)[0]
        mine = (kept.column(FIRST).to_numpy() < end) & (self._ends(kept) > start)
        kept = kept.filter(pa.array(mine))
        for name in self._key_names:  # Nothing is a key, too.
            kept = kept.filter(pc.is_in(kept.column(name), value_set=part.column(name)))
        return len(kept) > 0

    def _ends(self, table: pa.RecordBatch) -> Any:
        # Where time ends, they end with it.
        return np.minimum(table.column(LAST).to_numpy(), MAX_MS - self._gap_ms) + self._gap_ms

    def _codes(self, table: pa.RecordBatch) -> tuple[Any, int]:
        return codes_of([table.column(name) for name in self._key_names], len(table))

    def _settle(self) -> pa.RecordBatch:
        """Merge what has come into what is open, and return that."""
        if self._over or self._fresh:
            table = self._open.slice(self._over)
            if self._fresh:
                table = self._joined(pa.concat_batches([table, *self._fresh]))
            self._fresh, self._fresh_next_ms, self._fresh_oldest_ms = [], MAX_MS, MAX_MS
            self._have(table)
        return self._open

    def _joined(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Make parts of one session one."""
        first, last = (table.column(name).to_numpy() for name in (FIRST, LAST))
        numbers = session_numbers(self._codes(table)[0], first, last, self._gap_ms)
        asked = [(table.column(name), how, None) for name, how in _JOINED]
        arrays, _, joined = self._merge.merged(table, [numbers], asked)
        return pa.RecordBatch.from_arrays([*arrays, *joined], schema=self._all)

    # -- what goes ---------------------------------------------------------------------------

    def _closed(self, watermark_ms: int) -> Iterator[Batch]:
        self._watermark_ms = watermark_ms
        table = self._taken_out(watermark_ms)
        if not len(table):
            return
        gone = table.filter(table.column(_TOLD).cast(pa.bool_()))
        if len(gone):
            self._gone.append(gone)
        ends = self._ends(table)
        order = np.lexsort((table.column(_ORDER), table.column(FIRST), ends))
        table, ends = table.take(pa.array(order)), pa.array(ends[order])
        if self._results is not None:
            yield from self._tables(table, table.column(FIRST), ends, [])
            return
        times = pc.subtract(ends, 1).to_pylist()
        rows = self._made(table, table.column(FIRST).to_pylist(), ends.to_pylist())
        for at in range(0, len(times), self._limit):
            yield Batch(list(islice(rows, self._limit)), times[at : at + self._limit])

    def _taken_out(self, watermark_ms: int) -> pa.RecordBatch:
        """Take out the sessions that are over.

        What has come is looked at, and of what is open no more than those that would close.
        """
        if self._fresh_next_ms <= watermark_ms:
            self._settle()  # They may be within others.
        begin = self._over
        self._over = int(np.searchsorted(self._open_ends, watermark_ms, "right"))
        table = self._open.slice(begin, self._over - begin)
        if not len(table) or not self._fresh:
            return table
        fresh = pa.concat_batches(self._fresh)
        codes, span = self._codes(pa.concat_batches([table, fresh]))
        is_closing = np.zeros(span, np.bool_)
        is_closing[codes[: len(table)]] = True
        goes_on = is_closing[codes[len(table) :]]
        if not goes_on.any():
            self._fresh = [fresh]
            return table
        table = self._joined(pa.concat_batches([table, fresh.filter(pa.array(goes_on))]))
        is_over = self._ends(table) <= watermark_ms
        self._fresh, self._fresh_next_ms, self._fresh_oldest_ms = [], MAX_MS, MAX_MS
        for rest in (fresh.filter(pa.array(~goes_on)), table.filter(pa.array(~is_over))):
            self._put(rest)
        return table.filter(pa.array(is_over))

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> list[int]:
        """Return the watermark. Keyed state has the sessions of the keys that have changed."""
        self._gate.tell()
        table = self._settle()
        if not self._gone and not pc.any(table.column(_FRESH).cast(pa.bool_())).as_py():
            return [self._watermark_ms]
        both, came = pa.concat_batches([table, *self._gone]), len(table)
        self._gone = []
        codes, span = self._codes(both)
        is_changed, is_there = np.zeros(span, np.bool_), np.zeros(span, np.bool_)
        is_changed[codes[:came][table.column(_FRESH).to_numpy() > 0]] = True
        is_changed[codes[came:]] = True
        is_there[codes[:came]] = True
        changed = np.flatnonzero(is_changed[codes[:came]])
        first = table.column(FIRST).to_numpy()
        changed = changed[np.lexsort((first[changed], codes[changed]))]
        lost = came + np.flatnonzero(~is_there[codes[came:]])
        lost = lost[np.unique(codes[lost], return_index=True)[1]]
        form = _Kept(self._merge)
        self._state().delete_table(form, both.take(pa.array(lost)))
        self._state().put_table(form, self._by_key(both.take(pa.array(changed)), codes[changed]))
        marks = [pa.array(np.full(came, each, np.int8)) for each in (1, 0)]
        columns = [*table.columns[: -len(marks)], *marks]
        self._open = pa.RecordBatch.from_arrays(columns, schema=self._all)
        return [self._watermark_ms]

    def _by_key(self, table: pa.RecordBatch, codes: Any) -> pa.RecordBatch:
        """Return a row for each key, with its sessions as `SessionPanes` has such."""
        first, last, order, records = (
            packed(table.column(name)) for name in (FIRST, LAST, _ORDER, RECORDS)
        )
        end, zero = packed(pa.array(self._ends(table))), pa.scalar(pack_atom(0))
        value, none = self._merge.packed(table), pa.scalar(pack_atom(None))
        session = [first, end, end, order, value, records, zero, first, zero, last, none]
        sessions = joined(session).cast(pa.binary())
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        offsets = pa.array(np.append(starts, len(codes)), pa.int32())
        together = pc.binary_join(pa.ListArray.from_arrays(offsets, sessions), b"")
        kept = as_tuples(together, np.diff(offsets) * len(session))
        keys = table.take(pa.array(starts)).select(self._key_names)
        return pa.RecordBatch.from_arrays([*keys.columns, kept], [*self._key_names, _KEPT])

    def restore(self, state: list[int] | None) -> None:
        self._watermark_ms, *_ = state or (MIN_MS,)
        pairs = dict(self._state().restored()).get(None, {})
        found = [
            (pane[ORDER], key, start, pane)
            for key, kept in pairs.items()
            for start, _, _, *pane in map(list, each_session(kept))
        ]
        found.sort(key=lambda each: each[0])
        panes = [pane for *_, pane in found]
        table = self._merge.table(
            [key for _, key, _, _ in found],
            [pane[VALUE] for pane in panes],
            pa.schema([each for each in self._schema if each.name not in {FIRST, LAST}]),
        )
        cells = {
            RECORDS: [pane[FRESH] for pane in panes],
            FIRST: [start for _, _, start, _ in found],
            LAST: [pane[NEWEST_MS] for pane in panes],
            _ORDER: [pane[ORDER] for pane in panes],
            _TOLD: repeat(1, len(panes)),
            _FRESH: repeat(0, len(panes)),
        }
        columns = [
            pa.array(cells[each.name], each.type) if each.name in cells else table.column(each.name)
            for each in self._all
        ]
        self._have(pa.RecordBatch.from_arrays(columns, schema=self._all))
        self._begun = 1 + max(cells[_ORDER], default=-1)
        self._gate.restore(self.place, self.name)

    @property
    def open_windows(self) -> int:
        return len(self._settle())

    @property
    def hold_ms(self) -> int:
        oldest = self._oldest_from[self._over : self._over + 1].tolist()
        return int(min(self._gate.first_ms, self._fresh_oldest_ms, *oldest))

    def _state(self) -> BulkState:
        if self._kept is None:
            self._kept = self._bulk("panes")
            self._kept.holds_tables(
                lambda: (self._open.slice(self._over), *self._fresh), self._tell_again
            )
        return self._kept

    def _tell_again(self) -> None:
        at = self._all.get_field_index(_FRESH)
        self._settle()
        marks = pa.array(np.ones(len(self._open), np.int8))
        self._open = self._open.set_column(at, self._all.field(at), marks)
