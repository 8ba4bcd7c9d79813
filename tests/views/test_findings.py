"""From the chain of tasks that holds the clock to what to do about it."""

from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.app.clock import WaitsFor
from gearpy.ids import MIN_MS, AppId, ExecutorId, WorkerId
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationSummary,
    ClockHolderSummary,
    ConsumerReport,
    ConsumerSummary,
    EdgeSummary,
    ExecutorSummary,
    LongTurnSummary,
    ProcessorSummary,
)
from gearpy.views.findings import clock_finding, findings_of, sentence, stuck_finding
from gearpy.views.model import ProcessorFigures
from tests.views.build import a_summary

WAITS = get_args(WaitsFor)


def a_detail(*waits_for: str, lag_ms: int = 60_000, **more: Any) -> ApplicationDetail:
    """Return a chain of tasks from a source on, by what each waits for."""
    chain = [
        ClockHolderSummary(
            task=f"{at}.0", name=f"p{at}", clock_ms=0, watermark_ms=0, waits_for=waits
        )
        for at, waits in enumerate(waits_for)
    ]
    return ApplicationDetail(app_id=AppId(1), why=tuple(chain), lag_ms=lag_ms, **more)


def test_nobody_is_told_to_restart_what_ends_with_its_process() -> None:
    """As a run in a notebook: no cluster is left that could."""
    for app_master, advice in (
        ("127.0.0.1:3000/app7-appmaster-1", "'gear app restart 7' goes on from epoch 12"),
        ("/app7-appmaster-1", ""),
    ):
        for status in ("terminated", "failed"):
            summary = a_summary(status=status, app_master=app_master)
            (headline,) = findings_of(summary, None, 0)
            assert headline.advice == advice


@pytest.mark.parametrize("waits_for", [each for each in WAITS if each != "upstream"])
def test_there_is_advice_on_everything_that_a_task_may_wait_for(waits_for: str) -> None:
    advice = sentence(clock_finding(a_detail("upstream", waits_for)))

    assert advice.startswith("p1 (task 1.0) ")
    assert "waits for" not in advice


def test_who_waits_for_another_is_not_to_blame() -> None:
    detail = a_detail("source has not advanced", "unacknowledged output", "upstream", "upstream")

    assert clock_finding(detail).task == "1.0"


def test_when_everybody_waits_the_source_is_to_blame() -> None:
    """A chain is a snapshot of tasks that move; it may say so for a moment."""
    assert clock_finding(a_detail("upstream", "upstream")).task == "0.0"


def test_what_a_newer_cluster_waits_for_is_told_as_it_is() -> None:
    assert sentence(clock_finding(a_detail("the moon"))) == "p0 (task 0.0) waits for: the moon"


def test_nobody_is_to_blame_while_the_clock_keeps_up() -> None:
    """Somebody always holds it for a moment, since work takes time."""
    detail = a_detail("upstream", "unacknowledged output", lag_ms=230)

    assert clock_finding(detail).task is None
    assert sentence(clock_finding(detail)) == (
        "nothing holds the clock: it keeps up with the sources, 0.2 s behind what they have read"
    )


def test_who_is_hardly_behind_only_keeps_up() -> None:
    detail = a_detail("upstream", "unacknowledged output", lag_ms=49)

    said = sentence(clock_finding(detail))
    assert said == "nothing holds the clock: it keeps up with the sources"


def test_a_source_without_event_time_is_as_it_should_be() -> None:
    detail = a_detail("source has not advanced")
    [link] = detail.why
    finding = clock_finding(replace(detail, why=(replace(link, watermark_ms=MIN_MS),)))

    assert (finding.level, finding.text) == ("ok", "p0 (task 0.0) has given no event time yet")


