"""Progress tells rate, watermark and lateness, and not too often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.cli.apps.progress import Lines, Rate, Silence, facts
from gearpy.cli.programs.run import summary_line
from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationProgress, ApplicationSummary


def a_summary(
    *, records_in: int = 0, records_out: int = 0, name: str = "wordcount"
) -> ApplicationSummary:
    return ApplicationSummary(
        app_id=AppId(1),
        name=name,
        status="succeeded",
        submitted_ms=1_000,
        finished_ms=2_234,
        progress=ApplicationProgress(
            records_in=records_in, records_out=records_out, watermark_ms=1_767_225_600_000
        ),
    )


def test_a_line_comes_every_five_seconds_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    times = [100.0]
    lines = Lines(lambda: times[-1])

    for now_s, records_in in (
        (100.1, 10),
        (104.9, 500),
        (105.0, 1_000),
        (109.9, 1_500),
        (110, 3_000),
    ):
        times.append(now_s)
        lines.on_progress(a_summary(records_in=records_in))

    assert capsys.readouterr().err.splitlines() == [
        "5 s  1,000 records  200/s  watermark 2026-01-01T00:00:00Z",
        "10 s  3,000 records  400/s  watermark 2026-01-01T00:00:00Z",
    ]


def test_every_view_remembers_the_last_summary() -> None:
    summary = a_summary(records_in=7)

    for view in (Silence(), Lines()):
        view.on_progress(summary)

        assert view.last is summary


def test_only_what_is_there_is_told() -> None:
    assert facts(ApplicationProgress(records_in=1_234), 99.6) == ["1,234 records", "100/s"]
    assert facts(ApplicationProgress(late_records=3, stall="held by map"), 0) == [
        "0 records",
        "0/s",
        "3 late",
        "held by map",
    ]


def test_a_line_tells_what_the_source_waits_for() -> None:
    assert facts(ApplicationProgress(waits_for="host:1"), 0)[-1] == "waits for host:1"


def test_a_steady_stream_has_its_rate() -> None:
    rate = Rate(window_s=3)
    for second in range(10):
        rate.on_count(second, 0)

    rates = [rate.on_count(10 + second, 500 * (second + 1)) for second in range(6)]

    assert rates[-1] == 500


@given(st.lists(st.tuples(st.floats(0.001, 10), st.integers(0, 1000)), min_size=1, max_size=50))
def test_the_rate_is_never_above_the_fastest_step(steps: list[tuple[float, int]]) -> None:
    """A rate is an average, so that nothing is shown that never was."""
    rate, now_s, count = Rate(), 0.0, 0
    rate.on_count(now_s, count)

    shown = [
        rate.on_count(now_s := now_s + span_s, count := count + more) for span_s, more in steps
    ]

    fastest = max(more / span_s for span_s, more in steps)
    assert all(0 <= each <= fastest * 1.001 for each in shown)


def test_the_summary_is_one_line() -> None:
    line = summary_line(a_summary(records_in=12_345, records_out=321), 99_999)

    assert line == "wordcount succeeded: 12,345 records in, 321 out, 0 late, 1.2 s"


def test_the_summary_tells_what_was_left_out() -> None:
    progress = ApplicationProgress(skipped_records=2, quarantined_records=1)

    line = summary_line(replace(a_summary(), progress=progress), 99_999)

    assert "2 skipped, 1 quarantined" in line
