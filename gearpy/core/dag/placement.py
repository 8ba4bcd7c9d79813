"""Which executor hosts which task."""

from collections.abc import Mapping
from itertools import accumulate

from gearpy.core.dag.graph import Dag
from gearpy.errors import ConfigError
from gearpy.ids import ExecutorId, TaskId


def place(dag: Dag, executor_slots: Mapping[ExecutorId, int]) -> dict[TaskId, ExecutorId]:
    """Give every task an executor, by the executors' slots.

    Tasks are taken by index and then by processor, so that every executor gets some of
    each processor and a record often finds its next task in the same process. An executor
    gets its share of the tasks, rounded; it gets more tasks than it has slots only where
    there are more tasks than slots at all. Gearpump: `TaskScheduler`.

    Raises:
        ConfigError: no executor has a slot.
    """
    slots = {executor: executor_slots[executor] for executor in sorted(executor_slots)}
    total = sum(slots.values())
    if total <= 0:
        raise ConfigError(f"none of {len(slots)} executors has a slot: give one at least 1")
    tasks = sorted(dag.tasks(), key=lambda task: (task.task_index, task.processor))
    # Rounding the running total keeps every share within one of what is due.
    ends = [len(tasks) * taken // total for taken in accumulate(slots.values())]
    starts = [0, *ends]
    return {
        task: executor
        for executor, start, end in zip(slots, starts, ends, strict=False)
        for task in tasks[start:end]
    }
