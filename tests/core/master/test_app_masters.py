"""Which app masters run, which have to be launched again, and when one is given up."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.base.restart import RestartPolicy
from gearpy.core.master.app_masters import (
    AppMasters,
    AppMasterTimes,
    EndApplication,
    KeeperAction,
    Kill,
    LaunchTimes,
    RecordLoss,
    RequestSlot,
)
from gearpy.core.master.commands import (
    AddWorker,
    ChangeStatus,
    LaunchAppMaster,
    LoseAppMaster,
    Submit,
)
from gearpy.core.master.state import MasterState
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.cluster import RunningExecutor
from gearpy.messages.summaries import ApplicationProgress, ErrorCard

APP = AppId(1)
W0, W1 = WorkerId(0), WorkerId(1)
PATH = ActorPath("host:1#a", "app1")
START_MS, RETURN_MS, WORD_MS = 1000, 500, 100
TIMES = AppMasterTimes(
    start_timeout_ms=START_MS, return_timeout_ms=RETURN_MS, word_timeout_ms=WORD_MS
)


class Cluster:
    """A master's shell without a network: applies what the keeper says to the state."""

    def __init__(self, *, max_restarts: int = 2, seed: int = 0) -> None:
        self.state = MasterState()
        self.now_ms = 0
        self.wanted: list[RequestSlot] = []
        self.killed: list[Kill] = []
        self.policy = RestartPolicy(
            max_restarts=max_restarts, window_ms=10_000, backoff_ms=50, backoff_max_ms=200, jitter=0
        )
        self.seed = seed
        for _ in range(3):
            self.state.apply(AddWorker())
        self.restart()

    def restart(self, times: AppMasterTimes = TIMES) -> list[KeeperAction]:
        """Let the master be killed and come back; what is stored stays."""
        self.wanted, self.killed = [], []
        self.keeper = AppMasters(self.state, lambda _: self.policy, times, Random(self.seed))
        return self.do(self.keeper.on_start(self.now))

    @property
    def now(self) -> LaunchTimes:
        return LaunchTimes(self.now_ms, 1_000_000 + self.now_ms)

    def do(self, actions: list[KeeperAction]) -> list[KeeperAction]:
        for action in actions:
            match action:
                case RequestSlot():
                    self.wanted.append(action)
                case Kill():
                    self.killed.append(action)
                case RecordLoss():
                    lost = LoseAppMaster(
                        app_id=action.app_id,
                        launch=action.launch,
                        at_ms=self.now.wall_ms,
                        is_planned=action.is_planned,
                    )
                    assert self.state.apply(lost)
                case EndApplication():
                    self.end(action.app_id, action.cause)
        return actions

    def submit(self, name: str = "words") -> list[KeeperAction]:
        artifact = Artifact(kind="file", location="x")
        request = SubmitApplication(name=name, artifact=artifact)
        app_id = self.state.apply(Submit(request=request, at_ms=self.now.wall_ms))
        return self.do(self.keeper.on_submitted(app_id))

    def end(self, app_id: AppId, cause: str = "") -> None:
        self.state.apply(
            ChangeStatus(
                app_id=app_id,
                status="failed",
                at_ms=self.now.wall_ms,
                progress=ApplicationProgress(),
                cause=ErrorCard(cause=cause),
            )
        )
        self.keeper.on_ended(app_id)

    def grant(self, worker: WorkerId = W0) -> int:
        """Give the oldest request a slot; return the launch."""
        app_id = self.wanted.pop(0).app_id
        command = LaunchAppMaster(app_id=app_id, worker_id=worker, at_ms=self.now.wall_ms)
        launch: int = self.state.apply(command)
        self.keeper.on_launched(app_id, self.now)
        return launch

    def run(self, worker: WorkerId = W0) -> int:
        app_id = self.wanted[0].app_id
        launch = self.grant(worker)
        assert self.keeper.on_registered(app_id, launch, PATH)
        return launch

    def gone(self, launch: int, cause: str = "boom") -> list[KeeperAction]:
        return self.do(self.keeper.on_gone(APP, launch, cause, self.now))

    def tick(self, ms: int) -> list[KeeperAction]:
        self.now_ms += ms
        return self.do(self.keeper.on_tick(self.now))

    def again(self, worker: WorkerId, *launches: int) -> list[KeeperAction]:
        """Have a worker come back with these launches of the app master, and an executor."""
        running = [
            RunningExecutor(
                app_id=APP, executor_id=MASTER_EXECUTOR, launch=launch, app_master=launch, slots=1
            )
            for launch in launches
        ]
        executor = RunningExecutor(
            app_id=APP, executor_id=ExecutorId(0), launch=1, app_master=1, slots=1
        )
        return self.do(self.keeper.on_worker_again(worker, [*running, executor], self.now))


