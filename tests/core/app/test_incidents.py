"""Failures, each counted once."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.incidents import BrokenLink, Incidents, SilentExecutor, Suspicions
from gearpy.core.base.restart import RestartAfter, RestartPolicy
from gearpy.ids import ExecutorId
from gearpy.messages.app import LinkBroken
from gearpy.messages.summaries import ErrorCard


def some_incidents(*, restarts: int = 3, poison_attempts: int = 3) -> Incidents:
    policy = RestartPolicy(max_restarts=restarts, backoff_ms=100, jitter=0)
    return Incidents(policy, poison_attempts=poison_attempts, rng=Random(1))


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_record_that_fails_too_often_is_poison(attempts: int) -> None:
    """Another restart would not help."""
    incidents = some_incidents(poison_attempts=attempts)
    error = ErrorCard(cause="boom", operator="map", record="'x'", event_time_ms=5)

    verdicts = [incidents.is_poison(error) for _ in range(attempts)]

    assert verdicts == [False] * (attempts - 1) + [True]


@given(st.lists(st.tuples(st.integers(0, 900), st.sets(st.sampled_from("abc"), min_size=1))))
def test_an_incident_pays_for_each_thing_once(steps: list[tuple[int, set[str]]]) -> None:
    """The invariant: a thing is hit no more often than there are incidents."""
    incidents, now_ms = some_incidents(restarts=-1), 0
    hits = dict.fromkeys("abc", 0)
    for wait_ms, hit in steps:
        now_ms += wait_ms
        decision = incidents.on_failure(hit, now_ms)
        assert isinstance(decision, RestartAfter)
        for each in hit:
            hits[each] += 1

    assert max(hits.values()) <= incidents.count <= len(steps)


def test_suspicions_come_when_their_moment_is_over_once() -> None:
    """By then a worker would have told more."""
    suspicions = Suspicions()
    silent = SilentExecutor(ExecutorId(1), 7)
    broken = BrokenLink("eof", ((ExecutorId(1), 7), (ExecutorId(2), 8)), frozenset([3]))
    suspicions.add(silent, 0)
    suspicions.add(broken, 100)
    assert suspicions.is_broken(broken.ends)
    assert not suspicions.is_broken(broken.ends[:1])

    assert suspicions.due(499) == []
    assert suspicions.due(500) == [silent]
    assert suspicions.due(1000) == [broken]
    assert not suspicions.is_broken(broken.ends)
    assert suspicions.due(9999) == []


def test_a_broken_link_is_kept_with_its_cause_and_its_second_complaint_is_known() -> None:
    suspicions = Suspicions()
    ends = ((ExecutorId(1), 7), (ExecutorId(2), 8))
    for complainer, address in ((1, "two:1"), (2, "one:1")):
        message = LinkBroken(executor_id=ExecutorId(complainer), address=address, reason="eof")
        suspicions.on_link_broken(message, ends, frozenset([3]), 0)

    first, second = suspicions.due(500)

    assert isinstance(first, BrokenLink)
    assert first == BrokenLink(
        "the link from executor 1 to two:1 broke: eof", ends, frozenset([3]), is_known=False
    )
    assert isinstance(second, BrokenLink)
    assert second.is_known
    assert first.name == "link of executors 1 and 2"


def test_a_failure_lies_in_the_process_if_it_comes_again_without_an_epoch_between() -> None:
    incidents, executor = some_incidents(), ExecutorId(1)

    assert not incidents.is_in_process(executor, 4, region=0, epoch=7)
    assert not incidents.is_in_process(executor, 4, region=1, epoch=7)
    assert not incidents.is_in_process(ExecutorId(2), 4, region=0, epoch=7)
    assert incidents.is_in_process(executor, 4, region=0, epoch=7)
    assert not incidents.is_in_process(executor, 4, region=0, epoch=8)
    assert not incidents.is_in_process(executor, 5, region=0, epoch=8)
    assert incidents.is_in_process(executor, 5, region=0, epoch=8)
