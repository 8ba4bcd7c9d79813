"""Records of a task's partitions, off one client: dealt, held back, and errors told apart."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.kafka.client import ClientState
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.reading.feed import Feed
from gearpy.connectors.kafka.reading.positions import name_of
from gearpy.connectors.kafka.reading.raw import Raw, RawColumns
from gearpy.errors import OperatorError


class Client:
    """A consumer that gives what a test puts into it, and notes what it is told."""

    def __init__(self) -> None:
        self.portions: list[Sequence[Message]] = []
        self.calls: list[tuple[str, str]] = []

    def consume(self, number: int, timeout: float) -> Sequence[Message]:
        assert timeout == 0
        return self.portions.pop(0) if self.portions else []

    def __getattr__(self, name: str) -> Any:
        def note(places: Sequence[TopicPartition]) -> None:
            self.calls += [(name, name_of(each.topic, each.partition)) for each in places]

        return note


def a_feed(*names: str) -> tuple[Client, Feed, ClientState]:
    client, state = Client(), ClientState(KafkaCluster("a:1"))
    columns = RawColumns(times=False, rest=False)
    feed = Feed(client, state, "kafka(t)", columns)  # type: ignore[arg-type] # It has what is asked of it.
    for name in names:
        feed.add(name, 0)
    client.calls.clear()
    return client, feed, state


def a_record(name: str, offset: int, size: int = 1) -> Message:
    topic, _, number = name.rpartition("/")
    return Message(topic=topic, partition=int(number), offset=offset, value=b"x" * size)


def an_error(code: int, name: str | None, offset: int = 0) -> Message:
    error = KafkaError(code)
    if name is None:
        return Message(error=error)
    topic, _, number = name.rpartition("/")
    return Message(topic=topic, partition=int(number), offset=offset, error=error)


def taken(feed: Feed, name: str) -> list[Any]:
    """Return all that comes of a partition: offsets of records, ends, errors by their names."""
    found: list[Any] = []
    while (item := feed.take(name)) is not None:
        if isinstance(item, Raw):
            found += item.offsets
        else:
            found.append(f"end at {item}" if isinstance(item, int) else item.name())
    return found


@given(
    runs=st.lists(
        st.tuples(st.sampled_from(["a/0", "a/1", "b/0", "a/9", "b/9"]), st.integers(1, 4)),
        max_size=8,
    ),
    cuts=st.lists(st.integers(0, 32), max_size=3),
    names=st.sampled_from([["a/0"], ["a/0", "a/1"], ["a/0", "a/1", "b/0"]]),
)
def test_each_partition_gets_its_records_in_their_order(
    runs: list[tuple[str, int]], cuts: list[int], names: list[str]
) -> None:
    """However they come mixed; those of a partition that is read no more are passed over."""
    client, feed, _ = a_feed(*names, "a/9", "b/9")
    feed.remove("a/9")
    feed.remove("b/9")
    offsets = dict.fromkeys([*names, "a/9", "b/9"], 0)
    records = []
    for name, count in runs:
        for _ in range(count if name in offsets else 0):
            records.append(a_record(name, offsets[name]))
            offsets[name] += 1
    ends = sorted({0, *cuts, len(records)})
    portions = [records[begin:end] for begin, end in pairwise(ends)]
    client.portions = [portion for portion in portions if portion]
    found = {name: taken(feed, name) for name in names}
    while client.portions:
        for name in names:
            found[name] += taken(feed, name)
    for name in names:
        found[name] += taken(feed, name)
    assert found == {name: list(range(offsets[name])) for name in names}


def test_what_is_taken_ahead_comes_later_and_is_bounded() -> None:
    """While a parser is waited for; what one partition has too much of is not taken for another."""
    client, feed, _ = a_feed("a/0", "a/1")
    assert not feed.reads_ahead()
    at = range(0, 30_000, 1000)
    client.portions = [[a_record("a/1", first + n) for n in range(1000)] for first in at]
    while feed.reads_ahead():
        pass
    assert len(client.portions) == 10
    assert client.calls == []
    assert taken(feed, "a/1") == list(range(30_000))


def test_ends_and_errors_stand_where_they_came() -> None:
    client, feed, _ = a_feed("a/0", "a/1")
    end, gone = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - names of the client
    client.portions = [
        [
            a_record("a/0", 0),
            an_error(end, "a/0", 1),
            a_record("a/0", 1),
            an_error(gone, "a/1"),
            an_error(end, "b/0", 9),
        ]
    ]
    assert taken(feed, "a/0") == [0, "end at 1", 1]
    assert taken(feed, "a/1") == ["_AUTO_OFFSET_RESET"]


def test_trouble_of_the_client_is_told_or_ends_it() -> None:
    client, feed, state = a_feed("a/0")
    client.portions = [[an_error(KafkaError.LEADER_NOT_AVAILABLE, "a/0")]]
    assert taken(feed, "a/0") == []
    assert state.waits_for.startswith("kafka a:1: ")
    client.portions = [[a_record("a/0", 0)]]
    assert taken(feed, "a/0") == [0]
    assert state.waits_for == ""
    client.portions = [[an_error(KafkaError.GROUP_AUTHORIZATION_FAILED, None)]]
    with pytest.raises(OperatorError, match="no right to the group"):
        taken(feed, "a/0")


@pytest.mark.parametrize("size", [1, 20_000], ids=["many", "large"])
def test_a_partition_that_is_not_read_is_paused_until_it_is(size: int) -> None:
    client, feed, _ = a_feed("a/0", "a/1")
    calls, waiting = [], 0
    while not client.calls:
        client.portions = [[a_record("a/1", waiting + at, size) for at in range(1000)]]
        assert taken(feed, "a/0") == []
        waiting += 1000
        assert waiting <= 30_000
    calls += client.calls
    assert calls == [("pause", "a/1")]
    assert waiting * size <= 40_000_000
    assert taken(feed, "a/1") == list(range(waiting))
    assert client.calls == [("pause", "a/1"), ("resume", "a/1")]


def test_a_partition_that_is_removed_is_forgotten() -> None:
    client, feed, _ = a_feed("a/0", "a/1")
    client.portions = [[a_record("a/1", 0)]]
    taken(feed, "a/0")
    feed.remove("a/1")
    feed.remove("a/1")
    assert client.calls == [("incremental_unassign", "a/1")]
    feed.add("a/1", 0)
    assert taken(feed, "a/1") == []
