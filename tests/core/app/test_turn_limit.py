"""Which turns are told of, and which one is overdue."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.turn_limit import LONG_MS, TurnLimit, long_of
from gearpy.ids import TaskId

A, B = TaskId(0, 0), TaskId(1, 2)


def test_turns_that_last_are_told_of() -> None:
    assert long_of({A: 1000, B: 4999}, 5000) == {A: 4000}
    assert long_of({A: 1000}, 1000 + LONG_MS) == {A: LONG_MS}
    assert long_of({A: 1000}, 999 + LONG_MS) == {}


@given(
    limit_ms=st.integers(0, 50_000),
    looks=st.lists(st.dictionaries(st.sampled_from([A, B]), st.integers(0, 9000)), max_size=8),
)
def test_overdue_is_a_turn_that_has_lasted(limit_ms: int, looks: list[dict[TaskId, int]]) -> None:
    """Never a shorter one, never two; and one is found as soon as there is one."""
    limit, found = TurnLimit(limit_ms), False
    for number, began_ms in enumerate(looks):
        now_ms = 9000 + 10_000 * number
        task = limit.overdue(began_ms, now_ms)
        lasted = [now_ms - began for began in began_ms.values()]
        assert (task is not None) == (
            not found and limit_ms > 0 and max(lasted, default=-1) >= limit_ms
        )
        if task is not None:
            found = True
            assert now_ms - began_ms[task] == max(lasted)
