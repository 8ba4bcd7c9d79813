"""The page of metrics that Prometheus reads, made of samples with ``prometheus-client``.

Nothing is registered and nothing is kept: each look at the page asks for new samples. Labels are
few and small: ``app`` is the name of an application, ``processor`` and ``task`` are numbers in it,
``process`` is master, ``worker0``, ``executor0`` or ``appmaster``. Names of processors are those of
``gearpy_processor_info`` alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.metrics import (
    HistogramSample,
    MetricsData,
    ProcessSample,
    TaskSample,
)
from gearpy.metrics.catalogue import (
    APPLICATION_METRICS,
    CATALOGUE,
    CLUSTER_METRICS,
    MASTER_METRICS,
    PROCESS_METRICS,
    REFUSED_ORDERS,
    TASK_METRICS,
    USER_PREFIX,
    MetricInfo,
)
from gearpy.metrics.histogram import count_of, cumulative, merged
from gearpy.metrics.samples import ClusterSample

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

#: Bounds of buckets in seconds: 1 µs to 17 minutes, each four times the one before.
_BOUNDS: Final = tuple(2.0**power for power in range(-20, 11, 2))

_Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_Families: TypeAlias = dict[str, _Family]


class SampleCollector(Collector):
    """Gives ``prometheus-client`` the metrics of a cluster when it asks for them."""

    def __init__(self, take: Callable[[], ClusterSample]) -> None:
        self._take = take

    def collect(self) -> Iterable[Metric]:
        return metrics_of(self._take())

    def describe(self) -> Iterable[Metric]:
        return ()


def registry_of(take: Callable[[], ClusterSample]) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SampleCollector(take))
    return registry


def page_of(sample: ClusterSample) -> bytes:
    return generate_latest(registry_of(lambda: sample))


def metrics_of(sample: ClusterSample) -> list[Metric]:
    families: _Families = {}
    for name, data in sample.applications:
        _add_application(families, name, data)
        _add_tasks(families, name, data)
    for name, data in sample.executors:
        _add_tasks(families, name, data)
    for info, labels, value in _process_values(sample):
        _add(families, info, labels, value)
    for process in sample.processes:
        _add_gauges(families, process.gauges)
        _add(families, REFUSED_ORDERS, ("", process.name), process.gauges.get(REFUSED_ORDERS.name))
    return list(families.values())


# -- applications ------------------------------------------------------------------------------


def _add_application(families: _Families, app: str, data: MetricsData) -> None:
    for info, of_application in APPLICATION_METRICS.items():
        _add(families, info, (app,), of_application(data.application))
    refused = data.application.refused_orders
    _add(families, REFUSED_ORDERS, (app, "appmaster"), refused)
    for processor, name in data.processors.items():
        _add(families, CATALOGUE["gearpy_processor_info"], (app, str(processor), name), 1)


def _add_tasks(families: _Families, app: str, data: MetricsData) -> None:
    distributions: defaultdict[tuple[MetricInfo, int], list[HistogramSample]] = defaultdict(list)
    for task in data.tasks:
        processor, labels = (
            task.task_id.processor,
            (app, str(task.task_id.processor), str(task.task_id)),
        )
        for info, of_task in TASK_METRICS.items():
            value = of_task(task)
            if isinstance(value, HistogramSample):
                distributions[info, processor].append(value)
            else:
                _add(families, info, labels, value)
        for name, derived in _derived(task, data.at_ms):
            _add(families, CATALOGUE[name], labels, derived)
        _add_user_metrics(families, labels, task)
    for (info, processor), samples in distributions.items():
        _add(families, info, (app, str(processor)), merged(samples))


def _derived(task: TaskSample, at_ms: int) -> Iterator[tuple[str, float]]:
    if task.watermark_ms is not None:
        yield "gearpy_watermark_lag_seconds", (at_ms - task.watermark_ms) / 1000
    if task.total:
        yield "gearpy_source_lag_records", task.total - task.done


def _add_user_metrics(families: _Families, labels: tuple[str, ...], task: TaskSample) -> None:
    """Add the metrics of a program; one whose name has another kind elsewhere is left out."""
    for each in task.user:
        name = f"{USER_PREFIX}{each.name}"
        total = name if each.kind != "counter" or name.endswith("_total") else f"{name}_total"
        info = MetricInfo(
            name=total,
            kind=each.kind,
            unit="1",
            labels=("app", "processor", "task"),
            help="Made by the program.",
        )
        value = each.histogram if each.kind == "histogram" else each.value
        known = families.get(total)
        if known is None or known.type == each.kind:
            _add(families, info, labels, value)


# -- processes ---------------------------------------------------------------------------------


def _process_values(
    sample: ClusterSample,
) -> Iterator[tuple[MetricInfo, tuple[str, ...], float]]:
    """Yield the measurements of processes, each once: several roles may be in one."""
    seen = set[tuple[int, int]]()
    for app, process, measured in _processes(sample):
        known = (measured.pid, measured.started_ms)
        if known in seen:
            continue
        seen.add(known)
        for info, of_process in PROCESS_METRICS.items():
            value = of_process(measured)
            if value >= 0:
                yield info, (app, process), value


def _processes(sample: ClusterSample) -> Iterator[tuple[str, str, ProcessSample]]:
    for each in sample.processes:
        yield "", each.name, each.process
    for app, data in (*sample.applications, *sample.executors):
        for executor in data.executors:
            is_master = executor.executor_id == MASTER_EXECUTOR
            name = "appmaster" if is_master else f"executor{executor.executor_id}"
            yield app, name, executor.process


def _add_gauges(families: _Families, gauges: Mapping[str, float]) -> None:
    for info in (*CLUSTER_METRICS, *MASTER_METRICS):
        for name, value in gauges.items():
            plain, _, label = name.partition(".")
            if plain == info.name:
                _add(families, info, (label,) if info.labels else (), value)


# -- families ----------------------------------------------------------------------------------


def _add(
    families: _Families,
    info: MetricInfo,
    labels: Sequence[str],
    value: float | HistogramSample | None,
) -> None:
    if value is None:
        return
    family = families.get(info.name) or families.setdefault(info.name, _family(info))
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, HistogramSample), info.name
        counts = [*cumulative(value, _BOUNDS), count_of(value)]
        bounds = [*map(floatToGoString, _BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, counts), strict=True))
        family.add_metric(labels, buckets=buckets, sum_value=value.total)
    else:
        assert not isinstance(value, HistogramSample), info.name
        family.add_metric(labels, value)


def _family(info: MetricInfo) -> _Family:
    labels = info.labels
    if info.kind == "counter":
        return CounterMetricFamily(info.name, info.help, labels=labels)
    if info.kind == "gauge":
        return GaugeMetricFamily(info.name, info.help, labels=labels)
    return HistogramMetricFamily(info.name, info.help, labels=labels)
