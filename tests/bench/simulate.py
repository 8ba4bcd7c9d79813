"""Clusters and tasks in virtual time, with faults of their own for each seed.

Master, workers, app master, executors and tasks are the real ones; processes are killed and
frozen, connections cut and reset, frames sent twice, the checkpoint store fails and its files are
damaged. The answer has a closed form, and readers must never see anything else. A seed that
fails gives the same failure again.
"""

import logging
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, TypeAlias

from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.pace import EpochCut
from gearpy.errors import ApplicationFailed, GearpyError
from gearpy.ids import MASTER_EXECUTOR, AppId
from gearpy.messages.summaries import ApplicationSummary
from gearpy.testing.epochs import EpochFaults
from gearpy.testing.simulation import Simulation
from tests.bench.simulated_app import BRANCHES, SimulatedApp
from tests.world.cluster import ClusterSimulation, Process

_FAULTS_MAX: Final = 12
_OFTEN: Final = 3
#: The share of stores that are taken away from a process that is killed then.
_KILLED: Final = 0.5
_WITHIN_MS: Final = 300_000
_FREE_WITHIN_MS: Final = 60_000
_DAMAGED: Final = "file damaged"
_CUTS: Final[tuple[EpochCut, ...]] = ("position", "position", "event-time")
_DRAIN_AGAIN_MS: Final = 200

#: What becomes of an application: it goes on to its end through faults, or is drained before; it
#: has hardly a budget for restarts; nothing fails.
Way: TypeAlias = Literal["finish", "drain", "tight", "calm"]
#: Does something bad to a cluster, and tells whether it could be done.
Fault: TypeAlias = Callable[[ClusterSimulation, random.Random], bool]
#: How it may end then; what is drained may be at its end already.
_ENDS: Final[dict[Way, set[str]]] = {
    "finish": {"succeeded"},
    "drain": {"succeeded", "terminated"},
    "tight": {"succeeded", "failed"},
    "calm": {"succeeded"},
}


@dataclass(slots=True)
class SeedResult:
    """What one seed came to; ``problem`` is empty when all was right.

    Attributes:
        kind: whether it was a cluster, one that was changed meanwhile, or tasks alone.
        events: that have happened; of tasks alone: messages that were delivered.
        epochs: the number of the newest complete one, of tasks alone.
        fallbacks: restarts from an older epoch than the newest, of tasks alone.
        versions: how many came to which end, of a cluster that was changed.
        phases: how many changes came to which phase, of such a cluster; and behind "fault in", in
            which phases faults were aimed at them.
    """

    seed: int
    kind: Literal["cluster", "tasks", "changes"]
    problem: str = ""
    faults: list[str] = field(default_factory=list)
    status: str = ""
    restarts: int = 0
    events: int = 0
    virtual_ms: int = 0
    epochs: int = 0
    fallbacks: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)


