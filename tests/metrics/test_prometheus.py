"""The page for Prometheus: every metric of the catalogue, with its kind, labels and value."""

from collections.abc import Iterable
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gearpy.cluster.quorum.log import MemberStatus
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.metrics import (
    ApplicationSample,
    ExecutorSample,
    HistogramSample,
    MetricsData,
    ProcessMetricsData,
    ProcessSample,
    TaskSample,
    UserMetric,
)
from gearpy.metrics.catalogue import CATALOGUE, CLUSTER_METRICS
from gearpy.metrics.histogram import Histogram
from gearpy.metrics.prometheus import page_of
from gearpy.metrics.samples import ClusterSample

AT_MS: Final = 1_000_000


def seconds(*values: float) -> HistogramSample:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    return histogram.sample()


def task(processor: int, index: int, **figures: Any) -> TaskSample:
    return TaskSample(task_id=TaskId(processor, index), session=SessionId(1), **figures)


def process(pid: int, **figures: Any) -> ProcessSample:
    return ProcessSample(pid=pid, started_ms=5_000, **figures)


def application(*tasks: TaskSample, executors: Iterable[ExecutorSample] = ()) -> MetricsData:
    return MetricsData(
        app_id=AppId(1),
        at_ms=AT_MS,
        processors={0: "read > map", 1: 'write "x"\n'},
        application=ApplicationSample(
            clock_ms=7_000, epoch=2, epochs_stored=2, epoch_durations=seconds(0.5)
        ),
        tasks=tasks,
        executors=tuple(executors),
    )


def values(sample: ClusterSample) -> dict[str, dict[tuple[str, ...], float]]:
    """Return what Prometheus reads: by name, by the values of the labels that are not empty."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(page_of(sample).decode()):
        for each in family.samples:
            labels = tuple(value for _, value in sorted(each.labels.items()) if value)
            assert labels not in found.setdefault(each.name, {}), "told twice"
            found[each.name][labels] = each.value
    return found


WHOLE: Final = ClusterSample(
    applications=[
        (
            "words",
            application(
                task(0, 0, records_out=5, watermark_ms=AT_MS - 2_500, clock_ms=0, done=3, total=10),
                task(0, 1, records_out=7, processing=seconds(0.001, 3.0)),
                task(1, 0, records_in=12, busy_ms=1_500, latency=seconds(0.25)),
                executors=[
                    ExecutorSample(executor_id=MASTER_EXECUTOR, launch=1, process=process(10)),
                    ExecutorSample(
                        executor_id=ExecutorId(0), launch=1, process=process(11, rss_bytes=4096)
                    ),
                ],
            ),
        )
    ],
    processes=[
        ProcessMetricsData(
            name="master",
            at_ms=AT_MS,
            process=process(12, open_files=9, rss_bytes=8192),
            gauges={"gearpy_workers": 2.0, "gearpy_slots": 8.0, "gearpy_free_slots": 3.0}
            | {"gearpy_applications.active": 1.0, "gearpy_applications.failed": 4.0}
            | {"gearpy_refused_orders_total": 2.0}
            | MemberStatus(role="leader", term=3, applied=7, committed=9).gauges(),
        )
    ],
)


def test_every_metric_of_the_catalogue_is_on_the_page() -> None:
    families = {each.name: each for each in text_string_to_metric_families(page_of(WHOLE).decode())}

    for info in CATALOGUE.values():
        family = families.pop(info.name.removesuffix("_total"))
        assert (family.type, family.documentation) == (info.kind, info.help)
        assert {*family.samples[0].labels} - {"le"} == {*info.labels}
    assert not families


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("gearpy_records_out_total", ("words", "0", "0.1"), 7),
        ("gearpy_busy_seconds_total", ("words", "1", "1.0"), 1.5),
        ("gearpy_watermark_lag_seconds", ("words", "0", "0.0"), 2.5),
        ("gearpy_source_lag_records", ("words", "0", "0.0"), 7),
        ("gearpy_processor_info", ("words", 'write "x"\n', "1"), 1),
        ("gearpy_application_clock_seconds", ("words",), 7),
        ("gearpy_process_duration_seconds_count", ("words", "0"), 2),
        ("gearpy_process_duration_seconds_sum", ("words", "0"), 3.001),
        ("gearpy_process_duration_seconds_bucket", ("words", "0.00390625", "0"), 1),
        ("gearpy_process_duration_seconds_bucket", ("words", "4.0", "0"), 2),
        ("gearpy_latency_seconds_bucket", ("words", "+Inf", "1"), 1),
        ("process_resident_memory_bytes", ("words", "executor0"), 4096),
        ("process_resident_memory_bytes", ("master",), 8192),
        ("process_start_time_seconds", ("words", "appmaster"), 5),
        ("gearpy_applications", ("failed",), 4),
        ("gearpy_slots", (), 8),
        ("gearpy_master_term", (), 3),
        ("gearpy_master_leads", (), 1),
        ("gearpy_master_committed_entries", (), 9),
        ("gearpy_refused_orders_total", ("master",), 2),
        ("gearpy_refused_orders_total", ("words", "appmaster"), 0),
    ],
)
def test_a_value_is_where_prometheus_looks_for_it(
    name: str, labels: tuple[str, ...], value: float
) -> None:
    assert values(WHOLE)[name][labels] == value


def test_what_is_not_known_is_left_out() -> None:
    """A zero would be a claim."""
    found = values(WHOLE)

    assert ("words", "1", "1.0") not in found["gearpy_watermark_seconds"]
    assert ("words", "1", "1.0") not in found["gearpy_source_lag_records"]
    assert ("words", "appmaster") not in found["process_resident_memory_bytes"]
    assert {info.name for info in CLUSTER_METRICS}.isdisjoint(values(ClusterSample()))


def test_a_process_with_several_roles_is_told_once() -> None:
    executors = [ExecutorSample(executor_id=ExecutorId(0), launch=1, process=process(12))]
    found = values(
        ClusterSample(
            applications=[("words", application(executors=executors))],
            processes=[ProcessMetricsData(name="master", at_ms=AT_MS, process=process(12))],
        )
    )

    assert found["process_cpu_seconds_total"] == {("master",): 0.0}


def test_programs_metrics_are_on_the_page() -> None:
    """Under names of their own; of two kinds of one name the first counts."""
    made = (
        UserMetric(name="misses", kind="counter", value=3),
        UserMetric(name="depth", kind="gauge", value=-1.5),
        UserMetric(name="size", kind="histogram", histogram=seconds(2.0)),
    )
    other = (UserMetric(name="depth", kind="histogram", histogram=seconds(1.0)),)
    data = application(task(0, 0, user=made), task(0, 1, user=other))

    found = values(ClusterSample(applications=[("words", data)]))

    assert found["gearpy_user_misses_total"] == {("words", "0", "0.0"): 3.0}
    assert found["gearpy_user_depth"] == {("words", "0", "0.0"): -1.5}
    assert found["gearpy_user_size_count"] == {("words", "0", "0.0"): 1.0}


def test_a_thousand_tasks_make_a_page_of_moderate_size() -> None:
    busy = seconds(*(2.0**power for power in range(-20, 10)))
    tasks = [task(0, index, processing=busy, latency=busy) for index in range(1000)]

    page = page_of(ClusterSample(applications=[("words", application(*tasks))]))

    assert page.count(b"_bucket{") < 100
    assert len(page) < 2_000_000
