"""The minimum of many values that mostly grow."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.lazy_min import LazyMin

changes = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(-9, 9)), max_size=60)


def heap_of(minimum: LazyMin[int]) -> list[tuple[int, int]]:
    heap: list[tuple[int, int]] = getattr(minimum, "_heap")  # noqa: B009 -- private on purpose
    return heap


def test_growing_and_falling_values_leave_no_waste() -> None:
    minimum = LazyMin[int]()

    for step in range(1000):
        minimum.set(0, -step)
        minimum.set(1, step)

    assert len(heap_of(minimum)) <= 2 * 2 + 9
    assert len(minimum) == 2


@given(changes)
def test_least_is_that_of_the_last_values(changes: list[tuple[int, int | None]]) -> None:
    minimum, model = LazyMin[int](), dict[int, int]()

    for key, value in changes:
        if value is None:
            minimum.remove(key)
            model.pop(key, None)
        else:
            minimum.set(key, value)
            model[key] = value

        expected = min(((value, key) for key, value in model.items()), default=None)
        assert minimum.least() == expected
        assert len(minimum) == len(model)
