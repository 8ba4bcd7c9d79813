"""From what a cluster answers to the view of an application."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gearpy.messages.summaries import ProcessorSummary
from gearpy.views.app import app_view, processor_view
from gearpy.views.look import Look, Looks
from gearpy.views.model import AppView, ProcessorView
from tests.views.build import DETAIL, NOW_MS, a_detail, a_look, a_summary


def moved(look: Look, by: int, after_ms: int) -> Look:
    """Return a look so much later, in which each processor has taken and given so many more."""
    assert look.detail is not None
    processors = tuple(
        replace(each, records_in=each.records_in + by, records_out=each.records_out + by)
        for each in look.detail.processors
    )
    progress = look.summary.progress
    return replace(
        look,
        at_ms=look.at_ms + after_ms,
        summary=a_summary(records_in=progress.records_in + by, records_out=progress.records_out),
        detail=a_detail(processors=processors),
    )


def test_the_view_has_the_graph_with_its_roles_and_steps() -> None:
    view = app_view(a_look())

    assert [each.role for each in view.processors] == ["source", "step", "sink"]
    assert view.processors[0].steps == ("orders", "parse")
    assert [(each.source, each.target, each.partitioner) for each in view.edges] == [
        (0, 1, "hash"),
        (1, 2, "shuffle"),
    ]


def test_the_path_to_the_holder_of_the_clock_is_marked() -> None:
    view = app_view(a_look())

    assert [each.holds_clock for each in view.processors] == [False, True, False]
    assert [each.holds_clock for each in view.edges] == [True, False]


def test_rates_follow_from_two_looks() -> None:
    view = app_view(moved(a_look(), 500, 2_000), a_look())

    assert (view.totals.records_in_rate, view.totals.records_out_rate) == (250.0, 0.0)
    assert [each.records_out_rate for each in view.processors] == [250.0] * 3
    assert [each.rate for each in view.edges] == [250.0, 250.0]


@pytest.mark.parametrize(("by", "after_ms"), [(-500, 2_000), (500, 100), (0, 0)])
def test_there_is_no_rate_over_a_restart_or_no_time(by: int, after_ms: int) -> None:
    view = app_view(moved(a_look(), by, after_ms), a_look())

    assert view.totals.records_in_rate is None
    assert all(each.records_in_rate is None for each in view.processors)


def test_an_application_without_app_master_has_a_view() -> None:
    view = app_view(a_look(detail=None, summary=a_summary(stall="waits for slots: needs 4: add")))

    assert (view.processors, view.edges, view.waits) == ((), (), "waits for slots: needs 4: add")
    assert view.headline.text == "it waits for slots: needs 4"
    assert view.totals.lag_ms is None


@pytest.mark.parametrize(("lag_ms", "why"), [(200, None), (2_000, "unacknowledged output")])
def test_a_processor_has_its_tasks(lag_ms: int, why: str | None) -> None:
    view = processor_view(a_look(detail=a_detail(lag_ms=lag_ms)), 1)

    assert view is not None
    assert [(each.task, each.executor_id, each.why) for each in view.tasks] == [
        ("1.0", 0, None),
        ("1.1", 0, why),
    ]
    assert (view.name, view.holds_clock) == ("join", True)


@pytest.mark.parametrize("answers", [{}, {"detail": None}])
def test_an_unknown_processor_has_no_view(answers: dict[str, Any]) -> None:
    assert processor_view(a_look(**answers), 9) is None


def test_a_view_goes_through_json() -> None:
    view, tasks = app_view(a_look()), processor_view(a_look(), 1)

    assert msgspec.json.decode(msgspec.json.encode(view), type=AppView) == view
    assert msgspec.json.decode(msgspec.json.encode(tasks), type=ProcessorView) == tasks


def test_a_processor_alone_is_a_source() -> None:
    alone = (ProcessorSummary(processor_id=0, name="all", parallelism=1, clock_ms=None),)

    view = app_view(a_look(detail=a_detail(processors=alone, edges=())))

    assert [each.role for each in view.processors] == ["source"]


def test_looks_are_kept_as_long_as_rates_need_them() -> None:
    looks = Looks()
    for at in range(0, 20_000, 500):
        looks.add(Look(at_ms=NOW_MS + at, summary=a_summary(), detail=DETAIL))

    assert looks.newest is not None
    assert looks.before is not None
    assert looks.newest.at_ms - looks.before.at_ms == 4_000


def test_looks_that_are_far_apart_are_compared_too() -> None:
    looks = Looks()
    known = []
    for at_ms in (0, 60_000):
        looks.add(a_look(at_ms))
        known.append(looks.before)

    assert known == [None, a_look(0)]
