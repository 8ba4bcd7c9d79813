"""The stages that join two streams in columns, by records whose event times are near each other.

The records of both sides come as tables of two kinds: the columns of the key, which are numbered,
and beside them all columns of a record as one, ``left`` or ``right``. What is kept of a side is in
runs, each sorted by key and time; so all partners of a table are found by a few binary searches.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import key_getter
from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.core.join.sides import LEFT, SIDES
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.stores.many import groups_of_keys
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_bulk
from gearpy.task.joins.join_schema import key_names, key_numbers
from gearpy.task.joins.streams import JoinSpec

_SIDE_NAMES: Final = ("left", "right")
_TIME: Final = "#time"
#: So many pairs are yielded at once; one record may have more.
_PAIRS: Final = 1 << 16
#: Codes and times of a run make one number, where its times are within so many ms.
_WIDTH_MAX: Final = 1 << 31
_Numbers: TypeAlias = NDArray[np.int64]


class SideStage(Stage):
    """Makes the tables of one side of a join of the records of a stream.

    Args:
        side: "left" or "right".
        key: names of the columns of the key.
        schema: of the records; of rows that come out of quarantine.
    """

    def __init__(self, name: str, side: str, key: Sequence[str], schema: RowSchema) -> None:
        self.name = name
        self._side = side
        self._key = key
        self._columns = RowSchema(schema.arrow)

    def process(self, batch: Batch) -> Iterator[Batch]:
        table = as_table(batch.values, self._columns).batch
        columns = [*map(table.column, self._key), table.to_struct_array()]
        names = [*key_numbers(len(self._key)), self._side]
        yield batch.giving(Table(pa.RecordBatch.from_arrays(columns, names)), batch.timestamps)


@dataclass(slots=True, eq=False)
class _Run:
    """Records of one side, sorted by the code of their key, and then by time.

    Attributes:
        rows: their columns, as they came.
        at: where in these each record is.
        ranks: their different times; None where these are near each other.
        order: for each record a number that is in the order of keys and times.
    """

    rows: pa.RecordBatch
    at: _Numbers
    codes: _Numbers
    times: _Numbers
    oldest_ms: int
    newest_ms: int
    ranks: _Numbers | None
    order: _Numbers

    @classmethod
    def of(cls, rows: pa.RecordBatch, at: _Numbers, codes: _Numbers, times: _Numbers) -> "_Run":
        oldest_ms, newest_ms = int(times.min()), int(times.max())
        ranks = np.unique(times) if newest_ms - oldest_ms > _WIDTH_MAX else None
        run = cls(rows, at, codes, times, oldest_ms, newest_ms, ranks, times)
        order = run.places(codes, times)
        if len(order) > 1 and (order[1:] < order[:-1]).any():
            places = np.argsort(order, kind="stable")  # What is in order in parts is merged.
            run.at, run.codes, run.times = at[places], codes[places], times[places]
            order = order[places]
        run.order = order
        return run

    def __len__(self) -> int:
        return len(self.times)

    def places(self, codes: _Numbers, times: _Numbers) -> _Numbers:
        """Return where in the order the first record of a key would be that is not older."""
        if self.ranks is not None:
            return codes * (len(self.ranks) + 1) + np.searchsorted(self.ranks, times)
        width = self.newest_ms - self.oldest_ms + 1
        inside = np.clip(times, self.oldest_ms, self.newest_ms + 1)
        return codes * (width + 1) + (inside - self.oldest_ms)

    def recoded(self, codes: _Numbers) -> None:
        """Take other codes, which are in the order of those before."""
        self.codes = codes[self.codes]
        self.order = self.places(self.codes, self.times)


class _Codes:
    """Numbers of keys, from 0 on."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._code_of)

    def of(self, table: Table, columns: int) -> _Numbers:
        found = distinct_keys(table, key_getter(*key_numbers(columns)))
        assert found is not None, "the types of the key can be keys"
        code_of = self._code_of
        codes = [code_of.setdefault(key, len(code_of)) for key in found[0]]
        places = found[1].to_numpy(zero_copy_only=False)
        of_rows: _Numbers = np.array(codes, np.int64)[places]
        return of_rows

    def groups(self, codes: _Numbers) -> _Numbers:
        """Return the key groups of codes."""
        used, places = np.unique(codes, return_inverse=True)
        keys = list(self._code_of)
        groups = groups_of_keys([keys[code] for code in used.tolist()])
        found: _Numbers = np.array(groups, np.int64)[places]
        return found

    def keep(self, used: _Numbers) -> _Numbers:
        """Forget all other codes; return new ones by the old ones."""
        keys = list(self._code_of)
        moved = np.zeros(len(keys), np.int64)
        moved[used] = np.arange(len(used))
        self._code_of = {keys[code]: place for place, code in enumerate(used.tolist())}
        return moved


