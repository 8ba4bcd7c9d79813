"""What a task counts, and that it goes on counting."""

from dataclasses import asdict

from gearpy.ids import MIN_MS
from gearpy.task.api.interfaces import TaskCounters


def test_counting_goes_on_after_a_restart() -> None:
    counted = TaskCounters(records_in=3, late_records=1, newest_ms=20, span_ms=5)

    again = TaskCounters()
    again.restore(asdict(counted))

    assert again == counted


def test_counts_of_another_version_are_taken_as_far_as_they_are_known() -> None:
    """One that is missing begins as it would; no time that was read is older than all times."""
    counters = TaskCounters(records_in=7)

    counters.restore({"records_out": 2, "gone": 5})

    assert counters == TaskCounters(records_out=2)
    assert counters.newest_ms == MIN_MS
