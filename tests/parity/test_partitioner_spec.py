"""Promises of Gearpump's `PartitionerSpec`."""

import itertools
from random import Random

from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    HashPartitioner,
    Partitioner,
    ShuffleGroupingPartitioner,
    ShufflePartitioner,
)

TASKS = 10


def targets_of(partitioner: Partitioner, values: list[str]) -> list[int]:
    """Return the task of each record, sent one by one."""
    return [
        partitioner.partition([value], [0], parallelism=TASKS, sender=3)[0][0] for value in values
    ]


def test_hash_gives_one_value_one_task() -> None:
    """`PartitionerSpec`: hash partitioner is stable, also from another sender's instance."""
    data = ["same"] * 3

    one = targets_of(HashPartitioner().fork(Random(1)), data)
    other = targets_of(HashPartitioner().fork(Random(2)), data)

    assert one == other
    assert len(set(one)) == 1


def test_shuffle_goes_round() -> None:
    """`PartitionerSpec`: shuffle partitioner is round robin from a random start."""
    targets = targets_of(ShufflePartitioner().fork(Random(1)), ["same"] * (TASKS + 1))

    assert sorted(targets[:TASKS]) == list(range(TASKS))
    assert targets[TASKS] == targets[0]
    assert all((after - before) % TASKS == 1 for before, after in itertools.pairwise(targets))


def test_broadcast_reaches_every_task() -> None:
    """`PartitionerSpec`: broadcast partitioner returns all partitions."""
    parts = BroadcastPartitioner().partition(["x"], [0], parallelism=TASKS, sender=0)

    assert [target for target, _, _ in parts] == list(range(TASKS))


def test_shuffle_grouping_gives_each_task_as_much() -> None:
    """`PartitionerSpec`: shuffle grouping partitioner, equal counts."""
    targets = targets_of(ShuffleGroupingPartitioner().fork(Random(1)), ["x"] * (10 * TASKS))

    assert {target: targets.count(target) for target in range(TASKS)} == dict.fromkeys(
        range(TASKS), 10
    )
