"""Figures of tasks, processors and executors, from what was measured at two times."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gearpy.ids import TaskId
from gearpy.messages.metrics import (
    HistogramSample,
    MetricKind,
    MetricsData,
    ProcessMetricsData,
    SeriesData,
    TaskSample,
    UserMetric,
)
from gearpy.metrics.histogram import count_of, merged, quantile_ms_of, quantile_of, since
from gearpy.views.model import UserFigure

#: Two looks that are nearer to each other tell no rate.
SPAN_MIN_MS: Final = 250
#: Over a shorter span the last points of the series tell more, as records come in bursts.
_SPAN_GOOD_MS: Final = 3_000
_RATES: Final = 60
_MEAN_OF: Final = 3
#: A task that gets so many times the mean of its processor is worth a word.
_HOT: Final = 2.0


class HotTask(NamedTuple):
    """The task of a processor that gets far more records than the others, and its share."""

    task: str
    share: float


class _UserValues(NamedTuple):
    """A metric of the program in the tasks of a processor: newest, and what came of late."""

    now: list[UserMetric]
    gained: list[float]
    lately: list[HistogramSample]


class Measurements:
    """The measurements of an application, now and a while before."""

    def __init__(
        self, now: MetricsData | None, was: MetricsData | None, series: SeriesData | None
    ) -> None:
        self._now, self._series = now, series
        self._span_ms = now.at_ms - was.at_ms if now and was else 0
        self._earlier: Mapping[TaskId, TaskSample] = {
            each.task_id: each for each in (was.tasks if was else ())
        }
        self._processes = {each.executor_id: each for each in (was.executors if was else ())}
        self._tasks: dict[int, list[TaskSample]] = {}
        for each in now.tasks if now else ():
            self._tasks.setdefault(each.task_id.processor, []).append(each)

    # -- tasks and processors --------------------------------------------------------------

    def processor(self, processor_id: int) -> dict[str, Any]:
        figures = self._figures(self._tasks.get(processor_id, ()))
        known = self._series.processors if self._series else ()
        lately = next((each for each in known if each.processor_id == processor_id), None)
        if lately is None:
            return figures
        figures["rates"] = tuple(rate or 0.0 for rate in lately.rate[-_RATES:])
        newest = {
            "records_in_rate": lately.rate,
            "busy": lately.busy,
            "backpressured": lately.backpressured,
        }
        for name, values in newest.items():
            mean = _mean(values)
            if mean is not None and (figures.get(name) is None or self._span_ms < _SPAN_GOOD_MS):
                figures[name] = mean
        return figures

    def tasks(self, processor_id: int) -> dict[str, dict[str, Any]]:
        samples = sorted(self._tasks.get(processor_id, ()), key=lambda each: each.task_id)
        return {str(each.task_id): self._figures([each]) for each in samples}

    def hot_task(self, processor_id: int) -> HotTask | None:
        """Return the task that gets far more than the others, if there is one."""
        gained = {
            str(now.task_id): now.records_in - was.records_in
            for was, now in self._pairs(self._tasks.get(processor_id, ()))
        }
        total = sum(gained.values())
        if len(gained) < 2 or total <= 0:  # noqa: PLR2004 - one has no others
            return None
        task = max(gained, key=lambda each: gained[each])
        share = gained[task] / total
        return HotTask(task, share) if share * len(gained) >= _HOT else None

    def _pairs(self, samples: Iterable[TaskSample]) -> list[tuple[TaskSample, TaskSample]]:
        if self._span_ms < SPAN_MIN_MS:
            return []
        pairs = ((self._earlier.get(each.task_id), each) for each in samples)
        return [(was, now) for was, now in pairs if was is not None and was.session == now.session]

    def _figures(self, samples: Sequence[TaskSample]) -> dict[str, Any]:
        if not samples or self._now is None:
            return {}
        pairs = self._pairs(samples)
        told = [each.watermark_ms for each in samples if each.watermark_ms is not None]
        watermark_ms = min(told, default=None)
        earlier = {
            was.task_id: was.latency
            for each in samples
            if (was := self._earlier.get(each.task_id)) and was.session == each.session
        }
        latency = merged(
            since(each.latency, earlier.get(each.task_id, HistogramSample())) for each in samples
        )
        return {
            "records_in": sum(each.records_in for each in samples),
            "records_out": sum(each.records_out for each in samples),
            "records_in_rate": self._rate(now.records_in - was.records_in for was, now in pairs),
            "records_out_rate": self._rate(now.records_out - was.records_out for was, now in pairs),
            "busy": self._share(now.busy_ms - was.busy_ms for was, now in pairs),
            "backpressured": self._share(
                now.backpressured_ms - was.backpressured_ms for was, now in pairs
            ),
            "watermark_ms": watermark_ms,
            "watermark_lag_ms": None if watermark_ms is None else self._now.at_ms - watermark_ms,
            "latency_p50_ms": quantile_ms_of(latency, 0.5),
            "latency_p99_ms": quantile_ms_of(latency, 0.99),
            "queue_records": sum(each.queue_records for each in samples),
            "state_bytes": sum(each.state_bytes for each in samples),
            "late": sum(each.late for each in samples),
            "skipped": sum(each.skipped for each in samples),
            "quarantined": sum(each.quarantined for each in samples),
            "metrics": tuple(self._user(samples, pairs)),
        }

    def _user(
        self, samples: Sequence[TaskSample], pairs: Sequence[tuple[TaskSample, TaskSample]]
    ) -> Iterator[UserFigure]:
        """Give the metrics of the program, by name; those of several tasks are added up."""
        found: dict[tuple[str, MetricKind], _UserValues] = {}
        for each in samples:
            for metric in each.user:
                values = found.setdefault((metric.name, metric.kind), _UserValues([], [], []))
                values.now.append(metric)
        for was, now in pairs:
            earlier = {(each.name, each.kind): each for each in was.user}
            for metric in now.user:
                values = found[metric.name, metric.kind]
                before = earlier.get(
                    (metric.name, metric.kind), UserMetric(name=metric.name, kind=metric.kind)
                )
                values.gained.append(_value_of(metric) - _value_of(before))
                values.lately.append(since(metric.histogram, before.histogram))
        for (name, kind), values in sorted(found.items()):
            lately = merged(values.lately or [each.histogram for each in values.now])
            yield UserFigure(
                name=name,
                kind=kind,
                value=sum(map(_value_of, values.now)),
                rate=None if kind == "gauge" else self._rate(values.gained),
                p50=quantile_of(lately, 0.5),
                p99=quantile_of(lately, 0.99),
            )

    def _rate(self, gained: Iterable[float]) -> float | None:
        counts = [*gained]
        return max(0.0, sum(counts) * 1000 / self._span_ms) if counts else None

    def _share(self, gained_ms: Iterable[int]) -> float | None:
        times = [*gained_ms]
        return min(1.0, max(0.0, sum(times) / (self._span_ms * len(times)))) if times else None

    # -- the whole -------------------------------------------------------------------------

    def totals(self) -> dict[str, Any]:
        """Return the values of `TotalsView` that are measured, by their names."""
        if self._now is None:
            return {}
        application, series = self._now.application, self._series
        found: dict[str, Any] = {
            "epoch_ms": application.epoch_ms if application.epoch else None,
            "epoch_bytes": application.epoch_bytes if application.epoch else None,
            "epochs_failed": application.epochs_failed,
            "clock_ms": application.clock_ms,
            "state_bytes": sum(each.state_bytes for each in self._now.tasks),
        }
        if series is not None and series.at_ms:
            lag_ms = series.watermark_lag_ms[-1]
            found |= {
                "latency_p50_ms": _newest(series.latency_p50_ms),
                "latency_p99_ms": _newest(series.latency_p99_ms),
                "watermark_lag_ms": None if lag_ms is None else round(lag_ms),
            }
        return found

    def rates(self) -> tuple[float | None, float | None]:
        if self._series is None:
            return None, None
        return _mean(self._series.records_in_rate), _mean(self._series.records_out_rate)

    def executor(self, executor_id: int) -> dict[str, Any]:
        known = self._now.executors if self._now else ()
        now = next((each for each in known if each.executor_id == executor_id), None)
        if now is None:
            return {}
        process, earlier = now.process, self._processes.get(now.executor_id)
        use: dict[str, Any] = {"rss_bytes": process.rss_bytes if process.rss_bytes >= 0 else None}
        if earlier and earlier.process.pid == process.pid and self._span_ms >= SPAN_MIN_MS:
            was, span_s = earlier.process, self._span_ms / 1000
            use["cpu"] = max(0.0, (process.cpu_s - was.cpu_s) / span_s)
            use["gc_pause_share"] = max(0.0, (process.gc_pause_s - was.gc_pause_s) / span_s)
        return use


class ProcessUse(NamedTuple):
    """The use of a process: bytes of memory, and cores; None is not known."""

    rss_bytes: int | None = None
    cpu: float | None = None


def use_of(now: ProcessMetricsData, was: ProcessMetricsData | None) -> ProcessUse:
    """Return the use of a master or worker; cores follow from its use before."""
    rss_bytes = now.process.rss_bytes if now.process.rss_bytes >= 0 else None
    span_ms = now.at_ms - was.at_ms if was else 0
    if was is None or was.process.pid != now.process.pid or span_ms < SPAN_MIN_MS:
        return ProcessUse(rss_bytes)
    used_s = now.process.cpu_s - was.process.cpu_s
    return ProcessUse(rss_bytes, max(0.0, used_s * 1000 / span_ms))


def _value_of(metric: UserMetric) -> float:
    return count_of(metric.histogram) if metric.kind == "histogram" else metric.value


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values[-_MEAN_OF:] if each is not None]
    return sum(known) / len(known) if known else None


def _newest(values: Sequence[float | None]) -> float | None:
    return next((each for each in reversed(values) if each is not None), None)
