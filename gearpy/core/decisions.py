"""What a `TaskManager` decides, for an app master to do; and within which limits."""

from dataclasses import dataclass
from typing import TypeAlias

from gearpy.core.deployment import Send
from gearpy.core.epochs import Manifest
from gearpy.core.executors import ExecutorCommand
from gearpy.core.restart import RestartPolicy
from gearpy.messages.app import SnapshotFile
from gearpy.messages.cluster import ApplicationStatus, ErrorCard

__all__ = [
    "Activated",
    "Command",
    "DropSnapshots",
    "Ended",
    "RecoveryLimits",
    "StoreManifest",
    "Survived",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryLimits:
    """How often, and how patiently. All of it is in the configuration."""

    restarts: RestartPolicy
    poison_attempts: int
    step_timeout_ms: int
    start_timeout_ms: int
    allocation_timeout_ms: int
    epoch_interval_ms: int
    epochs_retained: int
    stall_after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """All tasks run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreManifest:
    """Store a complete epoch durably, then call `TaskManager.on_manifest_stored`."""

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSnapshots:
    """Nobody needs these any more."""

    files: tuple[SnapshotFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survived:
    """Something failed, and what it stopped will be started again, ``delay_ms`` from now.

    There may be several of one failure.
    """

    what: str
    error: ErrorCard
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The application is over."""

    status: ApplicationStatus
    cause: ErrorCard | None


Command: TypeAlias = (
    ExecutorCommand | Send | Activated | StoreManifest | DropSnapshots | Survived | Ended
)
