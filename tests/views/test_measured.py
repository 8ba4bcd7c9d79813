"""Figures of tasks, processors and executors, from what was measured at two times."""

from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.ids import AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.metrics import (
    ApplicationEvent,
    ApplicationSample,
    ExecutorSample,
    HistogramSample,
    MetricsData,
    ProcessorSeries,
    ProcessSample,
    SeriesData,
    TaskSample,
    UserMetric,
)
from gearpy.views import text
from gearpy.views.app import app_view, processor_view
from gearpy.views.look import Look
from tests.views.build import NOW_MS, a_look

APP = AppId(7)
PROCESS = ProcessSample(pid=4711, started_ms=0, rss_bytes=200_000_000, cpu_s=10.0, gc_pause_s=1.0)


def a_task(processor: int, index: int, **values: Any) -> TaskSample:
    known = {"session": SessionId(1), **values}
    return TaskSample(task_id=TaskId(processor, index), **known)


def measured(at_ms: int, *tasks: TaskSample, **more: Any) -> MetricsData:
    known = {"executors": (an_executor(PROCESS),), **more}
    return MetricsData(app_id=APP, at_ms=at_ms, tasks=tasks, **known)


def an_executor(process: ProcessSample) -> ExecutorSample:
    return ExecutorSample(executor_id=ExecutorId(0), launch=1, process=process)


def two_looks(was: MetricsData, now: MetricsData) -> tuple[Look, Look]:
    return a_look(now.at_ms, metrics=now), a_look(was.at_ms, metrics=was)


def test_shares_and_rates_are_of_the_time_between() -> None:
    was = measured(
        NOW_MS, a_task(1, 0, records_in=100), a_task(1, 1, records_in=100, busy_ms=1_000)
    )
    now = measured(
        NOW_MS + 2_000,
        a_task(1, 0, records_in=300, busy_ms=500, queue_records=7, state_bytes=10),
        a_task(1, 1, records_in=1_100, busy_ms=3_000, backpressured_ms=200, state_bytes=5),
    )
    looks = two_looks(was, now)

    join = app_view(*looks).processors[1]
    view = processor_view(looks[0], 1, looks[1])

    assert (join.records_in, join.records_in_rate) == (1_400, 600.0)
    assert (join.busy, join.backpressured) == (0.625, 0.05)
    assert (join.queue_records, join.state_bytes) == (7, 15)
    assert view is not None
    assert [each.records_in_rate for each in view.tasks] == [100.0, 500.0]
    assert [each.busy for each in view.tasks] == [0.25, 1.0]
    assert view.skew == pytest.approx(500 / 300)


def test_a_task_that_was_restarted_has_no_rate_yet() -> None:
    was = measured(NOW_MS, a_task(1, 0, records_in=100))
    now = measured(NOW_MS + 2_000, a_task(1, 0, records_in=900, session=SessionId(2)))

    join = app_view(*two_looks(was, now)).processors[1]

    assert (join.records_in, join.busy) == (900, None)


def test_latency_is_that_of_the_time_between() -> None:
    was = measured(NOW_MS, a_task(2, 0, latency=HistogramSample(counts=((40, 1_000),))))
    now = measured(
        NOW_MS + 1_000, a_task(2, 0, latency=HistogramSample(counts=((0, 10), (40, 1_000))))
    )

    sink = app_view(*two_looks(was, now)).processors[2]

    assert sink.latency_p99_ms == pytest.approx(917, abs=1)


def test_metrics_of_the_program_are_added_up_over_tasks() -> None:
    """A histogram is that of the time between; one that is new has no rate in its first look."""

    def user(orders: float, *counts: tuple[int, int]) -> dict[str, Any]:
        price = UserMetric(
            name="price", kind="histogram", histogram=HistogramSample(counts=counts, total=1.0)
        )
        gauge = UserMetric(name="open", kind="gauge", value=2.0)
        return {"user": (price, UserMetric(name="orders", kind="counter", value=orders), gauge)}

    was = measured(NOW_MS, a_task(1, 0, **user(10, (40, 1_000))), a_task(1, 1))
    now = measured(
        NOW_MS + 2_000, a_task(1, 0, **user(30, (0, 10), (40, 1_000))), a_task(1, 1, **user(6))
    )

    opened, orders, price = app_view(*two_looks(was, now)).processors[1].metrics

    assert (opened.name, opened.value, opened.rate) == ("open", 4.0, None)
    assert (orders.kind, orders.value, orders.rate) == ("counter", 36.0, 13.0)
    assert (price.value, price.rate) == (1_010, 5.0)
    assert price.p50 == pytest.approx(0.917, abs=0.001)
    assert [text.metric(each) for each in (opened, orders)] == ["4", "36, 13 /s"]


