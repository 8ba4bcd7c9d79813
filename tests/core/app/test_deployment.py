"""The start and the end of an application's tasks, step by step."""

from typing import get_args

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
    StartAllTasks,
    StopAllTasks,
    TaskLocationsReady,
    TaskLocationsReceived,
    TaskOffsets,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard

TIMEOUT_MS = 1000
ONE, TWO = ExecutorId(1), ExecutorId(2)
#: Two tasks on each of two executors.
PLACEMENT = {
    TaskId(0, 0): ONE,
    TaskId(1, 0): ONE,
    TaskId(0, 1): TWO,
    TaskId(1, 1): TWO,
}
ADDRESSES = {ONE: "host:1", TWO: "host:2", ExecutorId(3): "host:3"}
STATES: tuple[DeploymentState, ...] = get_args(DeploymentState)
STEPS: list[DeploymentState] = ["launching", "locating", "starting", "running"]


def a_deployment(
    *, snapshots: tuple[SnapshotFile, ...] = (), overrides: tuple[TaskOffsets, ...] = ()
) -> Deployment:
    """Return a deployment that has not begun."""
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
    """Give an executor's answer to the step at hand."""
    match deployment.state:
        case "launching":
            launched = TasksLaunched(executor_id=executor, version=0, attempt=attempt)
            return deployment.on_tasks_launched(launched, now_ms)
        case "locating":
            received = TaskLocationsReceived(executor_id=executor, version=0, attempt=attempt)
            return deployment.on_task_locations_received(received, now_ms)
        case "starting":
            started = TasksStarted(executor_id=executor, version=0, attempt=attempt)
            return deployment.on_tasks_started(started, now_ms)
        case _:
            stopped = TasksStopped(executor_id=executor, version=0, attempt=attempt)
            return deployment.on_tasks_stopped(stopped, now_ms)


def a_deployment_in(state: DeploymentState) -> Deployment:
    """Return a deployment of two executors that has come to a step, at 0."""
    deployment = a_deployment()
    deployment.on_start(0)
    while deployment.state != state:
        answer(deployment, ONE)
        answer(deployment, TWO)
    return deployment


def sent(commands: list[Command]) -> list[tuple[int, type]]:
    """Return executor and kind of each message sent."""
    return [(each.executor_id, type(each.message)) for each in commands if isinstance(each, Send)]


def test_each_executor_is_told_its_own_tasks_and_sessions() -> None:
    """Every task once, each with a session of its own."""
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


def test_each_executor_is_told_the_snapshots_of_its_tasks() -> None:
    """Wherever those ran when the snapshots were made."""
    mine = SnapshotFile(location="a", sha256="", tasks=(TaskId(0, 0),))
    both = SnapshotFile(location="b", sha256="", tasks=(TaskId(1, 0), TaskId(1, 1)))

    commands = a_deployment(snapshots=(mine, both)).on_start(0)

    snapshots = [
        each.message.snapshots
        for each in commands
        if isinstance(each, Send) and isinstance(each.message, LaunchTasks)
    ]
    assert snapshots == [(mine, both), (both,)]


def test_snapshots_keep_their_order() -> None:
    """Of what two files say of a task, the later one counts."""
    names = "dacbe"
    files = tuple(
        SnapshotFile(location=name, sha256="", tasks=(TaskId(at % 2, 0), TaskId(1, 1)))
        for at, name in enumerate(names)
    )

    commands = a_deployment(snapshots=files).on_start(0)

    for each in commands:
        assert isinstance(each, Send)
        assert isinstance(each.message, LaunchTasks)
        assert each.message.snapshots == files


def test_each_executor_is_told_the_overrides_of_its_tasks() -> None:
    """Others it could not use."""
    overrides = tuple(
        TaskOffsets(task_id=TaskId(0, index), offsets={"p": bytes([index])}) for index in (0, 1, 7)
    )

    commands = a_deployment(overrides=overrides).on_start(0)

    told = [
        each.message.overrides
        for each in commands
        if isinstance(each, Send) and isinstance(each.message, LaunchTasks)
    ]
    assert told == [overrides[:1], overrides[1:2]]


def damaged(executor: ExecutorId, *, attempt: int = 0, location: str = "a") -> SnapshotsDamaged:
    """Return that an executor cannot go on from the snapshots."""
    return SnapshotsDamaged(
        executor_id=executor, version=0, attempt=attempt, location=location, reason="too short"
    )


def test_damaged_snapshots_fail_the_start() -> None:
    """All are stopped then, the one that said so too, as others have made their tasks."""
    deployment = a_deployment_in("launching")
    answer(deployment, ONE)

    commands = deployment.on_snapshots_damaged(damaged(TWO), 0)

    cause = "executor 2 could not read a: too short"
    assert commands == [AttemptFailed(cause=cause, damaged=damaged(TWO))]
    assert deployment.state == "failed"
    stops = deployment.stop(completed=False, now_ms=0)
    assert sent(stops) == [(1, StopAllTasks), (2, StopAllTasks)]


