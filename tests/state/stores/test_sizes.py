"""Sizes are estimated from some of what is kept, and never call code of users."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from gearpy.state.stores.sizes import estimated_bytes


class Kept(msgspec.Struct):
    seq: int
    value: Any


class Slotted:
    __slots__ = ("never_set", "text")

    def __init__(self) -> None:
        self.text = "abcd"

    def __len__(self) -> int:
        raise AssertionError("code of users is called")


@dataclass
class Plain:
    text: str


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("abc", 3),
        (b"abc", 3),
        (7, 8),
        (None, 8),
        ((1, "ab"), 10),
        ({"a": [1, 2]}, 17),
        (deque(["ab"] * 100), 200),
        (Kept(1, "abc"), 11),
        (Slotted(), 4),
        (Plain("abcde"), 5),
        ([], 0),
    ],
    ids=[
        *("text", "bytes", "number", "none", "tuple", "dict", "deque", "struct", "slots"),
        *("dataclass", "empty"),
    ],
)
def test_a_value_has_a_size(value: Any, size: int) -> None:
    assert estimated_bytes([[value]]) == size


def test_all_count_and_few_are_looked_at() -> None:
    looked_at = 0

    class Members:
        def __len__(self) -> int:
            return 1000

        def __iter__(self) -> Iterator[str]:
            nonlocal looked_at
            for _ in range(1000):
                looked_at += 1
                yield "abcd"

    assert estimated_bytes([Members() for _ in range(100)]) == 100 * 1000 * 4
    assert looked_at == 8 * 16


def test_what_holds_itself_has_an_end() -> None:
    endless: list[Any] = ["a"]
    endless.append(endless)

    assert 0 < estimated_bytes([endless]) < 1000
