"""Measurements of an application: what is newest, the last minutes, events; all of it bounded."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.ids import MAX_MS, AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import (
    ApplicationSample,
    GetHistory,
    GetMetrics,
    GetSeries,
    HistogramSample,
    HistoryData,
    HistoryPoints,
    MetricsData,
    ProcessorSeries,
    ProcessSample,
    ReadOption,
    ReportMetrics,
    TaskLoad,
    TaskSample,
)
from gearpy.metrics.application import ApplicationMetrics, Outline
from gearpy.metrics.histogram import Histogram
from gearpy.wire.codec import encode_control

APP = AppId(1)
OUTLINE = Outline(
    names={0: "read", 1: "work", 2: "write"}, sources=frozenset({0}), sinks=frozenset({2})
)
FRAME_BYTES_MAX = 1 << 20
START_MS = 1_000_000_000_000


def latencies(*seconds: float) -> HistogramSample:
    histogram = Histogram()
    for each in seconds:
        histogram.observe(each)
    return histogram.sample()


class Watched:
    """The measurements of an application with some tasks, in virtual time."""

    def __init__(self, *, parallelism: int = 1, outline: Outline = OUTLINE) -> None:
        self.kept = ApplicationMetrics(APP, outline)
        self.sinks = outline.sinks
        self.now_ms = START_MS
        self.tasks = [TaskId(pid, at) for pid in outline.names for at in range(parallelism)]
        self.clocks: dict[TaskId, TaskClock] = {}
        self.loads: dict[TaskId, TaskLoad] = {}
        self.report()

    def report(
        self,
        *,
        records: int = 0,
        session: int = 1,
        busy_ms: int = 0,
        blocked_ms: int = 0,
        latency: HistogramSample | None = None,
        watermark_ms: int = MAX_MS,
    ) -> None:
        for task in self.tasks:
            self.clocks[task] = TaskClock(
                task_id=task,
                session=SessionId(session),
                clock_ms=watermark_ms,
                watermark_ms=watermark_ms,
                records_in=records,
                records_out=records,
                written_records=records if task.processor in self.sinks else 0,
            )
            self.loads[task] = TaskLoad(
                task_id=task,
                session=SessionId(session),
                busy_ms=busy_ms,
                backpressured_ms=blocked_ms,
                state_bytes=10,
                latency=latency or HistogramSample(),
            )
        self.kept.on_report(
            ReportMetrics(
                executor_id=ExecutorId(0),
                launch=1,
                at_ms=self.now_ms,
                process=ProcessSample(pid=7, started_ms=1, rss_bytes=1000, threads=3),
                tasks=tuple(self.loads.values()),
            )
        )

    def tick(self, application: ApplicationSample | None = None) -> None:
        if self.kept.is_due(self.now_ms):
            self.kept.on_tick(self.now_ms, self.clocks, application or ApplicationSample())

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        self.tick()

    def points(self, option: ReadOption) -> HistoryPoints:
        return self.kept.history_points(option, self.now_ms, self.clocks)

    def data(self, first: int = 0) -> MetricsData:
        return self.kept.data(
            GetMetrics(app_id=APP, first=first),
            self.now_ms,
            self.clocks,
            application=ApplicationSample(restarts=3),
            executor_of=lambda _: ExecutorId(0),
        )

    def history(self, read_option: ReadOption, **fields: object) -> HistoryData:
        question = GetHistory(app_id=APP, read_option=read_option, **fields)  # type: ignore[arg-type]
        return self.kept.history(question, self.now_ms, self.clocks)


def test_the_newest_measurements_of_all() -> None:
    watched = Watched(parallelism=2)
    watched.report(records=5, busy_ms=7)
    watched.kept.note(START_MS, "restart", "region 0 failed")

    data = watched.data()

    assert [each.task_id for each in data.tasks] == sorted(watched.tasks)
    assert {(each.records_in, each.busy_ms, each.executor_id) for each in data.tasks} == {(5, 7, 0)}
    assert data.processors == OUTLINE.names
    assert [each.executor_id for each in data.executors] == [0]
    assert [(each.kind, each.text) for each in data.events] == [("restart", "region 0 failed")]
    assert data.application.restarts == 3


def test_rates_and_shares_of_the_last_minutes() -> None:
    watched = Watched(parallelism=2)
    watched.tick()
    watched.now_ms += 2000
    watched.report(
        records=500, busy_ms=1000, blocked_ms=500, latency=latencies(0.1), watermark_ms=START_MS
    )
    watched.tick(ApplicationSample(epoch=4, epoch_ms=30, epoch_bytes=900))

    series = watched.kept.series(GetSeries(app_id=APP))

    assert series.at_ms == (START_MS, START_MS + 2000)
    assert series.records_in_rate == (None, 500.0)
    assert series.records_out_rate == (None, 500.0)
    assert series.latency_p50_ms[1] == pytest.approx(100, rel=0.1)
    assert series.watermark_lag_ms == (None, 2000.0)
    assert (series.epoch_ms, series.epoch_bytes) == ((None, 30.0), (None, 900.0))
    assert series.state_bytes == (60.0, 60.0)
    for processor in series.processors:
        assert processor.rate == (None, 500.0)
        assert processor.busy == (None, 0.5)
        assert processor.backpressured == (None, 0.25)


def test_a_source_that_drops_much_has_read_it_all_the_same() -> None:
    outline = Outline(names={0: "read > write"}, sources=frozenset({0}), sinks=frozenset({0}))
    watched = Watched(outline=outline)
    watched.tick()
    watched.report(records=1000)
    task = watched.tasks[0]
    watched.clocks[task] = replace(watched.clocks[task], records_out=10, written_records=10)
    watched.pass_ms(2000)

    series = watched.kept.series(GetSeries(app_id=APP))

    assert (series.records_in_rate[1], series.records_out_rate[1]) == (500.0, 5.0)
    assert series.processors[0].rate[1] == 500.0


def test_the_latency_of_a_point_is_that_of_its_two_seconds() -> None:
    watched = Watched()
    slow = [5.0] * 100
    watched.report(latency=latencies(*slow))
    watched.tick()
    watched.now_ms += 2000
    watched.report(latency=latencies(*slow, 0.01))
    watched.tick()

    series = watched.kept.series(GetSeries(app_id=APP, since_ms=START_MS))

    assert series.at_ms == (START_MS + 2000,)
    assert series.latency_p99_ms[0] == pytest.approx(10, rel=0.1)


def test_points_of_an_hour_and_a_day_are_of_all_the_time_between_them() -> None:
    watched = Watched()
    start_ms = watched.now_ms = 1_000_000_200_000  # A point of all spans.
    for second in range(0, 602, 2):
        watched.report(records=100 * min(second, 10), latency=latencies(*[0.01] * second))
        watched.tick()
        watched.now_ms += 2000

    hour = watched.kept.series(GetSeries(app_id=APP, within="1h"))
    day = watched.kept.series(GetSeries(app_id=APP, within="24h"))

    assert hour.at_ms == tuple(start_ms + 20_000 * each for each in range(31))
    assert hour.records_in_rate[:3] == (None, 50.0, 0.0)
    assert day.at_ms == tuple(start_ms + 300_000 * each for each in range(3))
    unknown, mean, still = day.records_in_rate
    assert (unknown, still) == (None, 0.0)
    assert mean == pytest.approx(1000 / 300)
    assert day.processors[1].rate == day.records_in_rate
    assert day.latency_p99_ms[1] == pytest.approx(10, rel=0.1)


def test_a_task_that_began_anew_has_no_rate_until_the_next_point() -> None:
    """It counts from the epoch that it went back to: a difference would mean nothing."""
    watched = Watched()
    watched.report(records=1000)
    watched.tick()
    watched.report(records=400, session=2)
    watched.pass_ms(2000)
    watched.report(records=600, session=2)
    watched.pass_ms(2000)

    series = watched.kept.series(GetSeries(app_id=APP))

    assert series.records_in_rate == (None, None, 100.0)


@given(st.lists(st.integers(0, 5000), max_size=60), st.integers(0, 60_000))
def test_all_columns_are_equally_long_whatever_is_asked(pauses: list[int], after: int) -> None:
    watched = Watched()
    for pause in pauses:
        watched.pass_ms(pause)

    series = watched.kept.series(GetSeries(app_id=APP, since_ms=START_MS + after))

    columns = [
        series.records_in_rate,
        series.records_out_rate,
        series.latency_p50_ms,
        series.latency_p99_ms,
        series.watermark_lag_ms,
        series.epoch_ms,
        series.epoch_bytes,
        series.state_bytes,
    ]
    for each in series.processors:
        columns += [each.rate, each.busy, each.backpressured]
    assert {len(column) for column in columns} == {len(series.at_ms)}
    assert all(at_ms > START_MS + after for at_ms in series.at_ms)
    assert list(series.at_ms) == sorted(set(series.at_ms))


def test_answers_about_very_large_applications_fit_into_messages() -> None:
    names = {pid: f"processor {pid}" for pid in range(100)}
    outline = Outline(names=names, sources=frozenset({0}), sinks=frozenset({99}))
    watched = Watched(parallelism=15, outline=outline)
    for number in range(320):
        watched.kept.note(number, "restart", "x" * 2000)
        watched.report(records=number, latency=latencies(*(2.0**each for each in range(20))))
        watched.pass_ms(2000)

    tasks, first = list[TaskSample](), 0
    while True:
        data = watched.data(first)
        assert len(encode_control(data)) < FRAME_BYTES_MAX
        tasks += data.tasks
        if not (first := data.more_from):
            break
    processors, first = list[ProcessorSeries](), 0
    while True:
        series = watched.kept.series(GetSeries(app_id=APP, first=first))
        assert len(encode_control(series)) < FRAME_BYTES_MAX
        processors += series.processors
        if not (first := series.more_from):
            break

    assert [each.task_id for each in tasks] == sorted(watched.tasks)
    assert [each.processor_id for each in processors] == list(names)
    assert len(series.at_ms) == 300
    options: list[ReadOption] = ["readLatest", "readRecent", "readHistory"]
    for option in options:
        answer = watched.history(option, limit=10**9)
        assert len(encode_control(answer)) < FRAME_BYTES_MAX


# -- Gearpump's names ------------------------------------------------------------------------


def test_the_names_of_gearpump() -> None:
    watched = Watched()
    watched.report(records=50, latency=latencies(0.1))

    items = {each.name: each for each in watched.history("readLatest").items}

    task = "app1.processor0.task0"
    assert {name for name in items if name.startswith(task)} == {
        f"{task}:{name}"
        for name in ("receiveThroughput", "sendThroughput", "receiveLatency", "processTime")
    }
    assert items["app1.executor0:memory.total.used"].values == {"value": 1000.0}
    assert items[f"{task}:receiveLatency"].values["median"] == pytest.approx(100, rel=0.1)
    assert items[f"{task}:receiveThroughput"].values["count"] == 50


def test_a_minute_of_the_same_rate_is_that_rate() -> None:
    watched = Watched()
    for second in range(0, 600, 2):
        watched.report(records=second * 100)
        watched.pass_ms(2000)

    path = "app1.processor1.task0:receiveThroughput"
    (item,) = watched.history("readLatest", path=path).items

    assert item.values["m1"] == pytest.approx(100, rel=0.01)
    assert item.values["meanRate"] == pytest.approx(100, rel=0.01)


def test_five_minutes_and_three_days_are_kept() -> None:
    watched = Watched()
    path = "app1.executor0:thread.count"
    for _ in range(80 * 60):
        watched.pass_ms(60_000)
    recent_ms = [each.at_ms for each in watched.history("readRecent", path=path).items]
    for _ in range(40):
        watched.pass_ms(15_000)

    recent = watched.history("readRecent", path=path).items
    hours = watched.history("readHistory", path=path).items

    assert (len(recent_ms), len(recent), len(hours)) == (20, 20, 72)
    assert {b.at_ms - a.at_ms for a, b in itertools.pairwise(recent)} == {15_000}
    assert all(b.at_ms - a.at_ms == 3_600_000 for a, b in itertools.pairwise(hours))


def test_aggregators_add_tasks_up_or_choose_some() -> None:
    watched = Watched(parallelism=3)
    watched.report(records=50, latency=latencies(0.1))
    path = "app1.processor*"

    of_processors = watched.history("readLatest", path=path, aggregator="ProcessorAggregator")
    some = watched.history(
        "readLatest",
        path=path,
        aggregator="org.apache.gearpump.streaming.metrics.TaskFilterAggregator",
        start_processor=1,
        end_processor=2,
        start_task=1,
        end_task=1,
    )

    values = {each.name: each.values for each in of_processors.items}
    assert len(values) == 3 * 4
    assert values["app1.processor1:receiveThroughput"]["count"] == 150
    assert values["app1.processor1:receiveLatency"]["mean"] == pytest.approx(100)
    assert {each.name.partition(":")[0] for each in some.items} == {
        "app1.processor1.task1",
        "app1.processor2.task1",
    }
    assert watched.history("readLatest", aggregator="Other").items == ()
    assert len(watched.history("readLatest", limit=3).items) == 3
