"""Cut times: ahead of what was read, rising, and never in the way of idle sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.pace import CutTimes
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.app import TaskClock

ONE, TWO = TaskId(0, 0), TaskId(0, 1)


def report(cuts: CutTimes, newest_ms: int, *, task: TaskId = ONE, span_ms: int = 0) -> None:
    cuts.on_clock(
        TaskClock(
            task_id=task,
            session=SessionId(1),
            clock_ms=0,
            watermark_ms=0,
            newest_ms=newest_ms,
            span_ms=span_ms,
        )
    )


def next_after(cuts: CutTimes, newest_ms: int) -> int:
    """Report something newer; return the cut time, which there must be."""
    report(cuts, newest_ms)
    cut_time_ms = cuts.next_ms()
    assert cut_time_ms is not None
    return cut_time_ms


def test_a_cut_time_is_a_multiple_of_more_than_the_largest_span() -> None:
    """A power of two, so that later ones stay multiples when it grows."""
    cuts = CutTimes()
    report(cuts, 1000, span_ms=64)
    report(cuts, 10, task=TWO, span_ms=3)

    assert cuts.next_ms() == 1024
    report(cuts, 1001, span_ms=500)
    assert cuts.next_ms() == 1536


def test_cut_times_rise_though_sources_go_back() -> None:
    cuts = CutTimes(newest_ms=5000)
    assert next_after(cuts, 1000) > 5000
    cuts.on_restart()

    assert cuts.next_ms() is None, "nothing is known of the new attempt"
    assert next_after(cuts, 100) > 5001


def test_the_lead_doubles_when_it_was_not_enough_and_halves_slowly() -> None:
    cuts, leads = CutTimes(), list[int]()
    now_ms = 0

    def step(*, has_missed: bool) -> None:
        nonlocal now_ms
        for _ in range(20):
            report(cuts, now_ms)
            now_ms += 100_000
        leads.append(next_after(cuts, now_ms) - now_ms - 1)
        cuts.on_complete(has_missed=has_missed)

    for has_missed in (True, True, *[False] * 17):
        step(has_missed=has_missed)

    passed = 100_000
    assert leads[0] == 2 * passed
    assert leads[1] == 4 * passed
    assert leads[2:10] == [8 * passed] * 8
    assert leads[10:18] == [4 * passed] * 8
    assert leads[18] == 2 * passed


def test_after_one_that_was_given_up_epochs_end_by_position_first() -> None:
    cuts, now_ms = CutTimes(), 0
    positions = []
    for _ in range(4):
        count = 0
        now_ms += 1
        report(cuts, now_ms)
        while cuts.next_ms() is None:
            count += 1
            now_ms += 1
            report(cuts, now_ms)
        positions.append(count)
        cuts.on_aborted()

    assert positions == [0, 1, 2, 4]

    for _ in range(8):
        now_ms += 1
        report(cuts, now_ms)
        assert cuts.next_ms() is None
    next_after(cuts, now_ms + 1)
    cuts.on_complete(has_missed=False)
    cuts.on_aborted()
    report(cuts, now_ms + 10)
    assert cuts.next_ms() is None
    assert next_after(cuts, now_ms + 20) > now_ms, "one position again"


@pytest.mark.parametrize("delay_reports", [1, 2, 4])
def test_at_a_steady_pace_hardly_any_cut_is_missed(delay_reports: int) -> None:
    """Sources hear of a cut some reports late; the lead grows until that does not matter."""
    cuts, now_ms, missed = CutTimes(), 0, 0
    for _ in range(200):
        for _ in range(10):
            now_ms += 100
            report(cuts, now_ms)
        cut_time_ms = cuts.next_ms()
        assert cut_time_ms is not None
        has_missed = now_ms + delay_reports * 100 >= cut_time_ms
        missed += has_missed
        cuts.on_complete(has_missed=has_missed)

    assert missed <= 200 // 8


times = st.one_of(st.integers(-(10**6), 10**6), st.integers(MIN_MS, MAX_MS))
steps = st.one_of(
    st.tuples(st.just("report"), st.sampled_from([ONE, TWO]), times, st.integers(0, 2**64)),
    st.tuples(st.sampled_from(["cut", "met", "missed", "aborted", "restart"])),
)


@given(st.lists(steps, max_size=60))
def test_cut_times_rise_and_are_later_than_all_that_was_reported(
    steps: list[tuple[str] | tuple[str, TaskId, int, int]],
) -> None:
    cuts, last_ms, newest_ms = CutTimes(), MIN_MS, MIN_MS
    for step in steps:
        match step:
            case (_, task, time_ms, span_ms):
                report(cuts, time_ms, task=task, span_ms=span_ms)
                newest_ms = max(newest_ms, time_ms)
            case ("met",) | ("missed",):
                cuts.on_complete(has_missed=step == ("missed",))
            case ("aborted",):
                cuts.on_aborted()
            case ("restart",):
                cuts.on_restart()
                newest_ms = MIN_MS
            case _:
                cut_time_ms = cuts.next_ms()
                if cut_time_ms is not None:
                    assert max(last_ms, newest_ms) < cut_time_ms < MAX_MS
                    last_ms = cut_time_ms
