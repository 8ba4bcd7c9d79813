"""Tables of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.console import TextTable
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.window_result import WindowResult


@dataclass
class Slotless:
    name: str
    size: int


@dataclass(slots=True)
class Slotted:
    name: str
    size: int


def a_table(columns: Sequence[str] | Mapping[str, str]) -> TextTable:
    return TextTable("console", columns)


@pytest.mark.parametrize(
    "record",
    [
        {"name": "fig", "size": 12},
        Slotless("fig", 12),
        Slotted("fig", 12),
        ("fig", 12, "more"),
        ["fig", 12],
    ],
)
def test_a_cell_is_found_in_records_of_any_kind(record: Any) -> None:
    assert a_table(["name", "size"]).lines([record]) == ["name  size", "fig     12"]


def test_titles_can_differ_from_fields() -> None:
    table = a_table({"word": "key", "count": "value", "from": "start", "until": "end"})

    lines = table.lines([WindowResult("to", 2, 0, 10_500)])

    assert lines == [
        "word  count  from                  until",
        "to        2  1970-01-01T00:00:00Z  1970-01-01T00:00:10.500Z",
    ]


@pytest.mark.parametrize(
    ("time_ms", "shown"), [(MIN_MS, "-inf"), (MAX_MS, "inf"), (10**16, "10000000000000000")]
)
def test_times_without_a_date_are_shown_all_the_same(time_ms: int, shown: str) -> None:
    lines = a_table(["start"]).lines([WindowResult("a", 1, time_ms, 5)])

    assert lines[1] == shown


def test_other_records_keep_their_numbers() -> None:
    assert a_table(["start"]).lines([{"start": 5}]) == ["start", "    5"]


def test_one_column_shows_plain_values() -> None:
    assert a_table(["word"]).lines(["to", "be"]) == ["word", "to", "be"]


def test_columns_grow_with_their_texts() -> None:
    table = a_table(["a", "b"])

    first = table.lines([("x", 1)])
    second = table.lines([("long text", 22)])
    third = table.lines([("x", 3)])

    assert first == ["a  b", "x  1"]
    assert second == ["long text  22"]
    assert third == ["x           3"]


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ({"key": 1}, "no field 'size' in the record, only: key"),
        (Slotted("a", 1), "no field 'colour' in the record, only: name, size"),
        (WindowResult("a", 1, 0, 1), "no field 'count' in the record, only: key, value, start"),
        (("a",), "2 columns, but 1 items"),
        (5, "no field"),
    ],
)
def test_a_record_without_the_column_is_named(record: Any, cause: str) -> None:
    columns = {dict: ["key", "size"], Slotted: ["name", "colour"], WindowResult: ["key", "count"]}
    table = a_table(columns.get(type(record), ["a", "b"]))

    with pytest.raises(OperatorError) as failed:
        table.lines([record])

    assert cause in failed.value.cause
    assert failed.value.record == repr(record)


@pytest.mark.parametrize("columns", [(), "word", {}])
def test_columns_must_be_several_names(columns: Any) -> None:
    """A single text would be a column for each letter."""
    with pytest.raises(ConfigError, match="need a sequence"):
        a_table(columns)


@given(rows=st.lists(st.tuples(st.text("ab \n", max_size=6), st.integers()), min_size=1))
def test_a_record_is_a_line_below_one_header(rows: list[tuple[str, int]]) -> None:
    """Property: as many lines as records and one, numbers at the right edge of their column."""
    lines = a_table(["text", "number"]).lines(rows)

    assert len(lines) == len(rows) + 1
    assert len({len(line) for line in lines}) == 1
    assert all(
        line.endswith(str(number)) for line, (_, number) in zip(lines[1:], rows, strict=True)
    )


@pytest.mark.parametrize("columns", [["wrod"], {"word": "kee"}, ["key", "valeu"]])
def test_a_name_that_is_no_field_of_a_tuple_with_names_is_refused(
    columns: Sequence[str] | Mapping[str, str],
) -> None:
    with pytest.raises(OperatorError, match=r"no field '\w+' in the record, only: key, value, "):
        a_table(columns).lines([WindowResult("to", 2, 0, 10_500)])
