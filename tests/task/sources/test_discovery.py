"""Partitions that are found while a task runs: once, with the epochs, by one task."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.interfaces import Discovery, Source, SourceReader
from gearpy.task.sources.share import partition_number
from gearpy.task.sources.task import SourceTask, source_states
from tests.task.build import Bench, a_context
from tests.task.stage_build import Scripted


class Finder(Discovery[Any]):
    """Finds what a script says, a step at each call; the end of the script is the end."""

    def __init__(self, steps: list[Any], scripts: Mapping[str, Any], *, ends: bool) -> None:
        self.steps = steps
        self.scripts = scripts
        self.ends = ends
        self.calls: list[Any] = []
        self.confirmed: list[Any] = []

    def find(self) -> Mapping[str, Any]:
        step = self.steps.pop(0) if self.steps else {}
        if isinstance(step, str):
            self.waits_for = step
            return {}
        self.waits_for, self.has_looked = "", True
        self.finished = self.ends and not self.steps
        return dict.fromkeys(step, 0)

    def open(self, partition: str, place: Any) -> SourceReader:
        self.calls.append((partition, place))
        return Scripted(list(self.scripts[partition]), [], partition)

    def snapshot(self) -> Any:
        return "looked" if self.has_looked else "not yet"

    def on_commit(self, places: Mapping[str, Any]) -> None:
        self.confirmed.append(dict(places))

    def close(self) -> None:
        self.calls.append("close")


class Found(Source):
    replayable = True
    discovers = True

    def __init__(self, steps: list[Any], *, ends: bool = False, **scripts: Any) -> None:
        self.finder = Finder(steps, scripts, ends=ends)
        self.resumed: Sequence[Any] = ()

    def partitions(self) -> Sequence[str]:
        return ()

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        raise NotImplementedError

    def discover(self, task_index: int, parallelism: int, resume: Sequence[Any]) -> Finder:
        self.resumed = resume
        return self.finder


def a_bench(source: Found) -> Bench:
    return Bench(lambda context: SourceTask(context, source, lambda _: []), upstream=0).open()


def test_partitions_are_read_as_they_are_found() -> None:
    source = Found([["a"], [], ["b"]], ends=True, a=[[("a1", 1)], "end"], b=[[("b1", 2)], "end"])
    bench = a_bench(source).run()
    for _ in range(5):
        bench.pass_time(10)
        bench.run()
    assert bench.target.values == ["a1", "b1"]
    assert bench.target.watermark_ms == MAX_MS
    bench.runner.stop(completed=True)
    assert source.finder.calls == [("a", 0), ("b", 0), "close"]


def test_event_time_is_held_until_the_partitions_of_the_beginning_are_known() -> None:
    source = Found(["no broker answers", "no broker answers", []])
    bench = a_bench(source).run()
    assert (bench.target.idle, bench.target.watermark_ms) == (False, MIN_MS)
    assert bench.runner.clock().waits_for == "no broker answers"
    for _ in range(3):
        bench.pass_time(10)
        bench.run()
    assert (bench.target.idle, bench.target.watermark_ms) == (True, MIN_MS)
    assert bench.runner.clock().waits_for == ""


def test_a_task_without_partitions_goes_on_where_more_may_come() -> None:
    bench = a_bench(Found([[], []], ends=True)).run()
    for _ in range(3):
        bench.pass_time(10)
        bench.run()
    assert bench.target.watermark_ms == MAX_MS


def a_task(source: Found, resume: Any = None) -> SourceTask:
    context = a_context()
    context.resume = resume
    task = SourceTask(context, source, lambda _: [])
    task.on_start(MIN_MS)
    return task


def produced(task: SourceTask) -> None:
    steps = task.produce()
    while next(steps, self := object()) is not self:
        pass


def test_what_was_found_is_in_the_snapshot_and_is_not_found_again() -> None:
    source = Found([["a"]], a=[[("a1", 1)]])
    task = a_task(source)
    produced(task)
    kept = task.snapshot()

    again = Found([], a=[])
    a_task(again, resume=kept)

    assert again.finder.calls == [("a", kept["open"]["a"])]
    assert again.resumed == ["looked"]


def test_places_are_confirmed_when_their_epoch_is_complete_and_not_before() -> None:
    source = Found([["a", "b"]], a=[[("a1", 1)], "end"], b=[[("b1", 1)], [("b2", 2)]])
    task = a_task(source)
    places = []
    for epoch in (1, 2, 3):
        produced(task)
        produced(task)
        task.context.epoch = epoch
        places.append(task.snapshot()["open"])
    assert source.finder.confirmed == []
    task.on_commit(2)
    task.on_commit(3)
    assert len(source.finder.confirmed) == 2
    assert set(source.finder.confirmed[0]) == {"a", "b"}
    assert source.finder.confirmed[1] == places[2]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_for_another_number_of_tasks_each_partition_goes_to_one(parallelism: int) -> None:
    names = [f"t/{number}" for number in range(5)]
    source = Found([names])
    source.finder.scripts = {name: [] for name in names}
    task = a_task(source)
    produced(task)

    states = source_states([task.snapshot()], names, parallelism)

    shares = [sorted(each["open"]) for each in states]
    for index, share in enumerate(shares):
        assert share == [n for n in names if partition_number(n) % parallelism == index]
    assert [each["discovery"] for each in states] == [["looked"]] * parallelism
