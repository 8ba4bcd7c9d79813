"""Samples of tasks: clock and load together, and pages that fit."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import HistogramSample, MetricsData, TaskLoad, TaskSample, UserMetric
from gearpy.metrics.catalogue import TASK_METRICS
from gearpy.metrics.samples import PAGE_BYTES, page_of, sample_of, size_of
from gearpy.wire.codec import encode_control

TASK, SESSION = TaskId(2, 1), SessionId(7)


def a_clock(**fields: int) -> TaskClock:
    known = {"clock_ms": 5, "watermark_ms": 6, **fields}
    return TaskClock(task_id=TASK, session=SESSION, **known)  # type: ignore[arg-type]


def test_a_sample_has_what_both_reports_say() -> None:
    clock = a_clock(records_in=10, records_out=9, late_records=1)
    load = TaskLoad(task_id=TASK, session=SESSION, busy_ms=40, queue_records=3)

    sample = sample_of(clock, load, ExecutorId(1))

    assert (sample.records_in, sample.records_out, sample.late) == (10, 9, 1)
    assert (sample.busy_ms, sample.queue_records, sample.executor_id) == (40, 3, 1)
    assert (sample.clock_ms, sample.watermark_ms) == (5, 6)


def test_the_load_of_an_earlier_incarnation_does_not_count() -> None:
    load = TaskLoad(task_id=TASK, session=SessionId(6), queue_records=3)

    assert sample_of(a_clock(), load).queue_records == 0


def test_prometheus_gets_counts_that_begin_at_zero_with_each_start() -> None:
    """Counts of a task go back a little with a restart; then nothing is told that is not known."""
    records_in = next(
        value for info, value in TASK_METRICS.items() if info.name == "gearpy_records_in_total"
    )
    clock = a_clock(records_in=990)
    load = TaskLoad(task_id=TASK, session=SESSION, restored=(980, 970, 0, 0, 0))

    assert records_in(sample_of(clock, load)) == 10
    assert records_in(sample_of(clock, None)) is None
    assert sample_of(clock, load).records_in == 990


def test_times_before_and_behind_everything_are_unknown() -> None:
    sample = sample_of(a_clock(clock_ms=MIN_MS, watermark_ms=MAX_MS), None)

    assert (sample.clock_ms, sample.watermark_ms) == (None, None)


HISTOGRAMS = st.builds(
    HistogramSample,
    counts=st.lists(st.tuples(st.integers(-80, 160), st.integers(0, 2**62)), max_size=40).map(
        tuple
    ),
    total=st.floats(allow_nan=False),
)
SAMPLES = st.lists(
    st.builds(
        TaskSample,
        task_id=st.just(TASK),
        session=st.just(SESSION),
        records_in=st.integers(0, 2**63 - 1),
        processing=HISTOGRAMS,
        latency=HISTOGRAMS,
        user=st.lists(
            st.builds(
                UserMetric, name=st.text(), kind=..., value=st.floats(), histogram=HISTOGRAMS
            ),
            max_size=4,
        ).map(tuple),
    ),
    max_size=12,
)


@given(SAMPLES, st.integers(1, 5000))
def test_pages_hold_all_tasks_in_order(samples: list[TaskSample], limit: int) -> None:
    pages: list[tuple[TaskSample, ...]] = []
    first = 0
    while True:
        page, first = page_of(samples, first, limit)
        pages.append(page)
        assert len(page) <= 1 or sum(map(size_of, page)) <= limit
        if not first:
            break

    assert [each for page in pages for each in page] == samples


@given(SAMPLES)
def test_the_size_of_a_sample_is_estimated_rather_too_high(samples: list[TaskSample]) -> None:
    empty = len(encode_control(_data([])))

    size = len(encode_control(_data(samples))) - empty

    assert size <= 8 + sum(map(size_of, samples))


def test_a_thousand_tasks_need_few_pages() -> None:
    samples = [
        msgspec.structs.replace(sample_of(a_clock(), None), task_id=TaskId(0, at))
        for at in range(1000)
    ]

    page, more_from = page_of(samples)

    assert more_from == len(page) >= 500
    assert len(encode_control(_data(list(page)))) <= PAGE_BYTES


def _data(samples: list[TaskSample]) -> MetricsData:
    return MetricsData(app_id=1, at_ms=1, tasks=tuple(samples))  # type: ignore[arg-type]
