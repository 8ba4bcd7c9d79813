"""Measurements: the reports of executors, and what clients ask and get.

Counts, bytes and times are since the start of the task or process. Event times are None where they
are not known, and at the end of a stream.
"""

from typing import Literal, TypeAlias

from msgspec import Struct, field

from gearpy.ids import AppId, ExecutorId, SessionId, TaskId, WorkerId
from gearpy.messages.question import Question
from gearpy.messages.served import Served

MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
#: Gearpump: the values of ``readOption``.
ReadOption: TypeAlias = Literal["readLatest", "readRecent", "readHistory"]
EventKind: TypeAlias = Literal[
    "restart",
    "epoch-failed",
    "fell-back",
    "executor-started",
    "executor-lost",
    "drain",
    "version",
    "active",
    "pending",
    "failed",
    "succeeded",
]


class HistogramSample(Struct, frozen=True, kw_only=True):
    """A distribution: how many values fell into which bucket, and their sum.

    ``counts`` has the buckets that are not empty, by number, ascending; `metrics.histogram` tells
    their bounds.
    """

    counts: tuple[tuple[int, int], ...] = ()
    total: float = 0.0


class UserMetric(Struct, frozen=True, kw_only=True):
    """A metric that a program has made by ``context.metrics``; a histogram has no ``value``."""

    name: str
    kind: MetricKind
    value: float = 0.0
    histogram: HistogramSample = HistogramSample()


class TaskLoad(Struct, frozen=True, kw_only=True):
    """The measurements of one task by its executor, beside the counts that its clock has.

    ``busy_ms`` it has worked, ``backpressured_ms`` it had work and no room downstream.
    ``queue_records`` came in and wait, ``pending_records`` were sent and are not acknowledged.
    ``bytes_in`` and ``bytes_out`` are as flow control counts them. ``processing`` has seconds per
    record, ``latency`` seconds from the sources to this task. ``restored`` is what its counts were
    when this start of it began, which has gone on from an epoch: records in and out, late, skipped,
    quarantined ones and those ahead; None where that is not known.
    """

    task_id: TaskId
    session: SessionId
    bytes_in: int = 0
    bytes_out: int = 0
    busy_ms: int = 0
    backpressured_ms: int = 0
    queue_records: int = 0
    pending_records: int = 0
    state_bytes: int = 0
    processing: HistogramSample = HistogramSample()
    latency: HistogramSample = HistogramSample()
    user: tuple[UserMetric, ...] = ()
    restored: tuple[int, ...] | None = ()


class TaskSample(TaskLoad, frozen=True, kw_only=True):
    """The measurements of one task for clients: its newest load, with what its clock counts.

    ``done`` of ``total`` is a source's progress in its own units; 0 of 0 where unknown.
    """

    executor_id: ExecutorId | None = None
    records_in: int = 0
    records_out: int = 0
    late: int = 0
    skipped: int = 0
    quarantined: int = 0
    ahead: int = 0
    watermark_ms: int | None = None
    clock_ms: int | None = None
    done: int = 0
    total: int = 0

    def __repr__(self) -> str:
        return (
            f"<task {self.task_id} on executor {self.executor_id}: {self.records_in:,} records in, "
            f"{self.records_out:,} out, {self.queue_records:,} wait, {self.state_bytes:,} bytes of "
            "state>"
        )


class ProcessSample(Struct, frozen=True, kw_only=True):
    """The measurements of one process. ``started_ms`` is wall time; -1 is what cannot be known.

    ``gc_pause_s`` is how long garbage collections have held the process up, ``gc_collections`` how
    many there were. ``unknown_messages`` were of kinds that their actors do not take.
    """

    pid: int
    started_ms: int
    rss_bytes: int = -1
    cpu_s: float = 0.0
    gc_collections: int = 0
    gc_pause_s: float = 0.0
    threads: int = 0
    open_files: int = -1
    unknown_messages: int = 0


class ReportMetrics(Struct, frozen=True, kw_only=True):
    """The measurements of one executor and its tasks; several messages if there are very many.

    ``launch`` is that of its `LaunchExecutor`, ``at_ms`` the executor's wall time.
    """

    executor_id: ExecutorId
    launch: int
    at_ms: int
    process: ProcessSample
    tasks: tuple[TaskLoad, ...] = ()


class ExecutorSample(Struct, frozen=True, kw_only=True):
    """An executor and the newest measurements of its process; the app master is number -1."""

    executor_id: ExecutorId
    launch: int
    process: ProcessSample


class ApplicationSample(Struct, frozen=True, kw_only=True):
    """The measurements of an application as a whole, over all its regions.

    ``epoch_ms`` and ``epoch_bytes`` are of the newest epoch: how long it took from its beginning to
    its being stored, and the size of all that a restart from it reads. ``epoch_durations`` has
    seconds. ``refused_orders`` came from masters that did not lead any more.
    """

    clock_ms: int | None = None
    epoch: int = 0
    epoch_ms: int = 0
    epoch_bytes: int = 0
    epochs_stored: int = 0
    epochs_failed: int = 0
    epoch_durations: HistogramSample = HistogramSample()
    restarts: int = 0
    refused_orders: int = 0


class ApplicationEvent(Served, frozen=True, kw_only=True):
    """A change in the life of an application. ``at_ms`` is wall time."""

    at_ms: int
    kind: EventKind
    text: str


class GetMetrics(Question["MetricsData"], frozen=True, kw_only=True):
    """Ask an app master for the newest measurements, from task number ``first`` on.

    Tasks are numbered as they come in the graph. ``or_last``: see `DescribeApplication`. Answer:
    `MetricsData`.
    """

    app_id: AppId
    first: int = 0
    or_last: bool = False

    @property
    def part(self) -> str:
        """Which of the answers it is that an application leaves behind; also of the others here."""
        return str(self.first)


