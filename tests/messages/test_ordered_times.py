"""Lists of event times that are known to be in order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.late_time import OrderedTimes, late_places, ordered
from gearpy.messages.table import newest_of, oldest_of

_TIMES = st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=60)


@given(_TIMES | _TIMES.map(sorted))
def test_times_are_known_to_be_in_order_where_they_are(times: list[int]) -> None:
    found = ordered(times)

    assert found == times
    assert (type(found) is OrderedTimes) == (times == sorted(times))
    assert (oldest_of(found, 0), newest_of(found, 0)) == (min(times), max(times))
    assert late_places(found) == []


@pytest.mark.parametrize("at", [3, 500, 999])
def test_one_time_out_of_order_is_seen_anywhere(at: int) -> None:
    times = list(range(1000))
    times[at] = random.Random(at).randrange(-100, 0)

    assert ordered(times) is times
