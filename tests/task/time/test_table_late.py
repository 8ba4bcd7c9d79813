"""Late rows and cuts of tables: the same as of single records, see `task.time.late`."""

from dataclasses import replace
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.row_schema import RowSchema, row_schema_of
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message, Promise
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import SourceReader, TaskCounters
from gearpy.task.api.sides import Side
from gearpy.task.sources.partition import SourcePartition
from gearpy.task.time.late import (
    SOURCE_LATE,
    LateRecords,
    SourceLate,
    flags_at,
    others,
    places_of,
    promised_before,
)
from tests.task.build import Bench
from tests.task.stage_build import Bounded, BoundedSource, ScriptedSource, a_source_bench

TIMES = st.lists(st.integers(0, 40), min_size=1, max_size=12)
POLICIES = st.sampled_from(SOURCE_LATE)


def a_table(count: int, first: int = 0) -> Table:
    return Table(pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())}))


def of_rows(batch: Batch) -> Batch:
    return replace(batch, values=list(batch.values), timestamps=list(batch.timestamps))


def as_records(batch: Batch) -> list[tuple[Any, int]]:
    """Return the records as they would be by themselves: those for the side wrapped."""
    aside = [False] * len(batch) if batch.promise.aside is None else batch.promise.aside.to_pylist()
    rows = [
        Side("late", row) if is_aside else row
        for row, is_aside in zip(batch.values, aside, strict=True)
    ]
    return list(zip(rows, batch.timestamps, strict=True))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Draw some rows, and what their partition has promised around them."""
    times = draw(TIMES)
    bound = draw(st.none() | st.integers(0, 10))
    before = draw(st.sampled_from([MIN_MS, 5, 20, 35]))
    order = BoundedOutOfOrder(bound or 0)
    order.watermark_ms = before
    order.on_records(times)
    after = draw(st.sampled_from([order.watermark_ms, before, MAX_MS]))
    promise = Promise(before, after, bound)
    return Batch(a_table(len(times)), Times.of(times), promise=promise)


@given(batches())
def test_promise_before_each_row_is_that_of_records(batch: Batch) -> None:
    assert list(promised_before(batch)) == list(promised_before(of_rows(batch)))


@given(batches(), POLICIES)
def test_policy_decides_as_for_records(batch: Batch, policy: SourceLate) -> None:
    counted, listed = TaskCounters(), TaskCounters()

    judged = LateRecords(policy, counted).judge(batch)
    expected = LateRecords(policy, listed).judge(of_rows(batch))

    assert as_records(judged) == as_records(expected)
    assert counted == listed
    assert type(judged.values) is Table


def test_nothing_is_copied_where_nothing_is_late() -> None:
    batch = Batch(a_table(3), Times.of([5, 4, 6]), promise=Promise(4, 5, 1))

    for policy in SOURCE_LATE:
        assert LateRecords(policy, TaskCounters()).judge(batch) is batch


def test_records_are_parted_as_before() -> None:
    late = LateRecords("side", TaskCounters())

    main, sides = late.parted(Batch([1, Side("late", 2)], [3, 4]), None)

    assert (main.values, main.timestamps) == ([1], [3])
    assert (sides.values, sides.timestamps) == ([Side("late", 2)], [4])


@given(st.lists(st.booleans(), max_size=9))
def test_flags_are_places(flags: list[bool]) -> None:
    column = pa.array(flags, pa.bool_())

    assert flags_at(places_of(column), len(flags)) == column
    assert places_of(others(column)) == [at for at, flag in enumerate(flags) if not flag]


class Columnar(Bounded):
    def read_batch(self, max_records: int) -> Batch | None:
        batch = super().read_batch(max_records)
        if batch is None:
            return None
        column = pa.array(batch.values, pa.int64())
        return Batch(Table(pa.record_batch({"n": column})), Times.of(batch.timestamps))


class ColumnarSource(BoundedSource):
    def open(self, partition: str, resume: Any | None) -> Bounded:
        return Columnar(
            self.records[partition],
            out_of_order_ms=self.out_of_order_ms,
            place=resume or (0, MIN_MS),
            ends=self.ends,
        )

    @property
    def schema(self) -> RowSchema:
        return row_schema_of({"n": int})


def a_partition(reader: SourceReader, late: SourceLate = "keep") -> SourcePartition:
    counters = TaskCounters()
    return SourcePartition(
        "p", reader, source="test", late=LateRecords(late, counters), counters=counters
    )


def given_by(partition: SourcePartition, size: int, reads: int) -> list[Any]:
    out: list[Any] = []
    for _ in range(reads):
        batch = partition.read(size, 0)
        if batch is not None:
            out += as_records(batch)
    return out


def plain(records: list[Any]) -> list[Any]:
    def number(row: Any) -> Any:
        return Side(row.tag, row.value["n"]) if isinstance(row, Side) else row["n"]

    return [(number(row), time) for row, time in records]


@given(
    st.lists(st.integers(0, 40), max_size=20),
    st.integers(0, 8),
    POLICIES,
    st.integers(0, 45),
    st.tuples(st.integers(1, 6), st.integers(0, 6)),
)
def test_partition_of_tables_cuts_as_one_of_records(
    times: list[int], bound: int, policy: SourceLate, cut_ms: int, reads: tuple[int, int]
) -> None:
    records, (size, count) = list(enumerate(times)), reads
    seen = []
    for reader_class in (Columnar, Bounded):
        partition = a_partition(reader_class(records, out_of_order_ms=bound), policy)
        out: list[Any] = [given_by(partition, size, 1)]
        partition.begin_cut(cut_ms)
        out.append(given_by(partition, size, count))
        held, kept, place = (
            partition.held_records,
            partition.snapshot(),
            partition.reader.snapshot(),
        )
        restored = a_partition(reader_class(records, out_of_order_ms=bound, place=place), policy)
        restored.restore(kept)
        partition.end_cut()
        rest = [given_by(each, size, 30) for each in (partition, restored)]
        out += rest
        seen.append(([plain(each) if reader_class is Columnar else each for each in out], held))
        assert rest[0] == rest[1]

    assert seen[0] == seen[1]


def test_table_without_its_times_is_refused() -> None:
    """It would be found out far away. So would a list with them."""

    class Wrong(Bounded):
        def read_batch(self, max_records: int) -> Batch | None:
            self.at = 1
            return Batch(a_table(1), [1])

    with pytest.raises(ConfigError, match="gave Table values with list timestamps"):
        a_partition(Wrong([(0, 0)])).read(9, 0)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=2),
    st.integers(0, 8),
    POLICIES,
)
def test_source_task_of_tables_sends_what_one_of_records_does(
    partitions: list[list[int]], bound: int, policy: SourceLate
) -> None:
    """All records, and the same counts; the watermark ends where the stream does."""
    benches = []
    for source_class in (ColumnarSource, BoundedSource):
        records = [list(enumerate(times, 100 * at)) for at, times in enumerate(partitions)]
        source = source_class(*records, out_of_order_ms=bound)
        benches.append(a_source_bench(source, late=policy).run())
    of_tables, listed = benches

    def sent(bench: Bench) -> list[Any]:
        return sorted(bench.target.messages, key=repr)

    def number(message: Message) -> Message:
        return Message(*plain([tuple(message)])[0])

    assert sorted(map(number, sent(of_tables)), key=repr) == sent(listed)
    assert not of_tables.target.late or policy in {"keep", "side"}
    table_clock, row_clock = of_tables.runner.clock(), listed.runner.clock()
    assert (table_clock.records_in, table_clock.late_records, table_clock.newest_ms) == (
        row_clock.records_in,
        row_clock.late_records,
        row_clock.newest_ms,
    )


def test_source_with_a_schema_is_asked_for_more_at_a_time() -> None:
    """Up to as much as a table may have, however little a read of records is."""
    asked = []

    class Asked(Columnar):
        def read_batch(self, max_records: int) -> Batch | None:
            asked.append(max_records)
            return super().read_batch(max_records)

    class Table0(ScriptedSource):
        @property
        def schema(self) -> RowSchema:
            return row_schema_of({"n": int})

    a_source_bench(Table0(p=Asked([(at, at) for at in range(140_000)])), read=4).run()

    assert max(asked) == 65_536
