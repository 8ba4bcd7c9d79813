"""Which recordings of a task lead from a stored epoch to another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.kept import BeforeFailure
from gearpy.core.epoch.recorded import RecordedName, rerun_path, superfluous
from gearpy.errors import ConfigError
from gearpy.ids import TaskId

TASK = TaskId(2, 1)


def some(first: int, epoch: int | None = None, attempt: int = 1, **flags: bool) -> RecordedName:
    return RecordedName(
        task=TASK,
        first=first,
        epoch=first if epoch is None else epoch,
        attempt=attempt,
        starts=flags.get("starts", False),
        is_cut=flags.get("is_cut", False),
        has_failed=flags.get("has_failed", False),
    )


@given(
    st.builds(
        RecordedName,
        task=st.builds(TaskId, st.integers(0, 99), st.integers(0, 99)),
        first=st.integers(1, 1 << 40),
        epoch=st.integers(1, 1 << 40),
        attempt=st.integers(1, 1 << 62),
        starts=st.booleans(),
        is_cut=st.booleans(),
        has_failed=st.booleans(),
    )
)
def test_a_name_is_read_again(name: RecordedName) -> None:
    assert RecordedName.parse(f"k/app1/recorded/region0/{name}") == name


def test_other_names_are_none() -> None:
    assert RecordedName.parse("k/app1/recorded/region0/other") is None


def test_the_failure_is_what_is_looked_for() -> None:
    """The task failed in epoch 8, and went on from epoch 7 as epoch 9, in another attempt."""
    known = [
        some(7),
        some(8, has_failed=True),
        some(9, attempt=2, starts=True),
        some(10, attempt=2),
    ]
    path = rerun_path(known, [6, 7, 9])
    assert (path.after, path.recorded) == (7, (known[1],))
    path = rerun_path(known, [6, 7, 9], after=6)
    assert (path.after, path.recorded) == (6, (known[0], known[1]))
    path = rerun_path(known, [6, 7, 9], after=7, until=9)
    assert (path.after, path.recorded) == (7, (known[2],))
    path = rerun_path(known, [6, 7, 9], after=7, until=10)
    assert (path.after, path.recorded) == (7, (known[2], known[3]))


def test_of_several_beginnings_the_newest_is_taken() -> None:
    known = [some(1, starts=True), some(2), some(3, 4), some(5)]
    assert rerun_path(known, [1, 2]).after == 2
    assert rerun_path(known, [2, 4]) == rerun_path(known, [2, 4], after=4)
    assert rerun_path(known, [2, 4], after=3).recorded == (known[2], known[3])
    assert rerun_path(known, [], after=0).recorded == tuple(known)
    assert rerun_path(known, [2, 4], until=3).recorded == (known[2],)


def test_a_gap_leads_nowhere() -> None:
    known = [some(5), some(7)]
    with pytest.raises(ConfigError, match=r"stored are 4; recorded is the input of 5, 7"):
        rerun_path(known, [4], after=4, until=7)
    with pytest.raises(ConfigError, match="leads behind epoch 9 from"):
        rerun_path(known, [4, 9], after=9)
    with pytest.raises(ConfigError, match="record-input-bytes"):
        rerun_path([], [4])


def test_what_ends_before_the_oldest_kept_epoch_goes() -> None:
    names = [str(some(each)) for each in (3, 4, 5)]
    assert superfluous([*names, "else"], [4, 6]) == names[:2]
    assert superfluous(names, []) == []
    assert superfluous(names, [9], BeforeFailure(after=3, epoch=4)) == [names[0], names[2]]
