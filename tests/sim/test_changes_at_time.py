"""Applications that are changed at an event time, in virtual time, with faults."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import pytest

import gearpy as gp
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import Refused, UpdatePlanned
from gearpy.storage.checkpoints import MemoryCheckpoints, StoredFile
from gearpy.task.api.application import Buildable
from gearpy.testing.transactions import MemoryTransactions
from tests.bench.simulate import FaultSchedule, SeedResult, end_problem
from tests.bench.simulate_changes import PHASES, AimedFaults
from tests.bench.simulated_app import SimulatedApp, Words, event_time_of, upper, word_of
from tests.sim.phases import see_fault_in_each
from tests.world.cluster import ClusterSimulation

_RECORDS = 600
_WITHIN_MS = 300_000
_PHASES = {"it waits for its event time", *PHASES} - {"going back"}


pytestmark = pytest.mark.usefixtures("no_log")


class Tagging:
    """An application of two versions, each of which says by whom a record was shown."""

    def __init__(self) -> None:
        self.shown = MemoryTransactions("shown")
        self.model = SimulatedApp(_RECORDS, ("numbered",), by_bound=True, partitions=2)

    def build(self, version: int, *, parallelism: int = 2) -> gp.StreamApp:
        app = gp.StreamApp("tagging", parallelism=parallelism)
        words = app.read(Words(_RECORDS, 2, by_bound=True, pause=8), name="words").map(upper)
        words.map(lambda record: (record[1], version), name="tag").write(self.shown, name="show")
        numbered = words.key_by(word_of).map_with_state(_number, initial=0, name="number")
        sink = self.model.sinks.setdefault("numbered", MemoryTransactions("numbered"))
        numbered.write(sink, name="show numbered")
        return app

    def versions_of(self, at_ms: int) -> Counter[tuple[int, int]]:
        return Counter((n, int(event_time_of(n) >= at_ms)) for n in range(_RECORDS))

    def problem(self, at_ms: int) -> str:
        """Return what is wrong with what was shown; empty when nothing is."""
        shown = Counter(self.shown.values)
        ran = {version for _, version in shown}
        wanted = self.versions_of(at_ms if ran == {0, 1} else _RECORDS + 1)
        if shown != wanted:
            return f"at {at_ms}: too much {shown - wanted}, missing {wanted - shown}"
        return self.model.problem()


def born(app: gp.StreamApplication, at_ms: int) -> gp.StreamApplication:
    """Return an application as a graph by hand; its last processor takes another one's place."""
    graph = gp.Graph()
    for pid in app.dag.order:
        graph.add(app.processors[pid])
    for (source, target), partitioner in app.partitioners.items():
        graph.connect(app.processors[source], app.processors[target], partitioner)
    last = app.processors[app.dag.order[-1]]
    graph.replace(gp.ReplaceProcessor(last, replace(last), life=gp.Life(birth_ms=at_ms)))
    return gp.StreamApplication(app.name, graph)


def _number(before: int, record: tuple[str, int]) -> tuple[int, tuple[str, int, int]]:
    return before + 1, (record[0], before + 1, record[1])


def run(
    seed: int,
    *,
    faults: Literal["none", "any time", "aimed"] = "any time",
    cut: str = "position",
    by_scale: bool = False,
) -> tuple[str, Counter[str]]:
    """Run a cluster whose application is changed at an event time.

    In every second seed the time is the birth of a processor. Later versions have that processor,
    too: they wait for nothing.

    Returns:
        What is wrong, and in which phases of the change something bad was done.
    """
    result = SeedResult(seed, "changes")
    rng, app, by_birth = random.Random(seed), Tagging(), seed % 2 == 1
    versions = 2 if by_birth else 1
    at_ms = rng.randrange(150, _RECORDS - 50)
    cluster = ClusterSimulation(
        seed,
        workers=3,
        slots=14,
        settings={"checkpoint.interval-ms": rng.choice(["50", "200"]), "checkpoint.cut": cut},
    )
    running = cluster.submit(lambda: app.build(0), executors=2)
    asked: list[UpdatePlanned] = []

    def ask() -> None:
        parallelism = 3 if by_scale or asked else 2

        def build() -> Buildable:
            made = app.build(1, parallelism=parallelism)
            return born(made.build(), at_ms) if by_birth else made

        at_event_ms = None if by_birth else at_ms
        answer = cluster.update(running.app_id, build, at_event_ms=at_event_ms)
        if isinstance(answer, UpdatePlanned):
            asked.append(answer)
        if len(asked) < versions:  # Else not all of its tasks run, or nobody answers.
            cluster.world.later(50, ask)

    cluster.world.later(rng.randrange(1, 1500), ask)
    if faults == "aimed":
        AimedFaults(cluster, None, result)
    elif faults == "any time":
        FaultSchedule(cluster, result.faults, without=("file damaged",))
    summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)
    found = app.problem(at_ms) or end_problem(summary, "finish")
    if not found and asked and faults == "none" and {0} == {v for _, v in app.shown.values}:
        found = f"it was not changed at {at_ms}"
    return found, result.phases


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(each, marks=pytest.mark.long) for each in range(2, 10))]
)
def test_each_record_is_shown_once_by_the_version_of_its_event_time(seed: int) -> None:
    assert run(seed)[0] == ""


def test_faults_in_each_phase_of_a_change_at_a_time_do_no_harm() -> None:
    first = (11, 9, 5)  # They hit each phase as long as nothing changes what happens.
    seeds = (*first, *(seed for seed in range(4, 15) if seed not in first))
    see_fault_in_each(_PHASES, (run(seed, faults="aimed") for seed in seeds))


@pytest.mark.parametrize("cut", ["position", "event-time"])
def test_without_faults_the_change_is_made_at_that_time(cut: str) -> None:
    assert run(100, faults="none", cut=cut, by_scale=True)[0] == ""


class _SilentStore(MemoryCheckpoints):
    """A store that keeps the first change that is asked for, and nothing after it, unheard."""

    def __init__(self) -> None:
        super().__init__()
        self.is_silent = self.has_kept = False

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        data, is_log = b"".join(chunks), "/coordinator/" in name
        if is_log and b" at 1970" in data and not self.has_kept:
            super().save(name, [data])
            self.has_kept = self.is_silent = True
        if is_log and self.is_silent:
            raise OSError("no answer")
        return super().save(name, [data])


def test_a_change_that_was_refused_is_not_made_by_the_next_app_master() -> None:
    app, store = Tagging(), _SilentStore()
    answers: list[object] = []
    cluster = ClusterSimulation(5, slots=14, checkpoints=store)
    running = cluster.submit(lambda: app.build(0))

    def ask() -> None:
        at_ms = _RECORDS - 50
        answer = cluster.update(running.app_id, lambda: app.build(1), at_event_ms=at_ms)
        if not store.has_kept:  # Not all of its tasks run.
            cluster.world.later(50, ask)
            return
        answers.append(answer)
        for each in cluster.launched(MASTER_EXECUTOR):
            cluster.kill(each)
        store.is_silent = False

    cluster.world.later(400, ask)
    summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)

    assert end_problem(summary, "finish") == ""
    assert [type(each) for each in answers] == [Refused]
    assert Counter(app.shown.values) == app.versions_of(_RECORDS + 1)
