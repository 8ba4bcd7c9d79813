"""Keys as bytes."""

import datetime as dt
import math
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group
from gearpy.errors import ConfigError, ProtocolError
from gearpy.state.encoding.keys import (
    NO_KEY,
    TASK_GROUP,
    decode_key,
    encode_key,
    encode_keys,
    group_of,
)
from gearpy.wire.values.records import register_record


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class User:
    name: str
    number: float


@dataclass(frozen=True)
class Unregistered:
    name: str


@dataclass(frozen=True)
class Noted:
    name: str
    note: str = field(compare=False, default="")


@dataclass
class Mutable:
    name: str


def a_local_member() -> Enum:
    """Return a member of an enumeration that other processes would not find."""

    class Local(Enum):
        ONE = 1

    return Local.ONE


class Color(Enum):
    RED = 1


class Level(IntEnum):
    HIGH = 3


class Name(StrEnum):
    ADA = "ada"


register_record(User, "tests.state.User")
register_record(Noted, "tests.state.Noted")

ZONES: Any = st.one_of(
    st.none(),
    st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.times(timezones=ZONES),
    st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=ZONES),  # noqa: DTZ001
)
KEYS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(User, st.text(max_size=3), st.floats()),
        st.builds(Unregistered, st.text(max_size=3)),
        st.sampled_from(Color),
    ),
    max_leaves=5,
)


def has_nan(key: Any) -> bool:
    if isinstance(key, tuple | frozenset):
        return any(map(has_nan, key))
    return has_nan(key.number) if isinstance(key, User) else bool(key != key)  # noqa: PLR0124


@given(KEYS)
def test_an_equal_key_comes_back(key: Any) -> None:
    back = decode_key(encode_key(key))

    assert encode_key(back) == encode_key(key)
    assert has_nan(key) or back == key


@given(KEYS, KEYS)
def test_equal_keys_give_equal_bytes_and_others_do_not(one: Any, other: Any) -> None:
    if not has_nan(one) and not has_nan(other):
        assert (encode_key(one) == encode_key(other)) == (one == other)


@given(KEYS)
def test_a_key_is_in_the_group_that_the_partitioner_routes_it_by(key: Any) -> None:
    assert group_of(encode_key(key)) == key_group(key)


NUMBERS = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.0, 0.1]))


@given(NUMBERS, st.sampled_from([int, float, Decimal, Fraction, np.float64, bool]))
def test_equal_numbers_are_one_key(number: Any, kind: Any) -> None:
    """``1``, ``1.0``, ``True`` and ``Decimal(1)`` are equal, and so are their bytes."""
    other = kind(number)

    assert (encode_key(other) == encode_key(number)) == (other == number)


@pytest.mark.parametrize(
    ("key", "plainest"),
    [
        (True, 1),
        (2.0, 2),
        (-0.0, 0),
        (Decimal("1.10"), Decimal("1.1")),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 10), Decimal("0.1")),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("-Infinity"), -math.inf),
        (Pair(1, 2), (1, 2)),
        (Level.HIGH, 3),
        (Name.ADA, "ada"),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
    ],
    ids=repr,
)
def test_a_key_comes_back_in_its_plainest_form(key: Any, plainest: Any) -> None:
    back = decode_key(encode_key(key))

    assert (back, type(back)) == (plainest, type(plainest))


@pytest.mark.parametrize(
    ("key", "plainest"),
    [
        (dt.datetime(2026, 1, 1, 2, tzinfo=ZoneInfo("Europe/Paris")), "2026-01-01 01:00:00+00:00"),
        (dt.datetime(2026, 1, 1, 2), "2026-01-01 02:00:00"),  # noqa: DTZ001
        (dt.time(1, tzinfo=dt.timezone(dt.timedelta(hours=2))), "00:00:00+01:00"),
        (dt.time(5, tzinfo=dt.timezone(dt.timedelta(hours=2))), "03:00:00+00:00"),
        (dt.time(23, tzinfo=dt.timezone(dt.timedelta(hours=-2))), "23:59:00"),
    ],
    ids=str,
)
def test_a_time_comes_back_in_utc_as_far_as_it_can(key: Any, plainest: str) -> None:
    """Equal times may have different zones; a time of day may be outside of the day in UTC."""
    back = decode_key(encode_key(key))

    assert back == key
    assert str(back).startswith(plainest)


def test_nan_is_one_key() -> None:
    keys = [math.nan, -math.nan, Decimal("NaN"), np.float64("nan"), (math.nan,)]

    first, *others, nested = map(encode_key, keys)

    assert set(others) == {first}
    assert decode_key(nested) == decode_key(nested)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)) | st.lists(st.text()) | st.lists(st.binary()))
def test_bytes_are_in_the_order_of_ints_text_and_bytes(keys: list[Any]) -> None:
    assert sorted(keys) == [decode_key(each) for each in sorted(map(encode_key, keys))]


def test_state_of_the_task_has_a_group_of_its_own() -> None:
    assert encode_key(NO_KEY) == b""
    assert decode_key(b"") is NO_KEY
    assert group_of(b"") == TASK_GROUP
    assert not NO_KEY
    assert repr(NO_KEY) == "NO_KEY"


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ([1], "make it a tuple"),
        ({"a": 1}, "choose the fields"),
        ((1, {2}), "make it a frozenset"),
        (Mutable("ada"), "declare the dataclass with frozen=True"),
        (a_local_member(), "at the top of its module.*choose the name as the key"),
        (Noted("ada"), "equal ones may differ in note"),
        (object(), "choose a key of text"),
        (dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), "no time in UTC"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_what_cannot_be_a_key_is_refused_with_advice(key: Any, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        encode_key(key)


@given(st.binary(min_size=1))
def test_other_bytes_give_a_key_or_a_protocol_error(data: bytes) -> None:
    try:
        key = decode_key(data)
    except ProtocolError:
        return
    assert key is not NO_KEY


@pytest.mark.parametrize("data", [b"?", b"i", b"t\0\0\0\x09x", b"r\0\0\0\x01x\0\0\0\x04\0\0\0\0"])
def test_malformed_keys_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_key(data if data != b"i" else b"t\0")


@given(st.lists(KEYS | st.text() | st.integers() | st.sampled_from([True, 1.0, Level.HIGH])))
def test_many_keys_are_as_each(keys: list[Any]) -> None:
    """Property: also those that have come before, and are equal to others."""
    try:
        expected = [encode_key(key) for key in keys]
    except ConfigError:
        with pytest.raises(ConfigError):
            encode_keys(keys)
        return

    assert encode_keys(keys) == expected
    assert encode_keys([*keys, *keys]) == expected * 2


def test_more_keys_than_are_remembered_are_right() -> None:
    keys = [*range(40_000)]
    assert encode_keys(keys) == [encode_key(key) for key in keys]


def test_large_keys_are_not_remembered() -> None:
    key = "x" * 1000
    once, again = encode_keys([key]), encode_keys([key])
    assert once == again == [encode_key(key)]
    assert once is not None
    assert again is not None
    assert once[0] is not again[0]
