"""Side outputs: which edge gets which records."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    CoLocationPartitioner,
    ShufflePartitioner,
)
from gearpy.task.api.sides import MAIN, Side, SidePartitioner

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
    partitioner = SidePartitioner(CoLocationPartitioner(), tags)

    parts = partitioner.partition(MIXED, TIMES, parallelism=3, sender=2)

    assert parts == ([] if values is None else [(2, values, times)])


def test_name_tells_the_sides() -> None:
    """It stands in plans and counts in the hash of the graph; a main edge is called as ever."""
    inner = ShufflePartitioner()

    names = [SidePartitioner(inner, tags).name for tags in ({MAIN}, {"b", "a"}, {MAIN, "a"})]

    assert names == ["shuffle", "shuffle of a, b", "shuffle of all, a"]


def test_edge_is_checked_as_its_partitioner_says() -> None:
    partitioner = SidePartitioner(CoLocationPartitioner(), {"late"})

    assert partitioner.check(source_parallelism=2, target_parallelism=2) is None
    assert "parallelism is 2 on one side" in str(
        partitioner.check(source_parallelism=2, target_parallelism=3)
    )


def test_senders_have_partitioners_of_their_own() -> None:
    partitioner = SidePartitioner(ShufflePartitioner(), {"late"})
    sides = [Side("late", 1)]
    first, second = partitioner.fork(Random(1)), partitioner.fork(Random(1))

    targets = [
        each.partition(sides, [0], parallelism=3, sender=0)[0][0]
        for each in (first, first, second, second)
    ]

    assert targets[0] == targets[2]
    assert targets[1] == targets[3]


TAGS = st.sampled_from([MAIN, "a", "b"])


@given(st.lists(TAGS), st.lists(st.sets(TAGS, min_size=1), max_size=3))
def test_every_record_goes_to_the_edges_of_its_tag(tags: list[str], edges: list[set[str]]) -> None:
    values = [at if tag == MAIN else Side(tag, at) for at, tag in enumerate(tags)]

    for edge in edges:
        partitioner = SidePartitioner(BroadcastPartitioner(), edge)
        parts = partitioner.partition(values, list(range(len(tags))), parallelism=2, sender=0)
        wanted = [at for at, tag in enumerate(tags) if tag in edge]
        assert parts == ([(0, wanted, wanted), (1, wanted, wanted)] if wanted else [])