def test_damaged_snapshots_without_a_name_fail_the_start_too() -> None:
    """It could not even be told which file it was."""
    [failed] = a_deployment_in("launching").on_snapshots_damaged(damaged(ONE, location=""), 0)

    assert isinstance(failed, AttemptFailed)
    assert failed.cause == "executor 1 could not read the snapshots: too short"


def test_damage_counts_once_and_only_while_tasks_are_made() -> None:
    """What comes later, twice, or from another attempt, is about tasks that are gone."""
    deployment = a_deployment_in("launching")
    answer(deployment, ONE)

    late = [
        deployment.on_snapshots_damaged(damaged(ONE), 0),
        deployment.on_snapshots_damaged(damaged(TWO, attempt=1), 0),
        a_deployment_in("locating").on_snapshots_damaged(damaged(ONE), 0),
    ]
    deployment.on_snapshots_damaged(damaged(TWO), 0)
    late.append(deployment.on_snapshots_damaged(damaged(TWO), 0))

    assert late == [[]] * 4


def test_everybody_is_told_where_all_tasks_are() -> None:
    """Also where they are themselves; an executor that has none of them is not among them."""
    deployment = a_deployment_in("launching")
    answer(deployment, ONE)

    commands = answer(deployment, TWO)

    assert sent(commands) == [(1, TaskLocationsReady), (2, TaskLocationsReady)]
    message = next(each.message for each in commands if isinstance(each, Send))
    assert isinstance(message, TaskLocationsReady)
    assert [(each.executor_id, each.data_address) for each in message.locations] == [
        (1, "host:1"),
        (2, "host:2"),
    ]
    assert sorted(task for each in message.locations for task in each.tasks) == sorted(PLACEMENT)


def test_sources_are_told_the_start_time() -> None:
    """A recovery begins where the checkpoint is."""
    deployment = a_deployment_in("locating")
    answer(deployment, ONE)

    commands = answer(deployment, TWO)

    assert commands[0] == Send(
        executor_id=ONE, message=StartAllTasks(version=0, attempt=0, start_time_ms=77)
    )


def test_ready_when_all_have_started() -> None:
    """The application is active from here on."""
    deployment = a_deployment_in("starting")

    assert answer(deployment, ONE) == []
    assert answer(deployment, TWO) == [Ready()]
    assert deployment.state == "running"


@pytest.mark.parametrize("state", STEPS[:3])
def test_a_repeated_answer_counts_once(state: DeploymentState) -> None:
    """A message that was sent again is answered again."""
    deployment = a_deployment_in(state)

    answer(deployment, ONE)
    again = answer(deployment, ONE)

    assert again == []
    assert deployment.state == state
    assert deployment.ignored == 1


@pytest.mark.parametrize("state", [*STEPS[:3], "stopping"])
def test_an_answer_of_another_attempt_is_ignored(state: DeploymentState) -> None:
    """It is about tasks that are gone."""
    deployment = a_deployment_in("launching" if state == "stopping" else state)
    if state == "stopping":
        deployment.stop(completed=False, now_ms=0)

    answer(deployment, ONE, attempt=1)
    answer(deployment, TWO, attempt=1)

    assert deployment.state == state
    assert deployment.ignored == 2


def test_an_answer_to_another_step_is_ignored() -> None:
    """It came late, or from an executor out of step."""
    deployment = a_deployment_in("locating")

    commands = deployment.on_tasks_started(TasksStarted(executor_id=ONE, version=0, attempt=0), 0)

    assert commands == []
    assert deployment.ignored == 1


