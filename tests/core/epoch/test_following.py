"""Recordings of a task that follow those which are known already."""

import pytest

from gearpy.core.epoch.recorded import RecordedName, RerunPath, following
from gearpy.errors import ConfigError
from gearpy.ids import TaskId


def recorded(
    first: int, *, attempt: int = 1, starts: bool = False, failed: bool = False
) -> RecordedName:
    return RecordedName(
        task=TaskId(1, 0),
        first=first,
        epoch=first,
        attempt=attempt,
        starts=starts,
        has_failed=failed,
    )


ONE, TWO, THREE, FOUR = (recorded(epoch) for epoch in (1, 2, 3, 4))


def test_it_begins_behind_the_newest_stored_epoch() -> None:
    assert following([ONE, TWO, THREE], [1, 2], None) == RerunPath(after=2, recorded=(THREE,))


def test_it_goes_on_with_what_follows() -> None:
    assert following([ONE, TWO, FOUR, THREE], [1], ONE) == RerunPath(
        after=None, recorded=(TWO, THREE, FOUR)
    )
    assert following([ONE, TWO], [1], TWO) is None


def test_behind_a_gap_it_begins_anew() -> None:
    assert following([ONE, THREE, FOUR], [2, 3], ONE) == RerunPath(after=3, recorded=(FOUR,))
    assert following([ONE, FOUR], [1, 2], ONE) is None, "epoch 3 is not stored yet"


def test_behind_a_failure_it_begins_anew_with_the_next_attempt() -> None:
    again = recorded(3, attempt=2, starts=True)

    assert following([ONE, recorded(2, failed=True)], [1], ONE) is None
    assert following([ONE, recorded(2, failed=True), again], [1], ONE) == RerunPath(
        after=1, recorded=(again,)
    )


def test_that_nothing_is_recorded_is_a_mistake_at_first() -> None:
    with pytest.raises(ConfigError, match=r"application\.record-input-bytes"):
        following([], [1], None)
