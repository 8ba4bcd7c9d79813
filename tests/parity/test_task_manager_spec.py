"""Promises of Gearpump's `TaskManagerSpec` about the order of a start."""

from gearpy.core.dag import Dag, EdgeSpec, ProcessorSpec
from gearpy.core.deployment import Command, Deployment, Ready, Send
from gearpy.ids import ActorPath, ExecutorId, ProcessorId
from gearpy.messages.app import (
    RegisterExecutor,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
)

EXECUTORS = [ExecutorId(0), ExecutorId(1)]
DAG = Dag.build(
    [ProcessorSpec(id=ProcessorId(pid), name=str(pid), parallelism=2) for pid in (0, 1)],
    [EdgeSpec(source=ProcessorId(0), target=ProcessorId(1))],
)


def script_of(commands: list[Command]) -> list[str]:
    """Return what each command does, as a line."""
    return [
        f"{type(each.message).__name__} to {each.executor_id}"
        if isinstance(each, Send)
        else type(each).__name__
        for each in commands
    ]


def test_boot_order() -> None:
    """`TaskManagerSpec`: executors, launch, locations, start, ready, with an answer to each.

    Gearpump has each task register on its own; here an executor answers for its tasks.
    """
    deployment = Deployment(DAG, executors_wanted=2, step_timeout_ms=1000)
    commands = deployment.on_start(0)
    for each in EXECUTORS:
        commands += deployment.on_executor_registered(
            RegisterExecutor(
                executor_id=each,
                executor=ActorPath("", f"executor-{each}"),
                data_address=f"host:{each}",
                slots=2,
                graph_hash=DAG.structural_hash(),
            ),
            0,
        )
    for each in EXECUTORS:
        launched = TasksLaunched(executor_id=each, version=0, attempt=0)
        commands += deployment.on_tasks_launched(launched, 0)
    for each in EXECUTORS:
        received = TaskLocationsReceived(executor_id=each, version=0, attempt=0)
        commands += deployment.on_task_locations_received(received, 0)
    for each in EXECUTORS:
        started = TasksStarted(executor_id=each, version=0, attempt=0)
        commands += deployment.on_tasks_started(started, 0)

    assert script_of(commands) == [
        "LaunchTasks to 0",
        "LaunchTasks to 1",
        "TaskLocationsReady to 0",
        "TaskLocationsReady to 1",
        "StartAllTasks to 0",
        "StartAllTasks to 1",
        "Ready",
    ]
    assert commands[-1] == Ready()


def test_sessions_are_unique_and_counted_from_one() -> None:
    """`TaskManager`: the counter of sessions begins at 1 and never repeats."""
    deployment = Deployment(DAG, executors_wanted=2, step_timeout_ms=1000)

    assert sorted(deployment.sessions.values()) == [1, 2, 3, 4]
    assert deployment.next_session == 5