@pytest.mark.parametrize("state", STEPS[:3])
def test_half_way_the_step_is_sent_again_to_the_silent_once(state: DeploymentState) -> None:
    """One lost message costs half a time-out, not the application."""
    deployment = a_deployment_in(state)
    answer(deployment, ONE)

    early = deployment.on_tick(TIMEOUT_MS // 2 - 1)
    half = deployment.on_tick(TIMEOUT_MS // 2)
    later = deployment.on_tick(TIMEOUT_MS - 1)

    assert (early, later) == ([], [])
    assert [executor for executor, _ in sent(half)] == [TWO]


@pytest.mark.parametrize("state", STEPS[:3])
def test_past_its_time_a_step_fails_by_name(state: DeploymentState) -> None:
    """The text says which step, how long and who was silent."""
    deployment = a_deployment_in(state)
    answer(deployment, TWO)

    commands = deployment.on_tick(TIMEOUT_MS)

    cause = f"no answer in step {state} after 1000 ms from executor 1"
    assert commands == [AttemptFailed(cause=cause, silent=(ONE,))]
    assert deployment.state == "failed"
    assert deployment.on_tick(TIMEOUT_MS * 9) == []


def test_who_was_silent_is_asked_nothing_more() -> None:
    """It will be killed; who waits for it waits in vain."""
    deployment = a_deployment_in("launching")
    answer(deployment, TWO)
    deployment.on_tick(TIMEOUT_MS)

    commands = deployment.stop(completed=False, now_ms=TIMEOUT_MS)

    assert sent(commands) == [(2, StopAllTasks)]
    assert answer(deployment, TWO) == [AttemptStopped(errors=(), silent=())]


def test_each_step_has_its_own_time() -> None:
    """A slow start is no failure as long as it goes on."""
    deployment = a_deployment()
    deployment.on_start(900)
    answer(deployment, ONE, now_ms=1800)
    answer(deployment, TWO, now_ms=1800)

    assert deployment.on_tick(2000) == []
    assert deployment.state == "locating"


def test_running_has_no_deadline() -> None:
    """Time-outs are for steps."""
    assert a_deployment_in("running").on_tick(10**9) == []


@pytest.mark.parametrize("state", STEPS)
def test_executor_lost_later_fails(state: DeploymentState) -> None:
    """Its tasks are gone; others decide whether to try again."""
    deployment = a_deployment_in(state)

    [failed] = deployment.on_executor_lost(TWO, 0)

    assert isinstance(failed, AttemptFailed)
    assert failed.cause.startswith("executor 2 lost")
    assert deployment.executors == (ONE,)


def test_unknown_executor_is_no_loss() -> None:
    """One that has no task, or was lost before."""
    deployment = a_deployment_in("running")

    assert deployment.on_executor_lost(ExecutorId(9), 0) == []
    assert deployment.ignored == 1


def test_stop_goes_to_all_at_once() -> None:
    """The end of one does not wait for the end of another."""
    commands = a_deployment_in("running").stop(completed=True, now_ms=5)

    stop = StopAllTasks(version=0, attempt=0, completed=True)
    assert commands == [Send(executor_id=ONE, message=stop), Send(executor_id=TWO, message=stop)]


def test_stopped_when_all_have_stopped_with_their_errors() -> None:
    """What `on_stop` raised is not lost."""
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)
    card = ErrorCard(cause="disk full")

    first = deployment.on_tasks_stopped(
        TasksStopped(executor_id=ONE, version=0, attempt=0, errors=(card,)), 0
    )
    second = answer(deployment, TWO)

    assert first == []
    assert second == [AttemptStopped(errors=(card,))]
    assert deployment.state == "stopped"


def test_stopping_ends_even_if_an_executor_is_silent_or_lost() -> None:
    """Nothing waits for ever, and the loss is told."""
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)

    lost = deployment.on_executor_lost(ONE, 10)
    commands = deployment.on_tick(TIMEOUT_MS)

    assert lost == []
    [stopped] = commands
    assert isinstance(stopped, AttemptStopped)
    assert [card.cause for card in stopped.errors] == [
        "executor 1 lost in step stopping",
        "executor 2 has not stopped its tasks after 1000 ms",
    ]
    assert stopped.silent == (TWO,)


@pytest.mark.parametrize("state", [*STEPS, "stopping"])
def test_it_is_known_who_is_awaited(state: DeploymentState) -> None:
    """Whoever was asked and has not answered, is not lost, and only while somebody is."""
    deployment = a_deployment_in("running" if state == "stopping" else state)
    if state == "stopping":
        deployment.stop(completed=True, now_ms=0)

    assert deployment.awaits(ONE) == (state != "running")
    answer(deployment, ONE)
    assert not deployment.awaits(ONE)
    deployment.on_executor_lost(TWO, 0)
    assert not deployment.awaits(TWO)


def test_lost_after_it_has_stopped_changes_nothing() -> None:
    """Its part of the end was good."""
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)
    answer(deployment, ONE)

    assert deployment.on_executor_lost(ONE, 0) == []
    assert answer(deployment, TWO) == [AttemptStopped(errors=())]


def test_failed_start_can_be_stopped() -> None:
    """Tasks that were launched must not stay."""
    deployment = a_deployment_in("locating")
    deployment.on_executor_lost(ONE, 0)

    commands = deployment.stop(completed=False, now_ms=0)

    assert sent(commands) == [(2, StopAllTasks)]
    assert answer(deployment, TWO) == [AttemptStopped(errors=())]


def test_stop_without_executors_is_over_at_once() -> None:
    """There is nobody to wait for."""
    deployment = a_deployment_in("running")
    deployment.on_executor_lost(ONE, 0)
    deployment.on_executor_lost(TWO, 0)

    assert deployment.stop(completed=False, now_ms=0) == [AttemptStopped(errors=())]


def test_stopping_twice_changes_nothing() -> None:
    """The user is impatient."""
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)

    assert deployment.stop(completed=False, now_ms=1) == []


def test_table_has_a_way_out_of_every_state_but_the_last() -> None:
    """A state without an exit is a hang."""
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
def test_any_order_of_events_comes_to_an_end(
    steps: list[tuple[str, ExecutorId, int]],
) -> None:
    """The invariant: no step before all have done the last one, and time always ends it."""
    deployment, now_ms = a_deployment(), 0
    commands = deployment.on_start(0)
    for kind, executor, attempt in steps:
        now_ms += 100
        before = deployment.state
        if kind == "answer":
            commands += answer(deployment, executor, attempt=attempt, now_ms=now_ms)
        elif kind == "damaged":
            commands += deployment.on_snapshots_damaged(damaged(executor, attempt=attempt), now_ms)
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
