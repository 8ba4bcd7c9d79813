"""Samples of tasks: what is known of a task in one value, and pages that fit into a message."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from gearpy.ids import MAX_MS, MIN_MS, ExecutorId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import (
    HistogramSample,
    MetricsData,
    ProcessMetricsData,
    TaskLoad,
    TaskSample,
)

#: What one message holds of tasks; a control frame holds twice as much.
PAGE_BYTES: Final = 512 * 1024

_TASK_BYTES: Final = 600  # Of a task without histograms: names and numbers.
_BUCKET_BYTES: Final = 12
_METRIC_BYTES: Final = 80

Measured = TypeVar("Measured", bound=TaskLoad)


class ClusterSample(Struct, frozen=True, kw_only=True):
    """All that is measured at one time: applications by name, and processes of the cluster.

    ``executors`` are parts of applications: tasks and their process, without what is measured of an
    application as a whole.
    """

    applications: Sequence[tuple[str, MetricsData]] = ()
    executors: Sequence[tuple[str, MetricsData]] = ()
    processes: Sequence[ProcessMetricsData] = ()


def sample_of(
    clock: TaskClock, load: TaskLoad | None, executor_id: ExecutorId | None = None
) -> TaskSample:
    if load is None or load.session != clock.session:
        load = TaskLoad(task_id=clock.task_id, session=clock.session, restored=None)
    measured: dict[str, Any] = asdict(load)
    return TaskSample(
        executor_id=executor_id,
        records_in=clock.records_in,
        records_out=clock.records_out,
        late=clock.late_records,
        skipped=clock.skipped_records,
        quarantined=clock.quarantined_records,
        ahead=clock.ahead_records,
        watermark_ms=known_ms(clock.watermark_ms),
        clock_ms=known_ms(clock.clock_ms),
        done=clock.done,
        total=clock.total,
        **measured,
    )


def known_ms(time_ms: int | None) -> int | None:
    return None if time_ms is None or not MIN_MS < time_ms < MAX_MS - 1 else time_ms


def page_of(
    measured: Sequence[Measured], first: int = 0, limit_bytes: int = PAGE_BYTES
) -> tuple[tuple[Measured, ...], int]:
    """Return as many from a place on as fit, one at least, and the place of the next; 0: none."""
    page: list[Measured] = []
    size = 0
    for each in measured[first:]:
        size += size_of(each)
        if page and size > limit_bytes:
            return tuple(page), first + len(page)
        page.append(each)
    return tuple(page), 0


def size_of(measured: TaskLoad) -> int:
    """Return an estimate of the bytes that a sample takes in a message, rather too many."""
    size = _TASK_BYTES + _buckets(measured.processing) + _buckets(measured.latency)
    for each in measured.user:
        size += _METRIC_BYTES + len(each.name.encode()) + _buckets(each.histogram)
    return size


def _buckets(sample: HistogramSample) -> int:
    return _BUCKET_BYTES * len(sample.counts)
