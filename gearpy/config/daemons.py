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
        "Snapshots of tasks. All machines of a cluster must see the same folder. A ~ is the "
        "user's home.",
        form="a path",
    )
    interval_ms: int = setting(
        "interval-ms",
        1000,
        "ms",
        "Time from one epoch to the next; a restart repeats so much work at most. An epoch that "
        "takes long to store makes the pause longer, so that nine tenths of the time are left.",
        low=10,
        high=_DAY_MS,
    )
    retained: int = setting(
        "retained",
        2,
        "epochs",
        "So many of the newest complete epochs are kept.",
        high=10_000,
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
