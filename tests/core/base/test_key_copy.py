"""Copies of what keys have at one moment, while that changes."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.key_copy import KeyCopy, in_steps


@given(
    st.dictionaries(st.integers(0, 9), st.lists(st.integers(), max_size=3)),
    st.lists(
        st.one_of(st.none(), st.tuples(st.integers(0, 12), st.sampled_from(["add", "remove"])))
    ),
)
def test_copy_is_of_the_moment_at_which_it_began(
    there: dict[int, list[int]], steps: list[tuple[int, str] | None]
) -> None:
    """Property: whatever is changed in place, set or removed meanwhile; None is a step."""
    copied: dict[int, list[int]] = {}
    before = {key: [*value] for key, value in there.items()}

    def take(keys: list[int]) -> None:
        copied.update((key, [*there[key]]) for key in keys)

    copy = KeyCopy(set(there), take)
    touched = set[int]()

    with patch("gearpy.core.base.key_copy.PIECE", 1):
        left = copy.steps()
        for step in steps:
            if step is None:
                next(left, None)
                continue
            key, what = step
            copy.add(key)
            touched.add(key)
            if what == "add":
                there.setdefault(key, []).append(7)
            else:
                there.pop(key, None)
        list(left)

    assert copied == before
    assert copy.fresh == touched


def test_what_cannot_be_copied_fails_the_copy_and_not_the_record() -> None:
    """The owner that adds a key goes on; who asks for the steps is told."""

    def refuse(keys: list[Any]) -> None:
        raise ValueError(*keys)

    copy = KeyCopy({"a"}, refuse)
    copy.add("a")

    with pytest.raises(ValueError, match="a"):
        list(copy.steps())


def test_only_much_is_copied_in_steps() -> None:
    steps = iter(range(3))

    assert in_steps(steps, 1 << 20) is steps
    assert in_steps(steps, 5) is None
    assert list(steps) == []
