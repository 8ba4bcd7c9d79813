"""Collections in, lists out."""

import threading
from datetime import UTC, datetime

import pytest

from gearpy.connectors.memory import collection, to_list
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import Source
from tests.connectors.reading import rest_of


def all_of(source: Source) -> list[Message]:
    return [m for name in source.partitions() for m in rest_of(source.open(name, None))]


def test_times_come_from_the_values() -> None:
    source = collection([1, 2], timestamp=lambda n: datetime(1970, 1, 1, 0, 0, n, tzinfo=UTC))

    assert [message.timestamp for message in all_of(source)] == [1000, 2000]


def test_the_watermark_stays_behind_by_the_bound() -> None:
    source = collection([Message("a", 50), Message("b", 45)], out_of_order="10ms")
    reader = source.open("00000", None)

    before = reader.watermark_ms
    reader.read_batch(1)

    assert (before, reader.watermark_ms) == (MIN_MS, 40)


def test_the_collection_is_copied() -> None:
    values = [1]
    source = collection(values)

    values.append(2)

    assert len(all_of(source)) == len(all_of(source)) == 1
    assert source.description == "collection(1 values)"


def test_wrong_arguments_are_refused_when_they_are_written() -> None:
    with pytest.raises(ConfigError, match="leave out timestamp="):
        collection([Message("a", 5)], timestamp=lambda _: 1)
    with pytest.raises(ConfigError, match="partitions is 0"):
        collection([1], partitions=0)
    with pytest.raises(ConfigError, match="is a str"):
        collection([Message("a", "noon")])  # type: ignore[arg-type]


def test_a_value_without_a_time_is_named() -> None:
    reader = collection(["x"], timestamp=int).open("00000", None)

    assert reader.read_batch(1) == Batch([], [])

    [(value, error)] = reader.take_refused()
    assert (value, error.operator) == ("x", "collection(timestamp)")


def test_tasks_share_the_list_and_keep_their_batches_whole() -> None:
    results: list[tuple[int, int]] = []
    sink = to_list(results)

    def write(task: int) -> None:
        writer = sink.open(task, 4)
        for number in range(50):
            writer.write_batch(Batch([(task, number)] * 3, [0] * 3))

    threads = [threading.Thread(target=write, args=(task,)) for task in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 600
    assert all(len(set(results[at : at + 3])) == 1 for at in range(0, 600, 3))


def test_only_a_list_can_be_appended_to() -> None:
    """A tuple or a set would fail with the first record only."""
    with pytest.raises(ConfigError, match="needs a list"):
        to_list(())  # type: ignore[call-overload]
