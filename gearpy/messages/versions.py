"""Versions of what is said and stored: which are understood, and what the newest has added.

Everything between processes is in a version that both know; `PROTOCOL` says which this gearpy
knows, `ADDED` what a process of the version before does not.
"""

from typing import Final

from msgspec import Struct

from gearpy.errors import ProtocolError


class KnownVersions(Struct, frozen=True):
    """The versions that this gearpy understands: the newest, and the one before it.

    So a cluster can be upgraded one process after the other, but no version may be left out.
    """

    newest: int

    @property
    def oldest(self) -> int:
        return max(1, self.newest - 1)

    @property
    def text(self) -> str:
        return f"{self.oldest} and {self.newest}" if self.newest > 1 else "1"

    def check(self, version: int, what: str) -> None:
        """Refuse a message that has another version.

        Args:
            what: names it, for people.
        """
        if self.knows(version):
            return
        fix = "start the gearpy that wrote it, or a newer one"
        if version < self.oldest:
            fix = "upgrade through each version between, no further than one at a time"
        raise ProtocolError(f"{what} has version {version}, this gearpy knows {self.text}: {fix}")

    def knows(self, version: int) -> bool:
        return self.oldest <= version <= self.newest

    def common(self, oldest: int, newest: int) -> int | None:
        version = min(self.newest, newest)
        return version if version >= max(self.oldest, oldest) else None


#: The newest version of the wire protocol. Raised with the first change of a message after a
#: release; then `ADDED` begins anew.
NEWEST: Final = 2

#: The versions of the wire protocol that this gearpy speaks.
PROTOCOL: Final = KnownVersions(NEWEST)

#: The newest version has added these to the one before it: fields by the name of their message. A
#: message without fields here is new itself. To a process of the version before, new fields are
#: not told, and what it says means their defaults; a new message it refuses by its name.
ADDED: Final[dict[str, tuple[str, ...]]] = {
    "ApplicationProgress": (
        "ahead_records",
        "last_failure",
        "caught_up",
        "open_windows",
        "records_before",
    ),
    "AlertChange": (),
    "AlertList": ("rules", "history", "silences"),
    "Artifact": ("until",),
    "BeginEpoch": ("caught_up",),
    "EpochList": ("next_to_end",),
    "EpochStored": ("storing_ms",),
    "EpochUnstored": ("damaged",),
    "ErrorCard": ("is_away",),
    "FollowedRule": (),
    "GetEpochs": ("until",),
    "GetSeries": ("within",),
    "LaunchExecutor": ("hosts",),
    "LaunchTasks": ("first_session", "probes"),
    "ProcessSample": ("unknown_messages",),
    "ProcessorSummary": ("birth_ms", "idle_tasks", "idle_ms"),
    "ProgramLoading": (),
    "Quarantine": ("at_ms",),
    "RecordInjected": ("epoch",),
    "RegisterWorker": ("version",),
    "RestartApplication": ("checkpoint_folder",),
    "AlertSilence": (),
    "SilenceAlert": (),
    "SnapshotsDamaged": ("is_away",),
    "SourceProbe": (),
    "TaskSample": ("ahead",),
    "TaskClock": (
        "ahead_records",
        "untried",
        "written_records",
        "caught_up",
        "open_windows",
        "records_before",
    ),
    "UpdateApplication": ("key",),
    "UpdatePlanned": ("at_event_ms",),
    "WithdrawRequests": (),
    "WorkerSummary": ("version",),
}
