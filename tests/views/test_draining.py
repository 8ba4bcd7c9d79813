"""A drain says what it waits for, and what else can be done."""

import pytest
from msgspec.structs import replace

from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ApplicationSummary
from gearpy.views.draining import DrainNotice

RUNS = ApplicationSummary(app_id=AppId(1), name="pages", status="active")


def waiting_for(server: str) -> ApplicationSummary:
    return replace(RUNS, progress=ApplicationProgress(waits_for=server))


def a_notice(timeout_ms: int | None = 300_000) -> DrainNotice:
    return DrainNotice(began_ms=1_000, timeout_ms=timeout_ms, way_out="Ctrl-C ends it")


def test_a_server_that_is_away_is_named_with_the_time_that_is_left() -> None:
    assert a_notice().line(waiting_for("kafka a:9092: refused (step out)"), 13_900) == (
        "waits for kafka a:9092: refused (step out); stopping for 12 s, after 300 s "
        "(application.drain-timeout-seconds) it ends as failed; Ctrl-C ends it"
    )


def test_who_does_not_know_the_limit_is_told_its_key() -> None:
    line = a_notice(timeout_ms=None).line(RUNS, 5_000)

    assert line == (
        "what was read is still being committed; stopping for 4 s; it ends as failed when that "
        "takes longer than application.drain-timeout-seconds; Ctrl-C ends it"
    )


def test_a_line_comes_when_a_drain_is_slow_and_then_now_and_then() -> None:
    notice = a_notice()

    told_ms = [at_ms for at_ms in range(1_000, 15_000, 100) if notice.line(RUNS, at_ms)]

    assert told_ms == [4_000, 9_000, 14_000]


@pytest.mark.parametrize("status", ["succeeded", "failed", "terminated"])
def test_nothing_is_said_of_what_has_ended(status: ApplicationStatus) -> None:
    ended = replace(RUNS, status=status)

    assert a_notice().line(ended, 20_000) == ""


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in a_notice().line(waiting_for("a:1: \x1b[2J"), 20_000)
