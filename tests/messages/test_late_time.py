"""Event times that know what had been promised before, see `gearpy.messages.late_time`."""

import pytest

from gearpy.messages.late_time import LateTime, late_places, late_time
from gearpy.messages.table import Times


@pytest.mark.parametrize("promised_ms", [4, 5])
def test_time_that_was_promised_is_plain(promised_ms: int) -> None:
    assert type(late_time(5, promised_ms)) is int


def test_late_ones_are_found_in_a_list() -> None:
    assert late_places([1, late_time(2, 3), 4, late_time(0, 3)]) == [1, 3]
    assert late_places([]) == late_places([1, 2]) == []


def test_column_of_times_keeps_promises() -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - for this test alone

    times = Times.of([7, late_time(2, 5), 8, late_time(3, 8)])

    def late(some: Times) -> list[tuple[int, int]]:
        return [(at, at.promised_ms) for at in some if type(at) is LateTime]

    assert late(times) == [(2, 5), (3, 8)]
    assert late(times[1:]) == [(2, 5), (3, 8)]
    assert late(times.take(pa.array([3]))) == [(3, 8)]
    assert late(times.filter(pa.array([True, True, False, False]))) == [(2, 5)]
    assert (times[0], type(times[0]), type(times[1])) == (7, int, LateTime)
    assert Times.of([1, 2]).promised is None