class FaultSchedule:
    """Does something bad to a cluster every now and then; which things is drawn once.

    Args:
        always: of `FAULTS` that are not left to the draw.
        more: other faults that are always there, by name; they tell whether they were done.
    """

    def __init__(
        self,
        cluster: ClusterSimulation,
        done: list[str],
        *,
        without: Collection[str] = (),
        always: Collection[str] = (),
        more: Mapping[str, Fault] | None = None,
    ) -> None:
        self._cluster = cluster
        self._done = done
        self._rng = cluster.world.rng
        known = [kind for kind in FAULTS if kind not in without]
        kinds = [kind for kind in known if self._rng.random() < 0.6]
        others = {kind: partial(act, cluster) for kind, act in (more or {}).items()}
        self._acts = {kind: partial(act, self) for kind, act in FAULTS.items()} | others
        self._kinds = [*(kinds or known), *always, *others]
        self._left = self._rng.randrange(_FAULTS_MAX + 1)
        self._pause_ms = self._rng.choice([200, 900, 3000])
        cluster.world.later(self._rng.randrange(100, 2500), self._next)

    def _next(self) -> None:
        if self._left <= 0:
            return
        self.strike()
        self._cluster.world.later(self._rng.randrange(50, self._pause_ms + 51), self._next)

    def strike(self) -> str:
        """Do one of the bad things now; return which, or nothing if it cannot be done."""
        self._left -= 1
        kind = self._rng.choice(self._kinds)
        self._done.append(f"{self._cluster.world.now_ms} {kind}")  # Also if it is too much for it.
        if not self._acts[kind](self._rng):
            self._done.pop()
            return ""
        return kind

    def kill_executor(self, rng: random.Random) -> bool:
        return self._kill_one_of(self._executors(), rng)

    def kill_app_master(self, rng: random.Random) -> bool:
        return self._kill_one_of(self._cluster.launched(MASTER_EXECUTOR), rng)

    def kill_worker(self, rng: random.Random) -> bool:
        number = rng.randrange(len(self._cluster.workers))
        if not self._cluster.workers[number].is_alive:
            return False
        self._cluster.kill(self._cluster.workers[number])

        def start() -> None:
            self._cluster.workers[number] = self._cluster.start_worker(number)

        self._cluster.world.later(rng.randrange(50, 1500), start)
        return True

    def kill_master(self, rng: random.Random) -> bool:
        if not self._cluster.master.is_alive:
            return False
        self._cluster.kill(self._cluster.master)
        self._cluster.world.later(rng.randrange(50, 1500), self._cluster.start_master)
        return True

    def freeze(self, rng: random.Random) -> bool:
        if self._cluster.processes:
            self._cluster.pause(rng.choice(self._cluster.processes), rng.randrange(100, 12_000))
        return bool(self._cluster.processes)

    def reset(self, rng: random.Random) -> bool:
        if len(self._cluster.processes) < 2:
            return False
        one, other = rng.sample(self._cluster.processes, 2)
        self._cluster.network.reset_link(one.address, other.address)
        return True

    def cut(self, rng: random.Random) -> bool:
        if len(self._cluster.processes) < 2:
            return False
        one, other = rng.sample(self._cluster.processes, 2)
        self._cluster.network.cut(one.nodes.node, other.nodes.node, rng.randrange(100, 12_000))
        return True

    def fail_store(self, rng: random.Random) -> bool:
        """Let the store fail, once there is something in it: who begins without one ends."""
        if not self._cluster.checkpoints.stored.names(""):
            return False
        self._cluster.checkpoints.fail(rng.randrange(50, 5000))
        return True

    def fail_log(self, rng: random.Random) -> bool:
        """Let the coordinator log fail, and relaunch who writes it: what does it find then?"""
        if not self._cluster.checkpoints.stored.names(""):
            return False
        self._cluster.checkpoints.fail(rng.randrange(300, 3000), part="/coordinator")
        delay_ms = rng.randrange(100, 1500)
        self._cluster.world.later(delay_ms, lambda: self.kill_app_master(rng))
        return True

    def hold_data(self, rng: random.Random) -> bool:
        """Let data wait between two executors, and restart the tasks meanwhile."""
        executors = self._executors()
        if len(executors) < 2:
            return False
        one, other, *others = rng.sample(executors, len(executors))
        self._cluster.network.hold_data(one.address, other.address, rng.randrange(500, 3000))
        delay_ms = rng.randrange(20, 300)
        self._cluster.world.later(delay_ms, lambda: self._kill_one_of(others, rng))
        return True

    def slow_store(self, rng: random.Random) -> bool:
        self._cluster.checkpoints.be_slow(rng.randrange(500, 10_000))
        return True

    def damage_file(self, rng: random.Random) -> bool:
        """Damage a file that only the newest of several epochs needs, and have somebody read it."""
        manifests = self._manifests()
        needed = {file.location for each in manifests[:-1] for file in each.snapshots}
        is_one_left = len(manifests) > 1 and self._kept_epochs(manifests) > 1
        newest = manifests[-1].snapshots if is_one_left else ()
        files = [file for file in newest if file.location not in needed]
        if files:
            self._cluster.checkpoints.damage(rng.choice(files).location, rng.randrange(300, 8000))
            self.kill_executor(rng)
        return bool(files)

    def _kept_epochs(self, manifests: list[Manifest]) -> int:
        """Return how many of these, at most, are gone back to when a file is read soon.

        The log has one more than are kept, until the next one is there. And when files of the
        next one are stored, that may yet be complete, needs the same files, and takes a place.
        """
        listed = {file.location for each in manifests for file in each.snapshots}
        names = {each for each in self._cluster.checkpoints.stored.names("") if "/epochs/" in each}
        return self._cluster.config.checkpoint.retained - (not names <= listed)

    def _manifests(self) -> list[Manifest]:
        """Return the complete epochs; none while that cannot be told."""
        try:
            return [*self._cluster.promises.manifests()]
        except GearpyError:  # It is damaged already, or there is none.
            return []

    def _executors(self) -> list[Process]:
        return [
            each
            for each in self._cluster.launched()
            if each.launch is not None and each.launch.executor_id != MASTER_EXECUTOR
        ]

    def _kill_one_of(self, processes: list[Process], rng: random.Random) -> bool:
        if processes:
            self._cluster.kill(rng.choice(processes))
        return bool(processes)


