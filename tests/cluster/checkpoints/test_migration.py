"""Programs that have changed go on from checkpoints of what they were, in a simulated cluster."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.ids import AppId
from gearpy.messages.client import GetCluster, UpdatePlanned
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.api.application import Buildable
from tests.world.cluster import ClusterSimulation

NUMBERS = list(range(6_000))
SPAN_MS = 1000
Change = Callable[[gp.Stream[int], list[Any]], None]


def program(change: Change, results: list[Any], *, name: str = "one") -> Callable[[], Buildable]:
    def make() -> Buildable:
        app = gp.StreamApp(name, parallelism=2)
        events = [gp.Message(n, n) for n in NUMBERS]
        change(app.read(gp.collection(events, partitions=4), name="numbers"), results)
        return app

    return make


def rest(number: int) -> int:
    return number % 7


def counted(numbers: gp.Stream[int], results: list[Any], *, parallelism: int | None = None) -> None:
    keyed = numbers.key_by(rest, parallelism=parallelism)
    keyed.count(name="counts").write(gp.to_list(results), name="out")


def windowed(
    numbers: gp.Stream[int], results: list[Any], *, parallelism: int | None = None
) -> None:
    keyed = numbers.key_by(rest, parallelism=parallelism)
    windows = keyed.window(gp.tumbling(f"{SPAN_MS}ms"))
    windows.count(name="counts").write(gp.to_list(results), name="out")


class Scene:
    def __init__(self, seed: int = 1, *, interval_ms: int = 100) -> None:
        settings = {
            "checkpoint.interval-ms": str(interval_ms),
            "checkpoint.max-overhead-percent": "100",
            "application.trial-seconds": "1",
        }
        self.cluster = ClusterSimulation(seed=seed, settings=settings)

    def run_for_a_while(self, make: Callable[[], Buildable], *, resume_from: str = "") -> AppId:
        """Run a program until it has complete epochs, and is in the middle; stop it."""
        running = self.cluster.submit(make, resume_from=resume_from)
        self.cluster.world.run(lambda: self._epoch(running.app_id) >= 2, within_ms=60_000)
        assert self._epoch(running.app_id) >= 2
        running.shutdown()
        self.cluster.run_until_free(within_ms=60_000)
        return running.app_id

    def point(self, app_id: AppId, *, drops: bool = False) -> str:
        cluster = self.cluster.client.ask(GetCluster()).cluster_id
        return f"{cluster}/app{app_id}@{'+allow-drop' if drops else ''}"

    def finish(self, make: Callable[[], Buildable], resume_from: str) -> ApplicationSummary:
        running = self.cluster.submit(make, resume_from=resume_from)
        summary = self.cluster.run_to_end(running.app_id, within_ms=600_000)
        assert summary is not None
        return summary

    def change(self, app_id: AppId, version: int, scale: dict[str, int]) -> None:
        """Give steps another number of tasks as soon as that can be, and wait until they run."""
        planned = partial(self.cluster.update, app_id, scale=scale)
        self._look_until(lambda: isinstance(planned(), UpdatePlanned))
        self._look_until(
            lambda: [each.state for each in self.cluster.versions(app_id)[version:]] == ["running"]
        )

    def _look_until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(600):
            if is_so():
                return
            self.cluster.world.run(lambda: False, within_ms=100)
        raise AssertionError("not within a minute")

    def _epoch(self, app_id: AppId) -> int:
        summary = self.cluster.summary(app_id)
        return 0 if summary is None else summary.progress.epoch


def totals(results: list[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for key, count in results:
        found[key] = max(count, found.get(key, 0))
    return found


@pytest.mark.parametrize("parallelism", [1, 3, pytest.param(2, marks=pytest.mark.long)])
def test_counts_go_on_in_a_changed_program(parallelism: int) -> None:
    scene = Scene()
    before: list[Any] = []
    after: list[Any] = []
    beside: list[Any] = []

    def changed(numbers: gp.Stream[int], results: list[Any]) -> None:
        numbers.key_by(str).count(name="new").write(gp.to_list(beside), name="beside")
        counted(numbers.filter(lambda n: n >= 0).map(int), results, parallelism=parallelism)

    first = scene.run_for_a_while(program(counted, before))
    summary = scene.finish(program(changed, after), scene.point(first))

    assert summary.status == "succeeded", summary
    assert totals(after) == Counter(map(rest, NUMBERS))
    assert 0 < len(beside) < len(NUMBERS), "it began where the first one was"


@pytest.mark.parametrize("parallelism", [1, 5, pytest.param(2, marks=pytest.mark.long)])
def test_windows_go_on_in_another_number_of_tasks(parallelism: int) -> None:
    scene = Scene(seed=2)
    before: list[Any] = []
    after: list[Any] = []

    def changed(numbers: gp.Stream[int], results: list[Any]) -> None:
        windowed(numbers.map(int), results, parallelism=parallelism)

    first = scene.run_for_a_while(program(windowed, before))
    summary = scene.finish(program(changed, after), scene.point(first))

    expected = Counter((rest(n), n // SPAN_MS * SPAN_MS) for n in NUMBERS)
    assert summary.status == "succeeded", summary
    shown = {(each.key, each.start): each.value for each in [*before, *after]}
    assert shown == expected


def test_triggers_go_on_in_another_number_of_tasks() -> None:
    """With what has come since the last firing, of windows of which some tasks know less."""
    scene = Scene(seed=9)
    before: list[Any] = []
    after: list[Any] = []

    def fired(
        numbers: gp.Stream[int], results: list[Any], *, parallelism: int | None = None
    ) -> None:
        windows = gp.session("8ms").triggering(gp.after_count(50))
        counts = numbers.key_by(rest, parallelism=parallelism).window(windows).count(name="counts")
        counts.write(gp.to_list(results), name="out")

    first = scene.run_for_a_while(program(fired, before))
    wider = program(lambda numbers, results: fired(numbers, results, parallelism=3), after)
    summary = scene.finish(wider, scene.point(first))

    assert summary.status == "succeeded", summary
    shown = {(each.key, each.firing): each.value for each in [*before, *after]}
    assert sum(shown.values()) == len(NUMBERS)


def test_joins_go_on_in_another_number_of_tasks() -> None:
    scene = Scene(seed=10)
    before: list[Any] = []
    after: list[Any] = []

    def joined(
        numbers: gp.Stream[int], results: list[Any], *, parallelism: int | None = None
    ) -> None:
        left = numbers.map(int).key_by(rest, parallelism=parallelism)
        right = numbers.key_by(rest)
        pairs = left.join_interval(right, before="7ms", how="left", name="pairs")
        pairs.write(gp.to_list(results), name="out")

    first = scene.run_for_a_while(program(joined, before))
    wider = program(lambda numbers, results: joined(numbers, results, parallelism=3), after)
    summary = scene.finish(wider, scene.point(first))

    assert summary.status == "succeeded", summary
    pairs = {(each.left, each.right) for each in [*before, *after]}
    assert pairs == {(n, other) for n in NUMBERS for other in (n, n - 7) if other >= 0}


def test_state_without_a_place_is_not_dropped_unasked() -> None:
    scene = Scene(seed=4)
    after: list[Any] = []

    def renamed(numbers: gp.Stream[int], results: list[Any]) -> None:
        numbers.key_by(rest).count(name="others").write(gp.to_list(results), name="out")

    first = scene.run_for_a_while(program(counted, []))
    refused = scene.finish(program(renamed, []), scene.point(first))
    allowed = scene.finish(program(renamed, after), scene.point(first, drops=True))

    assert refused.status == "failed"
    assert refused.cause is not None
    assert "dropped counts [counts]" in refused.cause.cause
    assert "--allow-drop" in refused.cause.cause
    assert allowed.status == "succeeded"
    assert 0 < sum(totals(after).values()) < len(NUMBERS)


def test_what_differs_from_task_to_task_cannot_be_shared_out() -> None:
    """Such as what a task of one's own keeps; the message names the step."""
    scene = Scene(seed=5)

    class Summing(gp.Task):
        total = 0

        def on_next(self, message: gp.Message) -> None:
            self.total += message.value

        def snapshot(self) -> int:
            return self.total

    def summed(numbers: gp.Stream[int], results: list[Any], *, parallelism: int = 2) -> None:
        numbers.process(Summing, parallelism=parallelism, name="sum")

    first = scene.run_for_a_while(program(summed, []))
    wider = program(lambda numbers, results: summed(numbers, results, parallelism=3), [])
    refused = scene.finish(wider, scene.point(first))

    assert refused.status == "failed"
    assert refused.cause is not None
    assert "step 'sum' ran in 2 tasks and now would in 3" in refused.cause.cause


