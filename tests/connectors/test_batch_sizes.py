"""What is late, and where a cut by event time lies, is in the records: not in how they are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.connectors.files.lines_files import files
from gearpy.connectors.memory import collection
from gearpy.connectors.streams.generator import generate
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import Source, TaskCounters
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.task.sources.partition import SourcePartition
from gearpy.task.time.late import LateRecords, SourceLate

#: Out of order, by more than the bound here and there.
TIMES = [number * 17 % 50 + number for number in range(60)]
LINES = [str(time_ms) for time_ms in TIMES]
BOUND_MS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes")
    (folder / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return folder


#: Those that promise by the newest event time, less a bound.
BOUNDED: dict[str, Callable[[Path], Source]] = {
    "files": lambda folder: files(folder / "lines.txt", timestamp=int, out_of_order="12ms"),
    "follow": lambda folder: files(
        folder / "lines.txt", timestamp=int, out_of_order="12ms", follow=True
    ),
    "collection": lambda _: collection(LINES, timestamp=int, out_of_order="12ms"),
    "messages": lambda _: collection(
        [Message(line, int(line)) for line in LINES], out_of_order="12ms"
    ),
    "generator": lambda _: generate(lambda: iter(LINES), timestamp=int, out_of_order="12ms"),
}


def names_of(source: Source) -> list[str]:
    """Return the partitions, also those that are found while it is read."""
    return [*source.partitions()] or [*source.discover(0, 1, ()).find()]


def a_partition(source: Source, late: SourceLate, resume: Any = None) -> SourcePartition:
    (name,) = names_of(source)
    counters = TaskCounters()
    return SourcePartition(
        name,
        source.open(name, resume),
        source=source.description,
        late=LateRecords(late, counters),
        counters=counters,
    )


def restarted(partition: SourcePartition, source: Source, late: SourceLate) -> SourcePartition:
    encoded = encode_state("test", partition.reader.snapshot())
    assert isinstance(encoded, bytes)
    again = a_partition(source, late, decode_state(encoded))
    again.restore(partition.snapshot())
    again.reader.finished = partition.reader.finished
    partition.close()
    return again


def epochs_of(
    source: Source, late: SourceLate, cuts: list[int], sizes: list[int], *, restarts: bool = False
) -> list[list[tuple[Any, int]]]:
    """Return the records of each epoch; what is behind the last cut comes last."""
    partition, turn = a_partition(source, late), 0
    epochs = list[list[tuple[Any, int]]]()
    for cut_ms in [*sorted(cuts), None]:
        epochs.append([])
        if cut_ms is not None:
            partition.begin_cut(cut_ms)
        while cut_ms is None or not partition.has_promised(cut_ms):
            portion = partition.read(sizes[turn % len(sizes)], 0)
            turn += 1
            if portion is None:
                break
            epochs[-1] += zip(portion.values, portion.timestamps, strict=True)
        if restarts:
            partition = restarted(partition, source, late)
        partition.end_cut()
    partition.close()
    return epochs


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(1, 120), max_size=4),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    late=st.sampled_from(["keep", "drop", "restamp", "side"]),
    restarts=st.booleans(),
)
@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_epochs_do_not_depend_on_how_many_are_read_at_a_time(
    folder: Path, *, name: str, cuts: list[int], sizes: list[int], late: Any, restarts: bool
) -> None:
    source = BOUNDED[name](folder)

    one_by_one = epochs_of(source, late, cuts, [1])

    assert epochs_of(source, late, cuts, sizes, restarts=restarts) == one_by_one


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_late_records_are_those_behind_the_bound(folder: Path, name: str) -> None:
    (found,) = epochs_of(BOUNDED[name](folder), "drop", [], [60])

    newest, expected = 0, []
    for time_ms in TIMES:
        if time_ms >= newest - BOUND_MS:
            expected.append((str(time_ms), time_ms))
        newest = max(newest, time_ms)
    assert found == expected
    assert len(found) < len(TIMES)


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_a_reader_tells_its_bound(folder: Path, name: str) -> None:
    source = BOUNDED[name](folder)
    (partition,) = names_of(source)
    reader = source.open(partition, None)
    reader.read_batch(7)

    again = source.open(partition, reader.snapshot())

    assert (reader.out_of_order_ms, again.out_of_order_ms) == (BOUND_MS, BOUND_MS)
    reader.close()
    again.close()
