"""When the next epoch begins to end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.pace import EpochPace


def a_pace(percent: int, *, interval_ms: int = 100) -> EpochPace:
    return EpochPace(interval_ms=interval_ms, max_overhead_percent=percent)


def test_with_all_of_the_time_it_is_an_interval_whatever_storing_costs() -> None:
    pace = a_pace(100)

    assert pace.first_ms(1000) == 1100
    assert pace.on_complete(began_ms=1100, now_ms=1190, storing_ms=90) == 1200
    assert pace.on_complete(began_ms=1200, now_ms=1900, storing_ms=700) == 1900


@pytest.mark.parametrize(("percent", "pause_ms"), [(10, 450), (50, 50), (1, 4950), (100, 0)])
def test_max_overhead_stores_for_so_much_of_the_time(percent: int, pause_ms: int) -> None:
    pace = a_pace(percent)

    began_ms = pace.first_ms(0)
    for _ in range(100):
        done_ms = began_ms + 50
        began_ms = pace.on_complete(
            began_ms=began_ms, now_ms=done_ms, storing_ms=done_ms - began_ms
        )

    assert began_ms == pytest.approx(max(done_ms + 50, done_ms + pause_ms), abs=1)


def test_one_slow_epoch_holds_results_up_for_a_while_only() -> None:
    """A sink that loads a library with its first record is slow once; all of it is paid for."""
    pace, pauses = a_pace(10, interval_ms=1000), []

    began_ms = pace.first_ms(0)
    for took_ms in [6000, *[50] * 40]:
        done_ms = began_ms + took_ms
        began_ms = pace.on_complete(
            began_ms=began_ms, now_ms=done_ms, storing_ms=done_ms - began_ms
        )
        pauses.append(began_ms - done_ms)

    assert max(pauses) == pauses[0] == 6750
    assert sum(pauses[:10]) > 9 * 4000
    assert pauses[-1] == 950


@pytest.mark.parametrize("percent", [0, 101])
def test_a_share_that_is_none_is_refused(percent: int) -> None:
    with pytest.raises(AssertionError):
        a_pace(percent)


@given(st.integers(1, 100), st.lists(st.integers(0, 2000), min_size=1, max_size=30))
def test_an_interval_and_the_share_of_time_are_kept(percent: int, took: list[int]) -> None:
    pace = a_pace(percent)
    began_ms, owed_ms = pace.first_ms(0), 0.0
    for took_ms in took:
        done_ms = began_ms + took_ms
        next_ms = pace.on_complete(began_ms=began_ms, now_ms=done_ms, storing_ms=done_ms - began_ms)
        assert next_ms >= began_ms + 100
        assert next_ms >= done_ms
        owed_ms += took_ms * (100 - percent) / percent
        assert next_ms - done_ms >= owed_ms / 8 - 1e-6
        assert next_ms - began_ms == 100 or next_ms - done_ms <= owed_ms / 8 + 8
        owed_ms = max(0, owed_ms - (next_ms - done_ms))
        began_ms = next_ms


def test_waiting_for_records_before_it_is_no_storing() -> None:
    pace = a_pace(10, interval_ms=1000)

    began_ms = pace.first_ms(0)
    for _ in range(20):
        done_ms = began_ms + 3000
        began_ms = pace.on_complete(began_ms=began_ms, now_ms=done_ms, storing_ms=20)
        assert began_ms - done_ms <= 20 * 9 / 8 + 1
