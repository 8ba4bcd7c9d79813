"""Tables through a task: credit, limits, parts, loss; every promise is that of rows."""

from collections.abc import Generator
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.base.fields import field_getter
from gearpy.core.flow.partition import BroadcastPartitioner, GroupByPartitioner, UnicastPartitioner
from gearpy.errors import OperatorError
from gearpy.ids import TaskId
from gearpy.messages.data import Batch, DataMessage, Message
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext
from gearpy.task.api.rejects import OUTPUT, Midway
from gearpy.task.runtime.outlet import OutputLimits
from gearpy.wire.values.payload import decode_value
from tests.task.build import TASK, UPSTREAM_SESSION, Bench, some_limits


def numbered(start: int, stop: int) -> Batch:
    table = pa.record_batch({"n": pa.array(range(start, stop), pa.int64())})
    return Batch(Table(table), Times.of(range(start, stop)))


class Once(Task):
    batches: list[Batch]

    def produce(self) -> Any:
        if not self.batches:
            return FINISHED
        return self._all()

    def _all(self) -> Generator[Batch, None, int]:
        while self.batches:
            yield self.batches.pop(0)
        return FINISHED


def giving(*batches: Batch) -> Any:
    def make(context: TaskContext) -> Task:
        task = Once(context)
        task.batches = list(batches)
        return task

    return make


def limits(
    *, window: int = 50, interval: int = 10, rows: int = 1000, **kwargs: int
) -> OutputLimits:
    some = some_limits(window=window, interval=interval, **kwargs)
    return OutputLimits(
        flow=some.flow,
        batch_records=some.batch_records,
        batch_bytes=some.batch_bytes,
        watermark_interval_ms=some.watermark_interval_ms,
        columnar_batch_records=rows,
    )


def rows_of(bench: Bench) -> list[int]:
    return [row["n"] for row in bench.target.values]


def test_rows_of_a_table_take_less_credit() -> None:
    """64 of them as much as one record; so a window of 2 lets 128 through, and no more."""
    bench = Bench(giving(numbered(0, 1000)), upstream=0, limits=limits(window=2, interval=1)).open()

    bench.turn()

    under_way = [each for each in bench.target.queue if isinstance(each, DataMessage)]
    assert sum(len(message.batch) for message in under_way) == 128
    assert bench.runner.is_blocked
    assert rows_of(bench.run()) == list(range(1000))


class Counting(Task):
    def on_next(self, message: Message) -> None:
        self.context.output(message)


def test_task_that_knows_no_tables_gets_dicts() -> None:
    bench = Bench(Counting).open()
    bench.runner.receive(
        DataMessage(UPSTREAM_SESSION, TaskId(0, 0), TASK, seq=1, batch=numbered(3, 5), epoch=1)
    )

    bench.run()

    assert bench.target.messages == [Message({"n": 3}, 3), Message({"n": 4}, 4)]
    assert bench.runner.clock().records_in == 2


class Picky(UnicastPartitioner):
    def get_partition(self, value: Any, parallelism: int, sender: int) -> int:
        if value["n"] == 3:
            raise ValueError("three")
        return 0


def test_bad_row_is_dropped_and_the_others_stay_columns() -> None:
    bench = Bench(
        giving(numbered(0, 6)),
        upstream=0,
        partitioner=Picky(),
        limits=limits(),
        on_error="quarantine",
    )

    bench.open().run()

    (rejected,) = bench.runner.rejected
    assert rows_of(bench) == [0, 1, 2, 4, 5]
    assert all(type(m.batch.values) is Table for m in data_of(bench))
    assert decode_value(rejected.value) == Midway(OUTPUT, {"n": 3})
    assert rejected.event_time_ms == 3


def data_of(bench: Bench) -> list[Any]:
    return [message for message in bench.target.data if len(message.batch)]


def test_bad_row_ends_the_task_where_that_is_the_policy() -> None:
    bench = Bench(giving(numbered(0, 6)), upstream=0, partitioner=Picky(), limits=limits()).open()

    with pytest.raises(OperatorError, match="three"):
        bench.run()

    assert not data_of(bench)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 150), min_size=1, max_size=3),
    st.integers(1, 8),
    st.integers(20, 200),
    st.integers(1, 3),
    st.booleans(),
)
def test_every_row_comes_once_and_in_order(
    counts: list[int],
    window: int,
    rows: int,
    tasks: int,
    by_key: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever the credit, the limit and the partitioner; and each to where a record would go."""
    batches, start = [], 0
    for count in counts:
        batches.append(numbered(start, start + count))
        start += count
    partitioner = GroupByPartitioner(field_getter("n")) if by_key else BroadcastPartitioner()
    split: Any = {"upstream": 0, "targets": [tasks], "partitioner": partitioner}

    tables = (
        Bench(giving(*batches), limits=limits(window=window, interval=1, rows=rows), **split)
        .open()
        .run()
    )
    listed = (
        Bench(
            giving(*(Batch(list(each.values), list(each.timestamps)) for each in batches)),
            limits=some_limits(),
            **split,
        )
        .open()
        .run()
    )

    for target, task in tables.targets.items():
        assert task.messages == listed.targets[target].messages
        assert not task.late
    tables.pass_time(1000)
    assert tables.run().runner.is_settled
