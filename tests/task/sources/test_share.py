"""Partitions are shared out by their names: each belongs to one task, whatever comes later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.task.sources.share import Share, partition_number


def names(topics: dict[str, int]) -> list[str]:
    return [f"{topic}/{at}" for topic, count in topics.items() for at in range(count)]


@pytest.mark.parametrize(
    ("name", "other", "step"), [("t/3", "t/4", 1), ("t/0", "t/10", 10), ("a/b/1", "a/b/2", 1)]
)
def test_numbers_of_neighbours_follow_each_other(name: str, other: str, step: int) -> None:
    assert (partition_number(other) - partition_number(name)) % 2**32 == step
    assert 0 <= partition_number("no number") < 2**32


@given(
    found=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
    grown=st.integers(0, 3),
    parallelism=st.integers(1, 5),
)
def test_each_partition_belongs_to_one_task_also_when_there_are_more(
    found: dict[str, int], grown: int, parallelism: int
) -> None:
    shares = [Share(index, parallelism) for index in range(parallelism)]
    later = {topic: count + grown for topic, count in found.items()}
    read: list[str] = []
    for topics in (found, later, later):
        for share in shares:
            new = share.new_of(names(topics))
            share.known.update(new)
            read += new
    assert sorted(read) == sorted(names(later))


@given(count=st.integers(1, 20), parallelism=st.integers(1, 6))
def test_numbered_partitions_are_spread_evenly(count: int, parallelism: int) -> None:
    shares = [Share(index, parallelism) for index in range(parallelism)]
    sizes = [len(share.new_of(names({"t": count}))) for share in shares]
    assert max(sizes) - min(sizes) <= 1
