"""The measurements of an application beside its core: what executors report, and the answers."""

from collections.abc import Callable, Iterator
from typing import get_args

from msgspec.structs import replace

from gearpy.core.app.application import ApplicationCore
from gearpy.core.dag.graph import Dag
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MASTER_EXECUTOR, AppId
from gearpy.messages.metrics import (
    ApplicationSample,
    EventKind,
    GetHistory,
    GetMetrics,
    GetSeries,
    HistoryData,
    MetricsData,
    ReadOption,
    ReportMetrics,
    SeriesData,
    SeriesSpan,
)
from gearpy.metrics.application import ApplicationMetrics, FinePoint, Outline
from gearpy.metrics.histogram import Histogram
from gearpy.metrics.process import process_meter
from gearpy.metrics.samples import known_ms


class AppMetrics:
    """Keeps the measurements of executors, and answers clients."""

    def __init__(
        self,
        app_id: AppId,
        dag: Dag,
        launch: int,
        wall_ms: Callable[[], int],
        refused_orders: Callable[[], int],
    ) -> None:
        self._kept = ApplicationMetrics(app_id, outline_of(dag))
        self._launch = launch
        self._wall_ms = wall_ms
        self._refused_orders = refused_orders
        self._epochs_stored = 0
        self._epoch_ms = 0
        self._epoch_durations = Histogram()

    def on_version(self, dag: Dag) -> None:
        self._kept.on_outline(outline_of(dag))

    def on_report(self, core: ApplicationCore, report: ReportMetrics) -> None:
        if core.executors.is_current(report.executor_id, report.launch):
            self._kept.on_report(report)

    def on_epoch(self, lasted_ms: int) -> None:
        self._epochs_stored += 1
        self._epoch_ms = lasted_ms
        self._epoch_durations.observe(lasted_ms / 1000)

    def note(self, kind: EventKind, text: str) -> None:
        self._kept.note(self._wall_ms(), kind, text)

    def on_tick(self, core: ApplicationCore) -> None:
        at_ms = self._wall_ms()
        if self._kept.is_due(at_ms):
            self._kept.on_tick(at_ms, core.reports, self._sample(core))

    def take_point(self) -> FinePoint | None:
        return self._kept.take_newest()

    def answer(
        self, core: ApplicationCore, question: GetMetrics | GetSeries | GetHistory
    ) -> MetricsData | SeriesData | HistoryData:
        if isinstance(question, GetSeries):
            return self._kept.series(question)
        at_ms = self._wall_ms()
        self._kept.forget_gone(core.executors.is_current)
        self._kept.on_report(
            ReportMetrics(
                executor_id=MASTER_EXECUTOR,
                launch=self._launch,
                at_ms=at_ms,
                process=process_meter().sample(),
            )
        )
        if isinstance(question, GetHistory):
            return self._kept.history(question, at_ms, core.reports)
        return self._kept.data(
            question,
            at_ms,
            core.reports,
            application=self._sample(core),
            executor_of=core.placed_in,
        )

    def left_behind(self, core: ApplicationCore) -> Iterator[tuple[str, object]]:
        app_id = self._kept.app_id
        questions: list[GetMetrics | GetSeries] = [GetMetrics(app_id=app_id)]
        questions += [GetSeries(app_id=app_id, within=each) for each in get_args(SeriesSpan)]
        for question in questions:
            first = 0
            while True:
                page = replace(question, first=first)
                answer = self.answer(core, page)
                yield page.part, answer
                assert isinstance(answer, MetricsData | SeriesData), answer
                if not (first := answer.more_from):
                    break
        for option in get_args(ReadOption):
            yield option, self._kept.history_points(option, self._wall_ms(), core.reports)

    def _sample(self, core: ApplicationCore) -> ApplicationSample:
        manifests: list[Manifest] = core.regions.newest_manifests
        return ApplicationSample(
            clock_ms=known_ms(core.clock.global_min_ms),
            epoch=core.epoch,
            epoch_ms=self._epoch_ms,
            epoch_bytes=sum(each.total_bytes for each in manifests),
            epochs_stored=self._epochs_stored,
            epochs_failed=sum(region.epochs.aborted for region in core.regions),
            epoch_durations=self._epoch_durations.sample(),
            restarts=core.restarts,
            refused_orders=self._refused_orders(),
        )


def outline_of(dag: Dag) -> Outline:
    return Outline(
        names={pid: dag.processors[pid].name for pid in dag.order},
        sources=frozenset(dag.sources()),
        sinks=frozenset(dag.sinks()),
    )
