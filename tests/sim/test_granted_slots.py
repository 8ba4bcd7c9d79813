"""App masters that die, freeze or are cut off with what they were just granted."""

import logging
from collections.abc import Iterator
from random import Random

import pytest

from gearpy.bench.simulated_app import SimulatedApp
from gearpy.cluster.master_contacts import MasterContacts
from gearpy.ids import MASTER_EXECUTOR, ActorPath
from gearpy.messages.cluster import ResourceAllocated
from gearpy.testing.cluster import ClusterSimulation


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Let nobody format what goes wrong by the thousand."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Striker:
    """Strikes at app masters a moment after they were granted slots."""

    def __init__(self, cluster: ClusterSimulation, seed: int) -> None:
        self.cluster = cluster
        self.rng = Random(seed)
        self.strikes = 0

    def on_granted(self) -> None:
        """Strike soon, perhaps."""
        if not self.strikes or (self.strikes < 6 and self.rng.random() < 0.5):
            self.strikes += 1
            self.cluster.world.later(self.rng.choice([0, 1, 2, 3, 5, 8, 20]), self.strike)

    def strike(self) -> None:
        """Kill, freeze or cut off."""
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


@pytest.mark.parametrize("block", range(5))
def test_slots_that_were_granted_to_the_dead_are_there_for_the_next(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else most of these runs wait for slots until they fail, or leave some taken."""
    tell = MasterContacts.tell
    for seed in range(block * 5, block * 5 + 5):
        cluster = ClusterSimulation(seed)
        striker = Striker(cluster, seed)

        def tell_and_strike(
            contacts: MasterContacts, path: ActorPath, message: object, striker: Striker = striker
        ) -> bool:
            if isinstance(message, ResourceAllocated):
                striker.on_granted()
            return tell(contacts, path, message)

        monkeypatch.setattr(MasterContacts, "tell", tell_and_strike)
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
    tell = MasterContacts.tell
    cuts: list[object] = []

    def tell_and_cut(contacts: MasterContacts, path: ActorPath, message: object) -> bool:
        if isinstance(message, ResourceAllocated):
            cluster.world.later(0 if when == "granted" else 1_000, cut)
        return tell(contacts, path, message)

    def cut() -> None:
        (app_master,) = cluster.launched(MASTER_EXECUTOR)
        (other,) = [each for each in cluster.workers if each is not app_master.parent]
        if not cuts:
            cuts.append(other)
            cluster.network.cut(app_master.nodes.node, other.nodes.node, 15_000)

    monkeypatch.setattr(MasterContacts, "tell", tell_and_cut)
    for seed in range(5):
        cuts.clear()
        app = SimulatedApp(2000, ["gathered"])
        needed = app.build().build().dag.task_count + 1
        cluster = ClusterSimulation(seed, workers=2, slots=(needed + 1) // 2)
        running = cluster.submit(app.build, executors=2)

        summary = cluster.run_to_end(running.app_id, within_ms=120_000)

        assert summary is not None, seed
        assert (summary.status, app.problem()) == ("succeeded", ""), (seed, summary.cause)
        assert cluster.run_until_free(within_ms=60_000) == {}, seed
        assert cuts, seed
        assert cuts[0] in cluster.workers, seed
