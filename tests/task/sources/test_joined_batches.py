"""Small batches of a reader come as one batch, judged as if one came after the other."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.core.flow.read_size import ReadSize
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import SourceReader
from gearpy.task.sources.partition import SourcePartition
from tests.task.sources.test_partition import a_partition, bounded, standing
from tests.task.stage_build import Scripted


class Given(SourceReader):
    """Gives some batches one after the other, and counts how often it was asked."""

    out_of_order_ms = 0

    def __init__(self, batches: Sequence[Batch | None]) -> None:
        self._batches: Iterator[Batch | None] = iter(batches)
        self._newest_ms = 0
        self.asked = 0

    def read_batch(self, max_records: int) -> Batch | None:
        self.asked += 1
        batch = next(self._batches, None)
        self._newest_ms = max([self._newest_ms, *(batch.timestamps if batch else ())])
        return batch

    def snapshot(self) -> int:
        return self.asked

    @property
    def watermark_ms(self) -> int:
        return self._newest_ms


def rows(*times: int) -> Batch:
    return Batch([f"r{time_ms}" for time_ms in times], list(times))


def table(*times: int, kind: pa.DataType | None = None) -> Batch:
    column = pa.array([str(time_ms) for time_ms in times]).cast(kind or pa.string())
    return Batch(Table(pa.record_batch({"n": column})), Times.of(times))


def read_all(partition: SourcePartition, size: int = 100) -> list[Batch]:
    return list(iter(lambda: partition.read(size, 0), None))


def times_of(partition: SourcePartition, size: int = 100) -> list[list[int]]:
    return [list(batch.timestamps) for batch in read_all(partition, size)]


@pytest.mark.parametrize("made", [rows, table])
def test_what_is_there_at_once_is_one_portion(made: Callable[..., Batch]) -> None:
    batches = [made(1, 3), made(2), made(5), None, made(6)]
    partition = a_partition(Given(batches), clock_ms=standing)

    (batch,) = read_all(partition)

    assert list(batch.timestamps) == [1, 3, 2, 5]
    assert [getattr(time_ms, "promised_ms", None) for time_ms in batch.timestamps] == [
        None,
        None,
        3,
        None,
    ]
    assert batch.promise[:2] == (0, 5)


def test_no_more_is_read_than_is_enough() -> None:
    """A batch of a share of the most is large enough."""
    size = ReadSize(10, share=2)
    for _ in range(4):
        size.on_read(size.size, 0)
    partition = a_partition(
        Given([rows(at) for at in range(12)]), clock_ms=standing, read_size=size
    )

    assert times_of(partition, size.size) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


@pytest.mark.parametrize(("worked_ms", "sizes"), [(0, [3, 2]), (24, [5])])
def test_records_wait_for_a_ms_or_a_share_of_the_work_before(
    worked_ms: int, sizes: list[int]
) -> None:
    clock, size = count(1000), ReadSize(100)
    size.size = size.enough = 100
    size.on_read(100, worked_ms)
    partition = a_partition(
        Given([rows(at) for at in range(5)]), clock_ms=lambda: next(clock), read_size=size
    )

    assert list(map(len, read_all(partition))) == sizes


def test_a_reader_that_had_nothing_is_not_asked_again_at_once() -> None:
    """It was, as the first batch was read; so its task leaves it alone for a while."""
    reader = Given([rows(1), None, rows(2), None, rows(3)])
    partition = a_partition(reader, clock_ms=standing)
    given = []

    for now_ms in (0, 0, 0, 1):
        batch = partition.read(10, now_ms)
        given.append((None if batch is None else batch.values, reader.asked))

    assert given == [(["r1"], 2), (None, 2), (["r2"], 4), (["r3"], 6)]


def test_a_promise_by_other_rules_ends_a_portion() -> None:
    """Records behind it would be judged by it. Where it stands still, they are judged alike."""
    script = [[("a", 1)], [("b", 2)], 5, [("c", 3)], [("d", 9)], "end"]
    partition = a_partition(Scripted(script, [], "p"), clock_ms=standing)

    batches = read_all(partition)

    assert [batch.values for batch in batches] == [["a", "b"], ["c", "d"]]
    assert [batch.promise.before_ms for batch in batches[1:]] == [5]
    assert type(batches[1].timestamps[0]) is not int


def test_records_by_arrival_are_joined_though_each_batch_moves_time() -> None:
    script = [[("a", 1)], 1, [("b", 2)], 2, "end"]
    reader = Scripted(script, [], "p")
    reader.is_by_arrival = True

    (batch,) = read_all(a_partition(reader, clock_ms=standing))

    assert batch.values == ["a", "b"]


def test_tables_of_other_columns_come_apart() -> None:
    batches = [table(1), table(4), table(2, kind=pa.large_string()), table(5), rows(6)]
    partition = a_partition(Given(batches), clock_ms=standing)

    first = partition.read(100, 0)
    assert first is not None
    assert (list(first.timestamps), first.promise.after_ms) == ([1, 4], 4)
    again = a_partition(Given(batches[3:]), clock_ms=standing)
    again.restore(partition.snapshot())

    rest = [[2], [5], [6]]
    assert times_of(again) == rest
    assert times_of(partition) == rest


def test_tables_with_dictionaries_are_not_joined() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [table(*range(at, at + 100), kind=kind) for at in (0, 100)]

    given = times_of(a_partition(Given(batches), clock_ms=standing), 65_536)

    assert [len(times) for times in given] == [100, 100]


def test_each_batch_is_checked() -> None:
    batches: list[Any] = [rows(1), Batch([1, 2], [0]), Batch([1], [0, 2])]

    with pytest.raises(ConfigError, match="test gave 2 values but 1 timestamps"):
        read_all(a_partition(Given(batches), clock_ms=standing))


def test_a_reader_is_not_asked_behind_its_end() -> None:
    reader = bounded(1, 2, 3)
    reader.batch_records = 1

    assert times_of(a_partition(reader, clock_ms=standing)) == [[1, 2, 3]]


def test_a_reader_that_may_wait_is_not_read_behind_a_batch() -> None:
    reader = Given([rows(1), rows(2)])
    reader.may_wait = True
    partition = a_partition(reader, clock_ms=lambda: 0)

    batch = partition.read(100, 0)

    assert batch is not None
    assert (list(batch.timestamps), reader.asked) == ([1], 1)
