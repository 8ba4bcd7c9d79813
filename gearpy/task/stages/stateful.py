"""Stages that keep something: for each key, which keys came, or how many records came."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.copies import ATOMS
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.flow.table_partition import distinct_columns, keys_of_columns
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch, Origin
from gearpy.messages.table import Times
from gearpy.state.encoding.keys import encode_key, encode_keys, encoded_keys
from gearpy.task.aggregates.fold import KeyFunction, without
from gearpy.task.api.failure import USER_ERRORS, shown
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_state

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFunction:
    """A user's function of a record and the kept state of its key.

    Attributes:
        function: returns the new state, None for nothing, and the output.
        is_flat: the output is an iterable of records; else it is one record.
        initial: the state of a key without one; each key gets its own copy.
        ttl_ms: state is forgotten when it has not been changed for so long.
    """

    function: Callable[[Any, Any], tuple[Any, Any]]
    is_flat: bool
    initial: Any = None
    ttl_ms: int | None = None


class KeyedStage(Stage):
    """Calls a function with the kept state of each record's key, and keeps the state it returns.

    One record after the other, so that each finds the state that the one before it has left. A
    record that user code raises on leaves the state of its key as it was, provided that the
    function changes nothing itself; its results are taken back, as far as not handed over.

    Args:
        name: for people; the state is found without it.
        key: gives the key of a record; the records must come by it.
    """

    def __init__(
        self, context: TaskContext, name: str, key: KeyFunction, function: StateFunction
    ) -> None:
        self.name = name
        self._rejects = context.rejects
        self._limit = context.limits.batch_records
        self._key = key
        self._function = function
        self._context = context

    def process(self, batch: Batch) -> Iterator[Batch]:
        return (self._expand if self._function.is_flat else self._replace)(batch)

    def restore(self, state: Any) -> None:
        self._state = step_state(self._context, "map_with_state", self.place)
        ttl_ms = self._function.ttl_ms
        ttl = None if ttl_ms is None else f"{ttl_ms}ms"
        self._kept = self._state.value("kept", ttl=ttl)

    def _replace(self, batch: Batch) -> Iterator[Batch]:
        state, function = self._state, self._function.function
        read, write = self._kept.accessors()
        initial, has_ttl = self._function.initial, self._function.ttl_ms is not None
        is_copied = type(initial) not in ATOMS
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = encoded_keys(self._key, records)
        out: list[Any] = []
        left_out: list[int] = []
        for key, record, time in zip(keys or records, records, timestamps, strict=True):
            try:
                if keys is None:
                    key = encode_key(key_of(record))  # noqa: PLW2901 - it is the key from here on
                if has_ttl:
                    state.time_ms = time
                if (before := read(key)) is None:
                    before = deepcopy(initial) if is_copied else initial
                answer = function(before, record)
                try:
                    after, result = answer
                except (TypeError, ValueError):
                    raise _no_pair(answer) from None
                write(key, after)
                out.append(result)
            except USER_ERRORS as error:
                left_out.append(len(out) + len(left_out))
                self._reject(error, record, time)
        if out:
            yield batch.giving(out, without(timestamps, left_out) if left_out else timestamps)

    def _expand(self, batch: Batch) -> Iterator[Batch]:
        """Yield all results for each record, in portions."""
        state, limit = self._state, self._limit
        function, initial = self._function.function, self._function.initial
        has_ttl, is_copied = self._function.ttl_ms is not None, type(initial) not in ATOMS
        read, write = self._kept.accessors()
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = encoded_keys(self._key, records)
        out: list[Any] = []
        times: list[int] = []
        for key, record, time in zip(keys or records, records, timestamps, strict=True):
            begin = len(out)
            try:
                if keys is None:
                    key = encode_key(key_of(record))  # noqa: PLW2901 - it is the key from here on
                if has_ttl:
                    state.time_ms = time
                if (before := read(key)) is None:
                    before = deepcopy(initial) if is_copied else initial
                answer = function(before, record)
                try:
                    after, results = answer
                except (TypeError, ValueError):
                    raise _no_pair(answer) from None
                if type(results) is list and begin + len(results) < limit:
                    out += results
                    times += [time] * len(results)
                else:
                    for result in results:
                        out.append(result)
                        times.append(time)
                        if len(out) >= limit:
                            yield batch.giving(out, times)
                            out, times, begin = [], [], 0
                            # State may have been handed over meanwhile.
                            read, write = self._kept.accessors()
                write(key, after)
            except USER_ERRORS as error:
                del out[begin:], times[begin:]
                self._reject(error, record, time)
        if out:
            yield batch.giving(out, times)

    def _reject(self, error: BaseException, record: Any, time: int) -> None:
        self._rejects.blame(self.name, error, record, time, place=self.place)


def _no_pair(answer: Any) -> ConfigError:
    return ConfigError(f"return what to keep and what to give, as a pair, not {shown(answer)}")


class PlaceStage(Stage):
    """Lets the first records pass, or all but these; counts over restarts.

    Args:
        context: of the one task that has the stage.
        name: for people; the count is found without it.
        is_first: these pass; else all others.
        is_ordered: records come by event time, so that what passes is in order for the steps
            behind, whatever it was read from.
    """

    def __init__(
        self, context: TaskContext, name: str, count: int, *, is_first: bool, is_ordered: bool
    ) -> None:
        self.name = name
        self._context = context
        self._count = count
        self._is_first = is_first
        self._came = 0
        self._order = (
            Origin(context.task_id.processor, partition=0, is_alone=True, is_sorted=True)
            if is_ordered
            else None
        )

    def process(self, batch: Batch) -> Iterator[Batch]:
        left, offset, count = max(0, self._count - self._came), self._came, len(batch)
        self._came += count
        passing = batch.part(0, left) if self._is_first else batch.part(min(left, count), count)
        if len(passing):
            if self._order is not None and not batch.origin.is_by_arrival:
                passing.origin = self._order.at(offset)
            yield passing

    def snapshot(self) -> int:
        return self._came

    def restore(self, state: int | None) -> None:
        self._came = state or 0


def _encoded(columns: "list[pa.Array]", key: FieldGetter | FieldsGetter) -> list[bytes]:
    from gearpy.state.stores import tables  # noqa: PLC0415 - there are columns, so Arrow is there

    found = tables.encoded_keys(columns)
    return encode_keys(keys_of_columns(columns, key)) if found is None else found.to_pylist()


class DistinctStage(Stage):
    """Passes a record on if there was none of its key before, or none near it in event time.

    Of each key the event time of the newest record that has passed is kept: for good, or until the
    watermark is ``within_ms`` past it. So one that is later than that may pass again.

    Invariant: a record that passes is at least ``within_ms`` away from the time kept for its key.

    Args:
        name: for people; the state is found without it.
        key: gives the key of a record; the records must come by it.
        within_ms: None for good.
        schema: of the tables in which records come; None: they come as rows.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: KeyFunction,
        within_ms: int | None = None,
        schema: RowSchema | None = None,
    ) -> None:
        self.name = name
        self._columns = None if schema is None else RowSchema(schema.arrow)
        self._rejects = context.rejects
        self._key = key
        self._within_ms = MAX_MS if within_ms is None else within_ms
        self._context = context
        self._ttl_ms = within_ms

    def process(self, batch: Batch) -> Iterator[Batch]:
        if self._columns is None:
            yield from self._of_rows(batch)
            return
        table = as_table(batch.values, self._columns)  # Rows come out of quarantine.
        assert isinstance(self._key, FieldGetter | FieldsGetter), "tables have columns of a key"
        found = distinct_columns(table, self._key)
        times = Times.of(batch.timestamps)
        try:
            encoded = None if found is None else _encoded(found[0], self._key)
        except USER_ERRORS:
            encoded = None
        if found is None or encoded is None:  # The record is to be told whose key can be none.
            for each in self._of_rows(batch.giving(list(table), list(times))):
                passing = as_table(each.values, RowSchema(table.batch.schema))
                yield each.giving(passing, Times.of(each.timestamps))
            return
        passing = self._passing(encoded, found[1], times)
        if len(passing):
            yield batch.giving(table.take(passing), times.take(passing))

    def _passing(self, keys: list[bytes], places: "pa.Array", times: Times) -> "pa.Array":
        """Return which rows pass; each key is looked up once.

        Args:
            keys: the different keys.
            places: for each row which of them it has.
        """
        import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

        read, write = self._passed.accessors()
        state, within_ms = self._state, self._within_ms
        state.time_ms = times[0]
        passed: dict[bytes, Any] = dict(zip(keys, map(read, keys), strict=True))
        rows, own_times = range(len(times)), times.array
        if self._ttl_ms is None:
            is_new = pa.array([passed[key] is None for key in keys])
            fresh = pc.indices_nonzero(is_new.take(places))
            rows, places, own_times = fresh.to_pylist(), places.take(fresh), own_times.take(fresh)
        found: list[int] = []
        changed: dict[bytes, None] = {}
        for row, place, time in zip(rows, places.to_pylist(), own_times.to_pylist(), strict=True):
            key = keys[place]
            before = passed[key]
            if before is not None:
                if -within_ms < time - before < within_ms:
                    continue
                time = max(time, before)  # noqa: PLW2901 - the newest that has passed
            passed[key] = time
            changed[key] = None
            found.append(row)
        for key in changed:
            state.time_ms = passed[key]
            write(key, passed[key])
        return pa.array(found, pa.int64())

    def _of_rows(self, batch: Batch) -> Iterator[Batch]:
        read, write = self._passed.accessors()
        state, within_ms = self._state, self._within_ms
        has_ttl = self._ttl_ms is not None
        records, timestamps = batch.values, batch.timestamps
        keys, key_of = encoded_keys(self._key, records)
        out: list[Any] = []
        times: list[int] = []
        for key, record, time in zip(keys or records, records, timestamps, strict=True):
            try:
                if keys is None:
                    key = encode_key(key_of(record))  # noqa: PLW2901 - it is the key from here on
                if has_ttl:
                    state.time_ms = time
                passed = read(key)
                if passed is not None:
                    if -within_ms < time - passed < within_ms:
                        continue
                    state.time_ms = passed = max(time, passed)
                write(key, time if passed is None else passed)
                out.append(record)
                times.append(time)
            except USER_ERRORS as error:
                self._rejects.blame(self.name, error, record, time, place=self.place)
        if out:
            yield batch.giving(out, times)

    def restore(self, state: Any) -> None:
        self._state = step_state(self._context, "distinct", self.place)
        ttl = None if self._ttl_ms is None else f"{self._ttl_ms}ms"
        self._passed = self._state.value("passed", ttl=ttl)
