"""The actions that a replica asks its shell for."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gearpy.core.consensus.messages import ReplicaMessage
from gearpy.core.consensus.stored import DiskWrite, LogEntry, StateSnapshot

ReplicaRole: TypeAlias = Literal["follower", "candidate", "leader"]


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send a message to a member. It may be lost, or arrive late, twice, or in another order."""

    to: str
    message: ReplicaMessage


@dataclass(frozen=True, slots=True)
class Persist:
    """Make a write durable, then call `Replica.on_written`. There is one at a time.

    If it fails, nobody knows what is on disk: the replica must not be used any more.
    """

    write: DiskWrite


@dataclass(frozen=True, slots=True)
class ApplyEntry:
    """Apply an entry to the state: it will be in every later leader's log. They come in order."""

    index: int
    entry: LogEntry


@dataclass(frozen=True, slots=True)
class RestoreState:
    """Replace the state by a snapshot."""

    snapshot: StateSnapshot


@dataclass(frozen=True, slots=True)
class Readable:
    """The state is at least as new as it was when a read was asked for under this number."""

    number: int


@dataclass(frozen=True, slots=True)
class RoleChange:
    """The role of this member, its term, or the known leader (empty: none) have changed.

    Reads and proposals of an earlier term that have not come back are unknown.
    """

    role: ReplicaRole
    term: int
    leader: str


ReplicaAction: TypeAlias = Transmit | Persist | ApplyEntry | RestoreState | Readable | RoleChange
