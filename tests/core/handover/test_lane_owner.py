"""Who may write a lane: the last start of the last run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.handover.lanes import LaneOwner
from gearpy.errors import GearpyError, WindowLogDamaged


def an_owner(run: str = "r", incarnation: int = 1, *former: str) -> LaneOwner:
    return LaneOwner(run=run, incarnation=incarnation, former=former)


def test_a_later_start_takes_it_from_an_earlier_one() -> None:
    taken = an_owner("r", 3).succeeds(an_owner("r", 1, "old"), lane="w-00000")

    assert taken == an_owner("r", 3, "old")


def test_a_new_run_takes_it_and_remembers_from_whom() -> None:
    taken = an_owner("new", 1).succeeds(an_owner("old", 9, "older"), lane="w-00000")

    assert taken == an_owner("new", 1, "older", "old")


def test_an_owner_may_write() -> None:
    assert an_owner().still_owns(an_owner(), writer="w")


def test_an_earlier_start_that_wrote_last_is_overwritten_again() -> None:
    """Both began at once; it will never be told to show anything."""
    assert not an_owner("r", 2).still_owns(an_owner("r", 1), writer="w")


@pytest.mark.parametrize("found", [an_owner("r", 3), an_owner("s", 1, "r")], ids=str)
def test_who_is_no_owner_any_more_stops(found: LaneOwner) -> None:
    with pytest.raises(GearpyError, match="this is start 2 of run r, which was given up"):
        an_owner("r", 2).still_owns(found, writer="w")


@pytest.mark.parametrize("text", [b"", b"[]", b'{"run": "r"}', b'{"run": "r", "incarnation": "x"}'])
def test_what_names_no_owner_is_damage(text: bytes) -> None:
    with pytest.raises(WindowLogDamaged, match="names no owner"):
        LaneOwner.parse(text, file="f")


def test_no_file_is_no_owner() -> None:
    assert LaneOwner.parse(None, file="f") is None


def test_the_first_batch_of_a_run_is_remembered_over_its_starts() -> None:
    begun = replace(an_owner("r", 1), since=7)

    assert an_owner("r", 2).succeeds(begun, lane="w-00000").since == 7
    assert an_owner("s", 2).succeeds(begun, lane="w-00000").since == 0


@given(st.text(), st.integers(0), st.lists(st.text()), st.integers(0))
def test_an_owner_is_read_as_it_was_written(
    run: str, incarnation: int, former: list[str], since: int
) -> None:
    owner = LaneOwner(run=run, incarnation=incarnation, former=tuple(former), since=since)

    assert LaneOwner.parse(owner.to_json(), file="f") == owner


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), max_size=30))
def test_a_run_has_a_lane_once(starts: list[tuple[str, int]]) -> None:
    """Whoever tries, in whatever order: starts of a run follow each other and go up."""
    owner: LaneOwner | None = None
    taken: list[tuple[str, int]] = []
    for run, incarnation in starts:
        try:
            owner = an_owner(run, incarnation).succeeds(owner, lane="w-00000")
        except GearpyError:
            continue
        taken.append((run, incarnation))

    runs = [run for place, (run, _) in enumerate(taken) if not place or taken[place - 1][0] != run]
    assert len(set(runs)) == len(runs)
    for run in runs:
        numbers = [number for each, number in taken if each == run]
        assert numbers == sorted(set(numbers))