def a_cluster(*, max_restarts: int = 2) -> Cluster:
    """Return a cluster with one application whose app master runs, launch 1 on worker 0."""
    cluster = Cluster(max_restarts=max_restarts)
    cluster.submit()
    assert cluster.run() == 1
    return cluster


# -- the normal life -------------------------------------------------------------------------


def test_an_application_gets_a_slot_a_launch_and_an_app_master() -> None:
    cluster = Cluster()
    assert cluster.submit() == [RequestSlot(APP, None)]
    assert cluster.keeper.phase(APP) == "waiting-for-slot"

    launch = cluster.grant()
    assert cluster.keeper.phase(APP) == "launching"
    assert cluster.keeper.path(APP) is None

    assert cluster.keeper.on_registered(APP, launch, PATH)
    assert cluster.keeper.phase(APP) == "running"
    assert cluster.keeper.path(APP) == PATH
    assert cluster.keeper.of_path(PATH) == APP
    assert cluster.keeper.next_due_ms is None


def test_what_has_ended_is_forgotten() -> None:
    cluster = a_cluster()
    cluster.end(APP)

    assert cluster.gone(1) == []
    assert cluster.do(cluster.keeper.on_unreachable(APP, "x", cluster.now)) == []
    assert cluster.do(cluster.keeper.on_worker_lost(W0, cluster.now)) == []
    assert not cluster.keeper.on_registered(APP, 1, PATH)
    assert cluster.keeper.phase(APP) is None
    assert cluster.keeper.of_path(PATH) is None


# -- losses ----------------------------------------------------------------------------------


def test_a_lost_app_master_is_launched_again_elsewhere_after_a_pause() -> None:
    cluster = a_cluster()

    assert cluster.gone(1) == [RecordLoss(APP, 1, "boom")]
    assert cluster.keeper.phase(APP) == "pausing"
    assert cluster.keeper.next_due_ms == 50
    assert cluster.tick(49) == []
    assert cluster.tick(1) == [RequestSlot(APP, W0)]
    assert cluster.run(W1) == 2

    cluster.gone(2)
    assert cluster.tick(99) == []
    assert cluster.tick(1) == [RequestSlot(APP, W1)]


def test_a_spent_budget_ends_the_application_with_the_last_cause() -> None:
    cluster = a_cluster()
    for launch in (1, 2):
        cluster.gone(launch)
        cluster.tick(1000)
        cluster.run()

    (end,) = cluster.gone(3, "segfault")

    assert end == EndApplication(
        APP,
        "the app master is gone: segfault (it was launched again 2 times within 10 s, as often "
        "as application.total-retries allows)",
    )
    assert cluster.keeper.phase(APP) is None


def test_without_a_budget_the_first_loss_is_the_end() -> None:
    cluster = a_cluster(max_restarts=0)

    assert cluster.gone(1) == [EndApplication(APP, "the app master is gone: boom")]