#: What may happen, by name.
FAULTS: Final[dict[str, Callable[[FaultSchedule, random.Random], bool]]] = {
    "executor killed": FaultSchedule.kill_executor,
    "app master killed": FaultSchedule.kill_app_master,
    "worker killed": FaultSchedule.kill_worker,
    "master killed": FaultSchedule.kill_master,
    "process frozen": FaultSchedule.freeze,
    "connection reset": FaultSchedule.reset,
    "network cut": FaultSchedule.cut,
    "store fails": FaultSchedule.fail_store,
    "store slow": FaultSchedule.slow_store,
    "log fails": FaultSchedule.fail_log,
    "data held": FaultSchedule.hold_data,
    _DAMAGED: FaultSchedule.damage_file,
}


def take_store_away(cluster: ClusterSimulation, rng: random.Random) -> bool:
    """Take the store away in the middle of something, and have somebody killed without it."""
    checkpoints = cluster.checkpoints
    if not any(name.endswith("/mark") for name in checkpoints.stored.names("")):
        return False  # Who begins without one begins elsewhere.
    checkpoints.be_away(rng.randrange(100, 15_000), after=rng.choice([0, rng.randrange(9)]))
    if rng.random() < _KILLED and (processes := cluster.launched()):
        cluster.kill(rng.choice(processes))
    return True


#: Another one of them, for `run_seed` and others.
STORE_AWAY: Final[dict[str, Fault]] = {"store away": take_store_away}


def run_seed(
    seed: int, way: Way = "finish", *, more: Mapping[str, Fault] | None = None
) -> SeedResult:
    """Run one cluster to the end of its application, in some way; compare the answer.

    Args:
        more: faults that come often, beside those that are drawn.
    """
    result, rng = SeedResult(seed, "cluster"), random.Random(seed)
    app = SimulatedApp(
        rng.randrange(200, 1000),
        rng.sample(list(BRANCHES), rng.randrange(1, len(BRANCHES))),
        by_bound=rng.random() < 0.5,
    )
    budget = {"application.total-retries": "1"} if way == "tight" else {}
    try:
        cluster = ClusterSimulation(
            seed,
            duplicates=0.05 if seed % 3 == 0 else 0.0,
            settings=_settings(rng) | budget,
            chain_files_max=rng.choice([2, 4, 16]),
            log_segments_max=rng.choice([2, 5, 64]),
        )
        running = cluster.submit(app.build, executors=3)
        if way != "calm":
            FaultSchedule(cluster, result.faults, more=more, always=[*(more or ())] * _OFTEN)
        if way == "drain":
            _drain_later(cluster, running.app_id, rng.randrange(500, 6000))
        summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the seed
        result.problem = f"{type(error).__name__}: {error}"
        return result
    result.events, result.virtual_ms = cluster.world.events, cluster.world.elapsed_ms
    result.restarts = summary.progress.restarts if summary is not None else 0
    result.status = summary.status if summary is not None else ""
    may_retract = any(fault.endswith(_DAMAGED) for fault in result.faults)
    is_whole = result.status == "succeeded"
    result.problem = (
        "; ".join(cluster.promises.broken[:1])
        or end_problem(summary, way)
        or _answer_problem(
            app,
            may_retract=may_retract,
            is_whole=is_whole,
            is_even=result.status == "terminated",
        )
        or slots_problem(cluster)
    )
    return result


