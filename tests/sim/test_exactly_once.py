"""Whatever fails, state and sinks come to what plain Python makes of the records; for many seeds.

See `tests.bench.simulate` for more of them, and `test_planted_bugs` for what this would find.
"""

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec import structs

from gearpy.core.dag.state_moves import layout_of
from gearpy.core.epoch.pace import EpochCut
from gearpy.errors import OperatorError
from gearpy.state.keyed import KeyedState
from gearpy.state.open import heap_state
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from gearpy.testing.simulation import SMALL_LIMITS
from tests.bench.simulate import run_task_seed
from tests.bench.simulated_app import BRANCHES, SimulatedApp

EVERYTHING = EpochFaults(
    store_ms=20,
    commit_ms=20,
    given_up=0.2,
    commits_lost=0.3,
    commits_repeated=0.3,
    damaged=0.5,
    told_again=0.3,
)


def a_run(
    seed: int, *branches: str, cut: EpochCut = "position", faults: EpochFaults = EVERYTHING
) -> tuple[SimulatedApp, Simulation]:
    rng = Random(seed)
    app = SimulatedApp(rng.randrange(100, 300), branches, parallelism=3, by_bound=True)
    crashes = [rng.randrange(100, 700) for _ in range(3)]
    simulation = Simulation(
        app.build(),
        seed=seed,
        cut_every_ms=12,
        cut=cut,
        crash_at_ms=crashes,
        faults=faults,
        may_miss=True,
    )
    return app, simulation.run()


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.long) for block in (1, 2, 3))]
)
def test_tasks_are_right_whatever_fails(block: int) -> None:
    """Each result is shown once, and what was shown stays, unless epochs were damaged."""
    for seed in range(block * 8, block * 8 + 8):
        result = run_task_seed(seed)

        assert not result.problem, result


@pytest.mark.parametrize("branch", list(BRANCHES))
def test_every_kind_of_state_survives_every_fault(branch: str) -> None:
    """Keyed state, timers, windows, and state that holds no record back; by both kinds of cut."""
    fallbacks = given_up = by_event_time = crashes = 0
    for seed in range(4):
        if seed % 2:  # It takes longer, as sources must come to the event time first.
            patient = replace(EVERYTHING, given_up=0.02)
            app, simulation = a_run(seed, branch, cut="event-time", faults=patient)
        else:
            app, simulation = a_run(seed, branch)

        assert not app.problem(), f"seed {seed}"
        assert simulation.fallbacks or not app.retracted, f"seed {seed}"
        crashes, fallbacks = crashes + simulation.crashes, fallbacks + simulation.fallbacks
        given_up += simulation.epochs.given_up
        by_event_time += simulation.epochs.by_event_time
    assert crashes > 6, "the test has crashes"
    assert min(fallbacks, given_up, by_event_time) > 0, "and everything else"


def kept_for_words(app: SimulatedApp, simulation: Simulation) -> Counter[str]:
    places = layout_of(app.build().build().dag).values()
    (step,) = (place.step.id for place in places if place.step.kind == "map_with_state")
    kept = Counter[str]()
    for resume in simulation.resumes.values():
        state = heap_state()
        for section in resume.sections:
            state.load(section)
        kept.update(numbers_in(state.scope(step)))
    return kept


def numbers_in(scope: KeyedState) -> dict[str, int]:
    numbers = scope.value("kept")
    found = {}
    for key in list(scope.keys("kept")):
        scope.key = key
        found[key] = numbers.get()
    return found


def test_state_of_each_key_is_that_of_its_records() -> None:
    """What a later run would go on from counts each record once, too."""
    for seed in range(2):
        app, simulation = a_run(seed, "numbered")

        expected = Counter(word for (word, _), _ in app.numbered())
        assert kept_for_words(app, simulation) == expected, f"seed {seed}"


def test_what_is_shown_stays_if_no_epoch_is_damaged() -> None:
    rng = Random(0)
    app = SimulatedApp(150, list(BRANCHES))
    faults = EpochFaults(store_ms=20, commit_ms=30, given_up=0.2, commits_lost=0.4)
    simulation = Simulation(app.build(), seed=0, cut_every_ms=8, faults=faults)
    shown = Counter[str]()
    while not simulation.is_finished:
        simulation.step()
        if rng.random() < 0.01:
            now = Counter(repr(v) for sink in app.sinks.values() for v in sink.values)
            assert shown <= now
            shown = now
        if rng.random() < 0.001:
            simulation.crash()
    simulation.run()

    assert not app.problem()


def test_same_seed_gives_the_same_run_with_all_faults() -> None:
    """Otherwise a seed would be of no use."""
    assert run_task_seed(2) == run_task_seed(2)


def test_simulation_raises_what_a_sink_raises() -> None:
    class Lossy(MemoryTransactions):
        def prepare(self, run: str, task_index: int, epoch: int, values: list[object]) -> int:
            return super().prepare(run, task_index, epoch, values) + 1000

    app = SimulatedApp(50, ["windows"], sinks={"windows": Lossy("windows")})

    with pytest.raises(OperatorError, match="is not there"):
        Simulation(app.build(), cut_every_ms=10).run()


class _ByEpoch(MemoryTransactions):
    """Tells what it has shown when an epoch was complete."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.of_epoch = defaultdict[int, list[Any]](list)
        self.until = 0

    def prepare(self, run: str, task_index: int, epoch: int, values: list[Any]) -> int:
        self.of_epoch[epoch] += values
        return super().prepare(run, task_index, epoch, values)

    @property
    def values(self) -> list[Any]:
        return [each for epoch in range(self.until + 1) for each in self.of_epoch[epoch]]


@pytest.mark.parametrize("branch", ["windows", "gathered", "totals"])
def test_an_epoch_shows_a_window_of_all_words_or_of_none(branch: str) -> None:
    """So a drain, which ends with an epoch, leaves no window that some tasks have closed alone."""
    few_promises = structs.replace(SMALL_LIMITS, watermark_interval_ms=10_000)
    uneven = []
    for seed in range(2):
        sink = _ByEpoch(branch)
        app = SimulatedApp(1500, [branch], parallelism=3, sinks={branch: sink})
        simulation = Simulation(app.build(), seed=seed, cut_every_ms=30, limits=few_promises)
        simulation.run()
        for sink.until in range(simulation.complete_epoch):
            if problem := app.problem(is_whole=False, is_even=True):
                uneven.append(f"seed {seed}, epoch {sink.until}: {problem}")
    assert not uneven, "\n".join(uneven)
