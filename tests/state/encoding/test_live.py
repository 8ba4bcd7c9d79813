"""Values that state in memory keeps as objects, and those that it must not."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.state.encoding.coders import MSGPACK, is_fixed, pack_atom
from gearpy.state.keyed import KeyedState
from tests.state.build import a_state, after_a_restart


class Colour(Enum):
    RED = "red"


class Mode(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: Any
    y: Any = None


@dataclass(frozen=True, slots=True)
class Slotted:
    n: Any
    name: str = ""


@dataclass(frozen=True, slots=True)
class Unset:
    first: Any
    never: int = field(init=False)


@dataclass(frozen=True)
class Plain:
    n: Any


@dataclass
class Open:
    n: Any


class Struct(msgspec.Struct, frozen=True):
    n: Any


class OpenStruct(msgspec.Struct):
    n: Any


@dataclass(frozen=True)
class Nothing:
    """A record may say all by its class."""


@dataclass(frozen=True, slots=True)
class NothingSlotted:
    pass


class NothingStruct(msgspec.Struct, frozen=True):
    pass


@dataclass
class NothingOpen:
    pass


class WithAttributes(Point):
    """A tuple that may have more attributes than those of its places."""


LEAVES = [0, "text", 2.5, True, None, b"bytes", Decimal("1.50"), timedelta(1), date(2026, 11, 28)]
KINDS: list[Callable[[Any], Any]] = [Slotted, Plain, Struct, Point, lambda part: (part, 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaf", [*LEAVES, Colour.RED, datetime(2026, 11, 28), (1, (2, "3"))])  # noqa: DTZ001
def test_an_immutable_record_is_kept_as_it_is(kind: Callable[[Any], Any], leaf: Any) -> None:
    state = a_state()
    kept = state.value("kept")
    value = kind(leaf)
    kept.set(value)

    again = after_a_restart(state).value("kept").get()
    assert is_fixed(value)
    assert kept.get() is value
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("kind", [Nothing, NothingSlotted, NothingStruct, NothingOpen])
def test_a_record_without_fields_is_kept(kind: Callable[[], Any]) -> None:
    state = a_state()
    for value in (kind(), Point(kind()), [kind()]):
        state.value("kept").set(value)
        assert state.value("kept").get() == value
        assert after_a_restart(state).value("kept").get() == value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [[], {}, {1}, bytearray(), Open(1), ([],)])
def test_a_record_that_holds_what_can_change_is_not(kind: Callable[[Any], Any], part: Any) -> None:
    assert not is_fixed(kind(part))


@pytest.mark.parametrize(
    "value",
    [
        Open(1),
        OpenStruct(1),
        WithAttributes(1),
        Mode.READ | Mode.WRITE,
        datetime(2026, 11, 28, tzinfo=UTC),
        object(),
        frozenset({1}),
    ],
)
def test_other_values_are_encoded_at_once(value: Any) -> None:
    assert not is_fixed(value)


@pytest.mark.parametrize("value", [b"", b"\0", b"\x80", None, (), (b"\0", None), Slotted(None)])
def test_bytes_and_nothing_are_values_like_others(state: KeyedState, value: Any) -> None:
    def found(state: KeyedState) -> list[Any]:
        kept, listed, mapped = state.value("one"), state.list("list"), state.map("map")
        return [kept.get(), kept.is_empty, list(listed), mapped.get("a", "none"), len(mapped)]

    state.value("one").set(value)
    state.list("list").append(value)
    state.map("map")["a"] = value

    assert found(state) == [value, False, [value], value, 1]
    assert found(after_a_restart(state)) == [value, False, [value], value, 1]


def test_attributes_beside_the_fields_are_refused_as_before() -> None:
    """A restart would lose them, so that the error comes when the value is set."""
    value = Plain(1)
    value.__dict__["beside"] = 2

    assert not is_fixed(value)
    with pytest.raises(Exception, match="has the attribute 'beside' beside its fields"):
        a_state().value("kept").set(value)


def test_a_field_that_was_never_set_is_refused_as_before() -> None:
    """Otherwise the epoch would fail, and nobody would know which record did it."""
    # The first one of the class, one whose fields so far are leaves, and one of which not.
    for value in (Unset(1), Unset(2), Unset((3,))):
        assert not is_fixed(value)
        with pytest.raises(Exception, match="lacks a field"):
            a_state().value("kept").set(value)


def test_a_value_that_is_nested_too_deep_is_refused_when_it_is_set() -> None:
    value: Any = ()
    for _ in range(100):
        value = (value,)

    with pytest.raises(Exception, match="nested deeper"):
        a_state().value("kept").set(value)


@dataclass(frozen=True)
class Kept:
    names: list[str] = field(default_factory=list)


def test_what_is_changed_after_it_was_set_is_not_changed_in_the_state(state: KeyedState) -> None:
    kept = state.value("kept")
    value = Kept()
    kept.set(value)
    value.names.append("ada")

    assert kept.get() == Kept()


_leaves = (
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
)
_values = st.recursive(
    _leaves | st.dates() | st.datetimes() | st.decimals(allow_nan=False),
    lambda parts: (
        st.tuples(parts, parts)
        | st.builds(Point, parts, parts)
        | st.builds(Slotted, parts)
        | st.builds(Plain, parts)
        | st.builds(Struct, parts)
        | st.lists(parts, max_size=2)
    ),
    max_leaves=6,
)


@given(_values)
def test_a_kept_value_is_what_its_bytes_give_back(value: Any) -> None:
    if is_fixed(value):
        again = MSGPACK.decode(pack_atom(value))

        assert again == value
        assert type(again) is type(value)
        assert repr(again) == repr(value)
