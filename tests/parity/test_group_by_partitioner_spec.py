"""Promises of Gearpump's `GroupByPartitionerSpec`."""

from random import Random
from typing import NamedTuple

from gearpy.core.flow.partition import GroupByPartitioner


class Person(NamedTuple):
    """A record with something to group by."""

    name: str
    gender: str


def test_records_of_one_group_meet_in_one_task() -> None:
    """`GroupByPartitionerSpec`: partition by what the function returns, not by the value."""
    partitioner = GroupByPartitioner(lambda person: person.gender).fork(Random(1))
    people = [Person("Michelle", "female"), Person("Norman", "male"), Person("Mary", "female")]

    parts = partitioner.partition(people, [0, 1, 2], parallelism=10, sender=0)

    tasks_of = {
        gender: [target for target, part, _ in parts if gender in {p.gender for p in part}]
        for gender in ("female", "male")
    }
    assert all(len(tasks) == 1 for tasks in tasks_of.values())
