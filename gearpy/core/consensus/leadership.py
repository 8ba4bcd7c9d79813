"""The leader's part: replication, commits, reads, and the end of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gearpy.core.consensus.actions import Transmit
from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.limits import ReplicaLimits
from gearpy.core.consensus.messages import EntriesAppended, SnapshotPartTaken, TakeOver
from gearpy.core.consensus.progress import MemberProgress
from gearpy.core.consensus.stored import LogEntry


@dataclass(slots=True)
class _Read:
    number: int
    index: int  # It must see all commits up to this one.
    round: int  # Once a majority has answered this one, no other leader had begun before it.


@dataclass(frozen=True, slots=True)
class _Transfer:
    to: str
    until_ms: int


class Leadership:
    """The work of a member that leads in one term. It begins with an entry without a command.

    Invariant: an entry of this term is committed only when a majority of the members has it on
    disk, this one included if it has; entries of earlier terms are committed with it.
    """

    def __init__(self, me: str, log: EntryLog, limits: ReplicaLimits, now_ms: int) -> None:
        self.commit_index = 0  #: This leader has counted up to here; 0 at first.
        self._me, self._log, self._limits = me, log, limits
        self._first_index = log.last_index + 1
        self._progress: dict[str, MemberProgress] = {}
        self._round = self._confirmed = 0
        self._reads: list[_Read] = []
        self._transfer: _Transfer | None = None
        self.due_ms = now_ms + limits.heartbeat_ms
        log.append([LogEntry(term=log.term)])
        self._follow_members(now_ms)

    @property
    def can_propose(self) -> bool:
        uncommitted = self._log.last_index - max(self.commit_index, self._first_index - 1)
        return self._transfer is None and uncommitted < self._limits.uncommitted_max

    def can_change(self, members: Iterable[str]) -> bool:
        """Whether members can be changed to these: by one, and one change at a time.

        Before an entry of this term is committed, a change of an earlier leader may still be
        under way somewhere.
        """
        is_settled = self.commit_index >= max(self._first_index, self._log.members_index)
        wanted = set(members)
        return (
            self.can_propose
            and is_settled
            and bool(wanted)
            and len(wanted ^ set(self._log.members)) == 1
        )

    def can_transfer(self, to: str) -> bool:
        return self._transfer is None and to in self._progress

    def has_majority(self, now_ms: int) -> bool:
        heard = self._of_majority(now_ms, (each.heard_ms for each in self._progress.values()))
        return now_ms - heard < self._limits.election_ms

    def others(self, now_ms: int) -> Iterator[tuple[str, int, int]]:
        for member, progress in self._progress.items():
            yield member, progress.match_index, now_ms - progress.heard_ms

    def propose(self, entry: LogEntry, now_ms: int) -> int:
        self._log.append([entry])
        if entry.members:
            self._follow_members(now_ms)
        return self._log.last_index

    def read(self, number: int) -> None:
        index = max(self.commit_index, self._first_index)
        self._reads.append(_Read(number, index, self._round + 1))

    def transfer(self, to: str, now_ms: int) -> Iterator[Transmit]:
        """Give leadership away, once the member has all entries; take no more meanwhile."""
        self._transfer = _Transfer(to, now_ms + self._limits.election_ms)
        return self._hand_over()

    def on_tick(self, now_ms: int) -> Iterator[Transmit]:
        if self._transfer is not None and now_ms >= self._transfer.until_ms:
            self._transfer = None
        if now_ms >= self.due_ms:
            self.due_ms = now_ms + self._limits.heartbeat_ms
            yield from self._heartbeats()

    def on_answer(
        self, sender: str, message: EntriesAppended | SnapshotPartTaken, now_ms: int
    ) -> Iterator[Transmit]:
        progress = self._progress.get(sender)
        if progress is None:
            return  # It is no member any more.
        progress.on_answer(message.round, now_ms)
        if isinstance(message, SnapshotPartTaken):
            progress.on_part_taken(message.index, message.offset)
            return
        progress.on_appended(message)
        yield from self._hand_over()

    def advance(self) -> Iterator[Transmit]:
        matches = (each.match_index for each in self._progress.values())
        index = self._of_majority(self._log.durable_index, matches)
        if index > self.commit_index and self._log.term_at(index) == self._log.term:
            self.commit_index = index
        for member, progress in self._progress.items():
            for message in progress.to_send(
                self._log, max(self.commit_index, self._log.snapshot.index), self._round
            ):
                yield Transmit(member, message)
        waits = any(each.round > self._round for each in self._reads)
        if waits and self._confirmed_now() == self._round:
            self._round += 1
            yield from self._heartbeats()

    def take_reads(self) -> Iterator[tuple[int, int]]:
        if not self._reads:
            return iter(())
        confirmed = self._confirmed_now()
        done = [each for each in self._reads if each.round <= confirmed]
        self._reads = [each for each in self._reads if each.round > confirmed]
        return ((each.number, each.index) for each in done)

    def last_words(self) -> Iterator[Transmit]:
        return self._heartbeats()

    def _hand_over(self) -> Iterator[Transmit]:
        transfer = self._transfer
        progress = self._progress.get(transfer.to) if transfer is not None else None
        if transfer and progress and progress.match_index == self._log.last_index:
            yield Transmit(transfer.to, TakeOver(term=self._log.term))

    def _heartbeats(self) -> Iterator[Transmit]:
        for member, progress in self._progress.items():
            yield Transmit(
                member,
                progress.heartbeat(
                    self._log, max(self.commit_index, self._log.snapshot.index), self._round
                ),
            )

    def _confirmed_now(self) -> int:
        rounds = (each.round for each in self._progress.values())
        self._confirmed = max(self._confirmed, self._of_majority(self._round, rounds))
        return self._confirmed

    def _of_majority(self, own: int, others: Iterable[int]) -> int:
        is_member = self._me in self._log.members
        values = sorted([*others, own] if is_member else others)
        return values[(len(values) - 1) // 2] if values else own

    def _follow_members(self, now_ms: int) -> None:
        self._progress = {
            member: self._progress.get(member)
            or MemberProgress(self._log.last_index, self._limits, now_ms)
            for member in self._log.members
            if member != self._me
        }
