"""From the chain of tasks that holds the clock to what to do about it."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cli.why import advice_on, consumer_advice, culprit_of
from gearpy.core.clock import WaitsFor
from gearpy.messages.cluster import ClockHolderSummary
from gearpy.messages.consumers import ConsumerReport, ConsumerSummary

WAITS = get_args(WaitsFor)


def a_chain(*waits_for: str) -> list[ClockHolderSummary]:
    """Return a chain of tasks from a source on, by what each waits for."""
    return [
        ClockHolderSummary(
            task=f"{at}.0", name=f"p{at}", clock_ms=0, watermark_ms=0, waits_for=waits
        )
        for at, waits in enumerate(waits_for)
    ]


@pytest.mark.parametrize("waits_for", [each for each in WAITS if each != "upstream"])
def test_there_is_advice_on_everything_that_a_task_may_wait_for(waits_for: str) -> None:
    """Who reads it has a running application that stands still, and little time."""
    advice = advice_on(a_chain("upstream", waits_for))

    assert advice.startswith("p1 (task 1.0) ")
    assert "waits for" not in advice


def test_who_waits_for_another_is_not_to_blame() -> None:
    """The nearest to the holder that waits for nobody is."""
    chain = a_chain("source has not advanced", "unacknowledged output", "upstream", "upstream")

    assert culprit_of(chain) == chain[1]


def test_when_everybody_waits_the_source_is_to_blame() -> None:
    """A chain is a snapshot of tasks that move; it may say so for a moment."""
    chain = a_chain("upstream", "upstream")

    assert culprit_of(chain) == chain[0]


def test_what_a_newer_cluster_waits_for_is_told_as_it_is() -> None:
    """The words come from the cluster, whose version may be another."""
    assert advice_on(a_chain("the moon")) == "p0 (task 0.0) waits for: the moon"


@given(st.lists(st.sampled_from(WAITS)))
def test_the_culprit_is_a_link_and_nobody_after_it_is_to_blame(waits: list[str]) -> None:
    """The invariant."""
    chain = a_chain(*waits)

    culprit = culprit_of(chain)

    assert (culprit is None) == (not chain)
    if culprit is not None:
        after = chain[chain.index(culprit) + 1 :]
        assert all(each.waits_for == "upstream" for each in after)


def a_stuck(**report: Any) -> ConsumerSummary:
    """Return a consumer that has taken nothing for 42 s."""
    known = {"waiting_rows": 120_000, "waiting_since_ms": 1_000, **report}
    return ConsumerSummary(
        sink="to_spark(load)", task="3.0", report=ConsumerReport(name="spark", **known)
    )


def test_stuck_consumer_is_named_with_its_trouble() -> None:
    """The clock goes on although nothing arrives, so the chain does not tell."""
    advice = consumer_advice(a_stuck(batch_id=7, trouble="Spark is not there"), 43_000)

    assert advice == (
        "spark, which reads to_spark(load) (task 3.0), has taken nothing for 42.0 s after batch 7; "
        "120,000 rows wait for it: Spark is not there"
    )


def test_stuck_consumer_that_says_nothing_may_have_ended() -> None:
    """A query that was killed cannot tell why."""
    advice = consumer_advice(a_stuck(), 43_000)

    assert "for 42.0 s so far; 120,000 rows wait for it: it says nothing: see whether" in advice