@pytest.mark.parametrize(
    ("statuses", "level", "said"),
    [
        ((), "ok", "it runs, with 0 executors"),
        (("running",), "ok", "it runs, with 1 executor"),
        (("running", "launching"), "info", "1 of 2 executors run, the others are being started"),
    ],
    ids=["none", "all", "some"],
)
def test_an_application_of_actors_is_told_by_its_executors(
    statuses: tuple[Literal["launching", "running"], ...], level: str, said: str
) -> None:
    executors = tuple(
        ExecutorSummary(
            executor_id=ExecutorId(number), launch=1, worker_id=WorkerId(0), slots=1, status=status
        )
        for number, status in enumerate(statuses)
    )
    detail = ApplicationDetail(app_id=AppId(1), executors=executors, of_actors=True)
    summary = ApplicationSummary(app_id=AppId(1), name="shell", status="active")

    [finding] = findings_of(summary, detail, 0)

    assert (finding.level, finding.text) == (level, said)


def test_open_windows_hold_the_clock_of_an_application_that_keeps_up() -> None:
    finding = clock_finding(a_detail("upstream", "open windows or state", lag_ms=230))

    assert (finding.level, finding.task) == ("ok", None)
    assert sentence(finding) == (
        "it keeps up with the sources, 0.2 s behind what they have read; the clock waits for the "
        "open windows or state of p1 (task 1.0)"
    )


def a_processor(number: int, *, idle_ms: int = 0) -> ProcessorSummary:
    return ProcessorSummary(
        processor_id=number, name=f"p{number}", parallelism=1, clock_ms=0, idle_ms=idle_ms
    )


def test_a_source_that_is_idle_says_for_how_long() -> None:
    detail = a_detail("idle", processors=(a_processor(0, idle_ms=64_000),))

    assert sentence(clock_finding(detail)) == (
        "p0 (task 0.0) has had nothing to read for 1 m 04 s and holds nothing back: the clock goes "
        "on with its next record"
    )


@pytest.mark.parametrize(("stall", "level"), [("", "ok"), ("p1 holds it", "warn")])
def test_state_that_waits_for_a_source_that_is_idle_is_told_with_that(
    stall: str, level: str
) -> None:
    detail = a_detail("idle", "open windows or state", lag_ms=0)

    finding = clock_finding(detail, ApplicationProgress(stall=stall))

    assert (finding.level, finding.task) == (level, "0.0")
    assert sentence(finding) == (
        "p0 (task 0.0) has nothing to read at present, and the clock waits for the open windows or "
        "state of p1 (task 1.0): it goes on with the next record"
    )


def test_sources_that_are_idle_beside_those_that_are_not_are_named() -> None:
    detail = a_detail(
        "upstream",
        "unacknowledged output",
        lag_ms=0,
        processors=(
            a_processor(0),
            a_processor(1, idle_ms=9_000),
            a_processor(2, idle_ms=9_000),
            a_processor(3, idle_ms=900),
            a_processor(4, idle_ms=9_000),
        ),
        edges=(EdgeSummary(source=2, target=1, partitioner=""),),
    )
    progress = ApplicationProgress(waits_for="a file that fits x (step p4)")
    summary = ApplicationSummary(app_id=AppId(1), name="shop", status="active", progress=progress)

    told = [sentence(each) for each in findings_of(summary, detail, 0)]

    assert told == [
        "a source or sink waits for a file that fits x (step p4)",
        "nothing holds the clock: it keeps up with the sources",
        "p2 has had nothing to read for 9.0 s",
    ]


def test_a_clock_that_stalls_has_a_holder_however_small_the_lag() -> None:
    detail = a_detail("upstream", "open windows or state", lag_ms=230)

    assert clock_finding(detail, ApplicationProgress(stall="p1 holds it")).task == "1.0"


def test_source_that_reads_nothing_is_named() -> None:
    assert clock_finding(a_detail("source has not advanced", lag_ms=0)).task == "0.0"


def test_task_in_user_code_is_named_with_its_line() -> None:
    turn = LongTurnSummary(
        task="0.1", step="map(f)", lasts_ms=34_000, source="/a/app.py:17", source_line="sleep(9)"
    )
    detail = a_detail("upstream", "unprocessed input", long_turns=(turn,))

    assert clock_finding(detail).task == "0.1"
    assert sentence(clock_finding(detail)).startswith(
        "map(f) (task 0.1) has been in one call for 34.0 s, at /a/app.py:17: sleep(9): "
    )


