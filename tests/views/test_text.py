"""Numbers, times and foreign text are shown briefly and safely."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.ids import MAX_MS, MIN_MS, AppId
from gearpy.messages.summaries import ApplicationSummary
from gearpy.views import text


def a_summary(*, submitted_ms: int = 0, finished_ms: int = 0) -> ApplicationSummary:
    return ApplicationSummary(
        app_id=AppId(1),
        name="wordcount",
        status="active",
        submitted_ms=submitted_ms,
        finished_ms=finished_ms,
    )


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [
        (0, "0.0 s"),
        (1_234, "1.2 s"),
        (59_900, "59.9 s"),
        (60_000, "1 m 00 s"),
        (185_000, "3 m 05 s"),
        (7_380_000, "2 h 03 m"),
        (86_399_999, "23 h 59 m"),
        (28_000_000_000, "324 d 01 h"),
    ],
)
def test_a_time_span_has_two_units_at_most(span_ms: int, shown: str) -> None:
    assert text.duration(span_ms) == shown


@pytest.mark.parametrize(
    ("watermark_ms", "shown"),
    [
        (None, ""),
        (MIN_MS, "start"),
        (MAX_MS, "end"),
        (0, "1970-01-01T00:00:00Z"),
        (1_767_225_600_123, "2026-01-01T00:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (MAX_MS - 1, f"{MAX_MS - 1} ms"),
    ],
)
def test_a_watermark_is_a_time_or_one_of_the_ends(watermark_ms: int | None, shown: str) -> None:
    assert text.watermark(watermark_ms) == shown


def test_what_runs_is_timed_to_now_and_what_has_ended_to_its_end() -> None:
    running, ended = a_summary(submitted_ms=100), a_summary(submitted_ms=100, finished_ms=250)

    assert text.duration_ms_of(running, 1_100) == 1_000
    assert text.duration_ms_of(ended, 1_100) == 150


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    assert text.duration_ms_of(a_summary(submitted_ms=100), 50) == 0


def test_one_of_a_kind_is_singular() -> None:
    assert (text.plural(1, "worker"), text.plural(1000, "slot")) == ("1 worker", "1,000 slots")


@given(st.text())
def test_no_text_can_steer_the_terminal(foreign: str) -> None:
    """Records come from anywhere; an escape sequence in one must not reach the terminal."""
    shown = text.printable(foreign)

    assert all(char.isprintable() or char in "\n\t" for char in shown)


def test_ordinary_text_is_shown_as_it_is() -> None:
    assert text.printable("[red]ünïcödé 词[/red]\n\tend") == "[red]ünïcödé 词[/red]\n\tend"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (0.42, "0.4"),
        (3.0, "3"),
        (950, "950"),
        (48_210, "48.2 k"),
        (999_960, "1.0 M"),
        (2_500_000_000, "2.5 G"),
        (7e15, "7,000.0 T"),
    ],
)
def test_a_short_number_has_four_figures_at_most(number: float, shown: str) -> None:
    assert text.short(number) == shown


def test_figures_have_their_units_and_unknown_ones_are_empty() -> None:
    assert [text.rate(48_210), text.rate(3.2), text.rate(None)] == ["48.2 k/s", "3.2 /s", ""]
    assert [text.size(14_000_000), text.size(12), text.size(None)] == ["14.0 MB", "12 B", ""]
    assert [text.share(0.97), text.share(None)] == ["97 %", ""]
    assert [text.span(38.2), text.span(1_200), text.span(None)] == ["38 ms", "1.2 s", ""]
