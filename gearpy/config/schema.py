"""Every key of the configuration with its default, unit, bounds and reason.

An annotated field is a key, and a field that is a dataclass is a table of keys; see `setting`.
Keys are written as dotted text without the root table, as in ``streaming.batch-max-records``.
A limit that nobody would set is no key: it is a constant beside its use.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Struct

from gearpy.config.hidden import shown_setting
from gearpy.config.setting import Setting, Value, getters_in, rebuilt, sections_in, settings_in
from gearpy.errors import ConfigError

#: The table that holds all keys. Gearpump: ``gearpump``.
ROOT: Final = "gearpy"

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_GIB: Final = 1024 * _MIB
_DAY_S: Final = 24 * 60 * 60
_DAY_MS: Final = _DAY_S * 1000

_Millis: TypeAlias = Annotated[int, Setting(unit="ms", high=_DAY_MS)]
_Seconds: TypeAlias = Annotated[int, Setting(unit="seconds", high=_DAY_S)]
_Bytes: TypeAlias = Annotated[int, Setting(unit="bytes", high=_GIB)]
_Records: TypeAlias = Annotated[int, Setting(unit="records", high=10_000_000)]
_Rows: TypeAlias = Annotated[int, Setting(unit="rows", high=1_000_000_000)]
_Percent: TypeAlias = Annotated[int, Setting(unit="percent", high=100)]
_Folder: TypeAlias = Annotated[str, Setting(unit="folder", form="a path")]


class ClusterConfig(Struct, frozen=True, kw_only=True):
    """The address of the cluster, and when a process counts as lost."""

    masters: Annotated[
        tuple[str, ...],
        "Control listener of each master: one, or an odd number of masters that have one log "
        "together. The same everywhere.",
        Setting(form="host:port", unit="addresses"),
    ] = ("127.0.0.1:3000",)
    reconnect_timeout_s: Annotated[
        _Seconds,
        "Workers and app masters look so long for a master that is away, while their applications "
        "go on; then they stop. Gearpump: 30 seconds.",
    ] = 600
    heartbeat_timeout_ms: Annotated[
        _Millis,
        "A process that is silent for so long counts as lost: frozen, or cut off. Those that "
        "depend on it ask six times as often whether it is there.",
        Setting(low=100),
    ] = 6000


class MasterConfig(Struct, frozen=True, kw_only=True):
    """The files of a master."""

    folder: Annotated[
        _Folder,
        "The master's log, artifacts and quarantined records. Everybody who can write here "
        "decides what the cluster runs. A ~ is the user's home.",
    ] = "~/.gearpy/master"
    admins: Annotated[
        tuple[str, ...],
        "Users who may stop, drain, restart and replay the applications of others; so may the user "
        "who runs the master.",
        Setting(form="user names", unit="users"),
    ] = ()
    quotas: Annotated[
        tuple[str, ...],
        "The slots that all applications of a user may have together for tasks, such as ann=20; "
        "* is everybody who is not named. What is beyond waits. A restart gets what it had.",
        Setting(form="user=slots", unit="slots"),
    ] = ()
    scheduler: Annotated[
        str,
        "How workers are chosen. spread: as many machines as can be, the emptiest first; pack: "
        "the one that is in use most, so that others stay empty; or a policy that a package "
        "offers under this name as entry point of gearpy.schedulers.",
        Setting(form="a name", unit="policy"),
    ] = "spread"


class WorkerConfig(Struct, frozen=True, kw_only=True):
    """The slots of a worker, and its files."""

    slots: Annotated[
        int,
        "The slots that one worker offers to executors. A slot is a share of the machine by "
        "agreement, not a measured amount.",
        Setting(high=1_000_000, unit="slots"),
    ] = 1000
    folder: Annotated[
        _Folder,
        "Artifacts that were fetched, and a working folder for each executor process. A ~ is the "
        "user's home.",
    ] = "~/.gearpy/worker"
    programs_quota_bytes: Annotated[
        _Bytes,
        "Artifacts that were fetched may have so many bytes unpacked, all together. Beyond that, "
        "those go that were used longest ago, but none that a process runs. 0: any number.",
        Setting(low=0, high=1024 * _GIB),
    ] = 16 * _GIB
    machine: Annotated[
        str,
        "The name of the machine, for application.hosts and to spread executors over machines. "
        "Empty: its host name. In a container, give the name of the machine that it is on.",
        Setting(form="a name, or nothing", unit="host name"),
    ] = ""
    rack: Annotated[
        str,
        "The rack, or zone, in which the machine stands: one name of all machines there, for "
        "application.hosts.",
        Setting(form="a name, or nothing", unit="rack"),
    ] = ""


class ExecutorConfig(Struct, frozen=True, kw_only=True):
    """Processes that run tasks."""

    start_timeout_s: Annotated[
        _Seconds,
        "An executor that has not registered after so long is killed and replaced. Each step of "
        "starting its tasks has half of it.",
    ] = 60
    stop_timeout_s: Annotated[
        _Seconds, "A process that was asked to stop is killed after so long."
    ] = 10
    turn_timeout_s: Annotated[
        _Seconds,
        "A task that has been in one call of user code for so long is stuck: its executor is "
        "killed and replaced, and the error shows the step and the line. 0: never.",
        Setting(low=0),
    ] = 300
    memory_max_bytes: Annotated[
        _Bytes,
        "Data that one executor process may allocate (RLIMIT_DATA); above it Python raises "
        "MemoryError. 0 is no limit.",
        Setting(low=0, high=1 << 50),
    ] = 0
    python_options: Annotated[
        tuple[str, ...],
        "Options of Python for the processes of an application: its executors and its app master. "
        "With any, and with an environment, they are started anew and not forked, which takes a "
        "second. Threads of a daemon, and gear run, are in a Python that runs already.",
        Setting(form="options of Python, such as -O, -X dev and -W error", unit="texts"),
    ] = ()
    environment: Annotated[
        tuple[str, ...],
        "Variables in the environment of these processes, beside those of their worker. Values of "
        "those that are called password, secret, token or key are not shown; they are stored "
        "with the application.",
        Setting(form="NAME=value", unit="texts"),
    ] = ()


class ArtifactConfig(Struct, frozen=True, kw_only=True):
    """Programs that are uploaded."""

    folder: Annotated[
        str,
        "Programs are kept here, too: a folder, or a URL that fsspec knows, such as "
        "s3://bucket/programs. A master elsewhere finds them there. Everybody who can write here "
        "decides what the cluster runs. Empty: in master.folder only.",
        Setting(form="a path or URL, or nothing", unit="folder"),
    ] = ""
    max_bytes: Annotated[
        _Bytes,
        "An artifact above this size is refused. It may unpack to four times as much, and to one "
        "file for each 25 KiB.",
        Setting(low=_KIB, high=64 * _GIB),
    ] = 256 * _MIB
    quota_bytes: Annotated[
        _Bytes,
        "All programs that a master keeps may have so many bytes together; what would be beyond "
        "is refused. 0: any number.",
        Setting(low=0, high=1024 * _GIB),
    ] = 16 * _GIB
    keep_ended: Annotated[
        int,
        "A master keeps the program of an application so long after its end, for `gear app "
        "restart`; then it goes, unless another application needs it.",
        Setting(low=0, high=24 * 366 * 10, unit="hours"),
    ] = 24 * 30


class CheckpointConfig(Struct, frozen=True, kw_only=True):
    """The checkpoints of an application: where its state is stored, how often, for how long."""

    folder: Annotated[
        _Folder,
        "Snapshots of tasks and the coordinator log: a folder, or a URL that fsspec knows, such "
        "as s3://bucket/path. All machines of a cluster must see the same. A ~ is the user's "
        "home.",
    ] = "~/.gearpy/checkpoints"
    runs_folder: Annotated[
        _Folder,
        "Where `gear run --resume NAME` keeps what a run goes on from, in a folder of that name. "
        "A ~ is the user's home.",
    ] = "~/.gearpy/runs"
    keep_succeeded: Annotated[
        int,
        "The files that an application has stored stay so long after it succeeded, to look at or "
        "to go on from; then the next application that succeeds removes them. 0: they go at once.",
        Setting(low=0, high=24 * 366 * 10, unit="hours"),
    ] = 24
    cut: Annotated[
        Literal["position", "event-time"],
        "Where an epoch ends: at the position where each source happens to be, or at an event "
        "time that all sources agree on, so that it holds all records older than that.",
        Setting(unit="policy"),
    ] = "position"
    interval_ms: Annotated[
        _Millis, "Time from one epoch to the next, at least.", Setting(low=10)
    ] = 1000
    max_overhead_percent: Annotated[
        int,
        "Epochs are being stored for so much of the time at most, in the long run: the next one "
        "begins to end later then. 100: after the interval, whatever storing costs.",
        Setting(high=100, unit="percent"),
    ] = 10
    timeout_ms: Annotated[
        _Millis,
        "An epoch that is not complete after so long is given up, and the next one begins to end.",
        Setting(low=10),
    ] = 600_000
    retained: Annotated[
        int,
        "So many of the newest complete epochs are kept. With more than one, a restart can go "
        "back further when the newest is damaged.",
        Setting(high=10_000, unit="epochs"),
    ] = 2
    changelog: Annotated[
        Literal["off", "on"],
        "With on, keyed state is stored a second time, by task. When files of an epoch are "
        "damaged or missing, a restart rebuilds it from there.",
        Setting(unit="policy"),
    ] = "off"


class StateConfig(Struct, frozen=True, kw_only=True):
    """The place in which tasks keep keyed state between epochs: memory or files."""

    backend: Annotated[
        Literal["heap", "disk"],
        "heap keeps state in memory; disk keeps it in a database file, for state that is larger.",
        Setting(unit="backend"),
    ] = "heap"
    folder: Annotated[
        _Folder,
        "Database files of the disk backend; they are rebuilt from checkpoints after a restart. A "
        "~ is the user's home.",
    ] = "~/.gearpy/state"
    disk_max_bytes: Annotated[
        _Bytes,
        "The database file of one task grows up to this; the file is as large as what is in it.",
        Setting(low=_MIB, high=1 << 46),
    ] = 64 * _GIB


class SparkConfig(Struct, frozen=True, kw_only=True):
    """The hand-over of finished windows to a function that runs on Spark."""

    batch_max_rows: Annotated[
        _Rows,
        "One call of the function gets no more, unless what one epoch has brought is more already.",
    ] = 1_000_000
    in_memory_max_rows: Annotated[
        _Rows,
        "So many rows go to Spark through its connection; more are read by Spark from files, "
        "which it must be able to see.",
        Setting(low=0, high=10_000_000),
    ] = 50_000
    waiting_max_rows: Annotated[
        _Rows,
        "When so many finished rows wait for the function, the stream waits too, until there are "
        "half as many.",
        Setting(high=1_000_000_000_000),
    ] = 5_000_000
    call_attempts: Annotated[
        int,
        "When the function raises it is called again with the same rows, so often in all; then "
        "the sink fails.",
        Setting(high=1_000_000, unit="calls"),
    ] = 5
    pause_ms: Annotated[
        _Millis,
        "Wait before the first repeated call, or before Spark is looked for again; twice as long "
        "after each further failure, up to 30 seconds.",
    ] = 500
    outage_max_ms: Annotated[
        _Millis, "Spark may be away, or end in each call, for so long; then the sink fails."
    ] = 600_000
    call_max_ms: Annotated[
        _Millis,
        "A call that takes longer counts as stuck, and the sink fails; 0 for no limit.",
        Setting(low=0),
    ] = 3_600_000


class LogConfig(Struct, frozen=True, kw_only=True):
    """Log files of daemons and of applications."""

    folder: Annotated[
        _Folder,
        "One file for each daemon; one folder for each application with a file for each of its "
        "processes. A ~ is the user's home.",
    ] = "~/.gearpy/logs"
    format: Annotated[
        Literal["text", "json"],
        "text is for people; json has one object a line.",
        Setting(unit="format"),
    ] = "text"
    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        "Lines that are less important are not written.",
        Setting(unit="level"),
    ] = "info"


class ApplicationConfig(Struct, frozen=True, kw_only=True):
    """The start of an application, its restarts, its changes and its end."""

    executors: Annotated[
        int,
        "Executors of an application that does not say how many it wants; 0: as few as there is "
        "room for, which is one where a worker has room for all tasks.",
        Setting(low=0, high=10_000, unit="executors", key="executor-num"),
    ] = 0
    priority: Annotated[
        Literal["low", "normal", "high"],
        "Which of the applications that wait for slots gets them first. What runs keeps its own.",
        Setting(unit="priority"),
    ] = "normal"
    relaxation: Annotated[
        Literal["any", "one-worker"],
        "any: executors are on any workers, see master.scheduler; one-worker: on one, whichever.",
        Setting(unit="policy"),
    ] = "any"
    hosts: Annotated[
        tuple[str, ...],
        "Machines that an application may be on, by worker.machine, host name, worker.rack, or as "
        "worker3; empty: all. It waits while none of them has room.",
        Setting(form="host names", unit="machines"),
    ] = ()
    localities: Annotated[
        tuple[str, ...],
        "Machines that the tasks of a step may be on, such as parse=machine1|machine2, in place "
        "of application.hosts. The step is named as in the plan. Gearpump: "
        "`gearpump.streaming.localities`.",
        Setting(form="step=host|host", unit="steps"),
    ] = ()
    load_timeout_s: Annotated[
        _Seconds,
        "A program is loaded in a process of its own before anything runs of it. One that is not "
        "loaded after so long is refused, with the line where it stands.",
    ] = 60
    load_memory_max_bytes: Annotated[
        _Bytes,
        "Data that this process may allocate (RLIMIT_DATA), and no more than "
        "executor.memory-max-bytes if that is set; above it Python raises MemoryError, and the "
        "program is refused.",
        Setting(low=64 * _MIB, high=1 << 50),
    ] = 4 * _GIB
    retries: Annotated[
        int,
        "Tasks that fail, or lose their executor, are started again so often within the window; "
        "then the application fails. An app master that is lost has a budget of the same size. "
        "Gearpump counts over the whole life.",
        Setting(low=0, high=1_000_000, unit="restarts", key="total-retries"),
    ] = 5
    retries_errors: Annotated[
        Literal["on", "off"],
        "off: an error that the program's own code raises ends the application at once; that an "
        "executor is lost still costs a restart only.",
        Setting(unit="switch", key="retry-errors"),
    ] = "on"
    retry_window_s: Annotated[_Seconds, "Restarts that are older than this are forgotten."] = 600
    backoff_base_ms: Annotated[
        _Millis,
        "Pause before the first restart; it doubles with each that follows, up to 50 times it.",
        Setting(low=0),
    ] = 100
    drain_timeout_s: Annotated[
        _Seconds,
        "An application that is drained stops its sources, and commits what they have read; if "
        "that takes longer, it fails.",
    ] = 60
    trial_s: Annotated[
        _Seconds,
        "A new version of a running application is on trial for so long: until then sinks commit "
        "nothing of it, and the version before takes its place again if it fails.",
    ] = 5
    autoscale: Annotated[
        tuple[str, ...],
        "Steps whose tasks a cluster chooses by how busy they are, with the fewest and the most: "
        "count=1..8, or count=1..8@60% for tasks that are to be busy for 60% of their time (70).",
        Setting(form="step=least..most", unit="steps"),
    ] = ()
    autoscale_cooldown_s: Annotated[
        _Seconds,
        "From one change that autoscale makes to the next one, at least. It grows after a third of "
        "it with too much to do, and shrinks after all of it with too little. 0: never.",
        Setting(low=0),
    ] = 60
    on_error: Annotated[
        Literal["fail", "skip", "quarantine"],
        "What follows when an operator raises on a record: fail restarts the tasks and, when that "
        "does not help, ends the application; skip drops and counts the record; quarantine keeps "
        "it for `gear quarantine`. Both look for a record that ends its process, and go on without "
        "it.",
        Setting(unit="policy"),
    ] = "fail"
    record_input_bytes: Annotated[
        int,
        "What each task takes is recorded, up to so much in each epoch, so that `gear debug` can "
        "run the task again, exactly as it ran. It is kept in the checkpoint store as long as the "
        "epochs. 0: nothing is.",
        Setting(low=0, high=_GIB, unit="bytes"),
    ] = 0
    record_input_epochs: Annotated[
        int,
        "Of so many epochs the input of one is recorded; `gear debug` and `gear app shadow` have "
        "no others. 0: a task records all epochs if that takes a twentieth of its time at most, "
        "else one of 2, 4, or up to 64, and always those behind a start.",
        Setting(low=0, high=1000, unit="epochs"),
    ] = 0
    quarantine_max_records: Annotated[
        _Records,
        "An application that puts more records into quarantine fails: something is wrong with the "
        "program, not with records.",
    ] = 1000


class AlertsConfig(Struct, frozen=True, kw_only=True):
    """Alerts of the services, and the webhooks that are told of them."""

    webhooks: Annotated[
        tuple[str, ...],
        "URLs that are told, by a POST of JSON, when an alert fires or is resolved.",
        Setting(form="an http or https URL", unit="URLs"),
    ] = ()
    off: Annotated[
        tuple[str, ...],
        "Rules that are not followed.",
        Setting(
            unit="rules",
            choices=(
                "failed",
                "store-away",
                "stalled-clock",
                "epochs-failing",
                "executor-memory",
                "restarts",
                "back-pressure",
                "quarantine",
                "late-records",
                "waiting",
            ),
        ),
    ] = ()
    back_pressure_percent: Annotated[
        _Percent, "back-pressure fires when a processor is held back so much for three minutes."
    ] = 50
    restarts: Annotated[
        int,
        "restarts fires when tasks were restarted so often within ten minutes.",
        Setting(high=1000, unit="restarts"),
    ] = 3
    late_percent: Annotated[
        _Percent, "late-records fires when so many of all records come too late."
    ] = 1
    memory_percent: Annotated[
        _Percent,
        "executor-memory fires when an executor uses so much of executor.memory-max-bytes, where "
        "that is a limit.",
    ] = 90


class StreamingConfig(Struct, frozen=True, kw_only=True):
    """Flow control, batches, clocks and start-up of the tasks."""

    ack_interval_records: Annotated[
        _Records,
        "A sender asks for an acknowledgement after so many records of one link. Smaller finds "
        "loss sooner and costs more messages.",
        Setting(high=1_000_000_000, key="ack-once-every-message-count"),
    ] = 2000
    max_pending_records: Annotated[
        _Records,
        "A sender stops at so many unacknowledged records of one link, or at those that are the "
        "work of a second of the task that gets them; this is how a slow task slows its sources. "
        "Ten ack intervals keep a link busy while an answer is under way.",
        Setting(high=1_000_000_000, key="max-pending-message-count-per-connection"),
    ] = 20_000
    max_pending_bytes: Annotated[
        _Bytes,
        "The same limit by size, so that memory stays bounded when records are large. Sizes of "
        "Python values are estimates.",
        Setting(low=_KIB, high=_GIB, key="max-pending-bytes-per-connection"),
    ] = 8 * _MIB
    batch_max_records: Annotated[
        _Records,
        "Records of one batch. Larger gains little speed and makes neighbours wait longer.",
        Setting(high=1_000_000),
    ] = 1024
    columnar_batch_records: Annotated[
        _Records,
        "Rows of one batch of columns, also of one read from a source. The cost of a step for a "
        "batch hardly grows with its rows; 64 of them count for flow control as one record.",
        Setting(high=16_000_000),
    ] = 65_536
    stall_threshold_ms: Annotated[
        _Millis,
        "An application clock that stands still for so long is reported as stalled, with the "
        "tasks that hold it; the alert stalled-clock fires, too. Gearpump: `ClockService`.",
        Setting(low=100),
    ] = 60_000


class SourceConfig(Struct, frozen=True, kw_only=True):
    """The reading of sources."""

    read_batch_records: Annotated[
        _Records,
        "Records asked of a source at a time, at most. Gearpump: `DataSourceConfig`.",
        Setting(high=1_000_000, key="read-batch-size"),
    ] = 1024


class MasterClientConfig(Struct, frozen=True, kw_only=True):
    """The questions of a program to the master."""

    timeout_s: Annotated[
        _Seconds,
        "A client gives up on an answer of the master after so long.",
        Setting(key="timeout"),
    ] = 30


class ServicesConfig(Struct, frozen=True, kw_only=True):
    """The REST API and the page."""

    host: Annotated[
        str,
        "Where the services listen. Other addresses than those of this machine alone need tokens: "
        "`gear token add`.",
        Setting(form="a host name or address", unit="host name"),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        "The port of the services; 0 lets the system choose.",
        Setting(low=0, high=65_535, unit="port"),
    ] = 8090
    token_file: Annotated[
        Annotated[str, Setting(unit="file", form="a path")],
        "Who may use the services, and for what: names, scopes, and hashes of tokens. Without "
        "any, services on this machine alone make one at each start; the folder services beside "
        "this file has those. A ~ is the user's home.",
    ] = "~/.gearpy/tokens"  # noqa: S105
    tls: Annotated[
        Literal["off", "on"],
        "on: the services speak HTTPS, with the certificate in services.tls-folder. Browsers want "
        "to know its authority.",
        Setting(unit="switch"),
    ] = "off"
    tls_folder: Annotated[
        _Folder, "Certificate and key of the services, in files as `gear certs` makes them."
    ] = "~/.gearpy/certs"


class TransportConfig(Struct, frozen=True, kw_only=True):
    """Connections between processes."""

    secret_file: Annotated[
        Annotated[str, Setting(unit="file", form="a path")],
        "The secret that all processes of a cluster share; a process that does not know it is not "
        "heard. A ~ is the user's home.",
    ] = "~/.gearpy/secret"  # noqa: S105
    frame_max_bytes: Annotated[
        _Bytes,
        "A data frame that claims to be larger ends the connection before memory is taken for it. "
        "Raise it where one record is larger.",
        Setting(low=4 * _KIB),
    ] = 16 * _MIB
    tls: Annotated[
        Literal["off", "on"],
        "on: every connection is encrypted, and both ends show a certificate of the cluster's own "
        "authority. Needed to listen beyond this machine, unless plain text is allowed.",
        Setting(unit="switch"),
    ] = "off"
    tls_folder: Annotated[
        _Folder, "Certificates and key made by `gear certs init`. A ~ is the user's home."
    ] = "~/.gearpy/certs"
    plain_text: Annotated[
        Literal["loopback", "anywhere"],
        "anywhere: also listen on other addresses without encryption, on a network that you trust.",
        Setting(unit="switch"),
    ] = "loopback"


class MetricsConfig(Struct, frozen=True, kw_only=True):
    """Measurements of tasks and processes. Gearpump: ``gearpump.metrics``."""

    report_interval_ms: Annotated[
        _Millis,
        "An executor tells this often how its tasks are: times, sizes, latency. 0: tasks are not "
        "measured; their records are counted in any case. Gearpump: 3000.",
        Setting(low=0),
    ] = 1000
    executor_port: Annotated[
        int,
        "Each executor process shows its own measurements to Prometheus at this port of its host, "
        "or at the next one that is free; 0 lets the system choose. -1: it listens nowhere.",
        Setting(low=-1, high=65_535, unit="port"),
    ] = -1


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration; immutable, and free of mistakes once it exists.

    Raises:
        ConfigError: a value is out of bounds, or two of them do not go together.
    """

    hostname: Annotated[
        str,
        "This host as the others see it.",
        Setting(form="a host name or address", unit="host name"),
    ] = "127.0.0.1"
    listen_host: Annotated[
        str,
        "Where processes listen, if not at the name by which the others see them: 0.0.0.0 where "
        "that name means another address on this machine, or none. Empty: at that name.",
        Setting(form="a host name or address, or nothing", unit="host name"),
    ] = ""
    task_dispatcher: Annotated[
        Literal["shared", "pinned"],
        "Where tasks run that do not say: on threads shared by an executor's tasks, or pinned to "
        "one thread each (for operators that block).",
        Setting(unit="dispatcher"),
    ] = "shared"
    resource_allocation_timeout_s: Annotated[
        _Seconds,
        "An application that did not get its slots within this time fails; one that has run "
        "before waits. The slots of an executor that dies are kept for its application so long.",
    ] = 120
    serializers: Annotated[
        tuple[str, ...],
        "How instances of a class travel between processes and are stored: the class, and a class "
        "with the methods encode(value) and decode(data). Values that gearpy can send by itself "
        "need none. Gearpump: `gearpump.serializers`.",
        Setting(form="module:Class=module:Serializer", unit="serializers"),
    ] = ()
    cluster: ClusterConfig = ClusterConfig()
    master: MasterConfig = MasterConfig()
    worker: WorkerConfig = WorkerConfig()
    executor: ExecutorConfig = ExecutorConfig()
    artifact: ArtifactConfig = ArtifactConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    state: StateConfig = StateConfig()
    spark: SparkConfig = SparkConfig()
    log: LogConfig = LogConfig()
    application: ApplicationConfig = ApplicationConfig()
    alerts: AlertsConfig = AlertsConfig()
    streaming: StreamingConfig = StreamingConfig()
    source: SourceConfig = SourceConfig()
    masterclient: MasterClientConfig = MasterClientConfig()
    services: ServicesConfig = ServicesConfig()
    transport: TransportConfig = TransportConfig()
    metrics: MetricsConfig = MetricsConfig()

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
)

