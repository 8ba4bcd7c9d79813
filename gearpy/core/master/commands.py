"""The changes of a `MasterState`: records of the master's log, as objects and as bytes."""

from typing import Final, TypeAlias

from msgspec import Struct

from gearpy.core.base.versions import Envelopes
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ErrorCard


class NameCluster(Struct, frozen=True, kw_only=True):
    """Give a cluster that has no id this one; which it has is the result."""

    cluster_id: str


class Submit(Struct, frozen=True, kw_only=True):
    """Register an application; its id is the result. Must not be refused by the state."""

    request: SubmitApplication
    at_ms: int


class ChangeStatus(Struct, frozen=True, kw_only=True):
    """Change the status of an application; the result tells whether the change is legal."""

    app_id: AppId
    status: ApplicationStatus
    at_ms: int
    progress: ApplicationProgress
    cause: ErrorCard | None = None


class LaunchAppMaster(Struct, frozen=True, kw_only=True):
    """An app master will be launched on a worker; the number of the launch is the result."""

    app_id: AppId
    worker_id: WorkerId
    at_ms: int


class LoseAppMaster(Struct, frozen=True, kw_only=True):
    """The app master of this launch is given up, whether it lives or not.

    ``restarts`` is how many of the application's regions had been restarted by then, as far as the
    master had heard. If it ``is_planned``, its worker was told to end: that spends no restart.
    """

    app_id: AppId
    launch: int
    at_ms: int
    restarts: int = 0
    is_planned: bool = False


class StoreValue(Struct, frozen=True, kw_only=True):
    """An app master stores a value; whether it is kept is the result."""

    app_id: AppId
    key: str
    value: bytes


class AddQuarantined(Struct, frozen=True, kw_only=True):
    """Put a record aside; its number is the result. ``number`` 0: the next one."""

    app_id: AppId
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard
    at_ms: int
    number: int = 0


class RemoveQuarantined(Struct, frozen=True, kw_only=True):
    """Records were given back to their operators."""

    app_id: AppId
    numbers: tuple[int, ...]


class AddWorker(Struct, frozen=True, kw_only=True):
    """A worker is new; its id is the result."""


class ForgetEnded(Struct, frozen=True, kw_only=True):
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
