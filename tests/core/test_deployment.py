"""The start and the end of an application's tasks, step by step."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag import Dag, EdgeSpec, ProcessorSpec
from gearpy.core.deployment import (
    TRANSITIONS,
    Command,
    Deployment,
    DeploymentState,
    Failed,
    Ready,
    Send,
    Stopped,
)
from gearpy.ids import ActorPath, ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import (
    LaunchTasks,
    RegisterExecutor,
    StartAllTasks,
    StopAllTasks,
    TaskLocationsReady,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.cluster import ErrorCard

TIMEOUT_MS = 1000
ONE, TWO = ExecutorId(1), ExecutorId(2)
DAG = Dag.build(
    [ProcessorSpec(id=ProcessorId(pid), name=f"p{pid}", parallelism=2) for pid in (0, 1)],
    [EdgeSpec(source=ProcessorId(0), target=ProcessorId(1))],
)
STATES: tuple[DeploymentState, ...] = get_args(DeploymentState)
STEPS: list[DeploymentState] = ["launching", "locating", "starting", "running"]


def a_deployment(*, executors: int = 2, attempt: int = 0) -> Deployment:
    """Return a deployment that waits for executors since 0."""
    deployment = Deployment(
        DAG,
        executors_wanted=executors,
        step_timeout_ms=TIMEOUT_MS,
        first_session=10,
        attempt=attempt,
        start_time_ms=77,
    )
    assert deployment.on_start(0) == []
    return deployment


def registration(
    executor: ExecutorId, *, slots: int = 2, graph_hash: str | None = None
) -> RegisterExecutor:
    """Return the registration of an executor that built the same graph."""
    return RegisterExecutor(
        executor_id=executor,
        executor=ActorPath("", f"executor-{executor}"),
        data_address=f"host:{executor}",
        slots=slots,
        graph_hash=DAG.structural_hash() if graph_hash is None else graph_hash,
    )


def register_all(deployment: Deployment, now_ms: int = 0) -> list[Command]:
    """Register both executors; return what the second one brings about."""
    assert deployment.on_executor_registered(registration(ONE), now_ms) == []
    return deployment.on_executor_registered(registration(TWO), now_ms)


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
    """Return a deployment of two executors that has come to a step."""
    deployment = a_deployment()
    register_all(deployment)
    while deployment.state != state:
        answer(deployment, ONE)
        answer(deployment, TWO)
    return deployment


def sent(commands: list[Command]) -> list[tuple[int, type]]:
    """Return executor and kind of each message sent."""
    return [(each.executor_id, type(each.message)) for each in commands if isinstance(each, Send)]


def test_nothing_is_launched_before_all_executors_are_there() -> None:
    """Tasks are placed over all of them."""
    deployment = a_deployment()

    first = deployment.on_executor_registered(registration(ONE), 0)
    second = deployment.on_executor_registered(registration(TWO), 0)

    assert first == []
    assert sent(second) == [(1, LaunchTasks), (2, LaunchTasks)]
    assert set(deployment.placement) == set(DAG.tasks())


def test_each_executor_is_told_its_own_tasks_and_sessions() -> None:
    """Every task once, each with a session of its own."""
    launches = [
        command.message
        for command in register_all(a_deployment())
        if isinstance(command, Send) and isinstance(command.message, LaunchTasks)
    ]

    tasks = [launch for message in launches for launch in message.tasks]
    assert [launch.task_id for launch in launches[0].tasks] == [TaskId(0, 0), TaskId(1, 0)]
    assert sorted(launch.task_id for launch in tasks) == list(DAG.tasks())
    assert sorted(launch.session for launch in tasks) == [10, 11, 12, 13]


def test_later_attempts_go_on_with_session_numbers() -> None:
    """A session is never used twice."""
    deployment = a_deployment()

    assert deployment.next_session == 14
    assert max(deployment.sessions.values()) < deployment.next_session


def test_everybody_is_told_where_all_tasks_are() -> None:
    """Also an executor that hosts none of them."""
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
    assert sorted(task for each in message.locations for task in each.tasks) == list(DAG.tasks())


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

    assert commands == [Failed(cause=f"no answer in step {state} after 1000 ms from executor 1")]
    assert deployment.state == "failed"
    assert deployment.on_tick(TIMEOUT_MS * 9) == []


def test_each_step_has_its_own_time() -> None:
    """A slow start is no failure as long as it goes on."""
    deployment = a_deployment()
    register_all(deployment, now_ms=900)
    answer(deployment, ONE, now_ms=1800)
    answer(deployment, TWO, now_ms=1800)

    assert deployment.on_tick(2000) == []
    assert deployment.state == "locating"


def test_missing_executors_fail_with_their_number() -> None:
    """Gearpump: `StartExecutorsTimeOut`."""
    deployment = a_deployment()
    deployment.on_executor_registered(registration(ONE), 0)

    commands = deployment.on_tick(TIMEOUT_MS)

    assert commands == [
        Failed(cause="only 1 of 2 executors have registered after 1000 ms: are there free slots")
    ]


def test_running_has_no_deadline() -> None:
    """Time-outs are for steps."""
    assert a_deployment_in("running").on_tick(10**9) == []


def test_executor_with_another_graph_fails_the_start() -> None:
    """Its tasks would route records elsewhere."""
    deployment = a_deployment()

    [failed] = deployment.on_executor_registered(registration(ONE, graph_hash="beef"), 0)

    assert isinstance(failed, Failed)
    assert "executor 1 built another graph than the app master (hash beef instead of" in (
        failed.cause
    )


def test_executor_without_slots_fails_the_start() -> None:
    """It could host nothing."""
    [failed] = a_deployment().on_executor_registered(registration(ONE, slots=0), 0)

    assert failed == Failed(cause="executor 1 has 0 slots: give it at least 1")


def test_late_registration_is_ignored() -> None:
    """Tasks are placed already."""
    deployment = a_deployment_in("launching")

    assert deployment.on_executor_registered(registration(ExecutorId(3)), 0) == []
    assert deployment.ignored == 1


def test_executor_lost_while_waiting_may_be_replaced() -> None:
    """Nothing was started on it."""
    deployment = a_deployment()
    deployment.on_executor_registered(registration(ONE), 0)

    assert deployment.on_executor_lost(ONE, 0) == []
    deployment.on_executor_registered(registration(TWO), 0)
    commands = deployment.on_executor_registered(registration(ExecutorId(3)), 0)

    assert sent(commands) == [(2, LaunchTasks), (3, LaunchTasks)]


@pytest.mark.parametrize("state", STEPS)
def test_executor_lost_later_fails(state: DeploymentState) -> None:
    """Its tasks are gone; the shell decides whether to try again."""
    deployment = a_deployment_in(state)

    [failed] = deployment.on_executor_lost(TWO, 0)

    assert isinstance(failed, Failed)
    assert failed.cause.startswith("executor 2 lost")
    assert deployment.executors == (ONE,)


def test_unknown_executor_is_no_loss() -> None:
    """One that never registered, or was lost before."""
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
    assert second == [Stopped(errors=(card,))]
    assert deployment.state == "stopped"


def test_stopping_ends_even_if_an_executor_is_silent_or_lost() -> None:
    """Nothing waits for ever, and the loss is told."""
    deployment = a_deployment_in("running")
    deployment.stop(completed=True, now_ms=0)

    lost = deployment.on_executor_lost(ONE, 10)
    commands = deployment.on_tick(TIMEOUT_MS)

    assert lost == []
    [stopped] = commands
    assert isinstance(stopped, Stopped)
    assert [card.cause for card in stopped.errors] == [
        "executor 1 lost in step stopping",
        "executor 2 has not stopped its tasks after 1000 ms",
    ]


def test_failed_start_can_be_stopped() -> None:
    """Tasks that were launched must not stay."""
    deployment = a_deployment_in("locating")
    deployment.on_executor_lost(ONE, 0)

    commands = deployment.stop(completed=False, now_ms=0)

    assert sent(commands) == [(2, StopAllTasks)]
    assert answer(deployment, TWO) == [Stopped(errors=())]


def test_stop_without_executors_is_over_at_once() -> None:
    """There is nobody to wait for."""
    assert a_deployment().stop(completed=False, now_ms=0) == [Stopped(errors=())]


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
        st.sampled_from(["register", "answer", "lost", "tick", "stop"]),
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
    deployment, now_ms, commands = a_deployment(), 0, list[Command]()
    for kind, executor, attempt in steps:
        now_ms += 100
        before = deployment.state
        if kind == "register":
            commands += deployment.on_executor_registered(registration(executor), now_ms)
        elif kind == "answer":
            commands += answer(deployment, executor, attempt=attempt, now_ms=now_ms)
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
    assert sum(isinstance(each, Failed) for each in commands) <= 1
    assert any(isinstance(each, Stopped) for each in commands) == (deployment.state == "stopped")