#: Keys, or beginnings of keys, that once were, with what to do instead.
RETIRED: Final = {
    "appmaster.": "the keys of [gearpy.application] hold for app masters, too",
    "executor.open-files-max": "set `ulimit -n` in the shell that starts the worker",
    "application.backoff-max-ms": "it is 50 times application.backoff-base-ms",
    "cluster.heartbeat-interval-ms": "it is a sixth of cluster.heartbeat-timeout-ms",
    "streaming.register-task-timeout-ms": "it is half of executor.start-timeout-seconds",
    "transport.control-frame-max-bytes": "it is 1 MiB",
    "alerts.stalled-clock-seconds": "set streaming.stall-threshold-ms",
    "executor.file-max-bytes": "set `ulimit -f` in the shell that starts the worker",
}


#: Every key with its `Setting`, in the order of this page.
SETTINGS: Final[Mapping[str, Setting]] = dict(settings_in(Config))

#: The tables of keys with their classes, in the order of this page.
SECTIONS: Final[Mapping[str, type]] = dict(sections_in(Config))


def values_of(config: Config) -> dict[str, Value]:
    """Return every key with its value, in the order of the schema."""
    return {key: value_of(config) for key, value_of in getters_in(Config)}


def config_of(values: Mapping[str, Value]) -> Config:
    """Return the configuration with these values; keys that are missing have their defaults."""
    return rebuilt(DEFAULTS, values)


def mistakes_in(values: Mapping[str, Value], origins: Mapping[str, str]) -> Iterator[str]:
    """Yield the mistakes among values that have the right types.

    ``origins`` has for a key the text that names it and where it was set; a key without one is
    a default. Two keys are compared only if both are there and within bounds.
    """
    # Most values are defaults, which are allowed.
    sound = {
        key: value
        for key, value in values.items()
        if value == (setting := SETTINGS[key]).default or setting.allows(value)
    }
    for key, value in values.items():
        if key not in sound:
            shown = shown_setting(key, value)
            yield f"{origins.get(key, key)} is {shown!r}, must be {SETTINGS[key].allowed}"
    for small, large, consequence in _NOT_ABOVE:
        low, high = sound.get(small), sound.get(large)
        if isinstance(low, int) and isinstance(high, int) and low > high:
            yield (
                f"{origins.get(small, small)} is {low}, must not be above "
                f"{origins.get(large, large)}, {high}: else {consequence}"
            )


#: The configuration where nothing is set.
DEFAULTS: Final = Config()
