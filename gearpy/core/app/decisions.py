"""The commands of an `ApplicationCore` to its app master, and their limits."""

from typing import TypeAlias

from msgspec import Struct

from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import ExecutorCommand
from gearpy.core.base.restart import RestartPolicy
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.pace import EpochCut
from gearpy.messages.app import SnapshotFile
from gearpy.messages.summaries import ApplicationStatus, ErrorCard


class RecoveryLimits(Struct, frozen=True, kw_only=True):
    """The number of restarts, and the pauses between them. All of it is in the configuration."""

    restarts: RestartPolicy
    poison_attempts: int
    step_timeout_ms: int
    start_timeout_ms: int
    allocation_timeout_ms: int
    epoch_cut: EpochCut
    epoch_interval_ms: int
    max_overhead_percent: int
    epoch_timeout_ms: int
    epochs_retained: int
    stall_after_ms: int
    trial_ms: int = 0
    change_timeout_ms: int = 300_000
    steps_over: bool = False  #: A record that ends a process is left out, if it can be found.
    retries_errors: bool = True  #: Errors of the program's own code are tried again, too.

    def is_final(self, error: ErrorCard) -> bool:
        return bool(error.operator) and not self.retries_errors


class Activated(Struct, frozen=True, kw_only=True):
    """All tasks run; for the first time, or again after `HeldUp`.

    ``pause``: how long those that a change touched had none, and why, for people; empty without.
    """

    pause: str = ""


class HeldUp(Struct, frozen=True, kw_only=True):
    """An application that was active waits for slots that it has lost."""


class StoreManifest(Struct, frozen=True, kw_only=True):
    """Store a complete epoch durably, then call `ApplicationCore.on_manifest_stored`.

    It comes again until then. All epochs are stored in one go, or none. ``ends_trial``: that the
    version stays is stored with them, and what is ``untried`` all the same, for people.
    """

    manifest: Manifest
    also: tuple[Manifest, ...] = ()
    ends_trial: bool = False
    untried: str = ""


class EpochsRetired(Struct, frozen=True, kw_only=True):
    """Enough newer epochs are stored: forget these, before their files are deleted."""

    region: int
    epochs: tuple[int, ...]


class EpochAborted(Struct, frozen=True, kw_only=True):
    """An epoch was given up; the next one follows. For the log."""

    region: int
    epoch: int
    reason: str


class DamageFound(Struct, frozen=True, kw_only=True):
    """A file is damaged that the next epochs were to go on from. For people."""

    region: int
    text: str


class FellBack(Struct, frozen=True, kw_only=True):
    """These epochs are never gone back to: a file that they need is damaged.

    Must be durable before what is decided after it is done: sinks will drop what they wrote since
    epoch ``to``, so that no app master may go on from a later one.
    """

    region: int
    epochs: tuple[int, ...]
    to: int
    location: str
    reason: str

    @property
    def text(self) -> str:
        names = ", ".join(map(str, self.epochs))
        return (
            f"region {self.region} falls back to epoch {self.to}, as epoch {names} cannot be "
            f"read: {self.location}: {self.reason}"
        )


class DropSnapshots(Struct, frozen=True, kw_only=True):
    """Have snapshots dropped that nobody needs any more."""

    files: tuple[SnapshotFile, ...]


class Survived(Struct, frozen=True, kw_only=True):
    """A failure that a restart will repair, ``delay_ms`` from now.

    One failure may give several of these.
    """

    what: str
    error: ErrorCard
    delay_ms: int


class Ended(Struct, frozen=True, kw_only=True):
    """The application is over; as ``terminated`` it was drained before it had caught up."""

    status: ApplicationStatus
    cause: ErrorCard | None


class PutInPlace(Struct, frozen=True, kw_only=True):
    """The last epoch of this version is stored: put the next one in its place, from there.

    Follow it with a core of that version, or with `ApplicationCore.keep` if that cannot be.
    """


class ChangeGivenUp(Struct, frozen=True, kw_only=True):
    """The next version never began; this one goes on."""

    reason: str


class TrialPassed(Struct, frozen=True, kw_only=True):
    """The first epoch of this version is stored, so it stays. Comes before sinks are told."""


class GoBack(Struct, frozen=True, kw_only=True):
    """The version on trial has failed: put the one before in its place, from where it ended.

    Nothing else of this core counts any more; what it has stored must leave the log.
    """

    cause: ErrorCard


Command: TypeAlias = (
    ExecutorCommand
    | Send
    | Activated
    | HeldUp
    | StoreManifest
    | EpochsRetired
    | EpochAborted
    | DamageFound
    | FellBack
    | DropSnapshots
    | Survived
    | Ended
    | PutInPlace
    | ChangeGivenUp
    | TrialPassed
    | GoBack
)
