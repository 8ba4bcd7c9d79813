"""Promises of Gearpump's `TaskManagerSpec` about the order of a start."""

from random import Random

from gearpy.core.app.application import ApplicationCore, RecoveryLimits, RequestSlots
from gearpy.core.app.deployment import Command, Deployment, Ready, Send
from gearpy.core.base.restart import RestartPolicy
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import TaskLocationsReceived, TasksLaunched, TasksStarted

EXECUTORS = [ExecutorId(0), ExecutorId(1)]
TASKS = [TaskId(pid, index) for pid in (0, 1) for index in (0, 1)]


def a_deployment() -> Deployment:
    """Return a deployment of a task of each of two processors on each of two executors."""
    return Deployment(
        version=0,
        region=0,
        attempt=0,
        placement={task: ExecutorId(task.task_index) for task in TASKS},
        addresses={each: f"host:{each}" for each in EXECUTORS},
        first_session=1,
        step_timeout_ms=1000,
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
    """`TaskManagerSpec`: launch, locations, start, ready, with an answer to each.

    Gearpump has each task register on its own; here an executor answers for its tasks.
    """
    deployment = a_deployment()
    commands = deployment.on_start(0)
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
    assert list(a_deployment().sessions.values()) == [1, 2, 3, 4]


def test_executors_come_before_tasks() -> None:
    """`TaskManagerSpec`: the first thing that is done is to ask for executors."""
    dag = Dag.build(
        [ProcessorSpec(id=ProcessorId(pid), name=str(pid), parallelism=2) for pid in (0, 1)],
        [EdgeSpec(source=ProcessorId(0), target=ProcessorId(1))],
    )
    limits = RecoveryLimits(
        restarts=RestartPolicy(max_restarts=5),
        poison_attempts=3,
        step_timeout_ms=1000,
        start_timeout_ms=1000,
        allocation_timeout_ms=1000,
        epoch_cut="position",
        epoch_pace="fixed",
        max_overhead_percent=10,
        max_replay_ms=1000,
        epoch_timeout_ms=1000,
        epoch_interval_ms=1000,
        epochs_retained=1,
        stall_after_ms=1000,
    )
    manager = ApplicationCore(dag, executors=2, limits=limits, launch=1, rng=Random(1), now_ms=0)

    assert manager.on_start(0) == [RequestSlots(slots=4, executors=2)]
