"""What becomes of a record on which user code raised."""

from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.messages.late_time import late_time
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.rejects import OUTPUT, Midway, Rejects
from gearpy.wire.values.payload import decode_value

ERROR = OperatorError(operator="op", cause="ValueError: bad", traceback="Traceback ...")


def test_fail_raises_the_error() -> None:
    """Nothing is counted: the record will come again."""
    counters = TaskCounters()
    rejects = Rejects("fail", counters)

    with pytest.raises(OperatorError, match="ValueError: bad"):
        rejects.take("x", 5, ERROR)

    assert not rejects.may_go_on
    assert counters == TaskCounters()


def test_skip_counts_the_record() -> None:
    """And keeps nothing of it."""
    counters = TaskCounters()
    rejects = Rejects("skip", counters)

    rejects.take("x", 5, ERROR)
    rejects.take_encoded(b"x", 5, ERROR)

    assert rejects.may_go_on
    assert counters == TaskCounters(skipped_records=2)
    assert rejects.records == []


def test_a_late_record_can_be_told_to_others() -> None:
    """What it knows of promises is no part of control messages, which have plain numbers."""
    rejects = Rejects("quarantine")
    time_ms = late_time(5, promised_ms=9)
    error = OperatorError(operator="op", cause="ValueError: bad", event_time_ms=time_ms)

    rejects.take("x", time_ms, error)

    (record,) = rejects.records
    assert (type(record.event_time_ms), type(record.error.event_time_ms)) == (int, int)


def test_quarantine_hands_the_record_over() -> None:
    """With all that is needed to look into it and to give it again."""
    counters = TaskCounters()
    rejects = Rejects("quarantine", counters, "1.0")

    rejects.take({"a": (1, 2)}, 5, ERROR)

    (record,) = rejects.records
    assert decode_value(record.value) == {"a": (1, 2)}
    assert record.event_time_ms == 5
    assert (record.error.operator, record.error.task) == ("op", "1.0")
    assert (record.error.cause, record.error.traceback) == ("ValueError: bad", "Traceback ...")
    assert counters == TaskCounters(quarantined_records=1)


@pytest.mark.parametrize("place", [1, OUTPUT])
def test_record_that_others_have_taken_remembers_its_place(place: int) -> None:
    """What stands before that place must not count it twice."""
    rejects = Rejects("quarantine")

    rejects.take("x", 5, ERROR, place=place)

    assert decode_value(rejects.records[0].value) == Midway(place, "x")


@pytest.mark.parametrize("place", [0, 2])
def test_record_that_cannot_be_encoded_is_kept_as_text(place: int) -> None:
    """Better than nothing, and no failure of its own."""

    class Odd:
        def __repr__(self) -> str:
            return "Odd()"

    rejects = Rejects("quarantine")

    rejects.take(Odd(), 5, ERROR, place=place)

    value: Any = decode_value(rejects.records[0].value)
    assert value == (Midway(place, "Odd()") if place else "Odd()")


def test_record_that_cannot_be_decoded_stays_as_it_is() -> None:
    """It may be given again when its class is known."""
    rejects = Rejects("quarantine")

    rejects.take_encoded(b"\xff", 5, ERROR)

    assert rejects.records[0].value == b"\xff"