def test_the_watermark_of_a_processor_is_the_oldest_of_its_tasks() -> None:
    now = measured(NOW_MS, a_task(1, 0, watermark_ms=NOW_MS - 500), a_task(1, 1, watermark_ms=None))

    join = app_view(a_look(metrics=now)).processors[1]

    assert (join.watermark_ms, join.watermark_lag_ms) == (NOW_MS - 500, 500)


def test_executors_have_memory_and_cores() -> None:
    was = measured(NOW_MS, a_task(0, 0))
    later = replace(PROCESS, cpu_s=13.0, gc_pause_s=1.5)
    now = measured(NOW_MS + 2_000, a_task(0, 0), executors=(an_executor(later),))
    new = measured(NOW_MS + 2_000, a_task(0, 0), executors=(an_executor(replace(later, pid=1)),))

    (executor,) = app_view(*two_looks(was, now)).executors
    (other,) = app_view(*two_looks(was, new)).executors

    assert (executor.rss_bytes, executor.cpu, executor.gc_pause_share) == (200_000_000, 1.5, 0.25)
    assert (other.rss_bytes, other.cpu) == (200_000_000, None)


def test_one_look_has_rates_when_there_is_a_series() -> None:
    series = SeriesData(
        app_id=APP,
        at_ms=(1, 2, 3),
        records_in_rate=(None, 100.0, 200.0),
        records_out_rate=(None, None, 10.0),
        latency_p50_ms=(5.0, None, None),
        latency_p99_ms=(9.0, None, None),
        watermark_lag_ms=(1.0, 2.0, 3.4),
        processors=(
            ProcessorSeries(
                processor_id=0,
                rate=(None, 100.0, 200.0),
                busy=(None, 0.2, 0.4),
                backpressured=(None, None, None),
            ),
        ),
    )
    sample = ApplicationSample(clock_ms=5, epoch=12, epoch_ms=210, epoch_bytes=14, epochs_failed=2)
    event = ApplicationEvent(at_ms=NOW_MS, kind="restart", text="executor 2 restarted")
    now = measured(NOW_MS, a_task(0, 0), application=sample, events=(event,))

    view = app_view(a_look(metrics=now, series=series))

    totals = view.totals
    assert (totals.records_in_rate, totals.records_out_rate) == (150.0, 10.0)
    assert (totals.latency_p50_ms, totals.latency_p99_ms) == (5.0, 9.0)
    assert (totals.watermark_lag_ms, totals.epoch_ms, totals.epochs_failed) == (3, 210, 2)
    assert (totals.clock_ms, totals.epoch_bytes) == (5, 14)
    assert view.processors[0].records_in_rate == 150.0
    assert view.processors[0].busy == pytest.approx(0.3)
    assert view.processors[0].rates == (0.0, 100.0, 200.0)
    assert view.processors[1].records_in == 900  # As its app master counts.
    assert [each.text for each in view.events] == ["executor 2 restarted"]


def test_back_pressure_is_told_with_the_processor_behind_it() -> None:
    was = measured(NOW_MS, a_task(0, 0), a_task(1, 0), a_task(1, 1))
    now = measured(
        NOW_MS + 1_000,
        a_task(0, 0, backpressured_ms=820),
        a_task(1, 0, busy_ms=1_000, records_in=500),
        a_task(1, 1, busy_ms=940, records_in=500),
    )

    view = app_view(*two_looks(was, now))

    assert (
        view.headline.text == "orders is held back 82 % of its time: join is busy 97 % of its time"
    )
    assert view.headline.advice == "give join more parallelism, or make it cheaper"
    assert [each.backpressured for each in view.edges] == [True, False]


def test_a_hot_task_is_named_as_more_of_them_would_not_help() -> None:
    was = measured(NOW_MS, a_task(0, 0), *(a_task(1, index) for index in range(4)))
    now = measured(
        NOW_MS + 1_000,
        a_task(0, 0, backpressured_ms=900),
        a_task(1, 0, busy_ms=1_000, records_in=900),
        *(a_task(1, index, records_in=100) for index in (1, 2, 3)),
    )

    headline = app_view(*two_looks(was, now)).headline

    assert headline.task == "1.0"
    assert "task 1.0 gets 75 % of its records" in headline.text
    assert headline.advice.startswith("more tasks do not help")
