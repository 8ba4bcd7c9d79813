"""The stage that joins a stream with a table that is complete."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from gearpy.columns.values import field_names, has_fields
from gearpy.core.base.copies import own, own_each
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import JoinResult
from gearpy.task.chain.stage import Stage
from gearpy.task.joins.side_table import SideTable, TableRows

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_UNREAD: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableJoinSpec:
    """A join with a table.

    Attributes:
        right: names of the fields that are the key of a row, which records have already; empty if
            a function gives it.
        how: whether records come out for which there is no row.
        combine: makes a result of a record and a row; None: `JoinResult`.
        merges: the result is a dict, or columns, of the fields of both.
        refresh_ms: how often the table is looked at again, in ms; None: never.
    """

    table: SideTable
    left: Callable[[Any], Any]
    right: tuple[str, ...] = ()
    how: Literal["inner", "left"] = "inner"
    combine: Callable[[Any, Any], Any] | None = None
    merges: bool = False
    refresh_ms: int | None = None


class TableJoinStage(Stage):
    """Gives each record the row of its key, at once and in order.

    The whole table is read before the first record is joined. Nothing is kept of records. The
    snapshot says which table it was: if it is another one after a restart, this is logged, as
    records that come again may then find other rows.

    A record whose key cannot be looked up is rejected, and so is one on which ``combine`` raises.
    """

    def __init__(self, context: TaskContext, name: str, spec: TableJoinSpec) -> None:
        self.name = name
        self._context = context
        self._spec = spec
        self._rows: TableRows | None = None
        self._digest = _UNREAD
        self._names: tuple[str, ...] = ()  # Of the fields that a merged record gets.

    def process(self, batch: Batch) -> Iterator[Batch]:
        values, timestamps = batch.values, batch.timestamps
        if not len(values):
            return
        table = self._table()
        if type(values) is Table:
            # A few at a time, where each may become many.
            limit = self._context.limits.batch_records
            step = len(values) if table.of_keys.is_single else limit
            for at in range(0, len(values), step):
                part = slice(at, at + step)
                for merged in self._merged_columns(table, values[part], timestamps[part]):
                    yield batch.giving(*merged)
            return
        for pairs in self._pairs(table, values, timestamps):
            results, times = self._results(pairs)
            if results:
                yield batch.giving(results, times)

    def snapshot(self) -> str | None:
        return self._digest or None

    def restore(self, state: str | None) -> None:
        self._digest = state or _UNREAD

    def close(self, *, completed: bool) -> None:
        self._rows = None

    def _table(self) -> TableRows:
        """Return the table; read it now if that is yet to be done."""
        if self._rows is None:
            context = self._context
            self._take(self._spec.table.rows(context.run, context.now_ms()))
        assert self._rows is not None
        return self._rows

    def _take(self, rows: TableRows) -> None:
        if rows is self._rows:
            return
        if self._rows is None:
            digest = rows.digest
            if self._digest not in {_UNREAD, digest} and not self._spec.table.versioned:
                self._context.log.warning(
                    "%s: the table %s is another one than before the restart: records that come "
                    "again may find other rows",
                    self.name,
                    self._spec.table.source.description,
                )
        self._digest = rows.digest
        self._rows = rows
        self._names = tuple(name for name in rows.names if name not in self._spec.right)

    # -- rows ------------------------------------------------------------------------------

    def _pairs(
        self, table: TableRows, values: list[Any], timestamps: list[int]
    ) -> Iterator["_Pairs"]:
        """Yield each record with each of its rows, which are copies if they can change."""
        rows, is_left = table.rows, self._spec.how == "left"
        limit = self._context.limits.batch_records
        keys, records, times, places = self._found(table, values, timestamps)
        if table.of_keys.is_single:
            if not (is_left or all(places)):
                columns = (keys, records, times, places)
                keys, records, times, places = (list(compress(each, places)) for each in columns)
            found = [rows[of_key[0]] if of_key else None for of_key in places]
            yield _Pairs(keys, records, own_each(found), times)
            return
        pairs = _Pairs([], [], [], [])
        for key, record, at, of_key in zip(keys, records, times, places, strict=True):
            if not of_key and is_left:
                pairs.add(key, record, None, at)
            for place in of_key:
                pairs.add(key, record if len(of_key) == 1 else own(record), rows[place], at)
                if len(pairs.keys) >= limit:
                    yield pairs._replace(rows=own_each(pairs.rows))
                    pairs = _Pairs([], [], [], [])
        yield pairs._replace(rows=own_each(pairs.rows))

    def _found(self, table: TableRows, values: list[Any], timestamps: list[int]) -> "_Found":
        """Return records that have a key, with it, their times, and the places of their rows."""
        try:
            keys = self._keys_of(values)
            return _Found(keys, values, timestamps, table.of_keys.find_each(keys, timestamps))
        except USER_ERRORS:
            good = list(self._found_one_by_one(table, values, timestamps))
            return _Found(*map(list, zip(*good, strict=True))) if good else _Found([], [], [], [])

    def _keys_of(self, values: list[Any]) -> list[Any]:
        left = self._spec.left
        if type(left) is FieldGetter and set(map(type, values)) == {dict}:
            name = left.name
            return [record[name] for record in values]
        return [left(record) for record in values]

    def _found_one_by_one(
        self, table: TableRows, values: list[Any], timestamps: list[int]
    ) -> Iterator[tuple[Any, Any, int, tuple[int, ...]]]:
        for record, at in zip(values, timestamps, strict=True):
            try:
                key = self._spec.left(record)
                yield key, record, at, table.of_keys.find(key, at)
            except USER_ERRORS as error:
                self._reject(error, record, at)

    def _results(self, pairs: "_Pairs") -> tuple[list[Any], list[int]]:
        if self._spec.combine is None and not self._spec.merges:
            ends = [at + 1 for at in pairs.times]
            rows = zip(pairs.keys, pairs.records, pairs.rows, pairs.times, ends, strict=True)
            return list(map(tuple.__new__, repeat(JoinResult), rows)), pairs.times
        combine = self._spec.combine or self._merged
        results: list[Any] = []
        times: list[int] = []
        for record, row, at in zip(pairs.records, pairs.rows, pairs.times, strict=True):
            try:
                results.append(combine(record, row))
                times.append(at)
            except USER_ERRORS as error:
                self._reject(error, record, at)
        return results, times

    def _merged(self, record: Any, row: Any) -> dict[str, Any]:
        """Return the fields of both; fields that a row lacks are None."""
        left = record if type(record) is dict else _as_dict(record)
        right = {} if row is None else row if type(row) is dict else _as_dict(row)
        added = {name: right.get(name) for name in self._names}
        merged = {**left, **added}
        if len(merged) < len(left) + len(added):
            raise ConfigError(_two_fields(min(left.keys() & added.keys())))
        return merged

    def _reject(self, error: BaseException, record: Any, at: int) -> None:
        blamed = operator_error(self.name, error, record=record, event_time_ms=at)
        self._context.rejects.take(record, at, blamed, place=self.place)

    # -- columns ---------------------------------------------------------------------------

    def _merged_columns(
        self, table: TableRows, values: Table, timestamps: list[int]
    ) -> Iterator[tuple[Table, Times]]:
        """Yield the columns of both; Python sees the distinct keys, and no record."""
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

        try:
            left, right = self._places(table, values, timestamps)
        except TypeError as error:
            raise operator_error(self.name, error, record=values[0]) from error
        times = Times.of(timestamps)
        if left is not None:
            values, times = values.take(left), times.take(left)
        if not len(values):
            return
        schema = merged_schema(values.batch.schema, table.columns.schema, self._spec)
        found = table.columns.select(list(self._names)).take(right)
        columns = [*values.batch.columns, *found.columns]
        yield Table(pa.RecordBatch.from_arrays(columns, schema=schema)), times

    def _places(
        self, table: TableRows, values: Table, timestamps: list[int]
    ) -> "tuple[pa.Array | None, pa.Array]":
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

        keys, places = self._keys(values)
        none: Sequence[int | None] = [None] if self._spec.how == "left" else []
        find_each = table.of_keys.find_each
        if table.of_keys.is_versioned:
            of_rows = find_each([keys[place] for place in places.to_pylist()], list(timestamps))
            lists = pa.array([at or none for at in of_rows], pa.list_(pa.int64()))
        else:
            of_keys = find_each(keys, [])
            if table.of_keys.is_single and all(of_keys):
                return None, pa.array([at for (at,) in of_keys], pa.int64()).take(places)
            found = [at or none for at in of_keys]
            lists = pa.array(found, pa.list_(pa.int64())).take(places)
        return pc.list_parent_indices(lists), pc.list_flatten(lists)

    def _keys(self, values: Table) -> "tuple[list[Any], pa.Array]":
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

        key = self._spec.left
        found = distinct_keys(values, key) if isinstance(key, FieldGetter | FieldsGetter) else None
        if found is not None:
            return found
        keys = list(map(key, values))
        return keys, pa.array(range(len(keys)), pa.int64())


class _Found(NamedTuple):
    """Records with a key, and the places of their rows, as columns."""

    keys: list[Any]
    records: list[Any]
    times: list[int]
    places: list[tuple[int, ...]]


class _Pairs(NamedTuple):
    """Records and rows that belong together, with their keys and event times, as columns."""

    keys: list[Any]
    records: list[Any]
    rows: list[Any]
    times: list[int]

    def add(self, key: Any, record: Any, row: Any, at: int) -> None:
        self.keys.append(key)
        self.records.append(record)
        self.rows.append(row)
        self.times.append(at)


class _Refreshed(TableJoinStage):
    """The same, with a table that is read again after a time."""

    def __init__(self, context: TaskContext, name: str, spec: TableJoinSpec) -> None:
        super().__init__(context, name, spec)
        assert spec.refresh_ms is not None
        self._every_ms = spec.refresh_ms
        self._next_ms: int | None = None

    @property
    def wake_ms(self) -> int | None:
        return self._next_ms

    def on_time(self, now_ms: int) -> Iterator[Batch]:
        """Look at the table again; yield nothing."""
        context = self._context
        self._take(self._spec.table.rows(context.run, now_ms, age_ms=self._every_ms))
        self._next_ms = now_ms + self._every_ms
        return iter(())

    def _table(self) -> TableRows:
        if self._next_ms is None:
            self._next_ms = self._context.now_ms() + self._every_ms
        return super()._table()


def table_join_stage(context: TaskContext, name: str, spec: TableJoinSpec) -> TableJoinStage:
    return (TableJoinStage if spec.refresh_ms is None else _Refreshed)(context, name, spec)


def merged_schema(left: "pa.Schema", right: "pa.Schema", spec: TableJoinSpec) -> "pa.Schema":
    """Return the columns of the results of a join that merges records and rows.

    Raises:
        ConfigError: a field is in both.
    """
    import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

    added = [each for each in right if each.name not in spec.right]
    for each in added:
        if each.name in left.names:
            raise ConfigError(_two_fields(each.name))
    is_left = spec.how == "left"
    return pa.schema([*left, *(each.with_nullable(each.nullable or is_left) for each in added)])


def _as_dict(record: Any) -> dict[str, Any]:
    if isinstance(record, dict):
        return dict(record)
    if has_fields(record):
        return {name: getattr(record, name) for name in field_names(record)}
    raise ConfigError(
        f"{type(record).__name__} has no fields to be merged: map it to a dict before, or give "
        "combine a function"
    )


def _two_fields(name: str) -> str:
    return (
        f"both the records and the rows of the table have a field {name!r}: rename one before, or "
        "give combine a function"
    )
