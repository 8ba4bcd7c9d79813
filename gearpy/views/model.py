"""Views of a cluster and its applications: frozen, plain, ready to become JSON.

Times are wall time in ms since 1970 unless an attribute says otherwise, spans end in ``_ms``,
rates are per second, shares from 0 to 1. What is not known is None, never 0.
"""

from typing import Literal, TypeAlias

from gearpy.messages.client import FiringAlert
from gearpy.messages.metrics import ApplicationEvent, MetricKind
from gearpy.messages.served import Served
from gearpy.messages.summaries import (
    ApplicationStatus,
    ChangeSummary,
    ConsumerSummary,
    EdgeSummary,
    EpochsSummary,
    ErrorCard,
    Failure,
    ScaledStep,
)

#: From quiet to loud. *info* is worth knowing, *warn* worth a look, *bad* is a loss or a halt.
Level: TypeAlias = Literal["ok", "info", "warn", "bad"]
Role: TypeAlias = Literal["source", "step", "sink"]


class Headline(Served, frozen=True, kw_only=True):
    """A finding: its level, place, reason and advice; or that all is well.

    Attributes:
        level: how bad it is.
        text: what is so, in one sentence without its full stop.
        advice: what would help; empty if nothing has to.
        processor: the id of the processor that it is about; None if about all.
        task: the task that it is about.
    """

    level: Level
    text: str
    advice: str = ""
    processor: int | None = None
    task: str | None = None


class TotalsView(Served, frozen=True, kw_only=True):
    """Counts and states of a whole application.

    Attributes:
        records_in: read by its sources.
        records_out: written by its sinks.
        latency_p50_ms: of records from a source to a last processor; so is ``latency_p99_ms``.
        watermark_ms: the oldest promise of a task that is not idle, in event time.
        watermark_lag_ms: wall time less that.
        lag_ms: how long ago the sources had read what the slowest task has processed.
        clock_ms: event time before which all is processed.
        epoch: the newest that a restart would go back to; 0: none yet.
        epoch_ms: how long it took to end.
        epoch_bytes: its size.
        epochs_failed: how many were given up.
    """

    records_in: int = 0
    records_out: int = 0
    records_in_rate: float | None = None
    records_out_rate: float | None = None
    late: int = 0
    skipped: int = 0
    quarantined: int = 0
    restarts: int = 0
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    watermark_ms: int | None = None
    watermark_lag_ms: int | None = None
    lag_ms: int | None = None
    clock_ms: int | None = None
    epoch: int = 0
    epoch_ms: float | None = None
    epoch_bytes: int | None = None
    epochs_failed: int = 0
    state_bytes: int | None = None


class UserFigure(Served, frozen=True, kw_only=True):
    """A metric of the program's own, of one task, or of all tasks of a processor together.

    Attributes:
        value: the sum of counters and gauges; of a histogram, how many values it has.
        rate: of a counter or histogram, per second.
        p50: the median of a histogram lately; so is ``p99``.
    """

    name: str
    kind: MetricKind
    value: float
    rate: float | None = None
    p50: float | None = None
    p99: float | None = None


class Figures(Served, frozen=True, kw_only=True):
    """Figures that tasks and processors share.

    Attributes:
        busy: share of the time in which it worked.
        backpressured: share of the time in which it waited for the tasks behind it.
        watermark_ms: event time that it has promised; ``watermark_lag_ms`` is wall time less that.
        queue_records: those that wait before it.
        metrics: of the program's own, by name.
    """

    records_in: int = 0
    records_out: int = 0
    records_in_rate: float | None = None
    records_out_rate: float | None = None
    busy: float | None = None
    backpressured: float | None = None
    watermark_ms: int | None = None
    watermark_lag_ms: int | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    queue_records: int | None = None
    state_bytes: int | None = None
    late: int = 0
    skipped: int = 0
    quarantined: int = 0
    holds_clock: bool = False
    metrics: tuple[UserFigure, ...] = ()


