"""Every key of the configuration with its default, unit, bounds and reason.

A field made by `setting` is a key: name in files, default, unit, what it is for. One made by
`section` is a table of keys. Field names end in the unit. Keys are written as dotted text
without the root table, as in ``streaming.batch-max-records``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from gearpy.config.connections import TransportConfig
from gearpy.config.daemons import (
    AppMasterConfig,
    ArtifactConfig,
    CheckpointConfig,
    ExecutorConfig,
    LogConfig,
    MasterConfig,
    StateConfig,
    WorkerConfig,
)
from gearpy.config.setting import (
    Setting,
    Value,
    rebuilt,
    section,
    sections_in,
    setting,
    settings_in,
    values_in,
)
from gearpy.config.spark import SparkConfig
from gearpy.errors import ConfigError

__all__ = [
    "DEFAULTS",
    "ROOT",
    "SECTIONS",
    "SETTINGS",
    "ActorConfig",
    "ApplicationConfig",
    "ClusterConfig",
    "Config",
    "MasterClientConfig",
    "SharedDispatcherConfig",
    "SourceConfig",
    "StreamingConfig",
    "config_of",
    "mistakes_in",
    "values_of",
]

#: The table that holds all keys. Gearpump: ``gearpump``.
ROOT: Final = "gearpy"

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_DAY_S: Final = 24 * 60 * 60
_DAY_MS: Final = _DAY_S * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Where the cluster is."""

    masters: tuple[str, ...] = setting(
        "masters",
        ("127.0.0.1:3000",),
        "addresses",
        "Control listener of the master. Several are refused: they do not share what they know.",
        form="host:port",
    )
    reconnect_timeout_s: int = setting(
        "reconnect-timeout-seconds",
        600,
        "seconds",
        "Workers and app masters look so long for a master that is away, while their "
        "applications go on; then they stop. Gearpump: 30 seconds.",
        high=_DAY_S,
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat-interval-ms",
        1000,
        "ms",
        "Processes that depend on each other ask this often whether the other is there.",
        low=10,
        high=_DAY_MS,
    )
    heartbeat_timeout_ms: int = setting(
        "heartbeat-timeout-ms",
        6000,
        "ms",
        "A process that is silent for so long counts as lost: frozen, or cut off.",
        low=100,
        high=_DAY_MS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationConfig:
    """How an application is started and kept alive."""

    executors: int = setting(
        "executor-num",
        0,
        "executors",
        "Executors of an application that does not say how many it wants; 0: as few as there is "
        "room for, which is one where a worker has room for all tasks.",
        low=0,
        high=10_000,
    )
    retries: int = setting(
        "total-retries",
        5,
        "restarts",
        "Tasks that fail, or lose their executor, are started again so often within the window; "
        "then the application fails. Gearpump counts over its whole life.",
        low=0,
        high=1_000_000,
    )
    retry_window_s: int = setting(
        "retry-window-seconds",
        600,
        "seconds",
        "Restarts of tasks older than this are forgotten.",
        high=_DAY_S,
    )
    backoff_base_ms: int = setting(
        "backoff-base-ms",
        100,
        "ms",
        "Pause before the first restart of tasks; it doubles with each that follows.",
        low=0,
        high=_DAY_MS,
    )
    backoff_max_ms: int = setting(
        "backoff-max-ms",
        5000,
        "ms",
        "The pause between restarts of tasks grows up to this.",
        low=0,
        high=_DAY_MS,
    )
    poison_attempts: int = setting(
        "poison-attempts",
        3,
        "attempts",
        "A record that makes its operator raise so often ends the application: another restart "
        "would not help.",
        high=1_000_000,
    )
    drain_timeout_s: int = setting(
        "drain-timeout-seconds",
        60,
        "seconds",
        "An application that is drained stops its sources, and shows what they have read; if that "
        "takes longer, it fails.",
        high=_DAY_S,
    )
    on_error: Literal["fail", "skip", "quarantine"] = setting(
        "on-error",
        "fail",
        "policy",
        "What follows when an operator raises on a record: fail restarts the tasks and, when that "
        "does not help, ends the application; skip drops and counts the record; quarantine keeps "
        "it for `gear quarantine`.",
        choices=("fail", "skip", "quarantine"),
    )
    quarantine_max_records: int = setting(
        "quarantine-max-records",
        1000,
        "records",
        "An application that puts more records into quarantine fails: something is wrong with "
        "the program, not with records.",
        high=10_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingConfig:
    """Flow control, batches, clocks and start-up of the tasks."""

    ack_interval_records: int = setting(
        "ack-once-every-message-count",
        2000,
        "records",
        "A sender asks for an acknowledgement after so many records of one link. Smaller finds "
        "loss sooner and costs more messages.",
        high=1_000_000_000,
    )
    max_pending_records: int = setting(
        "max-pending-message-count-per-connection",
        20_000,
        "records",
        "A sender stops at so many unacknowledged records of one link; this is how a slow task "
        "slows its sources. Ten ack intervals keep a link busy while an answer is under way.",
        high=1_000_000_000,
    )
    max_pending_bytes: int = setting(
        "max-pending-bytes-per-connection",
        8 * _MIB,
        "bytes",
        "The same limit by size, so that memory stays bounded when records are large. Sizes of "
        "Python values are estimates.",
        low=_KIB,
        high=_KIB * _MIB,
    )
    ack_interval_ms: int = setting(
        "ack-interval-ms",
        100,
        "ms",
        "On a link that is never quiet a sender asks at least this often, however few its records "
        "are. The clock of a thin stream is so far behind its watermark.",
        high=_DAY_MS,
    )
    quiet_ack_ms: int = setting(
        "quiet-ack-ms",
        20,
        "ms",
        "A link without new records for so long asks for what is still unacknowledged; the clock "
        "waits for that.",
        high=_DAY_MS,
    )
    repeat_ack_ms: int = setting(
        "repeat-ack-ms",
        1000,
        "ms",
        "A request for an acknowledgement that stays unanswered is sent again after so long.",
        high=_DAY_MS,
    )
    batch_max_records: int = setting(
        "batch-max-records",
        1024,
        "records",
        "Records of one batch. Larger gains little speed and makes neighbours wait longer.",
        high=1_000_000,
    )
    columnar_batch_records: int = setting(
        "columnar-batch-records",
        65_536,
        "records",
        "Rows of one batch of columns, also of one read from a source. What a step costs for a "
        "batch hardly grows with its rows; 64 of them count for flow control as one record.",
        high=16_000_000,
    )
    batch_max_bytes: int = setting(
        "batch-max-bytes",
        _MIB,
        "bytes",
        "A batch above this size is split, down to single records, so that it fits into a frame.",
        low=_KIB,
        high=_KIB * _MIB,
    )
    turn_time_ms: int = setting(
        "turn-time-ms",
        2,
        "ms",
        "After so long a task lets its neighbours on the shared dispatcher go on.",
        high=60_000,
    )
    watermark_interval_ms: int = setting(
        "watermark-interval-ms",
        20,
        "ms",
        "A link that carries no records tells its watermark this often. It bounds how late a "
        "window closes on a thin stream.",
        high=_DAY_MS,
    )
    clock_report_interval_ms: int = setting(
        "clock-report-interval-ms",
        100,
        "ms",
        "Executors report the clocks of their tasks this often. Progress shown is so old at most.",
        high=_DAY_MS,
    )
    stall_threshold_ms: int = setting(
        "stall-threshold-ms",
        60_000,
        "ms",
        "An application clock that stands still for so long is reported as stalled, with the "
        "tasks that hold it. Gearpump: `ClockService`.",
        high=_DAY_MS,
    )
    register_task_timeout_ms: int = setting(
        "register-task-timeout-ms",
        30_000,
        "ms",
        "Each step of starting an application's tasks ends within this time or is tried again.",
        low=10,
        high=_DAY_MS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """How sources are read."""

    read_batch_records: int = setting(
        "read-batch-size",
        1024,
        "records",
        "Records asked of a source at a time. Gearpump: `DataSourceConfig`.",
        high=1_000_000,
    )
    idle_poll_ms: int = setting(
        "idle-poll-ms",
        10,
        "ms",
        "Wait before a source that had nothing to give is asked again. Shorter keeps an idle "
        "machine busy.",
        high=_DAY_MS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDispatcherConfig:
    """Threads that many actors share."""

    threads: int = setting(
        "threads",
        1,
        "threads",
        "Threads of one executor's shared dispatcher. More than one pays only where the "
        "interpreter runs them in parallel; else they fight for it and timers come late.",
        high=1024,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterClientConfig:
    """What a program uses to reach the master."""

    timeout_s: int = setting(
        "timeout",
        30,
        "seconds",
        "A client gives up on an answer of the master after so long.",
        high=_DAY_S,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorConfig:
    """Mailboxes and restarts of actors."""

    mailbox_max: int = setting(
        "mailbox-max",
        100_000,
        "messages",
        "A mailbox with so many messages refuses the next one: a growing queue hides that an "
        "actor cannot keep up.",
        high=100_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration; immutable, and free of mistakes once it exists.

    Raises:
        ConfigError: a value is out of bounds, or two of them do not go together.
    """

    hostname: str = setting(
        "hostname",
        "127.0.0.1",
        "host name",
        "This host as the others see it.",
        form="a host name or address",
    )
    task_dispatcher: Literal["shared", "pinned"] = setting(
        "task-dispatcher",
        "shared",
        "dispatcher",
        "Where tasks run that do not say: on threads shared by an executor's tasks, or pinned "
        "to one thread each (for operators that block).",
        choices=("shared", "pinned"),
    )
    resource_allocation_timeout_s: int = setting(
        "resource-allocation-timeout-seconds",
        120,
        "seconds",
        "An application that did not get its slots within this time fails; one that has run before "
        "waits. The slots of an executor that dies are kept for its application so long.",
        high=_DAY_S,
    )
    serializers: tuple[str, ...] = setting(
        "serializers",
        (),
        "serializers",
        "How instances of a class travel between processes and are stored: the class, and one with "
        "the methods encode(value) and decode(data). What gearpy can send by itself needs none. "
        "Gearpump: `gearpump.serializers`.",
        form="module:Class=module:Serializer",
    )
    gc_threshold_objects: int = setting(
        "gc-threshold-objects",
        50_000,
        "objects",
        "So many new objects start a garbage collection in a process that runs tasks. Python's "
        "own 700 is reached by less than one batch.",
        low=700,
        high=100_000_000,
    )
    cluster: ClusterConfig = section("cluster", ClusterConfig())
    master: MasterConfig = section("master", MasterConfig())
    worker: WorkerConfig = section("worker", WorkerConfig())
    executor: ExecutorConfig = section("executor", ExecutorConfig())
    appmaster: AppMasterConfig = section("appmaster", AppMasterConfig())
    artifact: ArtifactConfig = section("artifact", ArtifactConfig())
    checkpoint: CheckpointConfig = section("checkpoint", CheckpointConfig())
    state: StateConfig = section("state", StateConfig())
    spark: SparkConfig = section("spark", SparkConfig())
    log: LogConfig = section("log", LogConfig())
    application: ApplicationConfig = section("application", ApplicationConfig())
    streaming: StreamingConfig = section("streaming", StreamingConfig())
    source: SourceConfig = section("source", SourceConfig())
    shared_dispatcher: SharedDispatcherConfig = section(
        "shared-thread-pool-dispatcher", SharedDispatcherConfig()
    )
    masterclient: MasterClientConfig = section("masterclient", MasterClientConfig())
    actor: ActorConfig = section("actor", ActorConfig())
    transport: TransportConfig = section("transport", TransportConfig())

    def __post_init__(self) -> None:
        mistakes = tuple(mistakes_in(values_of(self), {}))
        if mistakes:
            raise ConfigError(*mistakes)


#: Pairs of keys of which the first must not be above the second, and what breaks otherwise.
_NOT_ABOVE: Final = (
    (
        "streaming.ack-once-every-message-count",
        "streaming.max-pending-message-count-per-connection",
        "a sender would stop before it asks for an acknowledgement",
    ),
    (
        "streaming.batch-max-records",
        "streaming.max-pending-message-count-per-connection",
        "a full batch would never be sent",
    ),
    (
        "streaming.batch-max-bytes",
        "streaming.max-pending-bytes-per-connection",
        "a full batch would never be sent",
    ),
    ("streaming.batch-max-bytes", "transport.frame-max-bytes", "a full batch would not fit"),
    ("streaming.quiet-ack-ms", "streaming.repeat-ack-ms", "repeats would come before requests"),
    (
        "streaming.clock-report-interval-ms",
        "streaming.stall-threshold-ms",
        "a healthy clock would count as stalled between two reports",
    ),
    ("transport.reconnect-base-ms", "transport.reconnect-max-ms", "the pause could not grow"),
    ("application.backoff-base-ms", "application.backoff-max-ms", "the pause could not grow"),
    ("appmaster.backoff-base-ms", "appmaster.backoff-max-ms", "the pause could not grow"),
    (
        "cluster.heartbeat-interval-ms",
        "cluster.heartbeat-timeout-ms",
        "healthy processes would count as lost",
    ),
)


#: Every key with what is known about it, in the order of this page.
SETTINGS: Final[Mapping[str, Setting]] = dict(settings_in(Config))

#: The tables of keys with their classes, in the order of this page.
SECTIONS: Final[Mapping[str, type]] = dict(sections_in(Config))


def values_of(config: Config) -> dict[str, Value]:
    """Return every key with its value, in the order of the schema."""
    return dict(values_in(config))


def config_of(values: Mapping[str, Value]) -> Config:
    """Return the configuration with these values; keys that are missing have their defaults.

    Raises:
        ConfigError: a value is out of bounds, or two of them do not go together.
    """
    return rebuilt(DEFAULTS, values)


def mistakes_in(values: Mapping[str, Value], origins: Mapping[str, str]) -> Iterator[str]:
    """Return what is wrong with values that have the right types.

    ``origins`` has for a key the text that names it and where it was set; a key without one is
    a default. Two keys are compared only if both are there and within bounds.
    """
    sound = {key: value for key, value in values.items() if SETTINGS[key].allows(value)}
    for key, value in values.items():
        if key not in sound:
            yield f"{origins.get(key, key)} is {value!r}, must be {SETTINGS[key].allowed}"
    for small, large, consequence in _NOT_ABOVE:
        if small in sound and large in sound and _is_above(sound[small], sound[large]):
            yield (
                f"{origins.get(small, small)} is {sound[small]}, must not be above "
                f"{origins.get(large, large)}, {sound[large]}: else {consequence}"
            )


def _is_above(value: Value, other: Value) -> bool:
    return isinstance(value, int) and isinstance(other, int) and value > other


#: What holds where nothing is set.
DEFAULTS: Final = Config()
