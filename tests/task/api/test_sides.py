"""Side outputs: which edge gets which records."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    CoLocationPartitioner,
    GroupByPartitioner,
    ShufflePartitioner,
)
from gearpy.task.api.sides import MAIN, Side, SidePartitioner, split_sides
from gearpy.wire.values.payload import decode_batch, encode_batch

MIXED = [1, Side("late", 2), 3, Side("other", 4), Side("late", 5)]
TIMES = [10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    ("tags", "values", "times"),
    [
        ({MAIN}, [1, 3], [10, 30]),
        ({"late"}, [2, 5], [20, 50]),
        ({MAIN, "late"}, [1, 2, 3, 5], [10, 20, 30, 50]),
        ({"nobody"}, None, None),
    ],
    ids=["main", "side", "both", "none"],
)
def test_edge_gets_the_records_it_is_for(
    tags: set[str], values: list[int] | None, times: list[int] | None
) -> None:
    """Unwrapped, in their order, each with its time."""
    partitioner = SidePartitioner(CoLocationPartitioner(), tags)

    parts = partitioner.partition(MIXED, TIMES, parallelism=3, sender=2)

    assert parts == ([] if values is None else [(2, values, times)])


def test_batch_without_sides_is_handed_on_as_it_is() -> None:
    """A main edge looks at types only; a side edge has nothing to send."""
    values, times = [1, 2], [1, 2]
    main = SidePartitioner(BroadcastPartitioner(), {MAIN})
    side = SidePartitioner(BroadcastPartitioner(), {"late"})

    ((_, handed_on, _),) = main.partition(values, times, parallelism=1, sender=0)

    assert handed_on is values
    assert side.partition(values, times, parallelism=1, sender=0) == []


def test_side_is_spread_by_its_records() -> None:
    """A key function gets the record, not what it is wrapped in."""
    partitioner = SidePartitioner(GroupByPartitioner(lambda n: n % 2), {"late"})
    values = [Side("late", n) for n in range(10)]

    parts = partitioner.partition(values, list(range(10)), parallelism=4, sender=0)

    assert sorted(sorted(part) for _, part, _ in parts) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_name_tells_the_sides() -> None:
    """It stands in plans and counts in the hash of the graph; a main edge is called as ever."""
    inner = ShufflePartitioner()

    names = [SidePartitioner(inner, tags).name for tags in ({MAIN}, {"b", "a"}, {MAIN, "a"})]

    assert names == ["shuffle", "shuffle of a, b", "shuffle of all, a"]


def test_edge_is_checked_as_its_partitioner_says() -> None:
    """A side may go where the main output cannot."""
    partitioner = SidePartitioner(CoLocationPartitioner(), {"late"})

    assert partitioner.check(source_parallelism=2, target_parallelism=2) is None
    assert "parallelism is 2 on one side" in str(
        partitioner.check(source_parallelism=2, target_parallelism=3)
    )


def test_senders_have_partitioners_of_their_own() -> None:
    """One deals round robin and remembers where it was."""
    partitioner = SidePartitioner(ShufflePartitioner(), {"late"})
    sides = [Side("late", 1)]
    first, second = partitioner.fork(Random(1)), partitioner.fork(Random(1))

    targets = [
        each.partition(sides, [0], parallelism=3, sender=0)[0][0]
        for each in (first, first, second, second)
    ]

    assert targets[0] == targets[2]
    assert targets[1] == targets[3]


def test_sides_travel_between_processes_and_into_snapshots() -> None:
    """They are records that every process knows."""
    body = b"".join(encode_batch(MIXED, TIMES))

    assert decode_batch(body, len(MIXED)).values == MIXED


def test_split_parts_main_and_sides() -> None:
    """Without sides nothing is copied."""
    values, times = [1, 2], [1, 2]

    same, _, none = split_sides(values, times)
    main, main_times, sides = split_sides(MIXED, TIMES)

    assert same is values
    assert len(none) == 0
    assert (main, main_times) == ([1, 3], [10, 30])
    assert (sides.values, sides.timestamps) == ([MIXED[1], MIXED[3], MIXED[4]], [20, 40, 50])


TAGS = st.sampled_from([MAIN, "a", "b"])


@given(st.lists(TAGS), st.lists(st.sets(TAGS, min_size=1), max_size=3))
def test_every_record_goes_to_the_edges_of_its_tag(tags: list[str], edges: list[set[str]]) -> None:
    """Invariant: to all of them, and to no others."""
    values = [at if tag == MAIN else Side(tag, at) for at, tag in enumerate(tags)]

    for edge in edges:
        partitioner = SidePartitioner(BroadcastPartitioner(), edge)
        parts = partitioner.partition(values, list(range(len(tags))), parallelism=2, sender=0)
        wanted = [at for at, tag in enumerate(tags) if tag in edge]
        assert parts == ([(0, wanted, wanted), (1, wanted, wanted)] if wanted else [])
