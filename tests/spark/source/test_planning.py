"""Positions, and what is read from one to the next."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.handover.window_log import LogPiece, LogSegment, LogView
from gearpy.errors import ConfigError, GearpyError
from gearpy.spark.source.planning import (
    ReadingPace,
    Span,
    check_known,
    common_position,
    first_position,
    next_position,
    position_of,
    shares,
    span_of,
)


def a_view(*counts: int, first: int = 1, rows: int = 10) -> LogView:
    return LogView(
        LogSegment(f"{lane}-{seq}", f"w-{lane}", seq, seq, rows, seq, "r", 1)
        for lane, count in enumerate(counts)
        for seq in range(first, first + count)
    )


def test_equal_positions_are_equal_texts() -> None:
    texts = {json.dumps(position_of(each)) for each in ({"b": 1, "a": 2}, {"a": 2, "b": 1, "c": 0})}

    assert texts == {'{"a": 2, "b": 1}'}


@pytest.mark.parametrize("offset", [None, 3, [1], {"a": "1"}, {"a": 1.0}, {"a": True}, {"a": -1}])
def test_what_is_no_position_is_refused(offset: Any) -> None:
    with pytest.raises(ConfigError, match="is no position"):
        position_of(offset)


def test_a_new_reader_begins_where_it_was_told() -> None:
    view = a_view(3, 2, first=5)

    assert first_position(view, None) == {"w-0": 4, "w-1": 4}
    assert first_position(view, None, from_end=True) == {"w-0": 7, "w-1": 6}
    assert first_position(view, {"w-0": 6}) == {"w-0": 6}
    assert first_position(a_view(), None) == {}


@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    max_rows=st.none() | st.integers(1, 40),
    max_batches=st.none() | st.integers(1, 4),
)
def test_step_by_step_everything_is_read_once(
    counts: list[int], max_rows: int | None, max_batches: int | None
) -> None:
    """Property: no step is larger than allowed, but for one batch; the last one changes nothing."""
    view, position, found = a_view(*counts), dict[str, int](), list[LogPiece]()
    while (
        end := next_position(view, position, max_rows=max_rows, max_batches=max_batches)
    ) != position:
        pieces = view.between(position, end)
        rows = sum(piece.rows for piece in pieces)
        assert max_rows is None or rows <= max_rows or len(pieces) == 1
        assert max_batches is None or len(pieces) <= max_batches
        found += pieces
        position = end

    assert position == position_of(view.ends())
    assert len(found) == len(set(found)) == sum(counts)


def test_nothing_behind_an_end_is_read() -> None:
    """What came since belongs to another run of the job."""
    view = a_view(5, 5)

    assert next_position(view, {"w-0": 1}, until={"w-0": 3}) == {"w-0": 3}
    assert next_position(view, {"w-0": 3}, until={"w-0": 3}) == {"w-0": 3}


def test_a_reader_never_goes_back() -> None:
    assert next_position(a_view(2), {"w-0": 9, "w-7": 4}) == {"w-0": 9, "w-7": 4}


def test_another_log_is_recognised() -> None:
    """Its batches would be taken for others."""
    check_known(a_view(3), {"w-0": 3}, place="log")

    for position in ({"w-0": 4}, {"x-0": 1}):
        with pytest.raises(GearpyError, match="another log than the one that was read before"):
            check_known(a_view(3), position, place="log")


@pytest.mark.parametrize(
    ("rows", "tasks", "expected"),
    [
        (10, None, [6]),
        (50_000, None, [3, 3]),
        (1_000_000, None, [1, 1, 1, 1, 1, 1]),
        (10, 4, [2, 2, 2]),
        (10, 9, [1, 1, 1, 1, 1, 1]),
        (10, 1, [6]),
    ],
)
def test_tasks_share_the_rows(rows: int, tasks: int | None, expected: list[int]) -> None:
    """Neighbours stay together; few rows are not worth two tasks."""
    view = a_view(6, rows=rows)

    found = shares(view.between({}, view.ends()), tasks)

    assert [len(share) for share in found] == expected
    assert [piece.first for share in found for piece in share] == [1, 2, 3, 4, 5, 6]
    assert shares([]) == []


def test_files_are_passed_over_by_their_windows() -> None:
    span = Span(ends_after_ms=100, starts_before_ms=200)

    assert span.meets(0, 101)
    assert span.meets(199, 300)
    assert span.meets(None, None)
    assert not span.meets(0, 100)
    assert not span.meets(200, 300)
    assert Span().is_all
    assert not span.is_all
    assert Span(100).and_also(Span(50, 7)) == Span(100, 7)


@given(
    column=st.sampled_from(["window_start", "window_end"]),
    condition=st.sampled_from(
        ["GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "EqualTo", "In"]
    ),
    start_ms=st.integers(-50, 50),
    length_ms=st.integers(1, 50),
    time_us=st.integers(-100_000, 100_000),
)
def test_no_file_is_passed_over_that_has_what_is_asked_for(
    column: str, condition: str, start_ms: int, length_ms: int, time_us: int
) -> None:
    """Property: Spark looks at each row of what is left, but at nothing else."""
    value_us = (start_ms if column == "window_start" else start_ms + length_ms) * 1000
    holds = {
        "GreaterThan": value_us > time_us,
        "GreaterThanOrEqual": value_us >= time_us,
        "LessThan": value_us < time_us,
        "LessThanOrEqual": value_us <= time_us,
        "EqualTo": value_us == time_us,
        "In": True,
    }[condition]

    span = span_of(column, condition, datetime.fromtimestamp(time_us / 1e6, UTC))

    assert not holds or span.meets(start_ms, start_ms + length_ms)
    assert span_of("key", condition, datetime.now(UTC)) == Span()


def test_reports_are_made_when_they_say_something() -> None:
    pace, view = ReadingPace(), a_view(5)

    assert pace.is_due({}, has_more=True, now_ms=0)
    assert pace.on_report(view, {}, now_ms=0) is None
    assert not pace.is_due({"w-0": 2}, has_more=True, now_ms=999)
    assert pace.is_due({"w-0": 2}, has_more=True, now_ms=1000)
    assert pace.is_due({"w-0": 5}, has_more=False, now_ms=10)
    assert pace.on_report(view, {"w-0": 5}, now_ms=2000) == 25.0
    assert not pace.is_due({"w-0": 5}, has_more=False, now_ms=11_999)
    assert pace.is_due({"w-0": 5}, has_more=False, now_ms=12_000)


def test_what_all_have_read_is_what_may_go() -> None:
    assert common_position({"a": 5, "b": 2}, []) == {"a": 5, "b": 2}
    assert common_position({"a": 5, "b": 2}, [{"a": 3, "b": 9}, {"b": 1}]) == {"a": 0, "b": 1}
