"""Records of one's own, see `gearpy.core.base.copies`."""

from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.copies import own, own_each
from gearpy.messages.table import Table


class Color(Enum):
    RED = 1


class Pair(NamedTuple):
    """A record that cannot change, unless what is in it can."""

    key: str
    items: Any


Plain = namedtuple("Plain", "x y")  # noqa: PYI024 - there are such


@dataclass(frozen=True)
class Frozen:
    key: str
    items: Any


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    key: str
    items: Any


@dataclass
class Open:
    key: str
    items: list[int] = field(default_factory=list)


@dataclass
class Derived(Open):
    more: int = 0


@dataclass(slots=True)
class Slots:
    key: str
    items: Any


class Bag:
    def __init__(self, items: list[int]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self.items == other.items

    __hash__ = None  # type: ignore[assignment]


class Struct(msgspec.Struct):
    items: list[int]


class Itself:
    def __deepcopy__(self, memo: Any) -> "Itself":
        return self


FIXED: list[Any] = [
    *(None, True, 1, 1.5, "a", b"a", Decimal(1), UUID(int=1), datetime(2026, 1, 1, tzinfo=UTC)),
    *(
        Color.RED,
        Path("a"),
        frozenset({1}),
        int,
        len,
        np.int64(3),
        pa.array([1]),
        pa.table({"a": [1]}),
    ),
    *(
        (),
        (1, "a"),
        (1, (2, None)),
        Pair("a", 1),
        Plain(1, 2),
        Frozen("a", (1,)),
        FrozenSlots("a", 1),
    ),
    Itself(),
]
OPEN: list[Any] = [
    *([], [1], [[1], (1,)], {}, {"a": 1}, {"a": [1], "b": {"c": {1}}}, {1, 2}, bytearray(b"a")),
    *((1, [2]), Pair("a", [1]), Plain([1], 2), Frozen("a", [1]), FrozenSlots("a", {"b": 1})),
    *(Open("a", [1]), Derived("a", [1], 2), Slots("a", [1]), Bag([1]), Struct([1])),
    *(defaultdict(list, {"a": [1]}), Pair("a", Frozen("b", Open("c", [1])))),
]


def _name_of(value: Any) -> str:
    """Name a case by its place and type: a repr may have an address, which changes."""
    places = {id(each): at for at, each in enumerate([*FIXED, *OPEN])}
    return f"{places[id(value)]}-{type(value).__name__}"


@pytest.mark.parametrize("value", FIXED, ids=_name_of)
def test_what_cannot_change_is_not_copied(value: Any) -> None:
    assert own(value) is value
    assert own_each([value, value])[0] is value


@pytest.mark.parametrize("value", OPEN, ids=_name_of)
def test_what_can_change_is_copied_with_all_that_can_inside(value: Any) -> None:
    mine = own(value)

    assert mine == value
    assert type(mine) is type(value)
    assert mine is not value
    assert not set(map(id, changeable_in(mine))) & set(map(id, changeable_in(value)))


def changeable_in(value: Any) -> list[Any]:
    """Return all containers inside of a value, and itself, that can change."""
    if isinstance(value, list | set | dict | bytearray):
        inner = value.values() if isinstance(value, dict) else value
        return [value, *(each for item in inner for each in changeable_in(item))]
    if isinstance(value, tuple):
        return [each for item in value for each in changeable_in(item)]
    if isinstance(value, Open | Derived | Slots | Bag | Struct):
        return [value, *changeable_in(value.items)]
    if isinstance(value, Frozen | FrozenSlots):
        return changeable_in(value.items)
    return []


def test_a_field_that_was_never_set_stays_so() -> None:
    value = Slots.__new__(Slots)
    value.key = "a"

    mine = own(value)

    assert mine is not value
    assert mine.key == "a"
    assert not hasattr(mine, "items")


def test_a_value_in_itself_is_copied() -> None:
    value: list[Any] = [1]
    value.append(value)

    mine = own(value)

    assert mine is not value
    assert mine[1] is mine


def test_what_cannot_be_copied_is_refused() -> None:
    """To share it would let one step change it under the eyes of another."""
    with pytest.raises(TypeError, match=r"generator cannot be copied .*: map it to plain data"):
        own_each([(n for n in [1])])
    with pytest.raises(TypeError, match="mappingproxy cannot be copied"):
        own(MappingProxyType({"a": 1}))


def test_a_table_is_not_copied() -> None:
    table = Table(pa.record_batch({"a": [1]}))

    assert own_each(table) is table


_VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.builds(Pair, st.text(), inner)
        | st.builds(Frozen, st.text(), inner)
        | st.builds(Slots, st.text(), inner)
    ),
)


@given(_VALUES)
def test_copies_are_equal_and_share_nothing(value: Any) -> None:
    mine = own(value)

    assert mine == value
    shared = set(map(id, changeable_in(mine))) & set(map(id, changeable_in(value)))
    assert not shared
    assert (mine is value) == (not changeable_in(value))


class FrozenStruct(msgspec.Struct, frozen=True):
    key: str
    items: Any


@pytest.mark.parametrize("kind", [FrozenSlots, FrozenStruct, Frozen, Pair])
def test_immutable_records_of_one_class_are_not_copied(kind: Any) -> None:
    values = [kind("ada", each) for each in (1, "two", None, 2.5)]

    assert all(mine is value for mine, value in zip(own_each([*values, 1]), values, strict=False))
    assert own(values[0]) is values[0]


@pytest.mark.parametrize("kind", [FrozenSlots, FrozenStruct, Frozen, Pair])
def test_an_immutable_record_with_a_list_is_copied(kind: Any) -> None:
    values = [kind("ada", 1), kind("bob", [1]), kind("eve", ([2],))]

    mine = own_each(values)

    assert mine == values
    assert mine[0] is values[0]
    assert mine[1].items is not values[1].items
    assert mine[2].items[0] is not values[2].items[0]
