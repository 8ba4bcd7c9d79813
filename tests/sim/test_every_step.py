"""Every kind of step before every other, with more records than fit: all of them come out."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from gearpy.errors import GearpyError
from tests.sim.every_step import SINKS, SOURCES, STEPS, outcome

RECORDS = 80
MANY_RECORDS = 600
NAMES = list(STEPS)
SHARE = 0.04  #: Of all pairs, in one order or the other.
SAMPLES = 8  #: Triples of one test.


def failures(*runs: dict[str, Any]) -> Iterator[str]:
    """Run programs; tell of those that do not end, lose records, or show them twice."""
    for run in runs:
        try:
            mistakes = outcome(**run).mistakes(run["names"], run["records"])
        except GearpyError as error:
            mistakes = [str(error)]
        if mistakes:
            yield f"{run}: {'; '.join(mistakes[:5])}"


def a_triple(seed: int) -> dict[str, Any]:
    """Return a program of three steps, with any source, sink, number of tasks, and crashes."""
    rng = Random(seed)
    sink = rng.choice(list(SINKS))
    has_crashes = sink == "transactions"
    return {
        "names": rng.choices(NAMES, k=3),
        "records": RECORDS,
        "tasks": rng.choice([1, 3]),
        "seed": seed,
        "source": rng.choice(list(SOURCES)),
        "sink": sink,
        "crash_at_ms": [rng.randrange(20, 400) for _ in range(2)] if has_crashes else (),
    }


def pairs_with(first: str) -> Iterator[dict[str, Any]]:
    """Yield programs of a step before itself and some others; `test_all_pairs` has all."""
    for number, second in enumerate(NAMES):
        seed = NAMES.index(first) * len(NAMES) + number
        rng = Random(seed)
        tasks = rng.choice([1, 3])
        if second == first or rng.random() < SHARE:
            yield {"names": [first, second], "records": RECORDS, "tasks": tasks, "seed": seed}


@pytest.mark.parametrize("first", NAMES)
def test_each_step_and_some_others(first: str) -> None:
    runs = [*pairs_with(first)]

    assert list(failures(*runs)) == []


@pytest.mark.parametrize("block", range(2))
def test_some_triples(block: int) -> None:
    runs = [a_triple(block * SAMPLES + at) for at in range(SAMPLES)]

    assert list(failures(*runs)) == []


@pytest.mark.long
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("first", NAMES)
def test_all_pairs(first: str, tasks: int, sink: str) -> None:
    runs = [
        {
            "names": [first, second],
            "records": MANY_RECORDS,
            "tasks": tasks,
            "seed": at,
            "sink": sink,
        }
        for at, second in enumerate(NAMES)
    ]

    assert list(failures(*runs)) == []


@pytest.mark.long
@pytest.mark.parametrize("first", NAMES)
def test_many_triples(first: str) -> None:
    start = 1000 + NAMES.index(first) * len(NAMES) * 4
    runs = [a_triple(start + at) for at in range(len(NAMES) * 4)]
    runs = [
        {**run, "names": [first, NAMES[at // 4], run["names"][2]]} for at, run in enumerate(runs)
    ]

    assert list(failures(*runs)) == []
