"""Source tasks that end at what is there, night after night: each record once, and event time."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import OperatorError
from gearpy.ids import MIN_MS
from gearpy.task.api.interfaces import Source, SourceReader, TaskLimits
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.sources.task import SourceTask
from tests.task.build import Bench
from tests.task.stage_build import Bounded

Records = Mapping[str, Sequence[tuple[Any, int]]]


class Growing(Source):
    """Partitions that have grown until a night; a reader ends at what is there."""

    replayable = True

    def __init__(self, records: Records, rng: Random | None = None) -> None:
        self.records = records
        self.rng = rng

    def partitions(self) -> list[str]:
        return sorted(self.records)

    def up_to_now(self) -> "Growing":
        return self

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        reader = Bounded(self.records[partition], place=resume or (0, MIN_MS))
        reader.finished = reader.at == len(reader.records)
        reader.batch_records = self.rng.randint(1, 3) if self.rng else 2
        return reader


def a_night(
    source: Source,
    resume: TaskResume | None = None,
    *,
    up_to_now: bool = True,
    is_whole: bool = False,
) -> Bench:
    return Bench(
        lambda context: SourceTask(context, source, lambda _: [], is_whole=is_whole),
        upstream=0,
        resume=resume,
        task_limits=TaskLimits(until_caught_up=up_to_now),
    ).open()


def ended(bench: Bench, epoch: int = 1, *, caught_up: bool = True) -> TaskResume:
    bench.runner.cut(epoch, is_last=caught_up, caught_up=caught_up)
    bench.run()
    bench.pass_time(20)
    bench.run()
    return bench.snapshot(epoch)


def ran(bench: Bench) -> Bench:
    """Let it read all, and tell its watermark."""
    bench.run()
    bench.pass_time(20)
    return bench.run()


def reached_ms(bench: Bench) -> int:
    return bench.runner.clock().watermark_ms


def test_a_night_ends_at_what_is_there_and_the_next_goes_on() -> None:
    bench = ran(a_night(Growing({"a": [("a1", 1), ("a2", 5)]})))
    assert bench.target.values == ["a1", "a2"]
    assert reached_ms(bench) == 5, "no end of event time"
    assert bench.runner.clock().caught_up
    kept = ended(bench)

    bench = ran(a_night(Growing({"a": [("a1", 1), ("a2", 5), ("a3", 7)]}), kept))
    assert bench.target.values == ["a3"]
    assert reached_ms(bench) == 7


def test_one_that_has_given_something_holds_the_others_back_and_a_silent_one_does_not() -> None:
    grown = {"a": [("a1", 1)], "b": [("b1", 100)]}
    bench = ran(a_night(Growing(grown)))
    assert reached_ms(bench) == 1, "more follows behind a1"
    kept = ended(bench)

    grown = {"a": [("a1", 1)], "b": [("b1", 100), ("b2", 200)]}
    bench = ran(a_night(Growing(grown), kept))
    assert bench.target.values == ["b2"]
    assert reached_ms(bench) == 200
    assert not bench.runner.clock().idle
    kept = ended(bench)

    bench = ran(a_night(Growing(grown), kept))
    assert bench.target.values == []
    assert bench.runner.clock().caught_up
    assert bench.runner.clock().idle, "it holds no other source back"


def test_a_partition_still_holds_when_the_run_was_killed_and_started_again() -> None:
    grown = {"a": [("a1", 1)], "b": [("b1", 100)]}
    bench = ran(a_night(Growing(grown)))
    kept = ended(bench, caught_up=False)

    bench = ran(a_night(Growing(grown), kept))
    assert reached_ms(bench) in {MIN_MS, 1}
    assert not bench.runner.clock().idle


def test_sources_that_end_anyway_hold_no_partition_back() -> None:
    bench = ran(a_night(Growing({"a": [("a1", 1)], "b": [("b1", 100)]}), is_whole=True))
    assert reached_ms(bench) == 100


def test_what_was_read_to_its_end_does_not_go_on_up_to_now() -> None:
    source = Growing({"a": [("a1", 1)]})
    kept = ended(a_night(source, up_to_now=False, is_whole=True).run())
    with pytest.raises(OperatorError, match="was read to its end before"):
        a_night(source, kept, is_whole=True)


@given(
    nights=st.lists(
        st.fixed_dictionaries(
            {name: st.lists(st.integers(0, 9), min_size=1, max_size=5) for name in "abc"}
        ),
        min_size=1,
        max_size=5,
    ),
    seed=st.integers(0, 1 << 30),
)
def test_each_record_comes_once_and_none_is_late_over_nights_with_kills(
    nights: list[dict[str, list[int]]], seed: int
) -> None:
    """What comes to a partition in its own order is never behind what its task has promised."""
    rng, kept, shown = Random(seed), None, list[str]()
    grown: dict[str, list[tuple[Any, int]]] = {name: [] for name in "abc"}
    for night in nights:
        for name, steps in night.items():
            for step in steps:
                last_ms = grown[name][-1][1] if grown[name] else 0
                grown[name].append((f"{name}{len(grown[name])}", last_ms + step))
        is_killed = True
        while is_killed:
            bench = a_night(Growing(grown, rng), kept)
            is_killed = rng.random() < 0.5
            if is_killed:
                for _ in range(rng.randint(1, 4)):
                    bench.turn()
            else:
                ran(bench)
                assert bench.runner.clock().caught_up
                assert reached_ms(bench) == min(each[-1][1] for each in grown.values())
            kept = ended(bench, caught_up=not is_killed)
            shown += bench.target.values
            assert bench.target.late == []
        assert sorted(shown) == sorted(value for each in grown.values() for value, _ in each)
