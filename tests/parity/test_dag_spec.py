"""Promises of Gearpump's `DAGSpec`."""

from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import ProcessorId, TaskId


def test_task_list_and_count_come_from_the_graph() -> None:
    """`DAGSpec`: the tasks of all processors, by parallelism."""
    processors = [
        ProcessorSpec(id=ProcessorId(pid), name=str(pid), parallelism=parallelism)
        for pid, parallelism in enumerate((1, 2, 1))
    ]
    edges = [EdgeSpec(source=ProcessorId(0), target=ProcessorId(pid)) for pid in (1, 2)]

    dag = Dag.build(processors, edges)

    assert dag.task_count == 4
    assert set(dag.tasks()) == {TaskId(0, 0), TaskId(1, 0), TaskId(1, 1), TaskId(2, 0)}
    assert [edge.ends for edge in dag.edges] == [(0, 1), (0, 2)]
