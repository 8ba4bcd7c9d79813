"""Programs that forget, roll dice or race are found, with the step; those that do not are not."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.core.flow.partition import HashPartitioner
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.api.application import Graph, Processor, StreamApplication
from gearpy.task.api.interfaces import Discovery
from gearpy.testing.chaos import Chaos, ChaosVerdict

Build = Callable[[gp.Stream[int]], gp.Stream[Any]]
NUMBERS = [n % 7 for n in range(70)]


class Forgets(gp.Task):
    count = 0

    def on_next(self, message: gp.Message) -> list[gp.Message]:
        self.count += 1
        return [gp.Message((message.value, self.count), message.timestamp)]


class Remembers(Forgets):
    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.resume or 0

    def snapshot(self) -> int:
        return self.count


class TakesTooMuch(Remembers):
    def on_start(self, start_time_ms: int) -> None:
        if self.context.resume:
            self.count = self.context.resume["count"]


def forgets_in_a_closure(stream: gp.Stream[int]) -> gp.Stream[Any]:
    seen: set[int] = set()

    def is_new(n: int) -> bool:
        return not (n in seen or seen.add(n))  # type: ignore[func-returns-value]

    return stream.map(lambda n: n + 1).filter(is_new, name="is_new").map(str)


def forgets_in_a_callable(stream: gp.Stream[int]) -> gp.Stream[int]:
    class Total:
        total = 0

        def __call__(self, n: int) -> int:
            self.total += n
            return self.total

    return stream.map(lambda n: n + 1).map(Total(), name="total")


def verdict_of(
    build: Build, folder: Path, *, seeds: int = 2, tasks: int = 2, source: Any = None, **limits: Any
) -> ChaosVerdict:
    def load() -> StreamApplication:
        app = gp.StreamApp("tried")
        numbers = app.read(source or gp.collection(NUMBERS, partitions=2), parallelism=tasks)
        build(numbers).write(gp.jsonl_folder(folder / "out"))
        return app.build()

    verdict = Chaos(load, folder / "sources", **limits).verdict(range(1, seeds + 1))
    assert not (folder / "out").exists(), "nothing is written"
    return verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "step"),
    [
        (lambda s: s.repartition(1).process(Forgets).map(str), "Forgets"),
        (lambda s: s.key_by(str).process(Forgets, parallelism=2, name="mine"), "mine"),
        (forgets_in_a_closure, "is_new"),
        (forgets_in_a_callable, "total"),
    ],
    ids=["task", "keyed task", "closure", "callable"],
)
def test_a_step_that_forgets_is_found(build: Build, step: str, tmp_path: Path) -> None:
    verdict = verdict_of(build, tmp_path)

    assert (verdict.reason, verdict.seed) == ("crash", 1)
    assert f"{step!r}" in verdict.step
    assert "gone after a restart" in verdict.advice
    assert verdict.found is not None
    assert not verdict.found.is_empty


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by(str).process(Remembers, parallelism=2),
        lambda s: s.key_by(str).map_with_state(lambda total, n: (total + n,) * 2, initial=0),
        lambda s: s.key_by(str, parallelism=2).window(gp.global_window()).sum(),
        lambda s: s.map(lambda n: n / 10).window(gp.global_window()).sum(),
    ],
    ids=["snapshot", "state", "windows", "floats in any order"],
)
def test_a_program_that_keeps_its_state_is_alike(build: Build, tmp_path: Path) -> None:
    verdict = verdict_of(build, tmp_path, source=gp.collection(NUMBERS), tasks=1)

    assert (verdict.reason, verdict.seeds) == ("", 2)
    assert verdict.restored > 1


def test_the_smallest_seed_is_told_and_can_be_repeated(tmp_path: Path) -> None:
    def load() -> StreamApplication:
        app = gp.StreamApp("tried")
        app.read(gp.collection(range(70))).process(Forgets).write(gp.stdout())
        return app.build()

    chaos = Chaos(load, tmp_path)
    found = [chaos.verdict(seeds) for seeds in ([3, 4], [3])]

    assert [each.seed for each in found] == [3, 3]
    assert found[0].found == found[1].found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "reason", "step"),
    [
        (lambda s: s.map(str).map(lambda n: (n, random.random()), name="dice"), "chance", "dice"),
        (lambda s: s.map(str).repartition(1).process(Remembers, name="race"), "order", "race"),
    ],
    ids=["chance", "order"],
)
def test_a_program_that_differs_by_itself_is_told_so(
    build: Build, reason: str, step: str, tmp_path: Path
) -> None:
    verdict = verdict_of(build, tmp_path)

    assert (verdict.reason, verdict.crashes) == (reason, 0)
    assert f"{step!r}" in verdict.step


def test_a_step_that_cannot_go_on_is_told_with_its_error(tmp_path: Path) -> None:
    verdict = verdict_of(lambda s: s.repartition(1).process(TakesTooMuch), tmp_path)

    assert (verdict.reason, verdict.seed) == ("crash", 1)
    assert "TakesTooMuch" in verdict.step
    assert "TypeError: 'int' object is not subscriptable" in verdict.error


def test_what_cannot_go_from_task_to_task_is_no_obstacle_within_one(tmp_path: Path) -> None:
    verdict = verdict_of(
        lambda s: s.map(lambda n: (n for _ in range(1))).map(list).repartition(1).process(Forgets),
        tmp_path,
    )

    assert (verdict.reason, verdict.seed) == ("crash", 1)


def test_a_program_that_fails_by_itself_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="ZeroDivisionError"):
        verdict_of(lambda s: s.map(lambda n: 1 // n), tmp_path)


def test_sources_without_an_end_need_a_limit(tmp_path: Path) -> None:
    source = gp.generate(lambda: iter(range(10**9)))
    with pytest.raises(ConfigError, match="has no end: say how many records"):
        verdict_of(lambda s: s, tmp_path / "none", source=source, tasks=1)
    limited = verdict_of(lambda s: s, tmp_path / "some", source=source, tasks=1, records=90)
    paced = gp.generate(lambda: iter(range(10**9)), rate=500)
    timed = verdict_of(lambda s: s, tmp_path / "timed", source=paced, tasks=1, seconds=0.3)

    assert (limited.results, limited.reason) == (90, "")
    assert timed.results == sum(timed.records.values()) > 1
    assert timed.reason == ""


class Found(gp.Source):
    discovers = True
    replayable = True

    def __init__(self) -> None:
        self.found = gp.collection(NUMBERS, partitions=2)

    def partitions(self) -> list[str]:
        return []

    def open(self, partition: str, resume: Any | None) -> gp.SourceReader:
        return self.found.open(partition, resume)

    def discover(self, task_index: int, parallelism: int, resume: Any) -> Discovery:
        return Finder(self)


class Finder(Discovery):
    def __init__(self, source: Found) -> None:
        self.source = source
        self.left = [*source.found.partitions()]

    def find(self) -> dict[str, Any]:
        return {self.left.pop(): None} if self.left else {}

    def open(self, partition: str, place: Any) -> gp.SourceReader:
        return self.source.open(partition, place)

    def snapshot(self) -> None:
        return None


def test_partitions_that_are_found_while_it_is_read_are_read(tmp_path: Path) -> None:
    verdict = verdict_of(lambda s: s, tmp_path, source=Found(), tasks=1, seconds=0.2)

    assert (verdict.results, verdict.reason) == (len(NUMBERS), "")


def test_too_few_records_for_a_crash_between_them_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are too few: 1 of collection"):
        verdict_of(lambda s: s, tmp_path, source=gp.collection([1]), tasks=1)


def test_a_graph_made_by_hand_is_refused(tmp_path: Path) -> None:
    graph = Graph().connect(
        Processor(gp.Task, name="one"), Processor(gp.Task, name="two"), HashPartitioner()
    )
    with pytest.raises(ConfigError, match=r"write a test with gearpy\.testing\.Simulation"):
        Chaos(lambda: StreamApplication("byhand", graph), tmp_path)
