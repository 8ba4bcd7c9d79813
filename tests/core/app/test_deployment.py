"""The start and the end of an application's tasks, step by step."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.deployment import (
    TRANSITIONS,
    AttemptFailed,
    AttemptStopped,
    Command,
    Deployment,
    DeploymentState,
    Ready,
    Send,
)
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import (
    LaunchTasks,
    SnapshotFile,
    SnapshotsDamaged,
    StartStep,
    StepDone,
    TaskOffsets,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard

TIMEOUT_MS = 1000
ONE, TWO = ExecutorId(1), ExecutorId(2)
#: Two tasks on each of two executors.
PLACEMENT = {TaskId(0, 0): ONE, TaskId(1, 0): ONE, TaskId(0, 1): TWO, TaskId(1, 1): TWO}
ADDRESSES = {ONE: "host:1", TWO: "host:2", ExecutorId(3): "host:3"}
STATES: tuple[DeploymentState, ...] = get_args(DeploymentState)
STEPS: list[DeploymentState] = ["launching", "locating", "starting", "running"]


def a_deployment(
    *, snapshots: tuple[SnapshotFile, ...] = (), overrides: tuple[TaskOffsets, ...] = ()
) -> Deployment:
    return Deployment(
        version=0,
        region=5,
        attempt=0,
        placement=PLACEMENT,
        addresses=ADDRESSES,
        first_session=10,
        step_timeout_ms=TIMEOUT_MS,
        epoch=4,
        snapshots=snapshots,
        overrides=overrides,
        start_time_ms=77,
    )


def answer(
    deployment: Deployment, executor: ExecutorId, *, attempt: int = 0, now_ms: int = 0
) -> list[Command]:
    about: dict[str, Any] = {"executor_id": executor, "version": 0, "attempt": attempt}
    if deployment.state in get_args(StartStep):
        about["step"] = deployment.state
        return deployment.on_answer(StepDone(**about), now_ms)
    return deployment.on_answer(TasksStopped(**about), now_ms)


def a_deployment_in(state: DeploymentState) -> Deployment:
    """Return a deployment of two executors that has come to a step, at 0."""
    deployment = a_deployment()
    deployment.on_start(0)
    while deployment.state != state:
        answer(deployment, ONE)
        answer(deployment, TWO)
    return deployment


def sent(commands: list[Command]) -> list[tuple[int, type]]:
    return [(each.executor_id, type(each.message)) for each in commands if isinstance(each, Send)]


def test_each_executor_is_told_its_own_tasks_and_sessions() -> None:
    deployment = a_deployment()

    commands = deployment.on_start(0)

    assert sent(commands) == [(1, LaunchTasks), (2, LaunchTasks)]
    launches = [
        command.message
        for command in commands
        if isinstance(command, Send) and isinstance(command.message, LaunchTasks)
    ]
    tasks = {launch.task_id: launch.session for message in launches for launch in message.tasks}
    assert [launch.task_id for launch in launches[0].tasks] == [TaskId(0, 0), TaskId(1, 0)]
    assert tasks == deployment.sessions
    assert sorted(tasks.values()) == [10, 11, 12, 13]
    assert {(each.region, each.version, each.attempt, each.epoch) for each in launches} == {
        (5, 0, 0, 4)
    }


def damaged(executor: ExecutorId, *, attempt: int = 0, location: str = "a") -> SnapshotsDamaged:
    return SnapshotsDamaged(
        executor_id=executor, version=0, attempt=attempt, location=location, reason="too short"
    )


def test_an_answer_to_another_step_is_ignored() -> None:
    deployment = a_deployment_in("locating")

    commands = deployment.on_answer(
        StepDone(executor_id=ONE, version=0, attempt=0, step="starting"), 0
    )

    assert commands == []


@pytest.mark.parametrize("state", STEPS[:3])
def test_past_its_time_a_step_fails_by_name(state: DeploymentState) -> None:
    deployment = a_deployment_in(state)
    answer(deployment, TWO)

    commands = deployment.on_tick(TIMEOUT_MS)

    cause = f"no answer in step {state} after 1000 ms from executor 1"
    assert commands == [AttemptFailed(cause=cause, silent=(ONE,))]
    assert deployment.state == "failed"
    assert deployment.on_tick(TIMEOUT_MS * 9) == []


def test_unknown_executor_is_no_loss() -> None:
    deployment = a_deployment_in("running")

    assert deployment.on_executor_lost(ExecutorId(9), 0) == []


def test_stopped_when_all_have_stopped_with_their_errors() -> None:
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)
    card = ErrorCard(cause="disk full")

    first = deployment.on_answer(
        TasksStopped(executor_id=ONE, version=0, attempt=0, errors=(card,)), 0
    )
    second = answer(deployment, TWO)

    assert first == []
    assert second == [AttemptStopped(errors=(card,))]
    assert deployment.state == "stopped"


def test_lost_after_it_has_stopped_changes_nothing() -> None:
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)
    answer(deployment, ONE)

    assert deployment.on_executor_lost(ONE, 0) == []
    assert answer(deployment, TWO) == [AttemptStopped(errors=())]


def test_stop_without_executors_is_over_at_once() -> None:
    deployment = a_deployment_in("running")
    deployment.on_executor_lost(ONE, 0)
    deployment.on_executor_lost(TWO, 0)

    assert deployment.stop(completed=False, now_ms=0) == [AttemptStopped(errors=())]


def test_table_has_a_way_out_of_every_state_but_the_last() -> None:
    with_exit = {state for state, _ in TRANSITIONS}

    assert with_exit == set(STATES) - {"stopped"}
    assert set(TRANSITIONS.values()) == set(STATES) - {"created"}


steps = st.lists(
    st.tuples(
        st.sampled_from(["answer", "lost", "tick", "stop", "damaged"]),
        st.sampled_from([ONE, TWO, ExecutorId(3)]),
        st.integers(0, 1),
    ),
    max_size=40,
)


@given(steps)
def test_any_order_of_events_comes_to_an_end(steps: list[tuple[str, ExecutorId, int]]) -> None:
    """The invariant: no step before all have done the last one, and time always ends it."""
    deployment, now_ms = a_deployment(), 0
    commands = deployment.on_start(0)
    for kind, executor, attempt in steps:
        now_ms += 100
        before = deployment.state
        if kind == "answer":
            commands += answer(deployment, executor, attempt=attempt, now_ms=now_ms)
        elif kind == "damaged":
            commands += deployment.on_answer(damaged(executor, attempt=attempt), now_ms)
        elif kind == "lost":
            commands += deployment.on_executor_lost(executor, now_ms)
        elif kind == "tick":
            commands += deployment.on_tick(now_ms)
        else:
            commands += deployment.stop(completed=False, now_ms=now_ms)
        nexts = {after for (state, _), after in TRANSITIONS.items() if state == before}
        assert deployment.state in {before, *nexts, "stopped"}

    for _ in range(3):
        now_ms += TIMEOUT_MS
        commands += deployment.on_tick(now_ms)
    assert deployment.state in {"running", "stopped", "failed"}
    assert sum(isinstance(each, Ready) for each in commands) <= 1
    assert sum(isinstance(each, AttemptFailed) for each in commands) <= 1
    assert any(isinstance(each, AttemptStopped) for each in commands) == (
        deployment.state == "stopped"
    )
