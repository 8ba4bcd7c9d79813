"""All metrics of gearpy: name, kind, unit, labels and meaning, after Prometheus' conventions.

Labels are few and small in number: an application, a processor, a task, an executor; never a key,
a partition or a text of users.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gearpy.messages.metrics import (
    ApplicationSample,
    HistogramSample,
    MetricKind,
    ProcessSample,
    TaskSample,
)

#: Begins the names of the metrics that programs make themselves.
USER_PREFIX: Final = "gearpy_user_"

Unit: TypeAlias = Literal["records", "bytes", "seconds", "1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    name: str
    kind: MetricKind
    unit: Unit
    labels: tuple[str, ...]
    help: str


_TASK: Final = ("app", "processor", "task")
_PROCESSOR: Final = ("app", "processor")
_APP: Final = ("app",)
#: Of which application, if any, and what: ``master``, ``worker0``, ``appmaster``, ``executor0``.
_PROCESS: Final = ("app", "process")


def _of_tasks(
    name: str, kind: MetricKind, unit: Unit, text: str, labels: tuple[str, ...] = _TASK
) -> MetricInfo:
    return MetricInfo(name=name, kind=kind, unit=unit, labels=labels, help=text)


#: Metrics of tasks, each with the function that takes it from a sample; None is not known.
#: Distributions are shown per processor: a thousand tasks must not make a page of megabytes.
TASK_METRICS: Final[Mapping[MetricInfo, Callable[[TaskSample], float | HistogramSample | None]]] = {
    _of_tasks(
        "gearpy_records_in_total", "counter", "records", "Records that came in, or were read."
    ): lambda task: _since_start(task, 0, task.records_in),
    _of_tasks(
        "gearpy_records_out_total",
        "counter",
        "records",
        "Records that were sent on, or written by a sink.",
    ): lambda task: _since_start(task, 1, task.records_out),
    _of_tasks(
        "gearpy_late_records_total", "counter", "records", "Records that came too late to count."
    ): lambda task: _since_start(task, 2, task.late),
    _of_tasks(
        "gearpy_skipped_records_total",
        "counter",
        "records",
        "Records that were dropped since user code raised on them.",
    ): lambda task: _since_start(task, 3, task.skipped),
    _of_tasks(
        "gearpy_quarantined_records_total",
        "counter",
        "records",
        "Records that were put aside since user code raised on them.",
    ): lambda task: _since_start(task, 4, task.quarantined),
    _of_tasks(
        "gearpy_ahead_records_total",
        "counter",
        "records",
        "Records that were left out since they were further ahead of the clock than max_ahead.",
    ): lambda task: _since_start(task, 5, task.ahead),
    _of_tasks(
        "gearpy_bytes_in_total",
        "counter",
        "bytes",
        "Bytes that came in, as flow control counts them.",
    ): lambda task: task.bytes_in,
    _of_tasks(
        "gearpy_bytes_out_total",
        "counter",
        "bytes",
        "Bytes that were sent, as flow control counts them.",
    ): lambda task: task.bytes_out,
    _of_tasks(
        "gearpy_busy_seconds_total", "counter", "seconds", "Time in which the task worked."
    ): lambda task: task.busy_ms / 1000,
    _of_tasks(
        "gearpy_backpressured_seconds_total",
        "counter",
        "seconds",
        "Time in which the task waited for room downstream.",
    ): lambda task: task.backpressured_ms / 1000,
    _of_tasks(
        "gearpy_watermark_seconds",
        "gauge",
        "seconds",
        "Event time that the task has promised downstream, since the epoch.",
    ): lambda task: _seconds(task.watermark_ms),
    _of_tasks(
        "gearpy_clock_seconds",
        "gauge",
        "seconds",
        "Event time up to which the task has finished, since the epoch.",
    ): lambda task: _seconds(task.clock_ms),
    _of_tasks(
        "gearpy_queue_records", "gauge", "records", "Records that came in and wait."
    ): lambda task: task.queue_records,
    _of_tasks(
        "gearpy_pending_records",
        "gauge",
        "records",
        "Records that were sent and are not acknowledged.",
    ): lambda task: task.pending_records,
    _of_tasks(
        "gearpy_state_bytes", "gauge", "bytes", "Size of the state that the task keeps."
    ): lambda task: task.state_bytes,
    _of_tasks(
        "gearpy_process_duration_seconds",
        "histogram",
        "seconds",
        "Processing time of a record, averaged over its batch.",
        _PROCESSOR,
    ): lambda task: task.processing,
    _of_tasks(
        "gearpy_latency_seconds",
        "histogram",
        "seconds",
        "Time from the sources to this processor.",
        _PROCESSOR,
    ): lambda task: task.latency,
}

#: Metrics of an application as a whole.
APPLICATION_METRICS: Final[
    Mapping[MetricInfo, Callable[[ApplicationSample], float | HistogramSample | None]]
] = {
    _of_tasks(
        "gearpy_checkpoint_duration_seconds",
        "histogram",
        "seconds",
        "Time from the beginning of the end of an epoch until it was stored.",
        _APP,
    ): lambda app: app.epoch_durations,
    _of_tasks(
        "gearpy_checkpoint_size_bytes",
        "gauge",
        "bytes",
        "Size of all that a restart from the newest epoch reads.",
        _APP,
    ): lambda app: app.epoch_bytes,
    _of_tasks(
        "gearpy_checkpoints_total", "counter", "1", "Epochs that were stored.", _APP
    ): lambda app: app.epochs_stored,
    _of_tasks(
        "gearpy_checkpoints_failed_total", "counter", "1", "Epochs that were given up.", _APP
    ): lambda app: app.epochs_failed,
    _of_tasks("gearpy_restarts_total", "counter", "1", "Restarts of regions.", _APP): lambda app: (
        app.restarts
    ),
    _of_tasks(
        "gearpy_application_clock_seconds",
        "gauge",
        "seconds",
        "Event time up to which the application has finished, since the epoch.",
        _APP,
    ): lambda app: _seconds(app.clock_ms),
}

#: Metrics of any process, by the names that Prometheus' clients use; -1 is not known.
PROCESS_METRICS: Final[Mapping[MetricInfo, Callable[[ProcessSample], float]]] = {
    _of_tasks(
        "process_resident_memory_bytes", "gauge", "bytes", "Resident memory.", _PROCESS
    ): lambda process: process.rss_bytes,
    _of_tasks(
        "process_cpu_seconds_total", "counter", "seconds", "User and system time.", _PROCESS
    ): lambda process: process.cpu_s,
    _of_tasks(
        "process_start_time_seconds", "gauge", "seconds", "Start, since the epoch.", _PROCESS
    ): lambda process: process.started_ms / 1000,
    _of_tasks(
        "process_open_fds", "gauge", "1", "Open files and sockets.", _PROCESS
    ): lambda process: process.open_files,
    _of_tasks("process_threads", "gauge", "1", "Threads of Python.", _PROCESS): lambda process: (
        process.threads
    ),
    _of_tasks(
        "python_gc_collections_total", "counter", "1", "Garbage collections.", _PROCESS
    ): lambda process: process.gc_collections,
    _of_tasks(
        "python_gc_pause_seconds_total",
        "counter",
        "seconds",
        "Time in garbage collections.",
        _PROCESS,
    ): lambda process: process.gc_pause_s,
    _of_tasks(
        "gearpy_unknown_messages_total",
        "counter",
        "1",
        "Messages that actors of the process have no use for, as of another version.",
        _PROCESS,
    ): lambda process: process.unknown_messages,
}

#: Metrics that a master knows: keys of `ProcessMetricsData.gauges`; one with a label for each
#: status ends in that status, as in ``gearpy_applications.active``.
CLUSTER_METRICS: Final = (
    _of_tasks("gearpy_workers", "gauge", "1", "Workers that have registered.", ()),
    _of_tasks("gearpy_slots", "gauge", "1", "Slots of all workers.", ()),
    _of_tasks("gearpy_free_slots", "gauge", "1", "Slots that nobody has.", ()),
    _of_tasks("gearpy_applications", "gauge", "1", "Applications by status.", ("status",)),
)

#: Metrics of one of several masters; `CLUSTER_METRICS` has the ones that only a leader knows.
MASTER_METRICS: Final = (
    _of_tasks("gearpy_master_term", "gauge", "1", "Number of the present leader.", ()),
    _of_tasks("gearpy_master_leads", "gauge", "1", "1 if this master leads, else 0.", ()),
    _of_tasks(
        "gearpy_master_committed_entries",
        "gauge",
        "1",
        "Entries of the log of all masters that a majority has, as far as this one knows.",
        (),
    ),
    _of_tasks(
        "gearpy_master_applied_entries",
        "gauge",
        "1",
        "Entries of that log that this master has applied.",
        (),
    ),
)

#: The one metric of all who obey a master: workers and app masters.
REFUSED_ORDERS: Final = _of_tasks(
    "gearpy_refused_orders_total",
    "counter",
    "1",
    "Orders that were refused, as they came from a master that did not lead any more.",
    _PROCESS,
)

#: Metrics that are derived from others, and from the time, at the moment they are shown.
_DERIVED: Final = (
    _of_tasks(
        "gearpy_watermark_lag_seconds", "gauge", "seconds", "Wall time behind the watermark."
    ),
    _of_tasks(
        "gearpy_source_lag_records",
        "gauge",
        "records",
        "Records of a source that are there and not read, where it knows.",
    ),
    _of_tasks(
        "gearpy_processor_info",
        "gauge",
        "1",
        "The name of a processor; always 1.",
        (*_PROCESSOR, "name"),
    ),
)

#: All metrics, by name.
CATALOGUE: Final[Mapping[str, MetricInfo]] = {
    info.name: info
    for info in (
        *TASK_METRICS,
        *APPLICATION_METRICS,
        *PROCESS_METRICS,
        *CLUSTER_METRICS,
        *MASTER_METRICS,
        REFUSED_ORDERS,
        *_DERIVED,
    )
}


def _since_start(task: TaskSample, place: int, count: int) -> float | None:
    """Return the count of a task since it was started last.

    Its own counts go back with a restart, by a little. Prometheus takes a counter that falls for
    one that has begun anew at zero, and would add all of it once more.
    """
    if task.restored is None:
        return None
    return count - (task.restored[place] if len(task.restored) > place else 0)


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000
