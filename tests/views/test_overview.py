"""The view of a cluster."""

from msgspec.structs import replace

from gearpy.ids import WorkerId
from gearpy.messages.metrics import ProcessMetricsData, ProcessSample
from gearpy.messages.summaries import WorkerSummary
from gearpy.views.app import app_view
from gearpy.views.measured import use_of
from gearpy.views.model import AppRow, OverviewView
from gearpy.views.overview import overview_view, row_of, row_of_summary
from tests.views.build import NOW_MS, a_look, a_summary


def an_overview(*rows: AppRow) -> OverviewView:
    worker = WorkerSummary(worker_id=WorkerId(0), slots=8, free_slots=3, address="a:1", executors=2)
    return overview_view(
        at_ms=NOW_MS, cluster_id="c", version="1", rows=list(rows), workers=[worker]
    )


def test_what_runs_well_needs_no_attention() -> None:
    failed = a_summary(status="failed", finished_ms=NOW_MS)

    view = an_overview(row_of(app_view(a_look())), row_of_summary(failed, NOW_MS))

    assert view.attention == ()
    assert [each.headline.level for each in view.applications] == ["ok", "bad"]
    assert [(each.slots, each.free_slots) for each in view.workers] == [(8, 3)]


def test_what_waits_for_slots_needs_attention() -> None:
    """With the application and what would help."""
    waits = a_summary(status="pending", stall="waits for slots: needs 4 more: start a worker")

    (attention,) = an_overview(row_of_summary(waits, NOW_MS)).attention

    assert (attention.app_id, attention.level) == (7, "warn")
    assert attention.text == "revenue: it waits for slots: needs 4 more: start a worker"


def test_workers_have_memory_and_cores() -> None:
    was = ProcessMetricsData(
        name="worker0", at_ms=NOW_MS, process=ProcessSample(pid=1, started_ms=0, cpu_s=1.0)
    )
    later = replace(was.process, cpu_s=2.0, rss_bytes=5)
    now = replace(was, at_ms=NOW_MS + 4_000, process=later)
    new = replace(now, process=replace(later, pid=2))

    assert use_of(now, was) == (5, 0.25)
    assert use_of(new, was) == (5, None)
    assert use_of(was, None) == (None, None)
