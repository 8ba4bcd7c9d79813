"""The task that reads a source, told to halt at an event time: what it sends before, and after."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.ids import MAX_MS
from gearpy.messages.app import HaltState
from gearpy.task.api.interfaces import Task
from tests.task.build import Bench, source_of
from tests.task.stage_build import BoundedSource, ScriptedSource, a_source_bench

_AT_MS = 20


def halting(
    *partitions: list[tuple[str, int]], bound: int = 0, ends: bool = False, **kwargs: Any
) -> Bench:
    source = BoundedSource(*partitions, out_of_order_ms=bound, ends=ends)
    bench = a_source_bench(source, poll_ms=1000, **kwargs)
    bench.runner.halt(_AT_MS)
    return bench.run()


def state_of(bench: Bench) -> HaltState | None:
    halt = bench.runner.clock().halt
    return None if halt is None else halt.state


def test_it_sends_what_is_older_and_then_waits() -> None:
    bench = halting([("a", 1), ("b", 25), ("c", 9), ("d", 40)], [("e", 19), ("f", 36)], bound=15)

    assert sorted(bench.target.values) == ["a", "c", "e"]
    assert state_of(bench) == "reached"
    assert bench.runner.clock().watermark_ms == _AT_MS


def test_it_goes_on_with_what_it_has_held_back() -> None:
    bench = halting([("a", 1), ("b", 25), ("c", 9), ("d", 40)], bound=15)

    bench.runner.halt(MAX_MS)
    bench.run()

    assert bench.target.values == ["a", "c", "b", "d"]
    assert state_of(bench) is None


@pytest.mark.parametrize("cut_ms", [None, 10, 20, 30])
def test_epochs_end_meanwhile(cut_ms: int | None) -> None:
    bench = halting([("a", 1), ("b", 12), ("c", 25)])

    bench.runner.cut(1, cut_ms)
    bench.run()
    bench.runner.cut(2)
    bench.run()

    assert [each.epoch for each in bench.runner.snapshots] == [1, 2]
    assert bench.runner.snapshots[0].has_missed_cut == (cut_ms in {10, 30})
    assert bench.target.values == ["a", "b"]
    assert state_of(bench) == "reached"


def test_an_epoch_that_is_ending_at_an_event_time_comes_first() -> None:
    """Its end is not moved by a later halt; an earlier one ends it, as nothing more comes."""
    source = BoundedSource([("a", 1), ("b", 12), ("c", 25), ("d", 50)], ends=False)
    before, behind = (a_source_bench(source, poll_ms=1000) for _ in range(2))
    for bench, cut_ms in ((before, 10), (behind, 30)):
        bench.runner.cut(1, cut_ms)
        bench.runner.halt(_AT_MS)
        bench.run()
        bench.pass_time(1000)
        bench.run()

    assert dict(before.target.epochs) == {1: ["a"], 2: ["b"]}
    assert not before.runner.snapshots[0].has_missed_cut
    assert dict(behind.target.epochs) == {1: ["a", "b"], 2: []}
    assert behind.runner.snapshots[0].has_missed_cut


def test_it_tells_that_it_was_told_too_late() -> None:
    """It goes on then: nobody can have what it has sent back."""
    bench = a_source_bench(BoundedSource([("a", 1), ("b", 25), ("c", 26)]), read=2).run()

    bench.runner.halt(_AT_MS)
    bench.run()

    assert bench.target.values == ["a", "b", "c"]
    assert state_of(bench) == "passed"


def test_a_task_that_cannot_hold_records_back_tells_so() -> None:
    """One without inputs that has no `Task.begin_cut` of its own."""

    def produce(_: Task) -> int:
        return 100

    bench = Bench(source_of(produce), upstream=0).open()

    bench.runner.halt(_AT_MS)

    assert state_of(bench) == "unable"


def test_it_tells_that_too_many_records_wait() -> None:
    """A partition that never promises would have it keep all that there will be."""
    records = [("a", 1), *((f"b{at}", 25) for at in range(5))]

    bench = halting(records, bound=100, held=4)

    assert state_of(bench) == "full"


def test_silence_does_not_bring_it_there() -> None:
    source = ScriptedSource(a=[[("a1", 1)], *["idle"] * 9])
    bench = a_source_bench(source, poll_ms=1000)
    bench.runner.halt(_AT_MS)
    bench.run()

    clock = bench.runner.clock()
    assert (state_of(bench), clock.idle) == ("open", True)


def test_the_end_brings_it_there_with_what_it_holds_back() -> None:
    bench = halting([("a", 1), ("b", 25)], ends=True)

    assert state_of(bench) == "reached"
    assert bench.runner.clock().clock_ms < MAX_MS

    bench.runner.halt(MAX_MS)
    bench.run()
    assert bench.target.values == ["a", "b"]
    assert bench.target.watermark_ms == MAX_MS


TIMES = st.lists(st.integers(0, 60), max_size=25)


@settings(max_examples=80, deadline=None)
@given(
    times=st.tuples(TIMES, TIMES),
    at_ms=st.integers(1, 60),
    bound=st.integers(0, 15),
    steps=st.lists(st.sampled_from(["position", "cut", "restart", "turn"]), max_size=6),
    read=st.integers(1, 5),
)
def test_what_comes_before_a_halt_is_told_by_the_records_alone(
    times: tuple[list[int], list[int]], at_ms: int, bound: int, steps: list[str], read: int
) -> None:
    """Invariant: whatever epochs end meanwhile, and with any restart: it is what one cut gives."""
    records = [
        [(f"{part}-{at}", time) for at, time in enumerate(each)] for part, each in enumerate(times)
    ]
    source = BoundedSource(*records, out_of_order_ms=bound)
    straight = a_source_bench(source, poll_ms=1)
    straight.runner.cut(1, at_ms)
    straight.run()

    bench, epoch, sent = a_source_bench(source, poll_ms=1, read=read), 1, list[Any]()
    bench.runner.halt(at_ms)
    for step in steps:
        if step == "turn":
            bench.runner.turn()
            continue
        bench.runner.cut(epoch, at_ms // 2 if step == "cut" else None)
        bench.run()
        bench.pass_time(1)
        bench.run()
        if step == "restart" and bench.runner.snapshots:
            sent += dict(bench.target.epochs).get(epoch, [])
            kept = [each for e, each in bench.target.epochs if e < epoch]
            sent += [value for values in kept for value in values]
            bench = a_source_bench(
                source, poll_ms=1, read=read, epoch=epoch + 1, resume=bench.snapshot(epoch)
            )
            bench.runner.halt(at_ms)
        epoch += 1
    bench.run()
    bench.pass_time(1)
    bench.run()
    sent += bench.target.values

    assert sorted(sent) == sorted(dict(straight.target.epochs).get(1, []))
