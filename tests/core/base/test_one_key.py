"""Keys that Python takes for equal though they are stored apart, and the other way round."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.one_key import are_plain, instant, one_if_key, one_key
from gearpy.errors import ConfigError
from gearpy.state.encoding.keys import encode_key

BERLIN = ZoneInfo("Europe/Berlin")


class Named(NamedTuple):
    one: float
    other: str


@dataclass(frozen=True)
class Both:
    one: Any
    other: str


@dataclass(frozen=True, slots=True)
class Slotted:
    one: float


@dataclass(frozen=True)
class Noted:
    name: str
    note: str = field(compare=False, default="")


@dataclass(frozen=True)
class Own:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


class AnyCase(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class Level(IntEnum):
    LOW = 1


class Color(Enum):
    RED = 1


def other_nan() -> float:
    return float("nan")


def berlin(*when: int, fold: int = 0) -> datetime:
    return datetime(*when, tzinfo=BERLIN, fold=fold)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    "make",
    [
        other_nan,
        lambda: Decimal("nan"),
        lambda: np.float64("nan"),
        lambda: (other_nan(), "a"),
        lambda: (1, (other_nan(), None)),
        lambda: Named(other_nan(), "a"),
        lambda: frozenset([other_nan(), 1]),
        lambda: Both(other_nan(), "a"),
        lambda: Both((other_nan(),), "a"),
        lambda: (Both(Slotted(other_nan()), "a"), 1),
    ],
    ids=[
        *("float", "decimal", "numpy", "tuple", "nested", "named", "set", "class", "in class"),
        "class in class",
    ],
)
def test_keys_with_nan_are_one_key_of_a_dict(make: Callable[[], Any]) -> None:
    one, other = make(), make()

    assert len({one: 1, other: 2}) == 2
    assert len({one_key(one): 1, one_key(other): 2}) == 1
    assert not are_plain(["a", one])
    assert isinstance(one, Decimal | float) or type(one_key(one)) is type(one)


@pytest.mark.parametrize(
    "key",
    [
        *("a", 1, 1.5, None, b"x", True, (1.0, "a"), Named(1, "a"), Both(1, "a"), Fraction(1, 3)),
        *(frozenset("a"), (frozenset([1.5]), 1.5), Both(frozenset([1.5]), "a")),
        *(Level.LOW, Color.RED, np.float64(1.5), np.str_("a"), timedelta(1)),
        datetime(2023, 10, 29, 2, 30, fold=1),  # noqa: DTZ001
        datetime(2023, 10, 29, tzinfo=UTC),
        *(berlin(2023, 10, 29, 1, 59), berlin(2023, 10, 29, 3), date(2023, 1, 1)),
        pd.Timestamp("2023-10-29 01:59", tz="Europe/Berlin"),
    ],
    ids=repr,
)
def test_other_keys_stay_what_they_are(key: Any) -> None:
    assert one_key(key) is key


@pytest.mark.parametrize(
    ("key", "plain"),
    [(np.int8(1), 1), (np.uint64(2**64 - 1), 2**64 - 1), (np.float32(0.5), 0.5), (np.bool_(1), 1)],
    ids=lambda each: type(each).__name__,
)
def test_numbers_of_numpy_are_those_of_the_language(key: Any, plain: Any) -> None:
    assert one_key(key) == plain
    assert type(one_key(key)) is type(plain)
    assert encode_key(key) == encode_key(plain)


#: A time in the hour that is there twice, and one in the hour that is not there.
ODD_HOURS = [(2023, 10, 29, 2, 30), (2023, 3, 26, 2, 30)]


@pytest.mark.parametrize("when", ODD_HOURS)
@pytest.mark.parametrize(
    "of",
    [lambda t: t, lambda t: ("a", t), lambda t: frozenset([t]), lambda t: Both(t, "a")],
    ids=["alone", "tuple", "set", "class"],
)
def test_two_hours_are_two_keys(when: tuple[int, ...], of: Callable[[datetime], Any]) -> None:
    """Python takes them for equal; each keeps its date, its clock, and its instant."""
    first, second = berlin(*when), berlin(*when, fold=1)
    kept = {one_key(of(first)): 1, one_key(of(second)): 2}

    assert len({of(first), of(second)}) == 1
    assert len(kept) == 2
    assert of(first) not in kept  # So they are looked up once more.
    assert of(second) not in kept
    assert kept[one_key(of(copy.copy(second)))] == 2
    assert encode_key(one_key(of(first))) == encode_key(of(first))
    for each in (first, second):
        assert instant(each).replace(tzinfo=None) == each.replace(tzinfo=None, fold=0)
        assert instant(each).timestamp() == each.timestamp()
        assert instant(each) == each.astimezone(UTC)


@given(
    st.datetimes(datetime.fromisoformat("1950-01-01"), datetime.fromisoformat("2049-01-01")),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
    st.sampled_from([0, 1]),
    st.timedeltas(timedelta(hours=-2), timedelta(hours=2)),
)
def test_times_are_one_key_if_they_are_one_instant(
    when: datetime, zone: str, fold: int, later: timedelta
) -> None:
    one = when.replace(tzinfo=ZoneInfo(zone), fold=fold)
    others = [
        (when + later).replace(tzinfo=ZoneInfo(zone), fold=1 - fold),
        one.astimezone(timezone(timedelta(hours=3))),
        (when + later).replace(tzinfo=UTC),
    ]

    for other in others:
        is_one = one.timestamp() == other.timestamp()
        assert (one_key(one) == one_key(other)) is is_one
        assert (one == one_key(other)) <= is_one


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ([1], "make it a tuple"),
        ((1, {2}), "make it a frozenset"),
        (bytearray(b"a"), "make it bytes"),
        (1 + 0j, "choose a key of text"),
        (PurePosixPath("a"), "choose a key of text"),
        (Noted("ada"), "equal ones may differ in note; choose a tuple of the other fields"),
        (Own("ada"), "class Own.*rules of its own for which are equal"),
        ((1, AnyCase("ada")), "class AnyCase.*rules of its own for which are equal"),
        (Decimal("sNaN"), r"give Decimal\('NaN'\)"),
        (Decimal("1E-1000000"), "exponent is beyond 10000"),
        (Decimal("1E+999999999"), "exponent is beyond 10000"),
        (np.datetime64("2020-01-01"), "make it a datetime"),
        (np.timedelta64(60, "s"), "make it a timedelta"),
        (pd.Timestamp(1, unit="ns"), "it has nanoseconds: round it"),
        (pd.Timedelta(1, unit="ns"), "it has nanoseconds: round it"),
        (pd.NaT, "NaT can be no key: give None"),
    ],
    ids=lambda each: f"{type(each).__name__} {str(each)[:20]}",
)
def test_what_can_be_no_key_is_refused_by_dicts_as_by_state(key: Any, advice: str) -> None:
    for make in (one_key, encode_key):
        with pytest.raises(ConfigError, match=advice):
            make(key)

    assert one_if_key(key) is key
