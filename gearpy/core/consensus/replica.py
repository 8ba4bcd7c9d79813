"""Replica: one member's part in agreeing on a log."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from gearpy.core.consensus.actions import (
    ApplyEntry,
    Persist,
    Readable,
    ReplicaAction,
    ReplicaRole,
    RestoreState,
    RoleChange,
    Transmit,
)
from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.leadership import Leadership
from gearpy.core.consensus.limits import ReplicaLimits
from gearpy.core.consensus.messages import (
    AppendEntries,
    AskVote,
    CastVote,
    EntriesAppended,
    ReplicaMessage,
    SendSnapshotPart,
    SnapshotPartTaken,
    TakeOver,
)
from gearpy.core.consensus.stored import LogEntry, StateSnapshot, StoredLog

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class _Campaign:
    """An election that this member has asked for, on trial first."""

    is_trial: bool
    takes_over: bool = False
    granted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Parts:
    """The beginning of a snapshot that a leader hands over."""

    term: int
    index: int
    state: bytearray = field(default_factory=bytearray)


class Replica:
    """Agrees with other members on a log of commands, of which no promised one is lost.

    All that a message reveals is on disk before the message is returned; only a leader sends
    entries while it writes them. An entry is applied when a majority and this member have it on
    disk.

    Invariant: a term has one leader at most; two logs with an entry of the same index and term are
    the same up to it; a leader has all entries that were ever applied anywhere. No promise depends
    on a clock.
    """

    def __init__(
        self, me: str, stored: StoredLog, limits: ReplicaLimits, rng: "Random", now_ms: int
    ) -> None:
        self._me, self._limits, self._rng, self._now_ms = me, limits, rng, now_ms
        self.log = EntryLog(stored)  #: Others only read it.
        self.leader = ""
        self._heard_ms = now_ms - limits.election_ms  # The leader.
        self._campaign: _Campaign | None = None
        self._leading: Leadership | None = None
        self.commit_index = stored.snapshot.index
        self.applied_index = 0
        self._readable = deque[tuple[int, int]]()  # Number, and the index to be applied.
        self._parts: _Parts | None = None
        self._actions: list[ReplicaAction] = []
        self._after_write: list[Transmit] = []  # Messages that reveal what the write makes durable.
        self._after_next: list[Transmit] = []  # Those that the next write makes durable.
        self._told: RoleChange | None = None
        self._election_due_ms = now_ms
        self._set_trial_timer()  # One that has a leader does not listen to it.

    # -- questions -------------------------------------------------------------------------

    @property
    def term(self) -> int:
        return self.log.term

    @property
    def role(self) -> ReplicaRole:
        if self._leading is not None:
            return "leader"
        return "follower" if self._campaign is None else "candidate"

    @property
    def members(self) -> tuple[str, ...]:
        return self.log.members

    @property
    def due_ms(self) -> int:
        return self._election_due_ms if self._leading is None else self._leading.due_ms

    @property
    def can_propose(self) -> bool:
        return self._leading is not None and self._leading.can_propose

    def can_change(self, members: Sequence[str]) -> bool:
        return self._leading is not None and self._leading.can_change(members)

    def can_transfer(self, to: str) -> bool:
        return self._leading is not None and self._leading.can_transfer(to)

    def others(self, now_ms: int) -> list[tuple[str, int, int]]:
        return [] if self._leading is None else list(self._leading.others(now_ms))

    # -- what happens ----------------------------------------------------------------------

    def on_tick(self, now_ms: int) -> list[ReplicaAction]:
        self._now_ms = now_ms
        if self._leading is not None:
            if self._leading.has_majority(now_ms):
                self._actions += self._leading.on_tick(now_ms)
            else:
                self._follow(self.term, "")
        elif now_ms >= self._election_due_ms:
            self._set_trial_timer()
            if self._may_lead:
                self._begin_campaign(_Campaign(is_trial=True))
        return self._settled()

    def on_message(self, sender: str, message: ReplicaMessage, now_ms: int) -> list[ReplicaAction]:
        self._now_ms = now_ms
        self._receive(sender, message)
        return self._settled()

    def on_written(self, now_ms: int) -> list[ReplicaAction]:
        self._now_ms = now_ms
        self.log.on_written()
        revealed, self._after_write = self._after_write, []
        for each in revealed:
            self._transmit(each)
        return self._settled()

    def on_lost(self, member: str, now_ms: int) -> list[ReplicaAction]:
        """Hear that the process of a member is gone: a leader is not waited for any longer.

        It may live all the same; then an election is asked for in vain.
        """
        self._now_ms = now_ms
        if member == self.leader and self._leading is None:
            heartbeat_ms = self._limits.heartbeat_ms
            self._heard_ms = now_ms - self._limits.election_ms
            # Others hear of it a little later, and do not vote before.
            soon_ms = now_ms + heartbeat_ms // 2 + self._rng.randrange(heartbeat_ms)
            self._election_due_ms = min(self._election_due_ms, soon_ms)
        return self._settled()

    def propose(self, command: bytes, now_ms: int) -> tuple[int, list[ReplicaAction]]:
        """Propose a command, while `can_propose`; return its index, too.

        It is committed when an entry of this term is applied at the index; lost, if one of another
        term is.
        """
        assert command, "an entry without a command means something else"
        return self._propose(LogEntry(term=self.term, command=command), now_ms)

    def change_members(
        self, members: Sequence[str], now_ms: int
    ) -> tuple[int, list[ReplicaAction]]:
        """Add a member or remove one, while `can_change`; return the index of the entry, too."""
        assert self.can_change(members), members
        return self._propose(LogEntry(term=self.term, members=tuple(sorted(members))), now_ms)

    def read(self, number: int, now_ms: int) -> list[ReplicaAction]:
        """Ask for `Readable`, at the leader; it does not come if another one takes over."""
        assert self._leading is not None, "ask the leader"
        self._now_ms = now_ms
        self._leading.read(number)
        return self._settled()

    def transfer(self, to: str, now_ms: int) -> list[ReplicaAction]:
        """Give leadership to a member, while `can_transfer`; it may come to nothing."""
        assert self._leading is not None, "ask the leader"
        self._now_ms = now_ms
        self._actions += self._leading.transfer(to, now_ms)
        return self._settled()

    def compact(self, index: int, state: bytes, now_ms: int) -> list[ReplicaAction]:
        """Keep the state after an applied entry instead of the entries that have led to it."""
        assert index <= self.applied_index, "only applied entries are in the state"
        self._now_ms = now_ms
        term = self.log.term_at(index)
        if index > self.log.snapshot.index and term is not None:
            members = self.log.members_at(index)
            snapshot = StateSnapshot(index=index, term=term, members=members, state=state)
            self.log.compact(snapshot, self._limits.kept_entries)
        return self._settled()

    def _propose(self, entry: LogEntry, now_ms: int) -> tuple[int, list[ReplicaAction]]:
        assert self._leading is not None, "ask the leader"
        assert self._leading.can_propose, "check can_propose first"
        self._now_ms = now_ms
        index = self._leading.propose(entry, now_ms)
        return index, self._settled()

    # -- messages --------------------------------------------------------------------------

    def _receive(self, sender: str, message: ReplicaMessage) -> None:
        if message.term < self.term:
            if isinstance(message, AskVote):
                self._answer_vote(sender, message, is_granted=False)
            elif isinstance(message, AppendEntries | SendSnapshotPart):
                self._answer(sender, is_match=False, index=0, previous_index=0, round_=0)
            return
        if message.term > self.term and not isinstance(message, AskVote | CastVote):
            self._follow(message.term, "")
        match message:
            case AskVote():
                self._on_ask_vote(sender, message)
            case CastVote():
                self._on_vote(sender, message)
            case AppendEntries() | SendSnapshotPart() | TakeOver():
                assert self._leading is None, f"{sender} leads term {self.term}, too"
                if self._campaign is not None or not self.leader:
                    self._follow(self.term, sender)
                assert self.leader == sender, f"{sender} leads term {self.term}, too"
                self._heard_ms = self._now_ms
                self._set_election_timer()
                match message:
                    case AppendEntries():
                        self._append(sender, message)
                    case SendSnapshotPart():
                        self._take_part(sender, message)
                    case TakeOver():
                        if self._may_lead:
                            self._begin_campaign(_Campaign(is_trial=False, takes_over=True))
                    case _:
                        assert_never(message)
            case EntriesAppended() | SnapshotPartTaken():
                if self._leading is not None:
                    self._actions += self._leading.on_answer(sender, message, self._now_ms)
            case _:
                assert_never(message)

    # -- elections -------------------------------------------------------------------------

    def _begin_campaign(self, campaign: _Campaign) -> None:
        self._campaign, self.leader = campaign, ""
        if not campaign.is_trial:
            self.log.set_term(self.term + 1, self._me)
        ask = AskVote(
            term=self.term + 1 if campaign.is_trial else self.term,
            last_index=self.log.last_index,
            last_term=self.log.last_term,
            is_trial=campaign.is_trial,
            takes_over=campaign.takes_over,
        )
        own = CastVote(term=ask.term, is_granted=True, is_trial=ask.is_trial)
        self._reveal(self._me, own)
        for member in self.members:
            if member != self._me:
                self._reveal(member, ask)

    def _on_ask_vote(self, sender: str, message: AskVote) -> None:
        if not message.takes_over:  # Who cannot hear the leader must not disturb those who can.
            if self._leading is not None and self._leading.has_majority(self._now_ms):
                return
            is_heard = self._now_ms - self._heard_ms < self._limits.election_ms
            if self._leading is None and self.leader and is_heard:
                return
        if message.term > self.term and not message.is_trial:
            self._follow(message.term, "")
        is_free = message.is_trial or self.log.vote in {"", sender}
        covers = self.log.is_covered_by(message.last_term, message.last_index)
        is_granted = is_free and covers and self._leading is None
        if is_granted and not message.is_trial:
            self.log.set_term(self.term, sender)
            self._set_election_timer()
        self._answer_vote(sender, message, is_granted=is_granted)

    def _answer_vote(self, sender: str, message: AskVote, *, is_granted: bool) -> None:
        term = message.term if is_granted else self.term
        answer = CastVote(term=term, is_granted=is_granted, is_trial=message.is_trial)
        self._reveal(sender, answer)

    def _on_vote(self, sender: str, message: CastVote) -> None:
        campaign = self._campaign
        if message.term > self.term and not (message.is_trial and message.is_granted):
            self._follow(message.term, "")
            return
        is_asked = campaign is not None and campaign.is_trial == message.is_trial
        asked_term = self.term + (1 if message.is_trial and message.is_granted else 0)
        if campaign is None or not is_asked or message.term != asked_term:
            return
        (campaign.granted if message.is_granted else campaign.refused).add(sender)
        if self._is_majority(campaign.granted):
            if campaign.is_trial:
                limits = self._limits
                # Votes wait for disks. The time was drawn, so that two do not ask at once again.
                self._election_due_ms += limits.election_ms - limits.trial_ms
                self._begin_campaign(_Campaign(is_trial=False))
                return
            self._campaign, self.leader = None, self._me
            self._leading = Leadership(self._me, self.log, self._limits, self._now_ms)
        elif self._is_majority(campaign.refused):
            self._follow(self.term, "")

    @property
    def _may_lead(self) -> bool:
        """Whether it is a member, or its removal may not be committed.

        Nobody else can lead then if no other member has the entry that removes it.
        """
        return self._me in self.members or (
            self.log.members_index > self.commit_index
            and self._me in self.log.members_at(self.log.members_index - 1)
        )

    def _is_majority(self, names: set[str]) -> bool:
        members = self.members
        return 2 * len(names.intersection(members)) > len(members)

    def _follow(self, term: int, leader: str) -> None:
        if term > self.term:
            self.log.set_term(term)
        if term > self.term or self._leading is not None or self._campaign is not None:
            self._set_election_timer()
        self.leader, self._campaign, self._leading = leader, None, None
        self._readable.clear()

    def _set_election_timer(self) -> None:
        limits = self._limits
        wait_ms = limits.election_ms + self._rng.randrange(limits.spread_ms)
        self._election_due_ms = self._now_ms + wait_ms

    def _set_trial_timer(self) -> None:
        pause_ms = self._limits.trial_ms
        self._election_due_ms = self._now_ms + pause_ms + self._rng.randrange(pause_ms)

    # -- the follower ----------------------------------------------------------------------

    def _append(self, sender: str, message: AppendEntries) -> None:
        asked, committed = message.previous_index, self.commit_index
        is_match = asked < committed or self.log.term_at(asked) == message.previous_term
        if is_match:
            previous = max(asked, committed)  # Logs are the same up to there.
            entries = message.entries[previous - asked :]
            self._take_entries(previous + 1, entries)
            last = previous + len(entries)
            self.commit_index = max(committed, min(message.commit_index, last))
        else:
            last = min(self.log.last_index, self.log.before_term_of(asked))
        self._answer(
            sender, is_match=is_match, index=last, previous_index=asked, round_=message.round
        )

    def _take_entries(self, first: int, entries: Sequence[LogEntry]) -> None:
        for index, entry in enumerate(entries, first):
            if self.log.term_at(index) != entry.term:
                if index <= self.log.last_index:
                    assert index > self.commit_index, "committed entries stay"
                    self.log.truncate(index)
                self.log.append(entries[index - first :])
                return

    def _answer(
        self, sender: str, *, is_match: bool, index: int, previous_index: int, round_: int
    ) -> None:
        answer = EntriesAppended(
            term=self.term,
            is_match=is_match,
            index=index,
            previous_index=previous_index,
            round=round_,
        )
        self._reveal(sender, answer)

    def _take_part(self, sender: str, message: SendSnapshotPart) -> None:
        if message.index <= self.commit_index:
            self._on_installed(sender, message)
            return
        parts = self._parts
        if parts is None or (parts.term, parts.index) != (message.term, message.index):
            parts = self._parts = _Parts(message.term, message.index)
        if message.offset == len(parts.state):
            parts.state += message.part
            if message.is_last:
                self._install(message, bytes(parts.state))
                self._on_installed(sender, message)
                return
        taken = SnapshotPartTaken(
            term=self.term, index=message.index, offset=len(parts.state), round=message.round
        )
        self._reveal(sender, taken)

    def _install(self, message: SendSnapshotPart, state: bytes) -> None:
        self._parts = None
        self.commit_index = message.index
        if self.log.term_at(message.index) == message.index_term:
            return  # The entries are here: they will be applied.
        self.log.install(
            StateSnapshot(
                index=message.index, term=message.index_term, members=message.members, state=state
            )
        )

    def _on_installed(self, sender: str, message: SendSnapshotPart) -> None:
        self._answer(
            sender,
            is_match=True,
            index=self.commit_index,
            previous_index=message.index,
            round_=message.round,
        )

    # -- what comes of it ------------------------------------------------------------------

    def _reveal(self, to: str, message: ReplicaMessage) -> None:
        """Send a message as soon as all is durable that has been changed before."""
        transmit = Transmit(to, message)
        if self.log.has_promises:
            self._after_next.append(transmit)
        elif self.log.is_writing_promises:
            self._after_write.append(transmit)
        else:
            self._transmit(transmit)

    def _transmit(self, transmit: Transmit) -> None:
        if transmit.to == self._me:
            self._receive(self._me, transmit.message)
        else:
            self._actions.append(transmit)

    def _settled(self) -> list[ReplicaAction]:
        if self._leading is not None:
            leading = self._leading
            self._actions += leading.advance()
            self.commit_index = max(self.commit_index, leading.commit_index)
            self._readable += leading.take_reads()
            is_removed = self._me not in self.members
            if is_removed and leading.commit_index >= self.log.members_index:
                self._actions += leading.last_words()
                self._follow(self.term, "")
        snapshot = self.log.snapshot
        if self.applied_index < snapshot.index <= self.log.durable_index:
            self.applied_index = snapshot.index
            self._actions.append(RestoreState(snapshot))
        # While a snapshot is being installed, nothing counts as durable.
        last = min(self.commit_index, self.log.durable_index)
        for index in range(self.applied_index + 1, last + 1):
            self._actions.append(ApplyEntry(index, self.log.entry(index)))
            self.applied_index = index
        waiting, self._readable = self._readable, deque()
        for number, index in waiting:
            if index <= self.applied_index:
                self._actions.append(Readable(number))
            else:
                self._readable.append((number, index))
        if (write := self.log.begin_write()) is not None:
            self._after_write += self._after_next
            self._after_next = []
            self._actions.append(Persist(write))
        role = RoleChange(self.role, self.term, self.leader)
        if role != self._told:
            self._told = role
            self._actions.append(role)
        actions, self._actions = self._actions, []
        return actions
