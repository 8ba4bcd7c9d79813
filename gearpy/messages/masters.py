"""Questions about masters, and the answers."""

from typing import Literal

from msgspec import Struct

from gearpy.messages.question import Question


class GetMasterDisk(Struct, frozen=True, kw_only=True):
    """Ask a master, whether it leads or not, about its disk. Answer: `MasterDisk`."""


class MasterDisk(Struct, frozen=True, kw_only=True):
    """The files of a master, and the gearpy that it runs.

    ``log_bytes`` are those of its log with the newest snapshot, which was taken at ``snapshot_ms``,
    as wall time; 0: there is none yet. ``quota_bytes`` is how much its programs may have; 0: any.
    ``free_bytes`` are those of the whole disk.
    """

    version: str
    started_ms: int
    folder: str
    log_bytes: int
    snapshot_ms: int
    programs: int
    programs_bytes: int
    quota_bytes: int
    free_bytes: int


class GetMasters(Question["MasterList"], frozen=True, kw_only=True):
    """Ask for the masters of a cluster, perhaps with their disks. Answer: `MasterList`."""

    with_disks: bool = False


class MasterSummary(Struct, frozen=True, kw_only=True):
    """One master. ``behind``: the entries of the log that it lacks, as far as the leader knows.

    ``away_since_ms``: wall time since which nothing was heard of one that is away. ``silent_ms``:
    for so long the leader has heard nothing of it. ``disk`` is None if it was not asked for, or is
    not told.
    """

    address: str
    role: Literal["leader", "follower", "away"]
    behind: int = 0
    away_since_ms: int = 0
    silent_ms: int = 0
    disk: MasterDisk | None = None

    @property
    def leads(self) -> bool:
        return self.role == "leader"


class MasterList(Struct, frozen=True, kw_only=True):
    """The masters of a cluster. ``term`` counts leaders; it is 0 for a master without others."""

    masters: tuple[MasterSummary, ...]
    term: int = 0
