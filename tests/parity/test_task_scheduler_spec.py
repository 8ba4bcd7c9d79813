"""Promises of Gearpump's `TaskSchedulerSpec`; pinned tasks are not ported."""

from gearpy.core.dag.graph import Dag, ProcessorSpec
from gearpy.core.dag.placement import place
from gearpy.ids import ExecutorId, ProcessorId


def test_processors_interleave_over_executors() -> None:
    """`TaskSchedulerSpec`: tasks of every processor are spread fairly over executors."""
    processors = [
        ProcessorSpec(id=ProcessorId(pid), name=str(pid), parallelism=4) for pid in range(3)
    ]
    dag = Dag.build(processors, [])

    placed = place(dag, {ExecutorId(executor): 3 for executor in range(4)})

    for executor in range(4):
        hosted = [task for task, place in placed.items() if place == executor]
        assert sorted(task.processor for task in hosted) == [0, 1, 2]
