"""Coroutines in a graph that crashes: results are those of plain Python, for many seeds."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

import gearpy as gp
from gearpy.core.epoch.pace import EpochCut
from gearpy.ids import MASTER_EXECUTOR
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from tests.world.cluster import ClusterSimulation, Process

FAULTS = EpochFaults(store_ms=20, commit_ms=20, given_up=0.1, commits_lost=0.2, damaged=0.2)


def some_records(seed: int, count: int) -> list[gp.Message]:
    rng = Random(seed)
    return [gp.Message(n, n * 10 + rng.randrange(200)) for n in range(count)]


async def slow(number: int) -> int:
    await asyncio.sleep(number * 7919 % 23 / 1000)
    return number


async def name_of(key: int) -> str:
    await asyncio.sleep(0.007)
    return f"name {key}"


def counted(records: list[gp.Message]) -> Counter[Any]:
    counts = Counter((f"name {m.value % 5}", m.timestamp // 500 * 500) for m in records)
    return Counter((key, count, start) for (key, start), count in counts.items())


def an_app(
    records: list[gp.Message], *, ordered: bool, concurrency: int
) -> tuple[gp.StreamApp, MemoryTransactions]:
    """Return an application with three deferring steps before a window, and its sink."""
    app, sink = gp.StreamApp("asynchronous"), MemoryTransactions()
    source = gp.collection(records, out_of_order="200ms")
    (
        app.read(source)
        .map_async(slow, concurrency=concurrency, ordered=ordered)
        .flat_map(lambda n: [n, n])
        .map_async(slow, concurrency=concurrency, ordered=ordered)
        .lookup(name_of, key=lambda n: n % 5, concurrency=concurrency)
        .key_by(lambda found: found[1])
        .window(gp.tumbling("500ms"))
        .count()
        .map(lambda result: (result.key, result.value // 2, result.start))
        .write(sink)
    )
    return app, sink


def run(seed: int, cut: EpochCut) -> tuple[MemoryTransactions, list[gp.Message], Simulation]:
    rng = Random(seed)
    records = some_records(seed, rng.randrange(50, 200))
    app, sink = an_app(records, ordered=seed % 2 == 0, concurrency=rng.choice([1, 2, 5, 100]))
    crashes = [rng.randrange(20, 600) for _ in range(3)]
    simulation = Simulation(
        app, seed=seed, cut_every_ms=25, cut=cut, crash_at_ms=crashes, faults=FAULTS, may_miss=True
    )
    return sink, records, simulation.run()


@pytest.mark.parametrize("cut", ["position", "event-time"])
def test_results_are_right_whatever_fails(cut: EpochCut) -> None:
    crashes = 0
    for seed in range(3):
        sink, records, simulation = run(seed, cut)

        assert Counter(sink.values) == counted(records), f"seed {seed}"
        assert all(clock.late_records == 0 for clock in simulation.clocks()), f"seed {seed}"
        crashes += simulation.crashes
    assert crashes > 2, "the test has crashes"


async def fail_on_sevens(number: int) -> int:
    await asyncio.sleep(number % 5 / 1000)
    if number % 7 == 0:
        raise ValueError(f"{number} is bad")
    return number


@pytest.mark.parametrize("ordered", [True, False])
def test_records_that_fail_are_dropped_if_that_is_the_policy(*, ordered: bool) -> None:
    """Counted once each, also over restarts; the others come through."""
    for seed in range(4):
        app, sink = gp.StreamApp("failing"), MemoryTransactions()
        numbers = app.read(gp.collection(range(100)))
        numbers.map_async(fail_on_sevens, concurrency=4, ordered=ordered).write(sink)
        simulation = Simulation(
            app,
            seed=seed,
            cut_every_ms=20,
            crash_at_ms=[50, 90],
            faults=FAULTS,
            on_error="skip",
            may_miss=True,
        ).run()

        assert sorted(sink.values) == [n for n in range(100) if n % 7], f"seed {seed}"
        assert sum(clock.skipped_records for clock in simulation.clocks()) == 15, f"seed {seed}"


def test_record_in_quarantine_can_be_given_again() -> None:
    """It goes on at the step that could not take it; those before have had it."""
    before, attempts = list[int](), Counter[int]()

    async def fail_once(number: int) -> int:
        await asyncio.sleep(0.001)
        attempts[number] += 1
        if number == 3 and attempts[3] == 1:
            raise ValueError(number)
        return number

    def note(number: int) -> int:
        before.append(number)
        return number

    app, results = gp.StreamApp("quarantine"), list[int]()
    numbers = app.read(gp.collection(range(5))).map(note)
    numbers.map_async(fail_once).write(gp.to_list(results))
    simulation = Simulation(app, on_error="quarantine", idle_poll_ms=1000)
    while not simulation.quarantined:
        simulation.step()
    ((task, record),) = simulation.quarantined
    assert "fail_once" in record.error.operator
    assert "ValueError: 3" in record.error.cause

    simulation.inject(task, record)
    simulation.advance(100)
    simulation.run()

    assert sorted(results) == list(range(5))
    assert before == list(range(5))


def test_same_seed_gives_the_same_run() -> None:
    first, second = (run(7, "position") for _ in range(2))

    assert first[0].values == second[0].values
    assert first[2].delivered == second[2].delivered
    assert first[2].elapsed_ms == second[2].elapsed_ms


def is_app_master(process: Process) -> bool:
    return process.launch is not None and process.launch.executor_id == MASTER_EXECUTOR


def test_coroutines_go_on_in_a_simulated_cluster() -> None:
    records = some_records(3, 150)
    sink = MemoryTransactions()

    def app() -> gp.StreamApp:
        made = gp.StreamApp("asynchronous")
        made.read(gp.collection(records, out_of_order="200ms")).map_async(
            slow, concurrency=3
        ).write(sink)
        return made

    cluster = ClusterSimulation(5)
    running = cluster.submit(app)
    killed = 0
    for _ in range(3):
        cluster.world.run(lambda: False, within_ms=400)
        executors = [each for each in cluster.launched() if not is_app_master(each)]
        for executor in executors[:1]:
            cluster.kill(executor)
            killed += 1
    summary = cluster.run_to_end(running.app_id, within_ms=120_000)

    assert killed > 1, "the test has crashes"
    assert summary is not None
    assert summary.status == "succeeded"
    assert sorted(sink.values) == list(range(150))
