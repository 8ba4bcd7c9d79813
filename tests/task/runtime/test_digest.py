"""A digest of output is that of the records, however they were batched."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.late_time import late_time
from gearpy.messages.table import Table, Times
from gearpy.task.runtime.digest import NO_DIGEST, OutputDigest


@dataclass(frozen=True)
class Place:
    x: int
    name: str


SINGLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.just("\udc80"),
    st.dates(),
    st.builds(Place, st.integers(0, 3), st.just("p")),
)
VALUES = st.recursive(
    SINGLE,
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)
RECORDS = st.lists(st.tuples(VALUES, st.integers(-(2**60), 2**60)), max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=6)


def digest_of(records: list[tuple[Any, int]], cuts: list[int]) -> tuple[int, int]:
    digest, start = OutputDigest(), 0
    for end in [*sorted(cuts), len(records)]:
        part = records[start : max(start, end)]
        digest.add([value for value, _ in part], [time for _, time in part])
        start = max(start, end)
    return digest.take()


@given(RECORDS, CUTS, CUTS)
def test_it_does_not_matter_how_they_were_batched(
    records: list[tuple[Any, int]], one: list[int], two: list[int]
) -> None:
    assert digest_of(records, one) == digest_of(records, two)


@given(RECORDS, st.data())
def test_another_record_or_time_gives_another_digest(
    records: list[tuple[Any, int]], data: st.DataObject
) -> None:
    count, digest = digest_of(records, [])
    assert (count, digest == NO_DIGEST) == (len(records), False)
    if records:
        at = data.draw(st.integers(0, len(records) - 1))
        value, time = records[at]
        other = [*records]
        other[at] = (value, time + 1)
        assert digest_of(other, [])[1] != digest
        other[at] = ([value, "another"], time)
        assert digest_of(other, [])[1] != digest


def test_more_records_than_a_short_list_has() -> None:
    records = [(number, number) for number in range(70_000)]
    whole = digest_of(records, [])

    assert digest_of(records, [10, 20, 40_000]) == whole
    assert digest_of(records[:-1], [15]) != whole


def test_a_late_time_is_a_time() -> None:
    assert digest_of([("a", late_time(3, 7))], []) == digest_of([("a", 3)], [])


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch({"n": [1, 2, 3, 4, 5], "s": ["a", "bb", "", "d", "e"]}),
        pa.record_batch({"n": [1, None, 3, 4, 5], "b": [True, False, None, True, True]}),
        pa.record_batch({"l": [[1], [], None, [2, 3], [4]]}),
        pa.record_batch({"d": pa.array(["x", "y", "x", "x", "z"]).dictionary_encode()}),
        pa.record_batch({"t": [dt.datetime(2026, 1, each, tzinfo=dt.UTC) for each in range(1, 6)]}),
    ],
    ids=["plain", "nulls", "lists", "dictionary", "times"],
)
def test_columns_have_one_however_they_were_cut(batch: pa.RecordBatch) -> None:
    times = Times.of([5, 4, 3, 2, 1])

    def digest(*cuts: int, rows: Table | None = None) -> tuple[int, int]:
        table, made = rows or Table(batch), OutputDigest()
        for start, end in zip((0, *cuts), (*cuts, len(table)), strict=True):
            made.add(table[start:end], times[start:end])
        return made.take()

    whole = digest()
    assert whole[0] == 5
    assert whole[1] != NO_DIGEST
    assert digest(2) == digest(1, 4) == digest(1, 2, 3, 4) == whole
    reversed_rows = Table(batch.take(pa.array([4, 3, 2, 1, 0])))
    assert digest(rows=reversed_rows) != whole


def test_what_cannot_be_encoded_is_counted_and_not_told_apart() -> None:
    digest = OutputDigest()
    digest.add([object()], [1])
    digest.add([2], [2])
    assert digest.take() == (2, NO_DIGEST)
    digest.add([2], [2])
    assert digest.take() == digest_of([(2, 2)], [])


def test_where_it_is_not_needed_records_are_counted_only() -> None:
    digest = OutputDigest()
    digest.only_counts = True
    digest.add([object()], [1])
    assert digest.take() == (1, 0)
