"""The task that reads a source: what it goes on from, and epochs that end by event time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS
from gearpy.task.api.snapshots import TaskResume
from tests.task.build import Bench
from tests.task.stage_build import BoundedSource, ScriptedSource, a_source_bench


def replayable(**scripts: Any) -> ScriptedSource:
    source = ScriptedSource(**scripts)
    source.replayable = True
    return source


def test_source_goes_on_with_each_partition_where_it_was() -> None:
    """One that has finished is not opened again; its progress counts on."""
    script = {"a": [[("a1", 1)], "end"], "b": [[("b1", 1), ("b2", 2)], "idle", [("b3", 3)], "end"]}
    source = replayable(**script)
    bench = a_source_bench(source, poll_ms=1000).run()
    bench.runner.cut(1)
    bench.run()

    later = replayable(a=[], b=[[("b3", 3)], "end"])
    again = a_source_bench(later, epoch=2, resume=bench.snapshot(1)).run()

    assert source.places == {"a": None, "b": None}
    assert later.places == {"b": 2}
    assert again.target.values == ["b3"]
    assert again.target.watermark_ms == MAX_MS
    assert again.runner.clock().records_in == 4
    assert again.runner.clock().done == 1 + 1  # The second reader counts from its place.


def test_partition_that_is_gone_is_an_error() -> None:
    """What it still had would be lost silently. A new one is read from its start."""
    bench = a_source_bench(replayable(a=[[("a1", 1)]]), poll_ms=1000).run()
    bench.runner.cut(1)
    bench.run()

    with pytest.raises(OperatorError, match="at partition 'a', which it does not have any more"):
        a_source_bench(replayable(b=["end"]), epoch=2, resume=bench.snapshot(1))
    more = replayable(a=["end"], b=["end"])
    a_source_bench(more, epoch=2, resume=bench.snapshot(1)).run()

    assert more.places == {"a": 1, "b": None}


def test_places_set_by_hand_count_more_than_those_of_the_snapshot() -> None:
    source = replayable(
        a=[[("a1", 1)], "end"], b=[[("b1", 1), ("b2", 90)], 90], c=[[("c1", 1)], "idle"]
    )
    bench = a_source_bench(source, poll_ms=1000)
    bench.runner.cut(1, 50)
    bench.run()
    kept = bench.snapshot(1)
    later = replayable(a=[[("a2", 2)], "end"], b=["end"], c=["end"])
    resume = TaskResume(head=kept.head, sections=kept.sections, offsets={"a": 7, "b": 8, "c": None})

    again = a_source_bench(later, epoch=2, resume=resume).run()

    assert later.places == {"a": 7, "b": 8, "c": 1}
    assert again.target.values == ["a2"]


def test_place_for_a_partition_that_is_not_there_is_an_error() -> None:
    bench = a_source_bench(replayable(a=[[("a1", 1)]]), poll_ms=1000).run()
    bench.runner.cut(1)
    bench.run()
    resume = TaskResume(head=bench.snapshot(1).head, offsets={"z": 3})

    with pytest.raises(OperatorError, match="at partition 'z', which it does not have"):
        a_source_bench(replayable(a=["end"]), epoch=2, resume=resume)


def test_place_for_a_source_that_cannot_go_back_is_an_error() -> None:
    """It would be ignored silently."""
    bench = a_source_bench(ScriptedSource(a=[[("a1", 1)]]), poll_ms=1000).run()
    bench.runner.cut(1)
    bench.run()
    resume = TaskResume(head=bench.snapshot(1).head, offsets={"a": 3})

    with pytest.raises(OperatorError, match="set by hand: it is not replayable"):
        a_source_bench(ScriptedSource(a=["end"]), epoch=2, resume=resume)


def a_cut_bench(
    *partitions: list[tuple[str, int]], cut_ms: int, bound: int = 0, **kwargs: Any
) -> Bench:
    source = BoundedSource(*partitions, out_of_order_ms=bound, ends=False)
    bench = a_source_bench(source, poll_ms=1000, **kwargs)
    bench.runner.cut(1, cut_ms)
    return bench.run()


def test_epoch_has_all_that_is_older_than_the_cut() -> None:
    bench = a_cut_bench(
        [("a1", 1), ("a2", 22), ("a3", 9), ("a4", 36)],
        [("b1", 3), ("b2", 8), ("b3", 12), ("b4", 40)],
        cut_ms=20,
        bound=15,
        read=2,
    )
    bench.pass_time(1000)
    bench.run()

    epochs = dict(bench.target.epochs)
    assert sorted(epochs[1]) == ["a1", "a3", "b1", "b2", "b3"]
    assert sorted(epochs[2]) == ["a2", "a4", "b4"]
    assert not bench.runner.snapshots[0].has_missed_cut


@pytest.mark.parametrize("script", [["idle"] * 9, [[("a1", 1)], "end"]], ids=["idle", "finished"])
def test_partition_that_gives_nothing_does_not_hold_up_the_cut(script: list[Any]) -> None:
    source = ScriptedSource(a=script, b=[[("b1", 1), ("b2", 30)], 30])
    bench = a_source_bench(source, poll_ms=1000)
    bench.runner.cut(1, 20)

    bench.run()
    bench.pass_time(1000)
    bench.run()

    epochs = dict(bench.target.epochs)
    assert "b1" in epochs[1]
    assert epochs[2] == ["b2"]


def test_held_records_survive_a_restart() -> None:
    source = BoundedSource([("a", 1), ("b", 25), ("c", 9), ("d", 40)], out_of_order_ms=15)
    bench = a_source_bench(source, poll_ms=1000, read=4)
    bench.runner.cut(1, 20)
    bench.run()

    again = a_source_bench(source, epoch=2, resume=bench.snapshot(1)).run()

    assert dict(bench.target.epochs)[1] == ["a", "c"]
    assert again.target.values == ["b", "d"]
    assert again.runner.clock().records_in == 4
    assert again.target.watermark_ms == MAX_MS


def test_span_is_how_far_records_are_ahead_of_the_promise() -> None:
    bench = a_source_bench(
        BoundedSource([("a", 10), ("b", 35)], [("c", 20)], out_of_order_ms=5, ends=False), read=1
    ).run()

    counters = bench.runner.context.counters
    assert (counters.newest_ms, counters.span_ms) == (35, 35 - 15)


TIMES = st.lists(st.integers(0, 60), max_size=25)


@settings(max_examples=60, deadline=None)
@given(
    first=TIMES,
    second=TIMES,
    cut_ms=st.integers(1, 60),
    read=st.integers(1, 8),
    bound=st.integers(0, 15),
)
def test_epoch_does_not_depend_on_what_is_read_at_a_time(
    first: list[int], second: list[int], cut_ms: int, read: int, bound: int
) -> None:
    """Invariant: nor on which partition is read when; a restart gives exactly the rest."""
    records = [
        [(f"{name}{at}", time) for at, time in enumerate(times)]
        for name, times in (("a", first), ("b", second))
    ]
    source = BoundedSource(*records, out_of_order_ms=bound)

    def cut(size: int) -> Bench:
        bench = a_source_bench(source, poll_ms=1, read=size)
        bench.runner.cut(1, cut_ms)
        bench.run()
        bench.pass_time(1)
        return bench.run()

    bench, other = cut(read), cut(1)
    again = a_source_bench(source, epoch=2, resume=bench.snapshot(1), read=3).run()

    epochs = dict(bench.target.epochs)
    assert sorted(epochs.get(1, [])) == sorted(dict(other.target.epochs).get(1, []))
    assert sorted(again.target.values) == sorted(epochs.get(2, []))
    assert sorted(epochs.get(1, []) + epochs.get(2, [])) == sorted(
        value for each in records for value, _ in each
    )