def _drain_later(cluster: ClusterSimulation, app_id: AppId, delay_ms: int) -> None:
    """Drain an application after a time, and then until somebody has heard it."""

    def drain() -> None:
        if not cluster.drain(app_id):
            cluster.world.later(_DRAIN_AGAIN_MS, drain)

    cluster.world.later(delay_ms, drain)


def _settings(rng: random.Random) -> dict[str, str]:
    return {
        "checkpoint.cut": rng.choice(_CUTS),
        "checkpoint.interval-ms": rng.choice(["50", "200"]),
        "checkpoint.timeout-ms": rng.choice(["300", "2000", "20000"]),
        "checkpoint.retained": rng.choice(["1", "2", "3"]),
        "checkpoint.changelog": rng.choice(["off", "on"]),
    }


def end_problem(summary: ApplicationSummary | None, way: Way) -> str:
    if summary is None:
        return f"not over after {_WITHIN_MS} virtual ms"
    if summary.status not in _ENDS[way]:
        return f"{summary.status}: {summary.cause.cause if summary.cause else ''}"
    return ""


def slots_problem(cluster: ClusterSimulation) -> str:
    """See that nothing is taken any more: what leaks slots stalls a cluster one day."""
    taken = cluster.run_until_free(within_ms=_FREE_WITHIN_MS)
    return f"slots that are still taken, by worker: {taken}" if taken else ""


def _answer_problem(app: SimulatedApp, *, may_retract: bool, **ends: bool) -> str:
    if app.retracted and not may_retract:
        return f"{app.retracted} records have vanished that were shown"
    return app.problem(**ends)


def run_task_seed(seed: int) -> SeedResult:
    """Run the tasks alone, with more epochs and crashes than a cluster has; compare the answer."""
    result, rng = SeedResult(seed, "tasks"), random.Random(seed)
    app = SimulatedApp(
        rng.randrange(20, 300),
        rng.sample(list(BRANCHES), rng.randrange(1, len(BRANCHES) + 1)),
        partitions=rng.randrange(1, 4),
        parallelism=rng.randrange(1, 4),
        by_bound=rng.random() < 0.5,
    )
    simulation = Simulation(
        app.build(),
        seed=seed,
        cut_every_ms=rng.choice([4, 10, 30]),
        cut=rng.choice(_CUTS),
        crash_at_ms=[rng.randrange(600) for _ in range(rng.randrange(5))],
        may_miss=True,
        faults=_epoch_faults(rng),
    )
    try:
        simulation.run()
        may_retract = simulation.fallbacks > 0
        result.problem = _answer_problem(app, may_retract=may_retract)
    except (GearpyError, ApplicationFailed, AssertionError) as error:
        result.problem = f"{type(error).__name__}: {error}"
    result.faults = ["crash"] * simulation.crashes
    result.restarts, result.fallbacks = simulation.crashes, simulation.fallbacks
    result.events, result.epochs = simulation.delivered, simulation.complete_epoch
    result.virtual_ms = simulation.elapsed_ms
    return result


def _epoch_faults(rng: random.Random) -> EpochFaults:
    return EpochFaults(
        store_ms=rng.choice([0, 5, 40]),
        commit_ms=rng.choice([0, 5, 40]),
        given_up=rng.choice([0.05, 0.3]),
        commits_lost=rng.choice([0.0, 0.3]),
        commits_repeated=rng.choice([0.0, 0.3]),
        damaged=rng.choice([0.0, 0.0, 0.5]),
        told_again=rng.choice([0.0, 0.3]),
    )


def run_seeds(first: int, count: int, *, processes: int) -> Iterator[SeedResult]:
    """Run many seeds in several processes: of each a cluster, and the tasks alone.

    Gives results as they come, two for each seed.
    """
    seeds = range(first, first + count)
    if processes == 1:
        for seed in seeds:
            yield from _run_both(seed)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for results in pool.imap_unordered(_run_both, seeds, chunksize=20):
            yield from results


def _run_both(seed: int) -> tuple[SeedResult, SeedResult]:
    logging.disable(logging.CRITICAL)  # Of failures, which are what this is about.
    return run_seed(seed), run_task_seed(seed)
