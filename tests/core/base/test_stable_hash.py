"""The hash that routes keys: fixed, fair, and alike for equal values."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group, stable_hash, task_of_group
from gearpy.errors import ConfigError

plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.just(Decimal("NaN"))
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.fractions()
)
keys = st.recursive(
    plain, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Plain(Enum):
    A = [1]  # noqa: RUF012 -- a value that could be no key itself
    B = [2]  # noqa: RUF012


class Pair(NamedTuple):
    left: str
    right: int


@dataclass(frozen=True)
class Account:
    bank: str
    number: int
    note: list[str] = field(default_factory=list, compare=False)


@dataclass
class Loose:
    number: int


# Fixed for ever: kept state is found by these numbers.
GOLDEN: list[tuple[Any, int]] = [
    (None, 0x9E3779B9E17D05AC),
    (True, 0x72E5E468613ED014),
    (0, 0xAF25BDB84AC9E252),
    (-1, 0x038C4F55C2EFFF99),
    (2**31, 0x7EE5B2A28072294E),
    (10**30, 0x3902DC09B0ECC3BB),
    (0.1, 0xED135D180467AE49),
    (float("nan"), 0x3C6EF373C2FA0B58),
    (float("-inf"), 0x9641573C60CEFF55),
    ("", 0x0000000000000000),
    ("word", 0xC6FE126AF28BB844),
    ("grüße", 0x66C6077CECFDB54D),
    (b"word", 0xC6FE126AF28BB844),
    ((), 0xDAA66D2DA7791913),
    (("a", 1), 0xFDEA3A192B526C63),
    (frozenset({"a", "b"}), 0x338102196DB5BDA6),
    (Decimal("0.1"), 0x763F4B9E9054636E),
    (UUID(int=1), 0x80497FA575CFF6B7),
    (date(2026, 1, 1), 0x06A3D855D5A87731),
    (datetime(2026, 1, 1, tzinfo=UTC), 0x794579EA7E34CC90),
    (time(1, 2, 3), 0xF52820D691CB6CFE),
    (timedelta(days=-1, microseconds=5), 0x27A98FEB5015FB77),
    (Plain.A, 0x777E89E9B70DB037),
    (Account("x", 1), 0x66DD7569605F4D09),
]


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=count())
def test_hash_never_changes(value: Any, expected: int) -> None:
    assert stable_hash(value) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (1, Decimal("1.0")),
        (0.5, Fraction(1, 2)),
        (0.5, Decimal("0.5")),
        (2**70, float(2**70)),
        (float("inf"), Decimal("Infinity")),
        ("red", Colour.RED),
        (1, Level.LOW),
        (("a", 1), Pair("a", 1)),
        (("a", 1), ("a", 1.0)),
        (frozenset({1, 2}), frozenset({2.0, 1.0})),
        (Account("x", 1, ["n"]), Account("x", 1)),
        (
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        ),
        (time(12, tzinfo=UTC), time(14, tzinfo=timezone(timedelta(hours=2)))),
        (timedelta(hours=24), timedelta(days=1)),
    ],
    ids=repr,
)
def test_equal_values_hash_alike(one: Any, other: Any) -> None:
    assert one == other
    assert stable_hash(one) == stable_hash(other)


def test_every_nan_is_one_key() -> None:
    nans = [float("nan"), -float("nan"), Decimal("NaN"), Decimal("sNaN")]

    assert len({stable_hash(nan) for nan in nans}) == 1


def test_enum_members_differ() -> None:
    """An Enum is known by class and name; its value may be anything."""
    assert stable_hash(Plain.A) != stable_hash(Plain.B)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ([1, 2], "of type list cannot be partitioned: [1, 2]: make it a tuple"),
        ({"a": 1}, "choose the fields that make the key"),
        ({1}, "make it a frozenset"),
        (bytearray(b"x"), "make it bytes"),
        (Loose(1), "frozen=True"),
        (object(), "shuffle"),
        (Loose, "shuffle"),
        (("a", [1]), "make it a tuple"),
    ],
    ids=count(),
)
def test_what_can_be_no_key_is_refused_with_advice(value: Any, advice: str) -> None:
    """A key that can change would lose its state."""
    with pytest.raises(ConfigError) as refusal:
        stable_hash(value)

    assert advice in str(refusal.value)


@pytest.mark.parametrize("tasks", [2, 3, 7, 16, 48])
@pytest.mark.parametrize(
    "family",
    [
        list(range(20_000)),
        list(range(0, 20_000 * 1024, 1024)),
        [1 << 40 | n for n in range(20_000)],
        [f"user{n}" for n in range(20_000)],
        [f"{n:08d}" for n in range(20_000)],
        [n / 8 for n in range(20_000)],
        [("shop", n) for n in range(20_000)],
        [UUID(int=n) for n in range(20_000)],
        [date.fromordinal(1 + n) for n in range(20_000)],
    ],
    ids=["count", "stride", "high", "user", "padded", "float", "pair", "uuid", "date"],
)
def test_keys_spread_over_tasks(family: list[Any], tasks: int) -> None:
    """Chi-square of usual key families; beyond 5 sigma a task would carry too much."""
    counts = Counter(task_of_group(key_group(key), parallelism=tasks) for key in family)

    groups = Counter(task_of_group(group, parallelism=tasks) for group in range(1024))
    expected = {task: len(family) * groups[task] / 1024 for task in range(tasks)}
    chi_square = sum((counts[task] - wish) ** 2 / wish for task, wish in expected.items())
    assert chi_square < tasks - 1 + 5 * (2 * (tasks - 1)) ** 0.5 + 5


@given(keys)
def test_hash_is_64_bits_and_repeats(key: Any) -> None:
    """The invariant: a function of the value, unsigned, 64 bits wide."""
    first = stable_hash(key)

    assert 0 <= first < 1 << 64
    assert stable_hash(key) == first


@given(keys, keys)
def test_equality_implies_equal_hashes(one: Any, other: Any) -> None:
    assert one != other or stable_hash(one) == stable_hash(other)


@given(parallelism=st.integers(1, 200), more=st.integers(0, 2000))
def test_each_task_owns_one_range_of_groups(parallelism: int, more: int) -> None:
    """The invariant of `task_of_group`: contiguous, complete, fair."""
    groups = parallelism + more

    owners = [
        task_of_group(group, parallelism=parallelism, key_groups=groups) for group in range(groups)
    ]

    counts = Counter(owners)
    assert owners == sorted(owners)
    assert sorted(counts) == list(range(parallelism))
    assert max(counts.values()) - min(counts.values()) <= 1