def test_the_budget_counts_over_a_restart_of_the_master() -> None:
    """Launches are stored; else a master that crashes with each launch would go on for ever."""
    cluster = a_cluster()
    for launch in (1, 2):
        cluster.gone(launch)
        cluster.tick(1000)
        cluster.run()
        cluster.restart()

    assert isinstance(cluster.again(W0)[0], EndApplication)


@pytest.mark.parametrize("how", ["stopped", "cut off", "worker gone"])
def test_a_worker_that_is_told_to_end_spends_no_restart(how: str) -> None:
    cluster = a_cluster(max_restarts=1)

    for launch in (1, 2, 3):
        worker = WorkerId(launch - 1)
        cluster.keeper.on_worker_leaving(worker)
        if how != "worker gone":
            cluster.do(cluster.keeper.on_unreachable(APP, "it is gone", cluster.now))
        if how != "cut off":
            cluster.do(cluster.keeper.on_worker_lost(worker, cluster.now))
            cluster.do(cluster.keeper.on_unreachable(APP, "it is gone", cluster.now))
        else:
            cluster.gone(launch, "")
        assert cluster.keeper.phase(APP) == "pausing"
        cluster.tick(0)
        assert cluster.run(WorkerId(launch % 3)) == launch + 1
    cluster.restart()
    assert isinstance(cluster.again(W0)[0], RecordLoss)
    cluster.tick(1000)
    assert cluster.run(W1) == 5
    assert isinstance(cluster.gone(5)[0], EndApplication)


def test_losing_a_worker_loses_its_app_masters() -> None:
    cluster = Cluster()
    for name, worker in (("words", W0), ("other", W1)):
        cluster.submit(name)
        cluster.grant(worker)

    actions = cluster.do(cluster.keeper.on_worker_lost(W0, cluster.now))

    assert actions == [RecordLoss(APP, 1, "worker 0 is lost")]
    assert cluster.keeper.phase(AppId(2)) == "launching"
    assert cluster.do(cluster.keeper.on_worker_lost(W0, cluster.now)) == []


def test_one_that_can_be_reached_outlives_a_frozen_worker() -> None:
    """A second one beside it would write twice. When it goes too, nobody is asked why."""
    cluster = a_cluster()

    assert cluster.do(cluster.keeper.on_worker_lost(W0, cluster.now)) == []
    assert cluster.keeper.path(APP) == PATH

    actions = cluster.do(cluster.keeper.on_unreachable(APP, "cut off", cluster.now))
    assert actions == [RecordLoss(APP, 1, "worker 0 is lost")]


def test_a_worker_that_was_lost_and_is_back_can_be_asked_again() -> None:
    """It was cut off for a while, and so was nobody else."""
    cluster = a_cluster()
    cluster.do(cluster.keeper.on_worker_lost(W0, cluster.now))
    cluster.again(W0, 1)

    actions = cluster.do(cluster.keeper.on_unreachable(APP, "cut off", cluster.now))

    assert actions == [Kill(APP, W0, 1, "cut off")]


# -- out of reach ----------------------------------------------------------------------------


def test_one_that_was_given_up_is_refused_for_ever() -> None:
    cluster = a_cluster()
    cluster.do(cluster.keeper.on_unreachable(APP, "cut off", cluster.now))
    assert not cluster.keeper.on_registered(APP, 1, PATH)
    cluster.gone(1)
    assert not cluster.keeper.on_registered(APP, 1, PATH)
    cluster.tick(50)
    assert not cluster.keeper.on_registered(APP, 1, PATH)
    cluster.grant(W1)

    assert not cluster.keeper.on_registered(APP, 1, PATH)
    assert not cluster.keeper.is_current(APP, 1)
    assert not cluster.keeper.is_current(APP, 3)
    assert cluster.keeper.on_registered(APP, 2, PATH)


# -- the master was away ---------------------------------------------------------------------


