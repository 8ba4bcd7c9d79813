"""Which rows of a table belong to a key, see `gearpy.core.join.table`."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.table import Many, RowsOfKeys
from gearpy.errors import ConfigError

KEYS = st.lists(st.integers(0, 3), max_size=12)
TIMES = st.lists(st.integers(0, 5), min_size=12, max_size=12)


@given(KEYS, st.sampled_from(["all", "first", "last"]))
def test_all_rows_of_a_key_are_found(keys: list[int], many: Many) -> None:
    rows = RowsOfKeys(keys, many=many)

    for key in range(5):
        expected = [at for at, other in enumerate(keys) if other == key]
        if many != "all":
            expected = expected[:1] if many == "first" else expected[-1:]
        assert rows.find(key, 0) == tuple(expected)


@given(KEYS, TIMES, st.sampled_from(["all", "first", "last"]))
def test_the_row_that_counts_at_a_time_is_found(
    keys: list[int], times: list[int], many: Many
) -> None:
    times = times[: len(keys)]
    rows = RowsOfKeys(keys, times=times, many=many)

    for key in range(5):
        for time in range(-1, 7):
            before = [t for k, t in zip(keys, times, strict=True) if k == key and t <= time]
            newest = max(before, default=None)
            expected = [
                at
                for at, (k, t) in enumerate(zip(keys, times, strict=True))
                if (k, t) == (key, newest)
            ]
            if many != "all":
                expected = expected[:1] if many == "first" else expected[-1:]
            assert rows.find(key, time) == tuple(expected)


@given(KEYS)
def test_duplicates_are_refused_by_default(keys: list[int]) -> None:
    twice = {key: keys.count(key) for key in keys if keys.count(key) > 1}

    if twice:
        with pytest.raises(ConfigError, match="several rows have one key") as caught:
            RowsOfKeys(keys)
        named = [key for key, n in twice.items() if f"{key} ({n} rows)" in str(caught.value)]
        assert len(named) == min(3, len(twice))
    else:
        RowsOfKeys(keys)


def test_rows_of_one_key_and_time_are_duplicates() -> None:
    RowsOfKeys(["a", "a"], times=[1, 2])

    with pytest.raises(ConfigError, match=r"'a', 'at 1 ms'\) \(2 rows\).*many=\"first\""):
        RowsOfKeys(["a", "a"], times=[1, 1])


def test_nan_is_one_key() -> None:
    rows = RowsOfKeys([math.nan, 1.0])

    assert rows.find(float("nan"), 0) == (0,)
    assert RowsOfKeys([math.nan], times=[0]).find(float("nan"), 0) == (0,)


@pytest.mark.parametrize(
    ("keys", "key", "text"),
    [
        (["1"], 1, "the key 1 is a number, and keys of the table are text, so no row can ever"),
        ([1], "1", "the key '1' is text, and keys of the table are a number"),
        ([1, b"a"], "1", "are a number or bytes"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], 5, "are a datetime"),
        ([date(2026, 1, 1)], datetime(2026, 1, 1, tzinfo=UTC), "are a date"),
        (
            [("a", 1)],
            ("a", "1"),
            r"is \(text, text\), and keys of the table are \(text, a number\)",
        ),
        ([("a", 1)], "a", "is text"),
    ],
)
def test_a_key_that_can_equal_none_is_refused(keys: list[Any], key: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        RowsOfKeys(keys).find(key, 0)


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ([1], 2.5),
        ([1], Decimal(2)),
        ([1], True),
        ([1], None),
        ([None], 1),
        ([], "a"),
        ([UUID(int=1)], "a"),
        ([1], UUID(int=1)),
        ([("a", None)], ("a", 1)),
    ],
)
def test_a_key_that_may_equal_one_finds_nothing(keys: list[Any], key: Any) -> None:
    found = RowsOfKeys(keys).find(key, 0)

    assert found == ((0,) if key in keys else ())


def test_keys_that_cannot_be_hashed_are_refused() -> None:
    with pytest.raises(ConfigError, match="of a row is a list, which cannot be looked up"):
        RowsOfKeys([[1]])
    with pytest.raises(TypeError, match="unhashable"):
        RowsOfKeys([1]).find([1], 0)


def test_whether_records_have_one_row_at_most_is_known() -> None:
    assert RowsOfKeys([1]).is_single
    assert RowsOfKeys([1, 2], many="all").is_single
    assert not RowsOfKeys([1, 1], many="all").is_single
    assert not RowsOfKeys([1, 1], times=[3, 3], many="all").is_single
