"""Keys of masters, workers, app masters and what they start; see `schema` for the others."""

from dataclasses import dataclass
from typing import Final, Literal

from gearpy.config.setting import setting

__all__ = [
    "AppMasterConfig",
    "ArtifactConfig",
    "CheckpointConfig",
    "ExecutorConfig",
    "LogConfig",
    "MasterConfig",
    "StateConfig",
    "WorkerConfig",
]

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_GIB: Final = 1024 * _MIB
_DAY_S: Final = 24 * 60 * 60
_DAY_MS: Final = _DAY_S * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterConfig:
    """What a master keeps."""

    folder: str = setting(
        "folder",
        "~/.gearpy/master",
        "folder",
        "The master's log, artifacts and quarantined records. Whoever can write here decides what "
        "the cluster runs. A ~ is the user's home.",
        form="a path",
    )
    snapshot_records: int = setting(
        "snapshot-records",
        10_000,
        "records",
        "After so many changes the master writes its whole state and begins a new log. Fewer make "
        "a restart faster and cost more writing.",
        high=100_000_000,
    )
    ended_applications_max: int = setting(
        "ended-applications-max",
        1000,
        "applications",
        "So many applications that have ended are remembered; the oldest are forgotten first.",
        high=1_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMasterConfig:
    """How an app master is started again."""

    retries: int = setting(
        "total-retries",
        5,
        "restarts",
        "An app master that is lost is started again so often within the window; then its "
        "application fails.",
        low=0,
        high=1_000_000,
    )
    retry_window_s: int = setting(
        "retry-window-seconds",
        600,
        "seconds",
        "Restarts of an app master older than this are forgotten.",
        high=_DAY_S,
    )
    backoff_base_ms: int = setting(
        "backoff-base-ms",
        200,
        "ms",
        "Pause before the first restart of an app master; it doubles with each that follows.",
        high=_DAY_MS,
    )
    backoff_max_ms: int = setting(
        "backoff-max-ms",
        30_000,
        "ms",
        "The pause between restarts of an app master grows up to this.",
        high=_DAY_MS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What a worker offers, and where it works."""

    slots: int = setting(
        "slots",
        1000,
        "slots",
        "What one worker offers to executors. A slot is a share of the machine by agreement, "
        "not a measured amount.",
        high=1_000_000,
    )
    folder: str = setting(
        "folder",
        "~/.gearpy/worker",
        "folder",
        "Artifacts that were fetched, and a working folder for each executor process. A ~ is the "
        "user's home.",
        form="a path",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConfig:
    """Processes that run tasks."""

    start_timeout_s: int = setting(
        "start-timeout-seconds",
        60,
        "seconds",
        "An executor that has not registered after so long is killed and replaced.",
        high=_DAY_S,
    )
    stop_timeout_s: int = setting(
        "stop-timeout-seconds",
        10,
        "seconds",
        "A process that was asked to stop is killed after so long.",
        high=_DAY_S,
    )
    turn_timeout_s: int = setting(
        "turn-timeout-seconds",
        300,
        "seconds",
        "A task that has been in one call of user code for so long is stuck: its executor is "
        "killed and replaced, and the error shows the step and the line. 0: never.",
        low=0,
        high=_DAY_S,
    )
    open_files_max: int = setting(
        "open-files-max",
        65_536,
        "files",
        "Files and sockets that one executor process may have open, as far as the system allows.",
        low=64,
        high=10_000_000,
    )
    file_max_bytes: int = setting(
        "file-max-bytes",
        0,
        "bytes",
        "Size of a file that an executor process may write; 0 is no limit.",
        low=0,
        high=1 << 50,
    )
    memory_max_bytes: int = setting(
        "memory-max-bytes",
        0,
        "bytes",
        "Data that one executor process may allocate (RLIMIT_DATA); above it Python raises "
        "MemoryError. 0 is no limit.",
        low=0,
        high=1 << 50,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """How often, and where, it is stored what a restart goes back to."""

    folder: str = setting(
        "folder",
        "~/.gearpy/checkpoints",
        "folder",
        "Snapshots of tasks and the coordinator log: a folder, or a URL that fsspec knows, such as "
        "s3://bucket/path. All machines of a cluster must see the same. A ~ is the user's home.",
        form="a path",
    )
    runs_folder: str = setting(
        "runs-folder",
        "~/.gearpy/runs",
        "folder",
        "Where `gear run --resume NAME` keeps what a run goes on from, in a folder of that name. A "
        "~ is the user's home.",
        form="a path",
    )
    keep_succeeded: int = setting(
        "keep-succeeded",
        24,
        "hours",
        "What an application has stored stays so long after it succeeded, to look at or to go on "
        "from; then the next application that succeeds removes it. 0: it goes at once.",
        low=0,
        high=24 * 366 * 10,
    )
    cut: Literal["position", "event-time"] = setting(
        "cut",
        "position",
        "policy",
        "Where an epoch ends: at the position where each source happens to be, or at an event time "
        "that all sources agree on, so that it holds all records older than that.",
        choices=("position", "event-time"),
    )
    pace: Literal["fixed", "max-overhead", "max-replay"] = setting(
        "pace",
        "max-overhead",
        "policy",
        "What decides when the next epoch begins to end: the interval alone; or later if storing "
        "would take more of the time than max-overhead-percent; or so that a restart repeats "
        "max-replay-ms of work at most.",
        choices=("fixed", "max-overhead", "max-replay"),
    )
    interval_ms: int = setting(
        "interval-ms",
        1000,
        "ms",
        "Time from one epoch to the next, at least.",
        low=10,
        high=_DAY_MS,
    )
    max_overhead_percent: int = setting(
        "max-overhead-percent",
        10,
        "percent",
        "With pace max-overhead: epochs are being stored for so much of the time at most.",
        high=100,
    )
    max_replay_ms: int = setting(
        "max-replay-ms",
        10_000,
        "ms",
        "With pace max-replay: a restart repeats so much work at most, storing included.",
        low=10,
        high=_DAY_MS,
    )
    timeout_ms: int = setting(
        "timeout-ms",
        600_000,
        "ms",
        "An epoch that is not complete after so long is given up, and the next one begins to end.",
        low=10,
        high=_DAY_MS,
    )
    held_max_records: int = setting(
        "held-max-records",
        1_000_000,
        "records",
        "With cut event-time: a source task holds so many records back until older ones have come; "
        "at more it ends the epoch where it is.",
        high=1_000_000_000,
    )
    retained: int = setting(
        "retained",
        2,
        "epochs",
        "So many of the newest complete epochs are kept. With more than one, a restart can go back "
        "further when the newest is damaged.",
        high=10_000,
    )
    chain_files_max: int = setting(
        "chain-files-max",
        16,
        "files",
        "Epochs store what has changed; after so many files of one executor everything is written "
        "anew. More make epochs cheaper and restarts slower.",
        high=10_000,
    )
    changelog: Literal["off", "on"] = setting(
        "changelog",
        "off",
        "policy",
        "With on, keyed state is stored a second time, by task. When files of an epoch are damaged "
        "or missing, a restart rebuilds it from there. chain-files-max holds for each task, too.",
        choices=("off", "on"),
    )
    log_segments_max: int = setting(
        "log-segments-max",
        64,
        "segments",
        "After so many segments the coordinator log of an application is compacted.",
        low=2,
        high=100_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConfig:
    """Where tasks keep keyed state between epochs."""

    backend: Literal["heap", "disk"] = setting(
        "backend",
        "heap",
        "backend",
        "heap keeps state in memory; disk keeps it in a database file, for state that is larger.",
        choices=("heap", "disk"),
    )
    folder: str = setting(
        "folder",
        "~/.gearpy/state",
        "folder",
        "Database files of the disk backend; they are rebuilt from checkpoints after a restart. A "
        "~ is the user's home.",
        form="a path",
    )
    disk_max_bytes: int = setting(
        "disk-max-bytes",
        64 * _GIB,
        "bytes",
        "The database file of one task grows up to this; the file is as large as what is in it.",
        low=_MIB,
        high=1 << 46,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactConfig:
    """Programs that are uploaded."""

    max_bytes: int = setting(
        "max-bytes",
        256 * _MIB,
        "bytes",
        "An artifact above this size is refused.",
        low=_KIB,
        high=64 * _GIB,
    )
    unpacked_max_bytes: int = setting(
        "unpacked-max-bytes",
        _GIB,
        "bytes",
        "An archive that unpacks to more is refused, before it fills the disk.",
        low=_KIB,
        high=64 * _GIB,
    )
    files_max: int = setting(
        "files-max",
        10_000,
        "files",
        "An archive with more files is refused.",
        high=10_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Log files of daemons and of applications."""

    folder: str = setting(
        "folder",
        "~/.gearpy/logs",
        "folder",
        "One file for each daemon; one folder for each application with a file for each of its "
        "processes. A ~ is the user's home.",
        form="a path",
    )
    format: Literal["text", "json"] = setting(
        "format",
        "text",
        "format",
        "text is for people; json has one object a line.",
        choices=("text", "json"),
    )
    level: Literal["debug", "info", "warning", "error"] = setting(
        "level",
        "info",
        "level",
        "What is less important is not written.",
        choices=("debug", "info", "warning", "error"),
    )
    file_max_bytes: int = setting(
        "file-max-bytes",
        10 * _MIB,
        "bytes",
        "A log file of this size is set aside and a new one begun.",
        low=4 * _KIB,
        high=_GIB,
    )
    files: int = setting(
        "files",
        5,
        "files",
        "So many files that were set aside are kept of each log.",
        high=1000,
    )
