"""Whether keys of two streams can ever meet, see `gearpy.core.join.keys`."""

from itertools import repeat
from typing import Any

import pytest

from gearpy.core.join.keys import KeysOfSides
from gearpy.core.join.sides import LEFT, RIGHT


def _records(side: int, *keys: Any) -> list[tuple[int, Any, Any]]:
    return [(side, key, "value") for key in keys]


@pytest.mark.parametrize(
    ("left", "right"), [(7, "7"), ("7", b"7"), ((1, "a"), ("1", "a")), (1.5, "1.5")], ids=str
)
def test_keys_that_never_meet_are_refused(left: Any, right: Any) -> None:
    few, many = KeysOfSides(), KeysOfSides()
    few.take([*_records(LEFT, left), *_records(RIGHT, right)])
    many.take(_records(LEFT, *repeat(left, 1000)))

    with pytest.raises(TypeError, match="so no two records can ever meet"):
        few.check()
    with pytest.raises(TypeError, match="convert one of them in key_by"):
        many.take(_records(RIGHT, *repeat(right, 1000)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1], []),
        ([], ["a"]),
        ([1], [2.5]),
        ([1, "a"], ["b"]),
        ([None], ["a"]),
        ([(1, None)], [("a", None)]),
    ],
    ids=str,
)
def test_keys_that_may_meet_are_not(left: list[Any], right: list[Any]) -> None:
    """A key of an unknown kind may equal any; where one side has none, nothing is known."""
    keys = KeysOfSides()

    keys.take(_records(LEFT, *left))
    keys.take(_records(RIGHT, *right))
    keys.check()


def test_streams_with_keys_of_several_kinds_are_not_judged_by_the_first() -> None:
    keys = KeysOfSides()

    keys.take(_records(LEFT, 1))
    keys.take(_records(RIGHT, "a"))
    keys.take(_records(LEFT, "b"))

    assert keys.is_settled
    keys.check()
