"""One partition of a source: order, the cut by event time, silence, what waits."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.read_size import ReadSize
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import SourceReader, TaskCounters
from gearpy.task.sources.partition import SourcePartition
from gearpy.task.time.late import LateRecords, SourceLate
from tests.task.stage_build import Bounded, Scripted


def a_partition(
    reader: SourceReader,
    *,
    late: SourceLate = "keep",
    counters: TaskCounters | None = None,
    idle_after_ms: int | None = None,
    clock_ms: Callable[[], int] | None = None,
    read_size: ReadSize | None = None,
) -> SourcePartition:
    counters = counters or TaskCounters()
    return SourcePartition(
        "p",
        reader,
        source="test",
        late=LateRecords(late, counters),
        counters=counters,
        idle_after_ms=idle_after_ms,
        clock_ms=clock_ms,
        read_size=read_size,
    )


def standing() -> int:
    return 0


def bounded(*times: int, bound: int = 0, ends: bool = True) -> Bounded:
    return Bounded(list(enumerate(times)), out_of_order_ms=bound, ends=ends)


def values(partition: SourcePartition, *, size: int = 100, reads: int = 100) -> list[Any]:
    out: list[Any] = []
    for _ in range(reads):
        portion = partition.read(size, 0)
        if portion is None:
            break
        out += portion.values
    return out


def test_cut_lies_where_the_promise_comes_to_it() -> None:
    """A late record behind that belongs to the next epoch, though it was read with the others."""
    partition = a_partition(bounded(1, 15, 9, 2, bound=5, ends=False))

    partition.begin_cut(10)

    assert not partition.has_promised(10)
    assert values(partition, reads=1) == [0]
    assert partition.has_promised(10)
    partition.end_cut()
    assert values(partition) == [1, 2, 3]


def test_partition_is_idle_after_a_while() -> None:
    reader = bounded(1, 2, ends=False)
    partition = a_partition(reader, idle_after_ms=30)
    partition.read(10, 1000)
    idle = []

    for now_ms in (2000, 2029, 2030):
        assert partition.read(10, now_ms) is None
        idle.append(partition.is_idle)
    reader.records.append(("new", 3))
    partition.read(10, 2031)
    idle.append(partition.is_idle)
    partition.read(10, 5000)
    idle.append(partition.is_idle)

    assert idle == [False, False, True, False, False]


def test_what_waits_is_in_the_snapshot() -> None:
    reader = bounded(1, 12, 14, 9, bound=5, ends=False)
    partition = a_partition(reader)
    partition.begin_cut(10)
    values(partition, size=2)

    kept = partition.snapshot()
    partition.end_cut()
    again = a_partition(bounded(1, 12, 14, 9, bound=5, ends=False))
    again.reader.at = reader.at  # type: ignore[attr-defined]
    again.restore(kept)

    assert values(again) == values(partition) == [1, 2]
    assert a_partition(bounded(1)).snapshot() == []


def test_record_that_cannot_be_stored_is_told() -> None:
    partition = a_partition(Bounded([(object(), 20)]))
    partition.begin_cut(10)
    partition.read(10, 0)

    with pytest.raises(OperatorError, match="wait for the end of an epoch cannot") as raised:
        partition.snapshot()

    assert raised.value.operator == "test"


def test_ragged_batch_is_refused() -> None:
    """Values without a time would be left out by the first loop."""

    class Ragged(Scripted):
        def read_batch(self, max_records: int) -> Any:
            return Batch([1, 2, 3], [0])

    with pytest.raises(ConfigError, match="test gave 3 values but 1 timestamps"):
        a_partition(Ragged([], [], "p")).read(10, 0)


def epochs_of(times: list[int], cuts: list[int], bound: int) -> list[list[int]]:
    """Return which records belong to which epoch, found record by record; the rest comes last."""
    newest, reached_by = MIN_MS, list[int]()
    for time in times:
        newest = max(newest, time)
        reached_by.append(newest - bound)
    left, epochs = list(range(len(times))), []
    for cut in cuts:
        behind = next((at for at, ms in enumerate(reached_by) if ms >= cut), len(times))
        epochs.append([at for at in left if times[at] < cut and at <= behind])
        left = [at for at in left if at not in epochs[-1]]
    return [*epochs, left]


@given(
    times=st.lists(st.integers(0, 60), max_size=30),
    cuts=st.lists(st.integers(1, 60), max_size=4),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    restarts=st.lists(st.booleans(), min_size=4, max_size=4),
    bound=st.integers(0, 15),
    small=st.integers(1, 6),
)
def test_cut_is_a_function_of_the_records(
    *,
    times: list[int],
    cuts: list[int],
    sizes: list[int],
    restarts: list[bool],
    bound: int,
    small: int,
) -> None:
    """Invariant: whatever is read at a time or joined, and whether or not it restarts at a cut."""
    reader = bounded(*times, bound=bound)
    reader.batch_records = small
    partition = a_partition(reader, clock_ms=standing)
    epochs, turn = [], 0

    for cut, restarts_here in zip(sorted(cuts), restarts, strict=False):
        partition.begin_cut(cut)
        epochs.append(list[int]())
        while not partition.has_promised(cut):
            portion = partition.read(sizes[turn % len(sizes)], 0)
            turn += 1
            epochs[-1] += portion.values if portion is not None else []
        if restarts_here:
            kept, place = partition.snapshot(), partition.reader.snapshot()
            records = list(enumerate(times))
            reader = Bounded(records, out_of_order_ms=bound, place=place)
            reader.batch_records = small
            reader.finished = partition.reader.finished
            partition = a_partition(reader, clock_ms=standing)
            partition.restore(kept)
        partition.end_cut()
    epochs.append(values(partition))

    assert epochs == epochs_of(times, sorted(cuts), bound)
    assert partition.is_finished or not times


@given(
    times=st.lists(st.integers(0, 60), max_size=30),
    cuts=st.lists(st.integers(1, 60), max_size=4),
    late=st.sampled_from(["keep", "drop", "restamp"]),
    bound=st.integers(0, 15),
)
def test_promise_is_kept(times: list[int], cuts: list[int], late: Any, bound: int) -> None:
    """Invariant: what is given is not older than `promised_ms` was, late ones excepted."""
    partition = a_partition(bounded(*times, bound=bound), late=late)
    promised, is_last = MIN_MS, False

    for cut in [*sorted(cuts), MAX_MS]:
        partition.begin_cut(cut)
        while not partition.has_promised(cut) and not is_last:
            promised = max(promised, min(partition.promised_ms, cut))
            portion = partition.read(3, 0)
            is_last = portion is None
            if portion is not None and late != "keep":
                assert all(time >= promised for time in portion.timestamps)
        partition.end_cut()


def an_advancing(reader: SourceReader) -> SourcePartition:
    counters = TaskCounters()
    return SourcePartition(
        "p",
        reader,
        source="test",
        late=LateRecords("drop", counters),
        counters=counters,
        idle_after_ms=50,
        advances=True,
    )


def test_silence_moves_the_promise_on_with_the_wall_clock() -> None:
    reader = bounded(5, 100, ends=False)
    partition = an_advancing(reader)
    partition.read(1, 1000)
    partition.read(1, 1000)

    partition.read(1, 1000)
    assert (partition.promised_ms, partition.is_idle) == (100, False)
    partition.read(1, 1049)
    assert partition.promised_ms == 100
    partition.read(1, 1060)
    assert (partition.promised_ms, partition.is_idle) == (1010, False)
    partition.read(1, 900)
    assert partition.promised_ms == 1010

    reader.records += [("late", 1009), ("new", 1010)]
    assert values(partition) == ["new"]
    assert partition.promised_ms == 1010


def test_bad_records_that_a_reader_leaves_out_are_counted() -> None:
    counters = TaskCounters(skipped_records=1)
    reader = bounded(1, 2, 3)
    partition = a_partition(reader, counters=counters)

    reader.skipped_records = 2
    values(partition, size=1)
    reader.skipped_records = 3
    partition.read(1, 0)

    assert counters.skipped_records == 3
