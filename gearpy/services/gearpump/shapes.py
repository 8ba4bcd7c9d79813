"""Models of the answers of Gearpump's routes; a name such as ``app_id`` is ``appId`` in JSON.

Times are wall time in ms since 1970, spans are ms. Gearpump writes 64-bit numbers as text; these
are numbers.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gearpy.messages.summaries import ApplicationStatus


class Shape(BaseModel):
    """Base of all of them."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True
    )


class HostPort(Shape):
    """An address. Gearpump: `HostPort`."""

    host: str
    port: int


class HistoryMetricsConfig(Shape):
    """The times for which measurements are kept. Gearpump: `HistoryMetricsConfig`."""

    retain_history_data_hours: int
    retain_history_data_interval_ms: int
    retain_recent_data_seconds: int
    retain_recent_data_interval_ms: int


class MasterDescription(Shape):
    """A master. ``activities`` is always empty. Gearpump: `MasterSummary`."""

    leader: HostPort
    cluster: list[HostPort]
    alive_for: int
    log_file: str
    jar_store: str
    master_status: str
    home_directory: str
    activities: list[str]
    jvm_name: str
    history_metrics_config: HistoryMetricsConfig


class MasterData(Shape):
    """Answer of ``master``. Gearpump: `MasterData`."""

    master_description: MasterDescription


class ExecutorSlots(Shape):
    """An executor on a worker. Gearpump: `ExecutorSlots`."""

    app_id: int
    executor_id: int
    slots: int


class WorkerSummaryShape(Shape):
    """A worker. Gearpump: `WorkerSummary`."""

    worker_id: str
    state: str
    actor_path: str
    alive_for: int
    log_file: str
    executors: list[ExecutorSlots]
    total_slots: int
    available_slots: int
    home_directory: str
    jvm_name: str
    resource_manager_container_id: str
    history_metrics_config: HistoryMetricsConfig


class AppMasterData(Shape):
    """An application in brief; ``finish_time`` is left out before its end. As in Gearpump."""

    status: ApplicationStatus
    app_id: int
    app_name: str
    app_master_path: str
    worker_path: str
    submission_time: int
    start_time: int
    finish_time: int | None = None
    user: str


class AppMastersData(Shape):
    """Answer of ``master/applist``. Gearpump: `AppMastersData`."""

    app_masters: list[AppMasterData]


class DagShape(Shape):
    """A graph: numbers of processors, and edges with a partitioner. Gearpump: `Graph`."""

    vertex_list: list[int]
    edge_list: list[tuple[int, str, int]]


class ExecutorBrief(Shape):
    """An executor of an application. Gearpump: `ExecutorBrief`."""

    executor_id: int
    executor: str
    worker_id: str
    status: str


class LifeTime(Shape):
    """The event times that a processor works on. Gearpump: `LifeTime`."""

    birth: int
    death: int


class TaskCount(Shape):
    """The number of tasks of an executor. Gearpump: `TaskCount`."""

    count: int


class ProcessorShape(Shape):
    """A processor of an application. Gearpump: `ProcessorSummary`."""

    id: int
    task_class: str
    parallelism: int
    description: str
    task_conf: dict[str, Any]
    life: LifeTime
    executors: list[int]
    task_count: list[tuple[int, TaskCount]]


class StreamAppMasterSummary(Shape):
    """An application in full; ``clock`` is null where it is not known. As in Gearpump."""

    app_id: int
    app_name: str
    actor_path: str
    clock: int | None
    start_time: int
    uptime: int
    user: str
    home_directory: str
    log_file: str
    dag: DagShape
    executors: list[ExecutorBrief]
    processors: list[tuple[int, ProcessorShape]]
    processor_levels: list[tuple[int, int]]
    history_metrics_config: HistoryMetricsConfig


class TaskIdShape(Shape):
    """A task. Gearpump: `TaskId`."""

    processor_id: int
    index: int


class StallingTasks(Shape):
    """Answer of ``stallingtasks``. Gearpump: `StallingTasks`."""

    tasks: list[TaskIdShape]


class LastFailure(Shape):
    """Answer of ``errors``; ``time`` is 0 when there is none. Gearpump: `LastFailure`."""

    time: int
    error: str | None


class ExecutorSummaryShape(Shape):
    """An executor in full; -1 is the app master. Gearpump: `ExecutorSummary`."""

    id: int
    worker_id: str
    actor_path: str
    log_file: str
    status: str
    task_count: int
    tasks: list[tuple[int, list[TaskIdShape]]]
    jvm_name: str


class BuiltinPartitioners(Shape):
    """Answer of ``partitioners``. Gearpump: `BuiltinPartitioners`."""

    partitioners: list[str]


class SupervisorPath(Shape):
    """Answer of ``supervisor``: there is none, as in Gearpump without YARN."""

    path: str | None


class SupervisorStatus(Shape):
    """Answer of ``supervisor/status``. Gearpump: `Status`."""

    enabled: bool


class KillStatus(Shape):
    """Answer of ``DELETE appmaster/ID``. Gearpump: `Status`."""

    status: str
    info: str | None


class RestartStatus(Shape):
    """Answer of ``restart``, with the new number, which Gearpump does not tell."""

    success: bool
    reason: str | None
    app_id: int


class SubmitStatus(Shape):
    """Answer of ``submitapp``, with the number, which Gearpump does not tell."""

    success: bool
    app_id: int


class SubmittedDag(Shape):
    """Answer of ``submitdag``. Gearpump: `SubmitApplicationResultValue`."""

    app_id: int


class FilePath(Shape):
    """The handle of an upload. Gearpump: `FilePath`."""

    path: str


class AppJar(Shape):
    """Answer of ``uploadjar``, to be named by a processor of ``submitdag``. Gearpump: `AppJar`."""

    name: str
    file_path: FilePath


class MetricValue(Shape):
    """A measurement: fields of its kind only. Gearpump: `MetricType`."""

    type: str = Field(alias="$type")
    name: str
    value: float | None = None
    count: float | None = None
    mean_rate: float | None = None
    m1: float | None = None
    rate_unit: str | None = None
    mean: float | None = None
    stddev: float | None = None
    median: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None


class MetricItem(Shape):
    """A measurement at a time. Gearpump: `HistoryMetricsItem`."""

    time: int
    value: MetricValue


class MetricsShape(Shape):
    """Answer of the routes of metrics. Gearpump: `HistoryMetrics`."""

    path: str
    metrics: list[MetricItem]


class NumberedMetrics(MetricsShape):
    """The same of Gearpump 0.6."""

    app_id: int


class SocketAddress(Shape):
    """Answer of ``websocket/url``. Gearpump 0.6: `WebSocketUrl`."""

    url: str
