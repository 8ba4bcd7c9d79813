"""The changes of a `MasterState`: records of the master's log, as objects and as bytes."""

from typing import Final, TypeAlias

from gearpy.core.base.versions import Envelopes
from gearpy.ids import AppId, WorkerId
from gearpy.late_dataclass import dataclass
from gearpy.messages.client import SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ErrorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCluster:
    """Give a cluster that has no id this one; which it has is the result."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Register an application; its id is the result. Must not be refused by the state."""

    request: SubmitApplication
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStatus:
    """Change the status of an application; the result tells whether the change is legal."""

    app_id: AppId
    status: ApplicationStatus
    at_ms: int
    progress: ApplicationProgress
    cause: ErrorCard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAppMaster:
    """An app master will be launched on a worker; the number of the launch is the result."""

    app_id: AppId
    worker_id: WorkerId
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAppMaster:
    """The app master of this launch is given up, whether it lives or not.

    ``restarts`` is how many of the application's regions had been restarted by then, as far as the
    master had heard. If it ``is_planned``, its worker was told to end: that spends no restart.
    """

    app_id: AppId
    launch: int
    at_ms: int
    restarts: int = 0
    is_planned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreValue:
    """An app master stores a value; whether it is kept is the result."""

    app_id: AppId
    key: str
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddQuarantined:
    """Put a record aside; its number is the result."""

    app_id: AppId
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveQuarantined:
    """Records were given back to their operators."""

    app_id: AppId
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWorker:
    """A worker is new; its id is the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetEnded:
    """Forget all but the newest ``keep`` of the applications that have ended.

    The ids of those forgotten are the result.
    """

    keep: int


MasterCommand: TypeAlias = (
    NameCluster
    | Submit
    | ChangeStatus
    | LaunchAppMaster
    | LoseAppMaster
    | StoreValue
    | AddQuarantined
    | RemoveQuarantined
    | AddWorker
    | ForgetEnded
)

_RECORDS: Final = Envelopes[MasterCommand](MasterCommand, "record", "the master's log")
encode_command: Final = _RECORDS.encode
decode_command: Final = _RECORDS.decode
