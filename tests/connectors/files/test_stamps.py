"""Event times of records."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gearpy.connectors.files.stamps import FromClock, FromRecords
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS


def test_times_come_from_the_records() -> None:
    """Datetimes become milliseconds; the watermark stays behind by the bound."""
    stamps = FromRecords("files(timestamp)", lambda value: value, bound_ms=10)

    times = stamps.of([5, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 7])

    assert times == [5, 1000, 7]
    assert stamps.watermark_ms == 990


def test_a_record_whose_time_cannot_be_told_is_named() -> None:
    stamps = FromRecords("files(timestamp)", int, bound_ms=0)

    with pytest.raises(OperatorError) as failed:
        stamps.of(["1", "x", "2"])

    assert failed.value.operator == "files(timestamp)"
    assert failed.value.record == "'x'"
    assert "ValueError" in failed.value.cause


@pytest.mark.parametrize("answer", [None, True, 1.5, MAX_MS, MIN_MS, datetime(2024, 1, 1)])  # noqa: DTZ001
def test_a_function_that_returns_no_time_is_blamed_with_the_record(answer: Any) -> None:
    """The value returned alone would not tell which record it was for."""
    stamps = FromRecords("files(timestamp)", {"a": 1, "b": answer}.__getitem__, bound_ms=0)

    with pytest.raises(OperatorError) as failed:
        stamps.of(["a", "b"])

    assert failed.value.record == "'b'"
    assert "event time" in failed.value.cause


def test_the_clock_may_go_back_and_event_time_does_not() -> None:
    """Else records would be late the moment they are read."""
    clock = iter([5, 3, 9])
    stamps = FromClock(lambda: next(clock))

    assert [stamps.of("ab"), stamps.of("c"), stamps.of("d")] == [[5, 5], [5], [9]]
