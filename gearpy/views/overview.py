"""Makes the view of a cluster: its workers, its applications, and what needs attention."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from gearpy.core.master.registry import TERMINAL
from gearpy.messages.client import FiringAlert
from gearpy.messages.summaries import ApplicationSummary, WorkerSummary
from gearpy.views.findings import findings_of, sentence
from gearpy.views.measured import ProcessUse
from gearpy.views.model import AppRow, AppView, AttentionView, MasterView, OverviewView, WorkerView

_UNKNOWN: Final = ProcessUse()
_NO_USE: Final[Mapping[int, ProcessUse]] = MappingProxyType({})


def overview_view(
    *,
    at_ms: int,
    cluster_id: str,
    version: str,
    rows: Sequence[AppRow],
    workers: Iterable[WorkerSummary] = (),
    masters: Sequence[MasterView] = (),
    use: Mapping[int, ProcessUse] = _NO_USE,
    alerts: Sequence[FiringAlert] = (),
) -> OverviewView:
    """Return a whole cluster; ``rows`` are made by `row_of`, or `row_of_summary`.

    ``use`` is what the processes of workers use, by their ids.
    """
    return OverviewView(
        at_ms=at_ms,
        cluster_id=cluster_id,
        version=version,
        masters=tuple(masters),
        workers=tuple(
            WorkerView(
                id=each.worker_id,
                address=each.address,
                slots=each.slots,
                free_slots=each.free_slots,
                executors=each.executors,
                is_leaving=each.is_leaving,
                aside_until_ms=each.aside_until_ms,
                **use.get(each.worker_id, _UNKNOWN)._asdict(),
            )
            for each in workers
        ),
        applications=tuple(rows),
        attention=tuple(
            AttentionView(
                level=each.headline.level,
                text=f"{each.name}: {sentence(each.headline)}",
                app_id=each.id,
            )
            for each in rows
            if each.headline.level in {"warn", "bad"} and each.status not in TERMINAL
        ),
        alerts=tuple(alerts),
    )


def row_of(view: AppView) -> AppRow:
    totals = view.totals
    if view.of_actors:  # No records, no rates.
        totals = replace(totals, records_in_rate=None, records_out_rate=None)
    return AppRow(
        id=view.app_id,
        name=view.name,
        status=view.status,
        user=view.user,
        submitted_ms=view.submitted_ms,
        finished_ms=view.finished_ms,
        records_in=totals.records_in,
        records_out=totals.records_out,
        headline=view.headline,
        records_in_rate=totals.records_in_rate,
        records_out_rate=totals.records_out_rate,
        watermark_lag_ms=totals.watermark_lag_ms,
        lag_ms=totals.lag_ms,
        restarts=totals.restarts,
    )


def row_of_summary(summary: ApplicationSummary, at_ms: int) -> AppRow:
    progress = summary.progress
    return AppRow(
        id=summary.app_id,
        name=summary.name,
        status=summary.status,
        user=summary.user,
        submitted_ms=summary.submitted_ms,
        finished_ms=summary.finished_ms,
        records_in=progress.records_in,
        records_out=progress.records_out,
        headline=findings_of(summary, None, at_ms)[0],
        restarts=progress.restarts,
    )