class ProcessorFigures(Figures, frozen=True, kw_only=True):
    """One processor of an application.

    ``steps`` are its parts in the words of the program; ``rates`` its records per second lately,
    oldest first.
    """

    id: int
    name: str
    role: Role
    parallelism: int
    steps: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()


class TaskFigures(Figures, frozen=True, kw_only=True):
    """One task of a processor, where it runs, and why it holds others up if it does."""

    task: str
    executor_id: int | None = None
    why: str | None = None


class EdgeView(EdgeSummary, frozen=True, kw_only=True):
    """A stream between two processors, records per second.

    ``holds_clock``: it is on the path to the task that holds the clock.
    """

    rate: float | None = None
    backpressured: bool = False
    holds_clock: bool = False


class ExecutorView(Served, frozen=True, kw_only=True):
    """One executor: ``cpu`` in cores, ``gc_pause_share`` of the time."""

    id: int
    launch: int
    worker_id: int
    status: Literal["launching", "running"]
    pid: int
    tasks: tuple[str, ...]
    address: str
    rss_bytes: int | None = None
    cpu: float | None = None
    gc_pause_share: float | None = None


class AppView(Served, frozen=True, kw_only=True):
    """One application; fields of a summary or of details have the same names, and are copies.

    ``waits``: what it waits for, slots or its store; None if for nothing.
    """

    at_ms: int
    app_id: int
    name: str
    status: ApplicationStatus
    user: str
    submitted_ms: int
    started_ms: int
    finished_ms: int
    headline: Headline
    totals: TotalsView
    processors: tuple[ProcessorFigures, ...] = ()
    edges: tuple[EdgeView, ...] = ()
    executors: tuple[ExecutorView, ...] = ()
    epochs: tuple[EpochsSummary, ...] = ()
    consumers: tuple[ConsumerSummary, ...] = ()
    failures: tuple[Failure, ...] = ()
    cause: ErrorCard | None = None
    events: tuple[ApplicationEvent, ...] = ()
    guarantees: tuple[str, ...] = ()
    alerts: tuple[FiringAlert, ...] = ()
    waits: str | None = None
    of_actors: bool = False
    scaled: tuple[ScaledStep, ...] = ()
    known_ms: int = 0
    has_savepoints: bool = False
    change: ChangeSummary | None = None


class ProcessorView(ProcessorFigures, frozen=True, kw_only=True):
    """One processor with its tasks.

    ``skew``: the highest rate of a task over the mean; 1 for even, None if nothing moves.
    """

    tasks: tuple[TaskFigures, ...] = ()
    skew: float | None = None


class MasterView(Served, frozen=True, kw_only=True):
    """One master of a cluster."""

    address: str
    leader: bool
    rss_bytes: int | None = None
    cpu: float | None = None


class WorkerView(Served, frozen=True, kw_only=True):
    """One worker of a cluster: ``cpu`` in cores.

    ``aside_until_ms``: wall time until which it gets nothing new, as it came and went.
    """

    id: int
    address: str
    slots: int
    free_slots: int
    executors: int
    rss_bytes: int | None = None
    cpu: float | None = None
    is_leaving: bool = False
    aside_until_ms: int = 0


class AppRow(Served, frozen=True, kw_only=True):
    """One application in a list."""

    id: int
    name: str
    status: ApplicationStatus
    user: str
    submitted_ms: int
    finished_ms: int
    records_in: int
    records_out: int
    headline: Headline
    records_in_rate: float | None = None
    records_out_rate: float | None = None
    watermark_lag_ms: int | None = None
    lag_ms: int | None = None
    restarts: int = 0


class AttentionView(Served, frozen=True, kw_only=True):
    """Something that somebody should look at; ``app_id`` None: about the cluster."""

    level: Level
    text: str
    app_id: int | None = None


class OverviewView(Served, frozen=True, kw_only=True):
    """A whole cluster."""

    at_ms: int
    cluster_id: str
    version: str
    masters: tuple[MasterView, ...] = ()
    workers: tuple[WorkerView, ...] = ()
    applications: tuple[AppRow, ...] = ()
    attention: tuple[AttentionView, ...] = ()
    alerts: tuple[FiringAlert, ...] = ()
