"""Asks a cluster for all that a view of an application, or of the cluster, is made of."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from gearpy import __version__
from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, SubmitRefused
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import (
    DescribeApplication,
    FiringAlert,
    GetAlerts,
    GetApplication,
    GetCluster,
    GetMaster,
    ListWorkers,
)
from gearpy.messages.masters import GetMasters
from gearpy.messages.metrics import GetProcessMetrics, ProcessMetricsData
from gearpy.messages.summaries import ApplicationDetail, ApplicationSummary
from gearpy.views.app import app_view, processor_view
from gearpy.views.look import Look, Looks
from gearpy.views.measured import ProcessUse, use_of
from gearpy.views.model import AppView, MasterView, OverviewView, ProcessorView
from gearpy.views.overview import overview_view, row_of, row_of_summary

#: So many living applications, and workers, are asked; of others the master alone is.
_ASKED_MAX: Final = 50
_LATELY_MS: Final = 125_000  # For sparklines.
_BRIEFLY_MS: Final = 10_000  # It is enough for rates and lags.
_AT_ONCE: Final = 8  # Applications that are asked side by side.


def look_at(client: ClusterClient, app_id: AppId, *, lately_ms: int | None = _LATELY_MS) -> Look:
    """Ask the master, and the app master if there is one; else for the answers it left behind."""
    summary = client.ask(GetApplication(app_id=app_id))
    try:
        detail = client.ask(DescribeApplication(app_id=app_id, or_last=True))
    except (SubmitRefused, AskTimeout):  # Nobody knows it yet, or any more.
        return Look(at_ms=wall_ms(), summary=summary)
    return _measured(client, summary, detail, lately_ms)


def alerts_about(client: ClusterClient, app_id: AppId) -> tuple[FiringAlert, ...]:
    return tuple(each for each in client.ask(GetAlerts()).alerts if each.app_id == app_id)


def detail_of(
    client: ClusterClient, summary: ApplicationSummary
) -> tuple[ApplicationDetail | None, str]:
    if summary.status in TERMINAL:
        return None, ""
    try:
        return client.ask(DescribeApplication(app_id=summary.app_id)), ""
    except (SubmitRefused, AskTimeout) as error:  # The summary is worth showing all the same.
        return None, str(error)


def _look(client: ClusterClient, summary: ApplicationSummary, lately_ms: int) -> Look:
    detail, _ = detail_of(client, summary)
    if detail is None:
        return Look(at_ms=wall_ms(), summary=summary)
    return _measured(client, summary, detail, lately_ms)


def _measured(
    client: ClusterClient,
    summary: ApplicationSummary,
    detail: ApplicationDetail,
    lately_ms: int | None,
) -> Look:
    at_ms = wall_ms()
    try:
        is_past = detail.known_ms > 0
        metrics = client.metrics(summary.app_id, or_last=is_past)
        since_ms = 0 if lately_ms is None else metrics.at_ms - lately_ms
        series = client.series(summary.app_id, since_ms, or_last=is_past)
    except (SubmitRefused, AskTimeout):  # It has just gone, or is of an earlier version.
        return Look(at_ms=at_ms, summary=summary, detail=detail)
    return Look(at_ms=at_ms, summary=summary, detail=detail, metrics=metrics, series=series)


class ClusterWatch:
    """Looks at a cluster again and again, and keeps earlier looks, from which rates follow.

    Runs on: one thread at a time.
    """

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._looks: dict[AppId, Looks] = {}
        self._processes: dict[WorkerId | None, ProcessMetricsData] = {}

    def application(self, app_id: AppId) -> AppView:
        view = self._view(look_at(self._client, app_id))
        return replace(view, alerts=alerts_about(self._client, app_id))

    def processor(self, app_id: AppId, processor_id: int) -> ProcessorView | None:
        look = look_at(self._client, app_id)
        return processor_view(look, processor_id, self._with(look).before)

    def overview(self) -> OverviewView:
        summaries = self._client.applications()
        self._forget(each.app_id for each in summaries)
        asked = [each for each in summaries if each.status not in TERMINAL][:_ASKED_MAX]
        looks = self._looks_at(asked)
        rows = [
            row_of(self._view(looks[each.app_id]))
            if each.app_id in looks
            else row_of_summary(each, wall_ms())
            for each in summaries
        ]
        workers = self._client.ask(ListWorkers()).workers
        use: dict[int, ProcessUse] = {}
        with suppress(AskTimeout):
            for worker in workers[:_ASKED_MAX]:
                with suppress(SubmitRefused):
                    use[worker.worker_id] = self._use_of(worker.worker_id)
        leader = MasterView(address=self._client.ask(GetMaster()).address, leader=True)
        with suppress(SubmitRefused, AskTimeout):
            own = self._use_of(None)
            leader = replace(leader, rss_bytes=own.rss_bytes, cpu=own.cpu)
        others = [each for each in self._client.ask(GetMasters()).masters if not each.leads]
        masters = [leader, *(MasterView(address=each.address, leader=False) for each in others)]
        return overview_view(
            at_ms=wall_ms(),
            cluster_id=self._client.ask(GetCluster()).cluster_id,
            version=__version__,
            rows=rows,
            workers=workers,
            masters=masters,
            use=use,
            alerts=self._client.ask(GetAlerts()).alerts,
        )

    def _use_of(self, worker_id: WorkerId | None) -> ProcessUse:
        now = self._client.ask(GetProcessMetrics(worker_id=worker_id))
        was, self._processes[worker_id] = self._processes.get(worker_id), now
        return use_of(now, was)

    def applications(self) -> list[AppView]:
        summaries = self._client.applications()
        self._forget(each.app_id for each in summaries)
        return [self._view(_look(self._client, each, _LATELY_MS)) for each in summaries]

    def _looks_at(self, summaries: Sequence[ApplicationSummary]) -> dict[AppId, Look]:
        """Look at several applications at once: each answer may take a while to come."""

        def look(summary: ApplicationSummary) -> Look:
            return _look(self._client, summary, _BRIEFLY_MS)

        if not summaries:
            return {}
        with ThreadPoolExecutor(min(_AT_ONCE, len(summaries)), "gearpy-look") as pool:
            looks = pool.map(look, summaries)
            return {each.app_id: found for each, found in zip(summaries, looks, strict=True)}

    def _view(self, look: Look) -> AppView:
        return app_view(look, self._with(look).before)

    def _with(self, look: Look) -> Looks:
        looks = self._looks.setdefault(look.summary.app_id, Looks())
        looks.add(look)
        return looks

    def _forget(self, known: Iterable[AppId]) -> None:
        kept = set(known)
        self._looks = {app_id: looks for app_id, looks in self._looks.items() if app_id in kept}
