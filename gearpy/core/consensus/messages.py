"""The messages between members. Each message has the term of its sender, unless it says more."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from gearpy.core.base.versions import Envelopes
from gearpy.core.consensus.stored import LogEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class AskVote:
    """Ask to become the leader. Answered by `CastVote`.

    On trial, ``term`` is the one that would begin, and nobody is bound by the answer. Who was told
    by the leader to take over says so: it is voted for although there is a leader.
    """

    term: int
    last_index: int
    last_term: int
    is_trial: bool
    takes_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CastVote:
    """Answer `AskVote`; a trial that is granted has the term that was asked for."""

    term: int
    is_granted: bool
    is_trial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEntries:
    """Append entries behind the one at ``previous_index``; without any it is a heartbeat.

    Answered by `EntriesAppended`, with the same ``round``.
    """

    term: int
    previous_index: int
    previous_term: int
    entries: tuple[LogEntry, ...]
    commit_index: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesAppended:
    """Tell the leader that the logs match up to ``index``, and that the entries are on disk.

    If they do not match, ``index`` is where the leader should try next, and ``previous_index``
    the one that it asked about.
    """

    term: int
    is_match: bool
    index: int
    previous_index: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSnapshotPart:
    """Hand over a snapshot from ``offset`` on, to a member that needs entries that are gone.

    Answered by `SnapshotPartTaken`; the last one by `EntriesAppended`.
    """

    term: int
    index: int
    index_term: int
    members: tuple[str, ...]
    offset: int
    part: bytes
    is_last: bool
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPartTaken:
    """Tell the leader that the bytes of a snapshot before ``offset`` are here."""

    term: int
    index: int
    offset: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """Ask a member, which has all entries, to be elected at once."""

    term: int


ReplicaMessage: TypeAlias = (
    AskVote
    | CastVote
    | AppendEntries
    | EntriesAppended
    | SendSnapshotPart
    | SnapshotPartTaken
    | TakeOver
)

_MESSAGES: Final = Envelopes[ReplicaMessage](ReplicaMessage, "message", "another master")
encode_message: Final = _MESSAGES.encode
decode_message: Final = _MESSAGES.decode
