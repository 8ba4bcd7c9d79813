"""Which executor hosts which task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.graph import Dag, ProcessorSpec, place
from gearpy.errors import ConfigError
from gearpy.ids import ExecutorId, ProcessorId


def a_dag(*parallelism: int) -> Dag:
    processors = [
        ProcessorSpec(id=ProcessorId(pid), name=f"p{pid}", parallelism=tasks)
        for pid, tasks in enumerate(parallelism)
    ]
    return Dag.build(processors, [])


def slots(*counts: int) -> dict[ExecutorId, int]:
    return {ExecutorId(executor): count for executor, count in enumerate(counts)}


def test_share_goes_by_slots() -> None:
    placed = place(a_dag(4), slots(3, 1))

    assert list(placed.values()) == [0, 0, 0, 1]


def test_each_executor_has_its_share_of_every_processor() -> None:
    placed = place(a_dag(1, 2, 4, 1), slots(4, 4))

    of_widest = [placed[task] for task in a_dag(1, 2, 4, 1).tasks_of(ProcessorId(2))]
    assert of_widest == [0, 0, 1, 1]
    assert [placed[task] for task in a_dag(1, 2, 4, 1).tasks_of(ProcessorId(1))] == [0, 1]


def test_tasks_of_one_index_are_together_where_processors_are_alike() -> None:
    placed = place(a_dag(4, 4, 4), slots(3, 3, 3, 3))

    assert all(executor == task.task_index for task, executor in placed.items())


@given(
    parallelism=st.lists(st.integers(1, 9), min_size=2, max_size=2),
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_shares_of_a_processor_are_fair(parallelism: list[int], counts: list[int]) -> None:
    dag = a_dag(*parallelism)
    placed = place(dag, slots(*counts))

    for pid, tasks in enumerate(parallelism):
        for executor, count in enumerate(counts):
            found = [placed[task] for task in dag.tasks_of(ProcessorId(pid))].count(
                ExecutorId(executor)
            )
            assert abs(found - tasks * count / sum(counts)) < 2


def test_without_slots_nothing_can_be_placed() -> None:
    with pytest.raises(ConfigError, match="none of 2 executors has a slot"):
        place(a_dag(1), slots(0, 0))


@given(
    parallelism=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any),
)
def test_every_task_has_one_place_and_shares_are_fair(
    parallelism: list[int], counts: list[int]
) -> None:
    """The invariant: shares differ from what is due by less than one, and slots suffice."""
    dag = a_dag(*parallelism)

    placed = place(dag, slots(*counts))

    shares = [list(placed.values()).count(ExecutorId(each)) for each in range(len(counts))]
    assert set(placed) == set(dag.tasks())
    for share, count in zip(shares, counts, strict=True):
        assert abs(share - dag.task_count * count / sum(counts)) < 1
        assert share <= count or dag.task_count > sum(counts)
