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
from gearpy.messages.metrics import HistogramSample, MetricsData, ProcessSample, TaskSample
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
_KINDS: Final[Mapping[str, Callable[..., _Family]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


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
        for info, of_application in APPLICATION_METRICS.items():
            _add(families, info, (name,), of_application(data.application))
        _add(families, REFUSED_ORDERS, (name, "appmaster"), data.application.refused_orders)
        for number, processor in data.processors.items():
            _add(families, CATALOGUE["gearpy_processor_info"], (name, str(number), processor), 1)
        _add_tasks(families, name, data)
    for name, data in sample.executors:
        _add_tasks(families, name, data)
    # Each process counts once: several roles may be in one.
    seen = set[tuple[int, int]]()
    for app, name, measured in _processes(sample):
        if (known := (measured.pid, measured.started_ms)) in seen:
            continue
        seen.add(known)
        for info, of_process in PROCESS_METRICS.items():
            if (value := of_process(measured)) >= 0:
                _add(families, info, (app, name), value)
    for process in sample.processes:
        for info in (*CLUSTER_METRICS, *MASTER_METRICS):
            for gauge, value in process.gauges.items():
                plain, _, label = gauge.partition(".")
                if plain == info.name:
                    _add(families, info, (label,) if info.labels else (), value)
        _add(families, REFUSED_ORDERS, ("", process.name), process.gauges.get(REFUSED_ORDERS.name))
    return list(families.values())


# -- applications ------------------------------------------------------------------------------


def _add_tasks(families: _Families, app: str, data: MetricsData) -> None:
    distributions: defaultdict[tuple[MetricInfo, int], list[HistogramSample]] = defaultdict(list)
    for task in data.tasks:
        processor = task.task_id.processor
        labels = (app, str(processor), str(task.task_id))
        for info, of_task in TASK_METRICS.items():
            value = of_task(task)
            if isinstance(value, HistogramSample):
                distributions[info, processor].append(value)
            else:
                _add(families, info, labels, value)
        if task.watermark_ms is not None:
            lag_s = (data.at_ms - task.watermark_ms) / 1000
            _add(families, CATALOGUE["gearpy_watermark_lag_seconds"], labels, lag_s)
        if task.total:
            left = task.total - task.done
            _add(families, CATALOGUE["gearpy_source_lag_records"], labels, left)
        _add_user_metrics(families, labels, task)
    for (info, processor), samples in distributions.items():
        _add(families, info, (app, str(processor)), merged(samples))


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


def _processes(sample: ClusterSample) -> Iterator[tuple[str, str, ProcessSample]]:
    for each in sample.processes:
        yield "", each.name, each.process
    for app, data in (*sample.applications, *sample.executors):
        for executor in data.executors:
            is_master = executor.executor_id == MASTER_EXECUTOR
            name = "appmaster" if is_master else f"executor{executor.executor_id}"
            yield app, name, executor.process


# -- families ----------------------------------------------------------------------------------


def _add(
    families: _Families,
    info: MetricInfo,
    labels: Sequence[str],
    value: float | HistogramSample | None,
) -> None:
    if value is None:
        return
    family = families.get(info.name)
    if family is None:
        family = families[info.name] = _KINDS[info.kind](info.name, info.help, labels=info.labels)
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, HistogramSample), info.name
        counts = [*cumulative(value, _BOUNDS), count_of(value)]
        bounds = [*map(floatToGoString, _BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, counts), strict=True))
        family.add_metric(labels, buckets=buckets, sum_value=value.total)
    else:
        assert not isinstance(value, HistogramSample), info.name
        family.add_metric(labels, value)
