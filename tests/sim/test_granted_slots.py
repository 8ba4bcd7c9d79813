"""App masters that die, freeze or are cut off with what they were just granted."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

import gearpy as gp
from gearpy.cluster.master.outbox import MasterOutbox
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId
from gearpy.messages.cluster import LaunchExecutor, RequestResource, ResourceAllocated
from gearpy.messages.peer import Letter
from gearpy.testing.transactions import MemoryTransactions
from gearpy.wire.codec import decode_control
from tests.bench.simulated_app import SimulatedApp
from tests.world.cluster import ClusterSimulation, Process

pytestmark = pytest.mark.usefixtures("no_log")


class Striker:
    def __init__(self, cluster: ClusterSimulation, seed: int) -> None:
        self.cluster = cluster
        self.rng = Random(seed)
        self.strikes = 0

    def on_granted(self) -> None:
        if not self.strikes or (self.strikes < 6 and self.rng.random() < 0.5):
            self.strikes += 1
            self.cluster.world.later(self.rng.choice([0, 1, 2, 3, 5, 8, 20]), self.strike)

    def strike(self) -> None:
        for app_master in self.cluster.launched(MASTER_EXECUTOR):
            kind = self.rng.choice(["kill", "kill", "freeze", "cut"])
            for_ms = self.rng.randrange(100, 14_000)
            if kind == "kill":
                self.cluster.kill(app_master)
            elif kind == "freeze":
                self.cluster.pause(app_master, for_ms)
            else:
                other = self.rng.choice([self.cluster.master, *self.cluster.workers])
                self.cluster.network.cut(app_master.nodes.node, other.nodes.node, for_ms)


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.long) for block in (1, 2, 3, 4))]
)
def test_slots_that_were_granted_to_the_dead_are_there_for_the_next(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = MasterOutbox.tell
    for seed in range(block * 5, block * 5 + 5):
        cluster = ClusterSimulation(seed)
        striker = Striker(cluster, seed)

        def tell_and_strike(
            contacts: MasterOutbox,
            path: ActorPath,
            message: object,
            or_else: Callable[[], object] = bool,
            *,
            striker: Striker = striker,
        ) -> None:
            if isinstance(message, ResourceAllocated):
                striker.on_granted()
            tell(contacts, path, message, or_else)

        monkeypatch.setattr(MasterOutbox, "tell", tell_and_strike)
        app = SimulatedApp(300, ["gathered"])
        running = cluster.submit(app.build, executors=3)

        summary = cluster.run_to_end(running.app_id, within_ms=300_000)

        assert summary is not None, seed
        assert (summary.status, app.problem()) == ("succeeded", ""), (seed, summary.cause)
        assert cluster.run_until_free(within_ms=60_000) == {}, seed
        assert striker.strikes, seed


@pytest.mark.parametrize("when", ["granted", "running"])
def test_a_worker_that_only_the_app_master_cannot_reach_is_used_again(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All slots are needed, and the master, who reaches it, has no other ones to give.

    Nor does the worker have to begin anew: it serves others, too.
    """
    tell = MasterOutbox.tell
    cuts: list[object] = []

    def tell_and_cut(
        contacts: MasterOutbox,
        path: ActorPath,
        message: object,
        or_else: Callable[[], object] = bool,
    ) -> None:
        if isinstance(message, ResourceAllocated):
            cluster.world.later(0 if when == "granted" else 1_000, cut)
        tell(contacts, path, message, or_else)

    def cut() -> None:
        (app_master,) = cluster.launched(MASTER_EXECUTOR)
        (other,) = [each for each in cluster.workers if each is not app_master.parent]
        if not cuts:
            cuts.append(other)
            cluster.network.cut(app_master.nodes.node, other.nodes.node, 15_000)

    monkeypatch.setattr(MasterOutbox, "tell", tell_and_cut)
    app = SimulatedApp(1000, ["gathered"])
    needed = app.build().build().dag.task_count + 1
    cluster = ClusterSimulation(0, workers=2, slots=(needed + 1) // 2)
    running = cluster.submit(app.build, executors=2)

    summary = cluster.run_to_end(running.app_id, within_ms=120_000)

    assert summary is not None
    assert (summary.status, app.problem()) == ("succeeded", ""), summary.cause
    assert cluster.run_until_free(within_ms=60_000) == {}
    assert cuts
    assert cuts[0] in cluster.workers


def test_with_each_request_the_master_hears_what_all_executors_have_together() -> None:
    cluster, asked = ClusterSimulation(1), list[RequestResource]()
    tell = cluster.network.on_letter

    def note(letter: Letter) -> None:
        message = None if letter.answers else decode_control(letter.body)
        if isinstance(message, RequestResource):
            asked.append(message)
        tell(letter)

    cluster.network.on_letter = note
    app = SimulatedApp(300, ["gathered"])
    running = cluster.submit(app.build, executors=3)
    cluster.world.run(lambda: len(cluster.launched()) == 4, within_ms=20_000)
    (lost,) = cluster.launched(ExecutorId(1))
    cluster.kill(lost)

    summary = cluster.run_to_end(running.app_id, within_ms=60_000)

    assert summary is not None
    assert summary.status == "succeeded"
    slots = app.build().build().dag.task_count
    assert {each.total for each in asked} == {slots}
    assert min(each.slots for each in asked) < slots


class Breaker:
    """Kills what an application has, and starts again what a user would, until it has ended."""

    def __init__(self, cluster: ClusterSimulation, app_id: AppId, seed: int) -> None:
        self.cluster = cluster
        self.app_id = app_id
        self.rng = Random(seed)
        self.kills = 0
        cluster.world.later(500, self.strike)

    def strike(self) -> None:
        summary = self.cluster.summary(self.app_id)
        is_active = summary is not None and summary.status == "active"
        if is_active and self.kills < 8:
            self.kills += 1
            kind = self.rng.choice(["executor", "executor", "app master", "worker", "master"])
            match kind:
                case "worker":
                    self.kill_worker(self.rng.randrange(len(self.cluster.workers)))
                case "master" if self.cluster.master.is_alive:
                    self.cluster.kill(self.cluster.master)
                    self.cluster.world.later(self.rng.randrange(500, 5000), self.bring_master)
                case _:
                    is_app_master = kind == "app master"
                    for each in self.cluster.launched():
                        assert each.launch is not None
                        if (each.launch.executor_id == MASTER_EXECUTOR) == is_app_master:
                            self.cluster.kill(each)
                            break
        self.cluster.world.later(self.rng.randrange(100, 1500), self.strike)

    def kill_worker(self, number: int) -> None:
        """Have one end with all that it runs; another one comes in its place."""

        def start() -> None:
            self.cluster.workers[number] = self.cluster.start_worker(number)

        if self.cluster.workers[number].is_alive:
            self.cluster.kill(self.cluster.workers[number])
            self.cluster.world.later(self.rng.randrange(300, 4000), start)

    def bring_master(self) -> None:
        self.cluster.start_master()


@pytest.mark.parametrize("executors", [2, 0])
@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.long) for block in (1, 2))]
)
def test_nobody_starts_in_the_slots_of_an_application_that_goes_on(
    block: int, executors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is as big as it, but for one slot; whatever dies, another one has to wait."""
    launch = ClusterSimulation.launch
    kills = 0
    for seed in range(block * 2, block * 2 + 2):
        started: list[tuple[int, str]] = []
        app = SimulatedApp(1500, ["gathered"])
        needed = app.build().build().dag.task_count + 1
        cluster = ClusterSimulation(seed, workers=2, slots=(needed + 1) // 2)

        def launch_and_note(
            cluster: ClusterSimulation,
            parent: Process,
            message: LaunchExecutor,
            on_exit: Callable[[str], None],
            *,
            app: SimulatedApp = app,
            started: list[tuple[int, str]] = started,
        ) -> Process:
            if message.executor_id != MASTER_EXECUTOR:
                started.append((message.app_id, app.problem()))
            return launch(cluster, parent, message, on_exit)

        monkeypatch.setattr(ClusterSimulation, "launch", launch_and_note)
        first = cluster.submit(app.build, executors=executors)
        cluster.world.run(partial(_are_both_there, started), within_ms=20_000)
        breaker = Breaker(cluster, first.app_id, seed)
        second = cluster.submit(_next_app, executors=1)

        summary = cluster.run_to_end(first.app_id, within_ms=300_000)

        assert summary is not None, seed
        assert (summary.status, app.problem()) == ("succeeded", ""), (seed, summary.cause)
        after = cluster.run_to_end(second.app_id, within_ms=60_000)
        assert after is not None, seed
        assert after.status == "succeeded", (seed, after.cause)
        # All that the first one had to do was done, though nobody knew yet if the master was away.
        assert {what_was_missing for app_id, what_was_missing in started if app_id == 2} == {""}
        kills += breaker.kills
    assert kills >= 3


def _are_both_there(started: list[tuple[int, str]]) -> bool:
    return len(started) == 2


def _next_app() -> gp.StreamApp:
    app = gp.StreamApp("next")
    app.read(gp.collection([1, 2, 3])).write(MemoryTransactions("next"))
    return app