def test_an_app_master_that_lived_on_is_taken_back() -> None:
    cluster = a_cluster()

    assert cluster.restart() == []
    assert cluster.keeper.phase(APP) == "returning"
    assert cluster.keeper.path(APP) is None
    cluster.again(W0, 1)
    assert cluster.keeper.on_registered(APP, 1, PATH)

    assert cluster.keeper.phase(APP) == "running"
    assert cluster.tick(10_000) == []


def test_without_its_worker_it_is_given_up_in_time() -> None:
    cluster = a_cluster()
    cluster.restart()

    assert cluster.tick(RETURN_MS - 1) == []
    assert [type(each) for each in cluster.tick(1)] == [Kill, RecordLoss]


def test_where_nothing_can_return_it_is_given_up_at_once() -> None:
    """All workers have ended with the master: those inside Spark end with their driver."""
    cluster = a_cluster()
    cluster.restart(replace(TIMES, return_timeout_ms=0))

    _, lost = cluster.tick(0)

    assert lost == RecordLoss(APP, 1, "it has ended with the master")


def test_what_was_not_launched_is_launched_after_a_restart() -> None:
    """A new application; and one whose app master was given up already."""
    cluster = Cluster()
    cluster.submit()
    assert cluster.restart() == [RequestSlot(APP, None)]

    cluster.run()
    cluster.gone(1)
    assert cluster.restart() == [RequestSlot(APP, W0)]
    cluster.end(APP)
    assert cluster.restart() == []


# -- the invariant ---------------------------------------------------------------------------

EVENTS = st.sampled_from(
    [
        *("grant", "register", "register-old", "gone", "gone-old", "unreachable", "worker-lost"),
        *("worker-with", "worker-without", "tick", "long", "restart"),
    ]
)


@settings(max_examples=100)
@given(st.lists(EVENTS, max_size=40), st.integers(0, 3))
def test_a_living_application_always_gets_an_app_master(
    events: list[str], max_restarts: int
) -> None:
    cluster = Cluster(max_restarts=max_restarts)
    cluster.submit()
    launch = 0
    for event in events:
        newest = cluster.state.newest_launch(APP)
        number = newest.number if newest else 0
        assert number >= launch
        launch = number
        happen(cluster, event, number)
        if not cluster.state.is_living(APP):
            assert cluster.keeper.phase(APP) is None
            assert cluster.state.get(APP).cause.cause  # type: ignore[union-attr]
            return
        phase = cluster.keeper.phase(APP)
        assert phase is not None
        assert (phase in {"running", "waiting-for-slot"}) == (cluster.keeper.next_due_ms is None)
        assert (phase == "waiting-for-slot") == bool(cluster.wanted)
        assert not cluster.keeper.is_current(APP, launch - 1)
    settle(cluster)


def happen(cluster: Cluster, event: str, launch: int) -> None:
    keeper, now = cluster.keeper, cluster.now
    match event:
        case "grant" if cluster.wanted:
            cluster.grant(WorkerId(launch % 3))
        case "register" | "register-old":
            keeper.on_registered(APP, launch - (event == "register-old"), PATH)
        case "gone" | "gone-old":
            cluster.gone(launch - (event == "gone-old"))
        case "unreachable":
            cluster.do(keeper.on_unreachable(APP, "cut off", now))
        case "worker-lost":
            cluster.do(keeper.on_worker_lost(WorkerId((launch - 1) % 3), now))
        case "worker-with" | "worker-without":
            there = [launch] if event == "worker-with" else []
            cluster.again(WorkerId((launch - 1) % 3), *there)
        case "tick" | "long":
            cluster.tick(60 if event == "tick" else 30_000)
        case "restart":
            cluster.restart()
        case _:
            pass


def settle(cluster: Cluster) -> None:
    """From here on nothing goes wrong: an app master runs soon."""
    for _ in range(3):
        cluster.tick(30_000)
        if cluster.wanted:
            cluster.run()
    assert cluster.keeper.phase(APP) == "running" or not cluster.state.is_living(APP)
