"""Joins with a table."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.latest import LatestJoin
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join_oracle import STEPS, Given, Step, fed, latest, with_restarts


def a_join(how: Literal["left", "inner"] = "left") -> LatestJoin:
    """Return a join that has begun."""
    join = LatestJoin(how=how)
    join.resume(MIN_MS)
    return join


def goes(value: str) -> bool:
    """Tell which right records take their key away."""
    return int(value[1:]) % 3 == 0


def with_gone(steps: list[Step]) -> list[Step]:
    """Return the steps with None in place of some right values."""
    return [
        step
        if isinstance(step, int)
        else [
            given._replace(value=None) if given.side == RIGHT and goes(given.value) else given
            for given in step
        ]
        for step in steps
    ]


def without_late_rights(steps: list[Step]) -> list[Step]:
    """Return the steps without right records that are older than the watermark."""
    kept: list[Step] = []
    watermark_ms = MIN_MS
    for step in steps:
        if isinstance(step, int):
            watermark_ms = step
            kept.append(step)
        else:
            kept.append([g for g in step if g.side == LEFT or g.time >= watermark_ms])
    return kept


@given(STEPS, st.sampled_from(["left", "inner"]))
def test_results_are_those_of_a_dictionary(
    steps: list[Step], how: Literal["left", "inner"]
) -> None:
    """Invariant: each left record finds what is newest by event time of what has come so far."""
    good = without_late_rights(steps)

    run = fed(a_join(how), with_gone(steps), is_promised=False)

    assert run.results == latest(how, good, gone=goes)
    assert run.late == sum(len(s) for s in steps if isinstance(s, list)) - sum(
        len(s) for s in good if isinstance(s, list)
    )


@given(STEPS, st.sampled_from(["left", "inner"]), st.integers(1, 3))
def test_restarts_change_nothing(
    steps: list[Step], how: Literal["left", "inner"], every: int
) -> None:
    """The table comes back, with what was taken away of it."""
    steps = with_gone(steps)

    run = with_restarts(
        lambda: LatestJoin(how=how), steps, every=every, is_all_freed=False, is_promised=False
    )

    plain = fed(a_join(how), steps, is_promised=False)
    assert (run.by_step, run.late) == (plain.by_step, plain.late)


def test_a_left_record_finds_what_is_there_when_it_comes() -> None:
    """So it depends on the order in which the streams come; late left records find it, too."""
    run = fed(
        a_join(),
        [
            [Given(LEFT, 1, "early", 10), Given(RIGHT, 1, "r", 20), Given(LEFT, 1, "l", 5)],
            15,
            [Given(LEFT, 1, "late", 3)],
        ],
        is_promised=False,
    )

    assert run.results == [
        ((1, "early", None, 10, 11), 10),
        ((1, "l", "r", 5, 6), 5),
        ((1, "late", "r", 3, 4), 3),
    ]
    assert run.late == 0


def test_older_values_do_not_come_back() -> None:
    """Also not when the newer one has taken the key away; of equal times the last one counts."""
    run = fed(
        a_join("inner"),
        [
            [Given(RIGHT, 1, None, 20), Given(RIGHT, 1, "old", 19), Given(LEFT, 1, "l1", 30)],
            [Given(RIGHT, 1, "same", 20), Given(LEFT, 1, "l2", 30)],
        ],
    )

    assert [row[1:3] for row, _ in run.results] == [("l2", "same")]


def test_keys_that_were_taken_away_are_forgotten() -> None:
    """Once nothing older can come; the others stay."""
    join = a_join()

    fed(join, [[Given(RIGHT, key, "r", 10) for key in range(100)]])
    assert [len(change.pairs) for change in join.changes()] == [100]
    fed(join, [[Given(RIGHT, key, None, 20) for key in range(99)], 20])
    assert len(join._table) == 100  # noqa: SLF001
    fed(join, [21])

    assert list(join._table) == [99]  # noqa: SLF001
    assert [(len(change.pairs), change.is_deleted) for change in join.changes()] == [(99, True)]
    assert join.hold_ms == MAX_MS