@given(st.lists(st.sampled_from(WAITS)))
def test_the_culprit_is_a_link_and_nobody_after_it_is_to_blame(waits: list[str]) -> None:
    detail = a_detail(*waits)

    culprit = clock_finding(detail).task

    assert (culprit is None) == (not waits)
    if culprit is not None:
        at = [each.task for each in detail.why].index(culprit)
        assert all(each.waits_for == "upstream" for each in detail.why[at + 1 :])


def findings_while(*waits_for: str, outside: str, stall: str = "") -> list[tuple[Any, ...]]:
    """Return level, text and processor of the findings about three steps, p0 to p2."""
    steps = [
        ProcessorSummary(processor_id=at, name=f"p{at}", parallelism=1, clock_ms=0)
        for at in range(3)
    ]
    edges = [EdgeSummary(source=at, target=at + 1, partitioner="hash") for at in range(2)]
    detail = a_detail(*waits_for, processors=tuple(steps), edges=tuple(edges))
    progress = ApplicationProgress(waits_for=f"kafka b:1: gone (step {outside})", stall=stall)
    summary = ApplicationSummary(app_id=AppId(1), name="orders", status="active", progress=progress)
    figures = [
        ProcessorFigures(
            id=at, name=f"p{at}", role="step", parallelism=1, busy=0.0, backpressured=b
        )
        for at, b in enumerate((0.9, 0.9, 0.0))
    ]
    found = findings_of(summary, detail, 0, processors=figures)
    return [(each.level, each.text, each.processor) for each in found]


@pytest.mark.parametrize(
    "chain",
    [
        ("source has not advanced",),
        ("unacknowledged output",),
        ("upstream", "unprocessed input"),
        ("upstream", "upstream", "unacknowledged output"),
    ],
)
def test_a_server_that_is_away_is_the_cause_of_what_waits_before_it(chain: tuple[str, ...]) -> None:
    """It alone is told: more parallelism would not help, and no step is slow."""
    told = "a source or sink waits for kafka b:1: gone (step p2)"
    assert findings_while(*chain, outside="p2") == [("warn", told, 2)]
    assert findings_while(*chain, outside="p2", stall="p1 holds it") == [("bad", told, 2)]


def test_a_source_that_waits_does_not_excuse_a_step_behind_it() -> None:
    found = findings_while("upstream", "unprocessed input", outside="p0")

    assert [(level, processor) for level, _, processor in found] == [
        ("warn", 2),
        ("warn", 1),
        ("warn", None),
    ]


def a_stuck(**report: Any) -> ConsumerSummary:
    known = {"waiting_rows": 120_000, "waiting_since_ms": 1_000, **report}
    return ConsumerSummary(
        sink="to_spark(load)", task="3.0", report=ConsumerReport(name="spark", **known)
    )


def test_an_epoch_that_cannot_be_stored_is_told_with_its_reason() -> None:
    full = "executor 1: No space left on device"
    detail = a_detail("source has not advanced", lag_ms=0, unstored=(full,))
    summary = ApplicationSummary(app_id=AppId(1), name="orders", status="active")
    found = findings_of(summary, detail, 0)
    assert [each.text for each in found if each.level == "warn"] == [
        f"the present epoch is not stored by {full}"
    ]


def test_stuck_consumer_is_named_with_its_trouble() -> None:
    """The clock goes on although nothing arrives, so the chain does not tell."""
    advice = sentence(stuck_finding(a_stuck(batch_id=7, trouble="Spark is not there"), 43_000))

    assert advice == (
        "spark, which reads to_spark(load) (task 3.0), has taken nothing for 42.0 s after batch 7; "
        "120,000 rows wait for it: Spark is not there"
    )


def test_stuck_consumer_that_says_nothing_may_have_ended() -> None:
    advice = sentence(stuck_finding(a_stuck(), 43_000))

    assert "for 42.0 s so far; 120,000 rows wait for it: it says nothing: see whether" in advice
