"""Workers that are lost again and again get nothing for a while."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.flapping import STAY_MS, WorkerFlaps
from gearpy.ids import WorkerId

MINUTE_MS = 60_000
GOOD = [WorkerId(each) for each in (1000, 1001)]


def with_good_ones() -> WorkerFlaps:
    flaps = WorkerFlaps()
    for worker in GOOD:
        flaps.on_worker(worker, f"home{worker}", 0)
    return flaps


def lose(flaps: WorkerFlaps, times: int, *, from_ms: int = 0, every_ms: int = 1000) -> int:
    """Let a worker come and go; return the time after it."""
    for number in range(times):
        now_ms = from_ms + number * every_ms
        flaps.on_worker(WorkerId(number), "home", now_ms)
        flaps.on_lost(WorkerId(number), now_ms)
    return from_ms + times * every_ms


def test_a_worker_that_was_lost_often_is_aside_until_it_has_stayed() -> None:
    """Each new process at its home is another worker; what counts is the home."""
    flaps = with_good_ones()
    now_ms = lose(flaps, 5)
    assert not flaps.on_worker(WorkerId(5), "home", now_ms)
    flaps.on_lost(WorkerId(5), now_ms)

    assert flaps.on_worker(WorkerId(6), "home", now_ms)
    assert flaps.on_worker(WorkerId(6), "home", now_ms + 1)
    assert flaps.next_due_ms == now_ms + STAY_MS
    assert flaps.on_tick(now_ms + STAY_MS - 1) == []
    assert flaps.on_tick(now_ms + STAY_MS) == [6]
    assert not flaps.on_worker(WorkerId(6), "home", now_ms + STAY_MS)


def test_one_that_goes_again_begins_to_stay_anew() -> None:
    flaps = with_good_ones()
    now_ms = lose(flaps, 6)
    flaps.on_worker(WorkerId(6), "home", now_ms)
    flaps.on_lost(WorkerId(6), now_ms + STAY_MS - 1)

    assert flaps.on_tick(now_ms + STAY_MS) == []
    assert flaps.on_worker(WorkerId(7), "home", now_ms + STAY_MS)


def test_losses_of_long_ago_do_not_count() -> None:
    flaps = with_good_ones()
    now_ms = lose(flaps, 100, every_ms=MINUTE_MS + 1)
    assert not flaps.on_worker(WorkerId(100), "home", now_ms)


def test_a_worker_that_was_told_to_end_is_not_lost() -> None:
    flaps = with_good_ones()
    for number in range(10):
        flaps.on_worker(WorkerId(number), "home", number)
        flaps.on_leaving(WorkerId(number))
        flaps.on_lost(WorkerId(number), number)
    assert not flaps.on_worker(WorkerId(10), "home", 10)


def test_the_only_worker_is_never_aside() -> None:
    flaps = WorkerFlaps()
    now_ms = lose(flaps, 20)
    assert not flaps.on_worker(WorkerId(20), "home", now_ms)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40_000)), max_size=80))
def test_at_most_half_are_aside_and_all_come_back(steps: list[tuple[int, int]]) -> None:
    flaps, now_ms, next_id = WorkerFlaps(), 0, 0
    there, aside = dict[int, WorkerId](), set[WorkerId]()
    for home, pause_ms in steps:
        now_ms += pause_ms
        aside -= set(flaps.on_tick(now_ms))
        if home in there:
            flaps.on_lost(there[home], now_ms)
            aside.discard(there.pop(home))
        else:
            there[home], next_id = WorkerId(next_id), next_id + 1
            if flaps.on_worker(there[home], str(home), now_ms):
                aside.add(there[home])
                assert 2 * len(aside) <= len(there)
    assert set(flaps.on_tick(now_ms + STAY_MS)) == aside
    assert flaps.next_due_ms is None
