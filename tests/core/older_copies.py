"""Members that agree on a log, one of which is started over an older copy of its disk.

No consensus can survive that in all cases: what only this member and one that is away have
promised may be forgotten. So it happens when most of the others have all that it promised. Then all
rules must hold as ever, and it must be told if the leader knows more of it than is there.
"""

from dataclasses import dataclass, replace
from typing import Any

from gearpy.core.consensus.messages import ReplicaMessage
from gearpy.core.consensus.stored import StoredLog
from tests.core.consensus_world import ConsensusWorld, Done, Member, RuleBroken


@dataclass(frozen=True, slots=True)
class _Sent:
    message: ReplicaMessage
    is_before: bool  # The older copy.


class OlderCopyWorld(ConsensusWorld):
    """Members with faults, and at most one older copy of a disk."""

    def __init__(self, seed: int) -> None:
        self._copies: dict[str, StoredLog] = {}
        self._target: Member | None = None
        self._knowing: tuple[Member, int, int] | None = None  # A leader, its life, and its term.
        self.is_older = False  #: Whether a member has been started over an older copy.
        super().__init__(seed)

    def _draw(self) -> None:
        super()._draw()
        self._changes = False
        self._kinds = [each for each in self._kinds if each != self._change_members]
        self._kinds += [self._copy_disks, self._crash_for_copy, self._crash_for_copy]

    def _copy_disks(self) -> None:
        self._copies = {name: _copied(each.disk.stored) for name, each in self.members.items()}

    def _crash_for_copy(self) -> None:
        member = self._some()
        if self._target is None and member.name in self._copies and member.replica is not None:
            self._target = member
            self._crash(member)

    def _start(self, member: Member) -> None:
        if member is self._target and member.replica is None and not self.is_older:
            self._put_back(member, self._copies[member.name])
        super()._start(member)

    def _put_back(self, member: Member, copy: StoredLog) -> None:
        """Put a copy onto a disk, unless too much would be forgotten."""
        stored = member.disk.stored
        is_vote_kept = (copy.term, copy.vote) == (stored.term, stored.vote)
        others = [each.disk.stored for each in self.members.values() if each is not member]
        having = [
            each
            for each in others
            if _has_log_of(each, stored) and _has_voted(each, stored.term, is_kept=is_vote_kept)
        ]
        if 2 * len(having) <= len(self.members):
            return
        self.is_older = True
        last = copy.base_index + len(copy.entries)
        for leader, replica in self._leading():
            if replica.held.of(member.name) > last:
                self._knowing = (leader, leader.life, replica.term)
        member.disk.stored, member.term = copy, copy.term
        for name, term in list(self._votes):
            if name == member.name and term >= copy.term:
                del self._votes[name, term]

    def _on_forgotten(self, member: Member, index: int) -> None:
        if member is not self._target or not self.is_older:
            super()._on_forgotten(member, index)
        self.ended.add(member.name)
        member.life, member.replica, member.tick_ms = member.life + 1, None, -1

    def _send(self, sender: str, to: str, message: ReplicaMessage) -> None:
        super()._send(sender, to, _Sent(message, not self.is_older))  # type: ignore[arg-type]

    def _arrive(self, sender: str, to: str, message: Any) -> None:
        """Deliver a message; connections end with a process, so none is for an earlier one."""
        is_late = message.is_before and self.is_older
        if self._target is None or to != self._target.name or not is_late:
            super()._arrive(sender, to, message.message)

    def _look_for_progress(self) -> None:
        try:
            super()._look_for_progress()
        except Done:
            self._check_told()
            raise

    def _check_told(self) -> None:
        if self._knowing is None or self.ended:
            return
        leader, life, term = self._knowing
        replica = leader.replica
        leads_still = replica is not None and replica.role == "leader" and replica.term == term
        if leads_still and leader.life == life:
            raise RuleBroken(f"{leader.name} has not told that a disk is an older copy")


def _copied(stored: StoredLog) -> StoredLog:
    return replace(stored, entries=list(stored.entries))


def _has_log_of(other: StoredLog, stored: StoredLog) -> bool:
    """Whether a disk has all entries of another one."""
    last = stored.base_index + len(stored.entries)
    if last <= other.base_index:
        return True
    at = last - other.base_index - 1
    last_term = stored.entries[-1].term if stored.entries else stored.base_term
    return at < len(other.entries) and other.entries[at].term == last_term


def _has_voted(other: StoredLog, term: int, *, is_kept: bool) -> bool:
    """Whether a disk keeps a second leader of a term from being elected."""
    return other.term > term or (other.term == term and (is_kept or other.vote != ""))


@dataclass(frozen=True, slots=True)
class OlderCopyResult:
    """What one seed came to; ``problem`` is empty when all was right."""

    seed: int
    problem: str
    is_older: bool  #: Whether a member was started over an older copy.
    is_told: bool  #: And was told so.


def run_older_copy_seed(seed: int) -> OlderCopyResult:
    """Return what comes of a seed."""
    world = OlderCopyWorld(seed)
    problem = world.run().problem
    return OlderCopyResult(seed, problem, world.is_older, bool(world.ended))
