"""A change at an event time: its sources halt there, and the last epoch ends there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.decisions import ChangeGivenUp, Command, PutInPlace
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch
from gearpy.core.app.regions.at_time import HaltOrders, TimedHalt
from gearpy.core.dag.graph import Dag
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    HaltSources,
    HaltState,
    SourceHalt,
    StartAllTasks,
    TaskClock,
)
from tests.core.manager_bench import A, B, Bench, a_dag, only

_AT_MS = 50_000
FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)


def a_clock(task: TaskId, watermark_ms: int, state: HaltState | None = "open", **kw: Any) -> Any:
    halt = None if state is None else SourceHalt(time_ms=_AT_MS, state=state)
    values: dict[str, Any] = {"session": SessionId(1), "clock_ms": watermark_ms, **kw}
    return TaskClock(task_id=task, watermark_ms=watermark_ms, halt=halt, **values)


def a_halt(*clocks: TaskClock, now_ms: int = 0, timeout_ms: int = 300_000) -> TimedHalt:
    halt = TimedHalt(_AT_MS, {FIRST: "read", SECOND: "read"}, timeout_ms=timeout_ms)
    halt.on_reports({each.task_id: each for each in clocks}, now_ms)
    return halt


def there(task: TaskId, **kw: Any) -> TaskClock:
    clock: TaskClock = a_clock(task, _AT_MS, "reached", **kw)
    return clock


# -- whether all sources are there -------------------------------------------------------------


def test_all_sources_have_to_be_there() -> None:
    assert a_halt(there(FIRST), there(SECOND)).is_reached
    assert not a_halt(there(FIRST)).is_reached
    assert not a_halt(there(FIRST), a_clock(SECOND, 3)).is_reached


def test_silent_sources_and_ended_ones_are_not_waited_for() -> None:
    silent = a_clock(SECOND, 3, idle=True)
    ended = a_clock(SECOND, MAX_MS, "reached")

    assert a_halt(there(FIRST), silent).is_reached
    assert a_halt(there(FIRST), ended).is_reached
    assert not a_halt(a_clock(FIRST, 3, idle=True), silent).is_reached
    assert not a_halt(a_clock(FIRST, MAX_MS, "reached"), ended).is_reached
    assert not a_halt(there(FIRST), a_clock(SECOND, 3, None, idle=True)).is_reached


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("passed", "read (task 0.1) had sent records of that time before it was told"),
        ("full", "too many records of that time wait in read (task 0.1) for older ones"),
        ("unable", "read (task 0.1) is no Source, and has no begin_cut, by which it could hold"),
    ],
)
def test_what_cannot_be_exact_cannot_be(state: HaltState, text: str) -> None:
    assert text in a_halt(there(FIRST), a_clock(SECOND, 3, state)).refusal


def test_sources_that_are_there_do_not_wait_for_ever_for_others() -> None:
    reports = {FIRST: there(FIRST), SECOND: a_clock(SECOND, 3)}
    halt = a_halt(*reports.values(), timeout_ms=1000)
    halt.on_reports(reports, 999)
    early = halt.refusal
    halt.on_reports(reports, 1000)

    assert early == ""
    late = "read (task 0.1) is not there 1 s after the first source was: its watermark is "
    assert halt.refusal == f"{late}49997 ms before that time"


def test_one_that_has_read_that_far_is_found_before_it_is_told() -> None:
    halt = a_halt()
    read = a_clock(FIRST, 3, None, newest_ms=_AT_MS)

    assert halt.has_passed({FIRST: read}) == "read (task 0.0)"
    assert halt.has_passed({FIRST: a_clock(FIRST, _AT_MS, None)}) == "read (task 0.0)"
    assert halt.has_passed({FIRST: a_clock(FIRST, _AT_MS - 1, None)}) == ""


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 3000)), min_size=2, max_size=30))
def test_it_is_near_when_event_time_will_be_there_soon(steps: list[tuple[int, int]]) -> None:
    """Invariant: before it is there, and never sooner than twenty seconds at the best pace."""
    now_ms, watermark_ms, best = 0, 0, 0.0
    halt = a_halt()
    for wait_ms, moved_ms in steps:
        now_ms, watermark_ms = now_ms + wait_ms, watermark_ms + moved_ms
        best = max(best, moved_ms / wait_ms)
        state: HaltState = "open" if watermark_ms < _AT_MS else "reached"
        halt.on_reports({FIRST: a_clock(FIRST, min(watermark_ms, _AT_MS), state)}, now_ms)
        assert halt.is_near or watermark_ms < _AT_MS
        assert not halt.is_near or _AT_MS - watermark_ms <= best * 20_000


def test_a_source_is_told_until_it_says_so_itself() -> None:
    """Every two seconds; and that it may go on when nobody waits for it any more."""
    orders, halt = HaltOrders(), a_halt()
    place = {FIRST: A, SECOND: B}
    heard = {FIRST: a_clock(FIRST, 3, None), SECOND: a_clock(SECOND, 3)}

    told = [orders.orders(7, place, heard, halt, now_ms) for now_ms in (0, 1999, 2000)]
    freed = HaltOrders().orders(7, place, heard, None, 0)

    message = HaltSources(attempt=7, time_ms=_AT_MS)
    assert told == [[Send(executor_id=A, message=message)], [], told[0]]
    assert freed == [Send(executor_id=B, message=HaltSources(attempt=7, time_ms=MAX_MS))]


# -- in a core ---------------------------------------------------------------------------------


def next_dag(*regions: tuple[int, int]) -> Dag:
    dag = a_dag(*regions)
    return Dag(1, dag.processors, dag.edges)


def waiting(*regions: tuple[int, int], kept: frozenset[int] = frozenset()) -> Bench:
    regions = regions or ((2, 2),)
    bench = Bench(*regions)
    report(bench, 1000, None)
    bench.obey(bench.manager.change(next_dag(*regions), bench.now_ms, kept=kept, at_ms=_AT_MS))
    return bench


def report(
    bench: Bench, watermark_ms: int, state: HaltState | None = "open", *, region: int = 0
) -> list[Command]:
    of_region = bench.manager.regions[region]
    clocks = [
        a_clock(task, watermark_ms, state, session=session)
        for task, session in of_region.sessions.items()
        if task.processor == 2 * region
    ]
    return bench.obey(bench.manager.on_clocks(clocks, bench.now_ms))


def told(commands: list[Command]) -> list[tuple[ExecutorId, int]]:
    return [
        (each.executor_id, each.message.time_ms)
        for each in only(commands, Send)
        if isinstance(each.message, HaltSources)
    ]


def last_epochs(commands: list[Command]) -> list[BeginEpoch]:
    sent = [each.message for each in only(commands, Send)]
    return [each for each in sent if isinstance(each, BeginEpoch) and each.is_last]


def test_sources_are_told_at_once_and_nothing_else_happens() -> None:
    bench = waiting()
    told_first = told(bench.done)
    bench.done.clear()

    report(bench, 1000)
    done = bench.tick(60_000)

    assert sorted(told_first) == [(A, _AT_MS), (B, _AT_MS)]
    assert not told(done)
    assert not only(done, Launch)
    assert "waits for its event time" in bench.manager.why_unchangeable()
    assert any(isinstance(each.message, BeginEpoch) for each in only(done, Send))


def test_the_last_epoch_ends_at_that_time_when_all_sources_are_there() -> None:
    bench = waiting()
    near = [*report(bench, 1000), *bench.tick(1000), *report(bench, 45_000)]
    bench.end_epoch()

    done = bench.tick(1000) + report(bench, _AT_MS, "reached") + bench.end_epoch()

    assert only(near, Launch)
    assert not last_epochs(near)
    assert {each.cut_time_ms for each in last_epochs(done)} == {_AT_MS}
    assert only(bench.done, PutInPlace)
    assert not only(bench.done, ChangeGivenUp)


def test_a_restart_halts_before_it_reads() -> None:
    bench = waiting()
    bench.done.clear()

    bench.fail_task(FIRST)
    bench.tick(3000)

    starts = [each.message for each in only(bench.done, Send)]
    assert {each.halt_ms for each in starts if isinstance(each, StartAllTasks)} == {_AT_MS}


def test_a_relaunched_app_master_has_the_change_wait_before_anything_runs() -> None:
    bench = Bench(is_begun=False)
    bench.obey(bench.manager.change(next_dag((2, 2)), bench.now_ms, at_ms=_AT_MS))
    bench.begin()

    starts = [each.message for each in only(bench.done, Send)]
    assert {each.halt_ms for each in starts if isinstance(each, StartAllTasks)} == {_AT_MS}
    assert bench.states == ["running"]


def test_a_change_that_is_called_off_lets_sources_go_on() -> None:
    bench = waiting()
    report(bench, 2000)

    done = bench.obey(bench.manager.keep("called off", bench.now_ms))
    later = bench.tick(2000)
    report(bench, _AT_MS, None)

    assert only(done, ChangeGivenUp) == [ChangeGivenUp(reason="called off")]
    assert sorted(told(done)) == sorted(told(later)) == [(A, MAX_MS), (B, MAX_MS)]
    assert not told(bench.tick(3000))
    assert bench.manager.why_unchangeable() == ""


def test_a_source_that_was_told_too_late_gives_the_change_up() -> None:
    bench = waiting()

    (given_up,) = only(report(bench, 60_000, "passed"), ChangeGivenUp)

    assert "p0 (task 0.0) had sent records of that time" in given_up.reason


@pytest.mark.parametrize("way", ["drain", "failure"])
def test_an_end_of_the_application_gives_it_up(way: str) -> None:
    bench = waiting()

    if way == "drain":
        done = bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    else:
        done = bench.fail_task(FIRST, "wrong", kind="final") + bench.tick(1000)

    assert only(done, ChangeGivenUp)


def test_what_it_does_not_touch_does_not_halt() -> None:
    bench = waiting((1, 1), (1, 1), kept=frozenset({0}))

    report(bench, 1000, None)
    report(bench, 1000, None, region=1)
    done = bench.tick(2000)

    touched = bench.manager.regions[1].placement[TaskId(2, 0)]
    assert told(done) == [(touched, _AT_MS)]


def test_an_event_time_that_is_over_is_refused() -> None:
    bench = Bench()
    report(bench, 60_000, None)

    assert "p0 (task 0.0) has read records" in bench.manager.why_not_at(_AT_MS, frozenset())
    assert bench.manager.why_not_at(60_001, frozenset()) == ""


def test_no_epoch_but_the_last_is_told_to_end_behind_the_halt() -> None:
    """Sources would not come there for long."""
    epochs = waiting().manager.regions[0].epochs

    assert epochs.halt_ms == _AT_MS
    assert epochs.first_end_ms == MIN_MS


def test_a_process_of_the_next_version_that_is_lost_is_started_again() -> None:
    """It is no reason to give up what was planned; that it never starts is one."""
    bench = waiting()
    bench.unanswered = {(A, BeginEpoch), (B, BeginEpoch)}
    bench.silent = {*map(ExecutorId, range(2, 12))}
    report(bench, 40_000)
    bench.tick(1000)
    report(bench, 49_000)

    lost: list[list[Command]] = []
    for _ in range(3):
        first = only(bench.done, Launch)[-1].executor_id
        lost.append(bench.lose(first, "ImportError: shop") + bench.tick(500))

    assert [bool(only(each, Launch)) for each in lost] == [True, True, False]
    assert [bool(only(each, ChangeGivenUp)) for each in lost] == [False, False, True]
    assert bench.states == ["running"]


def test_a_savepoint_that_is_being_made_comes_first() -> None:
    bench = waiting()
    bench.manager.begin_epochs()
    bench.tick(1000)
    report(bench, _AT_MS, "reached")
    early = bench.tick(1000)
    late = bench.end_epoch()

    assert not only(early, Launch)
    assert only(late, Launch)
