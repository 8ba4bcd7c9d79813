"""What becomes of a record on which user code raised."""

from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.rejects import Midway, Rejects
from gearpy.wire.values.payload import decode_value

ERROR = OperatorError(operator="op", cause="ValueError: bad", traceback="Traceback ...")


def test_skip_counts_the_record() -> None:
    counters = TaskCounters()
    rejects = Rejects("skip", counters)

    rejects.take("x", 5, ERROR)
    rejects.take_encoded(b"x", 5, ERROR)

    assert rejects.may_go_on
    assert counters == TaskCounters(skipped_records=2)
    assert rejects.records == []


def test_quarantine_hands_the_record_over() -> None:
    counters = TaskCounters()
    rejects = Rejects("quarantine", counters, "1.0")

    rejects.take({"a": (1, 2)}, 5, ERROR)

    (record,) = rejects.records
    assert decode_value(record.value) == {"a": (1, 2)}
    assert record.event_time_ms == 5
    assert (record.error.operator, record.error.task) == ("op", "1.0")
    assert (record.error.cause, record.error.traceback) == ("ValueError: bad", "Traceback ...")
    assert counters == TaskCounters(quarantined_records=1)


@pytest.mark.parametrize("place", [0, 2])
def test_record_that_cannot_be_encoded_is_kept_as_text(place: int) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "Odd()"

    rejects = Rejects("quarantine")

    rejects.take(Odd(), 5, ERROR, place=place)

    value: Any = decode_value(rejects.records[0].value)
    assert value == (Midway(place, "Odd()") if place else "Odd()")
