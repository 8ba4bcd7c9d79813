"""The master's applications and their states."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.registry import TERMINAL, Registry, is_legal
from gearpy.errors import SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ErrorCard

STATUSES: tuple[ApplicationStatus, ...] = get_args(ApplicationStatus)


def a_request(name: str = "words", *, executors: int = 1) -> SubmitApplication:
    artifact = Artifact(kind="file", location="words.py")
    return SubmitApplication(name=name, artifact=artifact, executors=executors, user="ann")


def test_cause_of_failure_is_kept() -> None:
    registry = Registry()
    app_id = registry.submit(a_request(), 1)
    cause = ErrorCard(cause="boom", task="0.1")

    registry.on_status(app_id, "failed", cause=cause, now_ms=2)
    registry.on_status(app_id, "failed", cause=ErrorCard(cause="later"), now_ms=3)

    summary = registry.get(app_id)
    assert summary is not None
    assert summary.cause == cause


def test_name_of_a_living_application_is_taken() -> None:
    registry = Registry()
    app_id = registry.submit(a_request(), 1)

    with pytest.raises(SubmitRefused, match="'words' is already pending with id 1: stop it"):
        registry.submit(a_request(), 2)

    assert [each.app_id for each in registry.summaries()] == [app_id]


@pytest.mark.parametrize("name", ["", "1st", "-x", ".x", "two words", "grün", "x\n", "a" * 129])
def test_bad_names_are_refused_with_the_rule(name: str) -> None:
    with pytest.raises(SubmitRefused, match="begin with a letter or underscore"):
        Registry().submit(a_request(name), 1)


def test_a_negative_number_of_executors_is_refused() -> None:
    with pytest.raises(SubmitRefused, match="asks for -1 executors"):
        Registry().submit(a_request(executors=-1), 1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(STATUSES), st.booleans()), max_size=30)
)
def test_the_end_is_final_and_living_names_are_unique(
    steps: list[tuple[int, ApplicationStatus, bool]],
) -> None:
    """The invariant, for any order of submissions and reports."""
    registry = Registry()

    for now_ms, (which, status, submits) in enumerate(steps, 1):
        before = {each.app_id: each for each in registry.summaries()}
        if submits:
            try_submit(registry, f"app{which % 2}", now_ms)
        registry.on_status(AppId(which), status, now_ms=now_ms)
        after = registry.summaries()

        living = [each.name for each in after if each.status not in TERMINAL]
        assert len(set(living)) == len(living)
        assert [each.app_id for each in after] == list(range(1, len(after) + 1))
        for app_id, old in before.items():
            new = registry.get(app_id)
            assert new is not None
            assert new == old or old.status not in TERMINAL
            assert new.status == old.status or is_legal(old.status, new.status)


def try_submit(registry: Registry, name: str, now_ms: int) -> None:
    if registry.living(name) is None:
        registry.submit(a_request(name), now_ms)


def test_progress_alone_changes_no_state() -> None:
    registry = Registry()
    app_id = registry.submit(a_request(), 1)

    registry.on_progress(app_id, ApplicationProgress(records_in=7))
    registry.shutdown(app_id, 2)
    registry.on_progress(app_id, ApplicationProgress(records_in=8))
    registry.on_progress(AppId(99), ApplicationProgress())

    summary = registry.get(app_id)
    assert summary is not None
    assert (summary.status, summary.progress.records_in) == ("terminated", 7)


def test_what_has_ended_can_be_forgotten() -> None:
    registry = Registry()
    app_id = registry.submit(a_request(), 1)
    registry.shutdown(app_id, 2)

    registry.forget(app_id)

    assert registry.summaries() == ()
    assert registry.submit(a_request(), 3) == app_id + 1


def test_a_registry_goes_on_from_another() -> None:
    registry = Registry()
    registry.submit(a_request(), 1)

    again = Registry(next_id=registry.next_id, applications=registry.summaries())

    assert again.summaries() == registry.summaries()
    assert again.refusal_of(a_request())
    assert again.refusal_of(a_request(), instead_of=AppId(1)) == ""
    assert again.submit(a_request("other"), 2) == 2