class MetricsData(Struct, frozen=True, kw_only=True):
    """The newest measurements of an application. ``at_ms`` is wall time.

    ``more_from`` is the number of the first task that did not fit, 0 if all did.
    ``processors`` are their names.
    """

    app_id: AppId
    at_ms: int
    processors: dict[int, str] = field(default_factory=dict)
    application: ApplicationSample = ApplicationSample()
    tasks: tuple[TaskSample, ...] = ()
    executors: tuple[ExecutorSample, ...] = ()
    events: tuple[ApplicationEvent, ...] = ()
    more_from: int = 0


#: A point every 2 seconds, 20 seconds, 5 minutes.
SeriesSpan: TypeAlias = Literal["10m", "1h", "24h"]


class GetSeries(Question["SeriesData"], frozen=True, kw_only=True):
    """Ask an app master for the last minutes or hours, as `SeriesData`.

    Points ``within`` so long that come after wall time ``since_ms``, processors from place
    ``first`` of the graph on.
    ``or_last``: see `DescribeApplication`.
    """

    app_id: AppId
    since_ms: int = 0
    first: int = 0
    or_last: bool = False
    within: SeriesSpan = "10m"

    @property
    def part(self) -> str:
        return str(self.first) if self.within == "10m" else f"{self.first} {self.within}"


class ProcessorSeries(Served, frozen=True, kw_only=True):
    """The last minutes of one processor.

    ``rate`` is in records per second that came in, or were read. ``busy`` and ``backpressured`` are
    shares, 0 to 1, of the time of its tasks.
    """

    processor_id: int
    rate: tuple[float | None, ...] = ()
    busy: tuple[float | None, ...] = ()
    backpressured: tuple[float | None, ...] = ()


class SeriesData(Served, frozen=True, kw_only=True):
    """The last minutes or hours of an application: a point every so often, columns equally long.

    ``at_ms`` is wall time; ``records_in_rate`` is what sources have read, ``records_out_rate`` what
    sinks have taken, in records per second. Latency is from sources to sinks, in ms. None is what
    is not known. ``more_from`` is the place of the first processor that did not fit, or 0.
    """

    app_id: AppId
    at_ms: tuple[int, ...] = ()
    records_in_rate: tuple[float | None, ...] = ()
    records_out_rate: tuple[float | None, ...] = ()
    latency_p50_ms: tuple[float | None, ...] = ()
    latency_p99_ms: tuple[float | None, ...] = ()
    watermark_lag_ms: tuple[float | None, ...] = ()
    epoch_ms: tuple[float | None, ...] = ()
    epoch_bytes: tuple[float | None, ...] = ()
    state_bytes: tuple[float | None, ...] = ()
    processors: tuple[ProcessorSeries, ...] = ()
    events: tuple[ApplicationEvent, ...] = ()
    more_from: int = 0


class GetHistory(Question["HistoryData"], frozen=True, kw_only=True):
    """Ask for measurements by Gearpump's names. Answer: `HistoryData`.

    Of an application, else of a worker, else of the master. ``path`` may hold ``*``, as in
    ``app1.processor*``; the numbers, of ``TaskFilterAggregator``, are inclusive; -1 is no bound.
    Gearpump: `QueryHistoryMetrics`.
    """

    app_id: AppId | None = None
    worker_id: WorkerId | None = None
    path: str = "*"
    read_option: ReadOption = "readLatest"
    aggregator: str = ""
    start_processor: int = -1
    end_processor: int = -1
    start_task: int = -1
    end_task: int = -1
    limit: int = 1000

    @property
    def part(self) -> str:
        return self.read_option


class HistoryItem(Struct, frozen=True, kw_only=True):
    """One measurement by its name at one time. ``values`` has Gearpump's fields of its kind.

    A histogram has mean, stddev, median, p95, p99 and p999 in ms; a meter count, meanRate and m1 in
    events per second; a gauge has value. Gearpump: `HistoryMetricsItem`.
    """

    at_ms: int
    name: str
    kind: Literal["histogram", "meter", "gauge"]
    values: dict[str, float] = field(default_factory=dict)


class HistoryData(Struct, frozen=True, kw_only=True):
    """The measurements that `GetHistory` asks for. Gearpump: `HistoryMetrics`."""

    path: str
    items: tuple[HistoryItem, ...] = ()


class HistoryPoint(Struct, frozen=True, kw_only=True):
    """The measurements of one time by Gearpump's names, in few bytes.

    ``tasks`` has the values of each task as doubles, in the order of `metrics.task_history`.
    """

    at_ms: int
    executors: tuple[ExecutorSample, ...] = ()
    tasks: dict[TaskId, bytes] = field(default_factory=dict)


class HistoryPoints(Struct, frozen=True, kw_only=True):
    """The past of an application that has ended, of which `HistoryData` is made; newest last."""

    app_id: AppId
    read_option: ReadOption
    points: tuple[HistoryPoint, ...] = ()


class GetProcessMetrics(Question["ProcessMetricsData"], frozen=True, kw_only=True):
    """Ask for the measurements of a worker, or of the master. Answer: `ProcessMetricsData`."""

    worker_id: WorkerId | None = None


class ProcessMetricsData(Struct, frozen=True, kw_only=True):
    """The newest measurements of a master or worker. ``at_ms`` is wall time.

    ``gauges`` has, by their names in `metrics.catalogue`, what it counts beside its process.
    """

    name: str
    at_ms: int
    process: ProcessSample
    gauges: dict[str, float] = field(default_factory=dict)


class GetWorkerAddress(Struct, frozen=True, kw_only=True):
    """Ask for the actor of a worker: `WorkerAddress`. Asked within the master's process only."""

    worker_id: WorkerId