def test_a_partition_that_is_gone_is_told() -> None:
    scene = Scene(seed=6)

    def fewer() -> Buildable:
        app = gp.StreamApp("one", parallelism=2)
        events = [gp.Message(n, n) for n in NUMBERS]
        counted(app.read(gp.collection(events, partitions=3), name="numbers"), [])
        return app

    first = scene.run_for_a_while(program(counted, []))
    refused = scene.finish(fewer, scene.point(first))

    assert refused.status == "failed"
    assert refused.cause is not None
    assert "which it does not have any more" in refused.cause.cause


@pytest.mark.parametrize("parallelism", [1, 4, pytest.param(2, marks=pytest.mark.long)])
def test_what_a_sink_has_not_shown_yet_is_shown_once(tmp_path: Path, parallelism: int) -> None:
    """Fewer tasks write than before, or more; each count is in the folder once."""
    scene = Scene(seed=7)

    def written(numbers: gp.Stream[int], _: list[Any], *, parallelism: int = 3) -> None:
        counts = numbers.key_by(rest, parallelism=parallelism).count(name="counts")
        counts.write(gp.jsonl_folder(str(tmp_path)), name="out")

    first = scene.run_for_a_while(program(written, []))
    other = program(lambda numbers, results: written(numbers, results, parallelism=parallelism), [])
    summary = scene.finish(other, scene.point(first))

    lines = [
        tuple(json.loads(line))
        for file in tmp_path.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    totals = Counter(map(rest, NUMBERS))
    assert summary.status == "succeeded", summary
    assert sorted(lines) == sorted(
        (key, count) for key, total in totals.items() for count in range(1, total + 1)
    )


def test_a_sink_that_keeps_something_gets_fewer_tasks_while_it_runs(tmp_path: Path) -> None:
    scene, released = Scene(seed=8, interval_ms=500), [2_000]

    class Released(gp.SimpleSource[int]):
        """Gives what is released, by no clock: the cluster's is not that of the machine."""

        bounded = True

        def read(self, position: int | None) -> Iterator[tuple[int, int] | None]:
            for number in NUMBERS[position or 0 :]:
                while number >= released[0]:
                    yield None
                yield number, number + 1

    def make() -> Buildable:
        app = gp.StreamApp("one", parallelism=2)
        read = app.read(Released(), name="numbers")
        counts = read.key_by(rest, parallelism=3).count(name="counts")
        rows = counts.map(lambda each: {"key": each[0], "count": each[1]})
        rows.write(gp.parquet_folder(str(tmp_path)), name="out")
        return app

    running = scene.cluster.submit(make)
    for version, tasks in enumerate([1, 4], start=1):
        scene.change(running.app_id, version, {"counts": tasks})
        released[0] += 2_000
    summary = scene.cluster.run_to_end(running.app_id, within_ms=600_000)

    totals = Counter(map(rest, NUMBERS))
    rows = pq.read_table(tmp_path).to_pylist()
    assert summary is not None
    assert summary.status == "succeeded", summary
    assert sorted((each["key"], each["count"]) for each in rows) == sorted(
        (key, count) for key, total in totals.items() for count in range(1, total + 1)
    )