class IntervalTablesStage(Stage):
    """Joins two streams of tables; yields pairs with ``left - before <= right <= left + after``.

    They are those of `IntervalJoin`, and none comes out alone. What is kept is told once, at the
    end of the epoch in which it came, as one table for each group of keys.

    Args:
        columns: how many the key has.
    """

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, columns: int) -> None:
        self.name = name
        self._context = context
        assert spec.bounds is not None, "of other joins there is no form for columns"
        before_ms, after_ms = spec.bounds
        # Of a record of the left side, and of the right one: how much older and newer partners are.
        self._older_ms = (before_ms, after_ms)
        self._newer_ms = (after_ms, before_ms)
        self._columns = columns
        self._description = f"{spec.description}, of columns"
        self._codes = _Codes()
        self._runs: tuple[list[_Run], list[_Run]] = ([], [])
        self._fresh: tuple[list[_Run], list[_Run]] = ([], [])  # Not told yet.
        self._told: list[tuple[Any, list[int], int]] = []  # With the last time of need.
        self._chunk = 0
        self._watermark_ms = MIN_MS

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield each pair whose second record is among these; late records are left out."""
        table, times = batch.values, Times.of(batch.timestamps)
        assert type(table) is Table
        own = times.array.to_numpy()
        late = own < self._watermark_ms
        if times.promised is not None:
            late |= own < times.promised.to_numpy()
        if late.any():
            self._context.counters.late_records += int(late.sum())
            table, own = table.filter(pa.array(~late)), own[~late]
        if not len(own):
            return
        side = _SIDE_NAMES.index(table.batch.schema.names[-1])
        codes = self._codes.of(table, self._columns)
        run = _Run.of(table.batch, np.arange(len(own)), codes, own)
        from_ms, until_ms = (
            _less(run.times, self._older_ms[side]),
            _more(run.times, self._newer_ms[side] + 1),
        )
        for other in self._runs[1 - side]:
            yield from self._pairs(side, run, other, from_ms, until_ms)
        self._fresh[side].append(run)
        _add(self._runs[side], run)

    def _pairs(
        self, side: int, run: _Run, other: _Run, from_ms: _Numbers, until_ms: _Numbers
    ) -> Iterator[Batch]:
        if other.newest_ms < int(from_ms.min()) or other.oldest_ms >= int(until_ms.max()):
            return
        low, high = (
            np.searchsorted(other.order, other.places(run.codes, times))
            for times in (from_ms, until_ms)
        )
        counts = high - low
        has_some = np.flatnonzero(counts)
        low, counts = low[has_some], counts[has_some]
        ends = np.cumsum(counts)
        cuts = [0]
        while cuts[-1] < len(ends):  # One record may have more partners than are given at once.
            done = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, done + _PAIRS, "right"))))
        for start, stop in pairwise(cuts):
            count = counts[start:stop]
            mine = np.repeat(has_some[start:stop], count)
            first = np.repeat(low[start:stop] - (np.cumsum(count) - count), count)
            theirs = first + np.arange(len(mine))
            rows = run.rows.take(run.at[mine]), other.rows.take(other.at[theirs])
            yield self._results(side, rows, run.times[mine], other.times[theirs])

    def _results(
        self, side: int, rows: tuple[pa.RecordBatch, ...], mine: _Numbers, theirs: _Numbers
    ) -> Batch:
        left, right = rows if side == LEFT else rows[::-1]
        newest = np.maximum(mine, theirs)
        columns = [
            *rows[0].columns[:-1],
            left.columns[-1],
            right.columns[-1],
            pa.array(np.minimum(mine, theirs)),
            pa.array(newest + 1),
        ]
        names = [*key_names(self._columns), *_SIDE_NAMES, "start", "end"]
        return Batch(Table(pa.RecordBatch.from_arrays(columns, names)), Times(pa.array(newest)))

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Forget the records that find no partner any more; yield nothing."""
        self._watermark_ms = watermark_ms
        for side in SIDES:
            for runs in (self._runs[side], self._fresh[side]):
                runs[:] = [run for run in runs if self._needed_ms(side, run) >= watermark_ms]
        kept = [run for runs in self._runs for run in runs]
        if len(self._codes) > 2 * sum(map(len, kept)):
            self._forget_keys(
                {id(run): run for runs in (*self._runs, *self._fresh) for run in runs}
            )
        return iter(())

    def _forget_keys(self, runs: dict[int, _Run]) -> None:
        used = [np.unique(run.codes) for run in runs.values()]
        moved = self._codes.keep(np.unique(np.concatenate([*used, np.zeros(0, np.int64)])))
        for run in runs.values():
            run.recoded(moved)

    def _needed_ms(self, side: int, run: _Run) -> int:
        return min(run.newest_ms + self._newer_ms[side], MAX_MS - 1)

    # -- state and epochs ----------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        gone = [each for each in self._told if each[2] < self._watermark_ms]
        self._told = [each for each in self._told if each[2] >= self._watermark_ms]
        for namespace, groups, _ in gone:
            self._kept.delete(groups, namespace)
        self._chunk += 1
        for side in SIDES:
            if self._fresh[side]:
                run = _joined(self._fresh[side])
                self._fresh[side].clear()
                namespace = (_SIDE_NAMES[side], self._chunk)
                keys, values = _cells(run, self._codes.groups(run.codes))
                self._told.append((namespace, keys, self._needed_ms(side, run)))
                self._kept.put_all([*keys], values, namespace)
        return [self._description, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        """Go on from the watermark, and from the keyed state.

        Raises:
            ConfigError: it was kept by another join.
        """
        if state is not None:
            description, self._watermark_ms = state
            if description != self._description:
                raise ConfigError(
                    f"snapshot is of: {description}; the program has: {self._description}: "
                    "what was kept for the one is of no use to the other, give it another name"
                )
        self._kept = step_bulk(self._context, "joins", self.place, operator=self.name)
        self._kept.holds(self._held, self._tell_again)
        for namespace, cells in self._kept.restored():
            name, chunk = namespace
            side, self._chunk = _SIDE_NAMES.index(name), max(self._chunk, chunk)
            table = pa.concat_tables(
                [pa.ipc.open_stream(each).read_all() for each in cells.values()]
            ).combine_chunks()
            (batch,) = table.to_batches()
            times = batch.column(_TIME).to_numpy()
            rows = batch.drop_columns([_TIME])
            codes = self._codes.of(Table(rows), self._columns)
            run = _Run.of(rows, np.arange(len(times)), codes, times)
            self._told.append((namespace, list(cells), self._needed_ms(side, run)))
            _add(self._runs[side], run)

    def _held(self) -> Iterable[range]:
        """Return so many numbers of 8 bytes as the tables take."""
        size = sum(run.rows.nbytes for runs in self._runs for run in runs)
        return (range(size // 8),)

    def _tell_again(self) -> None:
        self._told = []
        for fresh, runs in zip(self._fresh, self._runs, strict=True):
            fresh[:] = runs


def _add(runs: list[_Run], run: _Run) -> None:
    """Add a run, joined with those before it that are not larger, so that there are few."""
    joined = [run]
    while runs and len(runs[-1]) <= sum(map(len, joined)):
        joined.append(runs.pop())
    runs.append(_joined(joined[::-1]))


def _joined(runs: list[_Run]) -> _Run:
    if len(runs) == 1:
        return runs[0]
    tables = [pa.Table.from_batches([run.rows]) for run in runs]
    (rows,) = pa.concat_tables(tables, promote_options="permissive").combine_chunks().to_batches()
    starts = np.cumsum([0, *map(len, runs)])
    at = np.concatenate([run.at + start for run, start in zip(runs, starts, strict=False)])
    codes, times = (
        np.concatenate([getattr(run, name) for run in runs]) for name in ("codes", "times")
    )
    return _Run.of(rows, at, codes, times)


def _cells(run: _Run, groups: _Numbers) -> tuple[list[int], list[bytes]]:
    """Return the records of each group of keys, by a key that is in it."""
    order = np.argsort(groups, kind="stable")
    rows = run.rows.take(run.at[order]).append_column(_TIME, pa.array(run.times[order]))
    used, starts = np.unique(groups[order], return_index=True)
    keys, values = list[int](), list[bytes]()
    for group, (start, stop) in zip(
        used.tolist(), pairwise([*starts.tolist(), len(run)]), strict=True
    ):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows.slice(start, stop - start))
        keys.append(_keys_of_groups()[group])
        values.append(MSGPACK.encode(sink.getvalue().to_pybytes()))
    return keys, values


@lru_cache(maxsize=1)
def _keys_of_groups() -> dict[int, int]:
    """Return the smallest number of each key group."""
    found: dict[int, int] = {}
    at = 0
    while len(found) < KEY_GROUPS:
        for key, group in enumerate(groups_of_keys(list(range(at, at + KEY_GROUPS))), at):
            found.setdefault(group, key)
        at += KEY_GROUPS
    return found


def _less(times: _Numbers, by_ms: int) -> _Numbers:
    return np.maximum(times, min(MIN_MS + by_ms, MAX_MS)) - by_ms


def _more(times: _Numbers, by_ms: int) -> _Numbers:
    return np.minimum(times, max(MAX_MS - by_ms, MIN_MS)) + by_ms
