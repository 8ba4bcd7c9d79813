"""Members that agree on a log, in virtual time, with faults and rules that must always hold.

A seed draws which faults there are and how strong, then what happens. After each step all rules
are checked that the step may have broken. At the end everything heals: then there must be a leader,
and what is proposed must reach all members.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final
from zlib import crc32

from gearpy.core.consensus.actions import (
    ApplyEntry,
    Persist,
    Readable,
    ReplicaAction,
    RestoreState,
    RoleChange,
    Transmit,
)
from gearpy.core.consensus.limits import ReplicaLimits
from gearpy.core.consensus.messages import CastVote, EntriesAppended, ReplicaMessage
from gearpy.core.consensus.replica import Replica
from gearpy.core.consensus.stored import DiskWrite, LogEntry, StoredLog

_FAULTS_UNTIL_MS: Final = 3000
_HEALED_FOR_MS: Final = 12_000
_SPARE: Final = 2
_QUICK_FROM: Final = 8000


class RuleBroken(Exception):
    """A promise of consensus was not kept."""


@dataclass(slots=True)
class ConsensusResult:
    """What one seed came to; ``problem`` is empty when all was right."""

    seed: int
    problem: str = ""
    faults: int = 0
    events: int = 0
    leaders: int = 0
    committed: int = 0
    reads: int = 0
    snapshots: int = 0
    changes: int = 0
    virtual_ms: int = 0


class Disk:
    """What a member has stored; a write that a crash interrupts is there, or it is not."""

    def __init__(self, stored: StoredLog) -> None:
        self.stored = stored
        self.writing: DiskWrite | None = None

    def finish(self) -> None:
        assert self.writing is not None
        self.stored.apply(self.writing)
        self.writing = None

    def crash(self, rng: random.Random) -> None:
        if self.writing is not None and rng.random() < 0.5:
            self.stored.apply(self.writing)
        self.writing = None

    def load(self) -> StoredLog:
        return self.stored

    def has(self, index: int, term: int) -> bool:
        stored = self.stored
        if index <= stored.base_index:
            return True
        at = index - stored.base_index - 1
        return at < len(stored.entries) and stored.entries[at].term == term


@dataclass(slots=True)
class _State:
    """What entries lead to: a number that depends on all of them and on their order."""

    index: int = 0
    sum: int = 0

    def apply(self, index: int, entry: LogEntry) -> None:
        self.index, self.sum = (
            index,
            crc32(repr((index, entry.term, entry.command)).encode(), self.sum),
        )

    def to_bytes(self) -> bytes:
        return f"{self.index} {self.sum}".encode()

    @classmethod
    def of(cls, data: bytes) -> "_State":
        return cls(*map(int, data.split()))


@dataclass(slots=True)
class Member:
    """A member: its disk, and what is lost when it crashes."""

    name: str
    disk: Disk
    offset_ms: int
    rate: float
    replica: Replica | None = None
    life: int = 0  # What was meant for an earlier life is dropped.
    paused_until_ms: int = 0
    state: _State = field(default_factory=_State)
    tick_ms: int = -1
    term: int = 0
    commit_index: int = 0
    reads: dict[int, int] = field(default_factory=dict)  # Number, and what it must see.


class ConsensusWorld:
    """A few members, a network and a clock for each; all of a seed."""

    def __init__(self, seed: int, *, disk: Callable[[StoredLog], Disk] = Disk) -> None:
        self.rng = rng = random.Random(seed)
        self.now_ms = 0
        self.result = ConsensusResult(seed)
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._is_healed = False
        self._draw()
        size = rng.choice([1, 2, 3, 3, 3, 3, 4, 5, 5])
        names = [f"m{number}" for number in range(size)]
        self.members = {
            name: self._new_member(name, disk(StoredLog.of_members(*names))) for name in names
        }
        for number in range(size, size + (_SPARE if self._changes else 0)):
            self.members[f"m{number}"] = self._new_member(
                f"m{number}", disk(StoredLog.of_members())
            )
        # What holds for all.
        self._leaders: dict[int, str] = {}
        self._votes: dict[tuple[str, int], str] = {}
        self._entries: dict[tuple[int, int], tuple[int, LogEntry]] = {}
        self._committed: list[LogEntry] = []
        self._committed_in: list[int] = []  # The terms of the leaders that have committed them.
        self._sums = [0]
        self._seen_index = 0  # What some client has been told.
        self._proposed = 0
        self._proposals: dict[tuple[str, int], tuple[int, int]] = {}
        self._arrivals: dict[tuple[str, str], int] = {}
        self._cuts: set[tuple[str, str]] = set()
        for member in self.members.values():
            self._start(member)
        self._later(rng.randrange(50, 400), self._work)
        self._later(rng.randrange(100, 800), self._fault)

    def _draw(self) -> None:
        rng = self.rng
        election_ms = rng.choice([60, 60, 200])
        # Longer without a leader finds more; of the first seeds it is known what they find.
        is_quick = self.result.seed >= _QUICK_FROM and self.result.seed % 3 == 0
        self.limits = ReplicaLimits(
            heartbeat_ms=election_ms // rng.choice([2, 4, 8]),
            election_ms=election_ms,
            spread_ms=election_ms // 2 if is_quick else election_ms,
            trial_ms=election_ms // 3 if is_quick else election_ms,
            message_bytes=rng.choice([1, 30, 1000]),
            unanswered_max=rng.choice([1, 2, 64]),
            uncommitted_max=rng.choice([3, 1000]),
            kept_entries=rng.choice([0, 2, 50]),
        )
        self._is_fifo = rng.random() < 0.5
        self._delay_ms = rng.choice([1, 5, 30, 200])
        self._loss = rng.choice([0, 0, 0.02, 0.1, 0.3])
        self._repeats = rng.choice([0, 0, 0.05, 0.2])
        self._write_ms = rng.choice([0, 1, 10, 100])
        self._is_skewed = rng.random() < 0.5
        self._work_ms = rng.choice([5, 20, 100])
        self._fault_ms = rng.choice([50, 200, 600])
        self._down_ms = rng.choice([1, 100, 1000])  # Crashes and cuts take up to so long.
        self._changes = rng.random() < 0.3
        kinds: list[Callable[[], None]] = [
            *(self._crash_one, self._crash_leader, self._crash_all, self._pause, self._partition),
            *(self._isolate, self._cut_one_way, self._transfer, self._snapshot, self._snapshot),
            *(self._pause_leader, self._cut_off_leader, self._cut_off_leader),
        ]
        self._kinds = [each for each in kinds if rng.random() < 0.5] or kinds
        if self._changes:
            self._kinds += [self._change_members, self._change_members]

    def _new_member(self, name: str, disk: Disk) -> Member:
        rate = self.rng.uniform(0.7, 1.4) if self._is_skewed else 1.0
        return Member(name, disk, self.rng.randrange(100_000), rate)

    # -- time ------------------------------------------------------------------------------

    def run(self, events_max: int | None = None) -> ConsensusResult:
        """Go through it all, or heal after so many events; the result says what was broken."""
        try:
            self._run_until(_FAULTS_UNTIL_MS, events_max=events_max)
            self._is_healed = True
            self._loss, self._repeats, self._delay_ms, self._write_ms = 0, 0, 5, 1
            self._cuts.clear()
            for member in self.members.values():
                member.paused_until_ms = 0
                self._start(member)
            self._goal = self._proposed
            self._later(20, self._look_for_progress)
            self._run_until(self.now_ms + _HEALED_FOR_MS)
            self.result.problem = f"no progress after all has healed: {self._picture()}"
        except _Done:
            pass
        except (RuleBroken, AssertionError) as error:
            self.result.problem = f"at {self.now_ms} ms: {type(error).__name__}: {error}"
        self.result.virtual_ms = self.now_ms
        self.result.committed = len(self._committed)
        self.result.leaders = len(self._leaders)
        return self.result

    def _run_until(self, until_ms: int, *, events_max: int | None = None) -> None:
        while self._heap[0][0] <= until_ms and self.result.events != events_max:
            self.now_ms, _, step, args = heappop(self._heap)
            self.result.events += 1
            step(*args)

    def _later(self, delay_ms: int, step: Callable[..., None], *args: Any) -> None:
        self._number += 1
        heappush(self._heap, (self.now_ms + delay_ms, self._number, step, args))

    # -- members ---------------------------------------------------------------------------

    def _start(self, member: Member) -> None:
        if member.replica is not None:
            return
        stored = member.disk.load()
        rng = random.Random(self.rng.random())
        member.replica = Replica(
            member.name, stored, self.limits, rng, member.offset_ms + int(self.now_ms * member.rate)
        )
        member.commit_index = member.replica.commit_index
        member.state, member.reads = _State(), {}
        if member.replica.term < member.term:
            raise RuleBroken(f"{member.name} has forgotten term {member.term}")
        self._act(member, lambda it, now_ms: it.on_tick(now_ms))

    def _crash(self, member: Member) -> None:
        if member.replica is None:
            return
        member.life, member.replica, member.tick_ms = member.life + 1, None, -1
        member.paused_until_ms = 0
        member.disk.crash(self.rng)
        delay_ms = 0 if self._is_healed else self.rng.randrange(self._down_ms)
        self._later(delay_ms, self._start, member)

    def _act(
        self,
        member: Member,
        act: Callable[[Replica, int], list[ReplicaAction]],
        life: int | None = None,
    ) -> None:
        """Let something happen to a member, unless it was meant for an earlier life."""
        replica = member.replica
        if replica is None or life not in {None, member.life}:
            return
        if member.paused_until_ms > self.now_ms:
            delay_ms = member.paused_until_ms - self.now_ms
            self._later(delay_ms, self._act, member, act, member.life)
            return
        actions = act(replica, member.offset_ms + int(self.now_ms * member.rate))
        for action in actions:
            self._do(member, replica, action)
        # Terms and commits never fall, and a majority has what is committed.
        stored = member.disk.stored
        if (
            stored.vote
            and self._votes.setdefault((member.name, stored.term), stored.vote) != stored.vote
        ):
            raise RuleBroken(f"{member.name} votes twice in term {stored.term}")
        if replica.term < member.term or replica.commit_index < member.commit_index:
            raise RuleBroken(f"the term or the commits of {member.name} fall")
        for index in range(member.commit_index + 1, replica.commit_index + 1):
            self._check_commit(member, replica, index)
        member.term, member.commit_index = stored.term, replica.commit_index
        if replica.due_ms == member.tick_ms:
            return
        member.tick_ms = replica.due_ms
        at_ms = int((replica.due_ms - member.offset_ms) / member.rate) + 1
        self._later(max(0, at_ms - self.now_ms), self._tick, member, member.life, replica.due_ms)

    def _tick(self, member: Member, life: int, due_ms: int) -> None:
        if member.life == life and member.tick_ms == due_ms:
            member.tick_ms = -1
            self._act(member, lambda it, now_ms: it.on_tick(now_ms), life)

    def _do(self, member: Member, replica: Replica, action: ReplicaAction) -> None:
        match action:
            case Transmit(to, message):
                # What is said is on disk; a member votes once in a term.
                stored = member.disk.stored
                is_told = stored.term == message.term  # Else a newer term has begun since.
                if isinstance(message, CastVote):
                    is_bound = message.is_granted and not message.is_trial
                    if is_bound and (stored.term < message.term or (is_told and not stored.vote)):
                        raise RuleBroken(f"{member.name} reveals a vote that is not on disk")
                if isinstance(message, EntriesAppended):
                    last = stored.base_index + len(stored.entries)
                    is_short = message.is_match and last < message.index
                    if stored.term < message.term or (is_told and is_short):
                        raise RuleBroken(f"{member.name} reveals entries that are not on disk")
                self._send(member.name, to, message)
            case Persist(write):
                self._check_entries(member, write)
                if member.disk.writing is not None:
                    raise RuleBroken(f"{member.name} begins a second write")
                member.disk.writing = write
                delay_ms = self.rng.randint(0, self._write_ms)
                self._later(delay_ms, self._on_written, member, member.life)
            case ApplyEntry(index, entry):
                self._on_apply(member, index, entry)
            case RestoreState(snapshot):
                member.state = _State.of(snapshot.state)
                self.result.snapshots += 1
                if (member.state.index, member.state.sum) != (
                    snapshot.index,
                    self._sums[snapshot.index],
                ):
                    raise RuleBroken(
                        f"{member.name} restores another state than that of {snapshot.index}"
                    )
            case Readable(number):
                floor = member.reads.pop(number)
                self.result.reads += 1
                if member.state.index < floor:
                    raise RuleBroken(f"{member.name} reads {member.state.index}, {floor} is known")
            case RoleChange(role, term, _):
                self._check_leader(member, replica, term if role == "leader" else 0)

    def _on_written(self, member: Member, life: int) -> None:
        if life == member.life and member.replica is not None:
            member.disk.finish()  # Also of a member that stands still.
            self._act(member, lambda it, now_ms: it.on_written(now_ms), life)

    def _on_apply(self, member: Member, index: int, entry: LogEntry) -> None:
        if index != member.state.index + 1:
            raise RuleBroken(f"{member.name} applies {index} behind {member.state.index}")
        if not member.disk.has(index, entry.term):
            raise RuleBroken(f"{member.name} applies entry {index}, which is not on its disk")
        member.state.apply(index, entry)
        if index == len(self._sums):
            self._sums.append(member.state.sum)
        if self._sums[index] != member.state.sum:
            raise RuleBroken(f"{member.name} applies another entry {index} than others")
        if (member.name, index) in self._proposals:
            number, life = self._proposals.pop((member.name, index))
            if entry.command == str(number).encode() and life == member.life:
                self._seen_index = max(self._seen_index, index)

    # -- the network -----------------------------------------------------------------------

    def _send(self, sender: str, to: str, message: ReplicaMessage) -> None:
        if to not in self.members or (sender, to) in self._cuts:
            return
        for _ in range(1 + (self.rng.random() < self._repeats)):
            if self.rng.random() < self._loss:
                continue
            at_ms = self.now_ms + self.rng.randint(0, self._delay_ms)
            if self._is_fifo:
                at_ms = self._arrivals[sender, to] = max(at_ms, self._arrivals.get((sender, to), 0))
            self._later(at_ms - self.now_ms, self._arrive, sender, to, message)

    def _arrive(self, sender: str, to: str, message: ReplicaMessage) -> None:
        if (sender, to) not in self._cuts:
            member = self.members[to]
            self._act(member, lambda it, now_ms: it.on_message(sender, message, now_ms))

    # -- work ------------------------------------------------------------------------------

    def _work(self) -> None:
        self._later(self.rng.randint(1, self._work_ms), self._work)
        member = self.rng.choice(list(self.members.values()))
        replica = member.replica
        if replica is None or member.paused_until_ms > self.now_ms:
            return
        if replica.role == "leader" and self.rng.random() < 0.3:
            self._read(member, replica)
        for _ in range(self.rng.choice([1, 1, 1, 5])):
            if replica.can_propose:
                self._propose(member)

    def _propose(self, member: Member) -> None:
        self._proposed += 1
        number = self._proposed

        def propose(it: Replica, now_ms: int) -> list[ReplicaAction]:
            if not it.can_propose:  # It has stood still meanwhile.
                return []
            index, actions = it.propose(str(number).encode(), now_ms)
            self._proposals[member.name, index] = (number, member.life)
            return actions

        self._act(member, propose)

    def _read(self, member: Member, replica: Replica) -> None:
        self._proposed += 1
        number = self._proposed
        member.reads[number] = self._seen_index

        def read(it: Replica, now_ms: int) -> list[ReplicaAction]:
            return it.read(number, now_ms) if it.role == "leader" else []

        self._act(member, read)

    # -- faults ----------------------------------------------------------------------------

    def _fault(self) -> None:
        if self._is_healed:
            return
        self.rng.choice(self._kinds)()
        self.result.faults += 1
        self._later(self.rng.randint(1, self._fault_ms), self._fault)

    def _some(self) -> Member:
        return self.rng.choice(list(self.members.values()))

    def _leading(self) -> Iterable[tuple[Member, Replica]]:
        for member in self.members.values():
            is_awake = member.paused_until_ms <= self.now_ms
            if is_awake and member.replica is not None and member.replica.role == "leader":
                yield member, member.replica

    def _crash_one(self) -> None:
        self._crash(self._some())

    def _crash_leader(self) -> None:
        for member, _ in list(self._leading()):
            self._crash(member)

    def _crash_all(self) -> None:
        for member in self.members.values():
            self._crash(member)

    def _pause(self, member: Member | None = None) -> None:
        member = member or self._some()
        member.paused_until_ms = self.now_ms + self.rng.randrange(1500)
        self._later(member.paused_until_ms - self.now_ms, self._ask_first, member)

    def _pause_leader(self) -> None:
        for member, _ in list(self._leading()):
            self._pause(member)

    def _ask_first(self, member: Member) -> None:
        """Ask a member that was frozen, before it has noticed how late it is."""
        replica = member.replica
        if replica is not None and replica.role == "leader":
            self._read(member, replica)
            if replica.can_propose:
                self._propose(member)

    def _cut(self, cuts: Iterable[tuple[str, str]]) -> None:
        mine = set(cuts)
        self._cuts |= mine
        delay_ms = self.rng.randrange(50, 51 + self._down_ms)
        self._later(delay_ms, self._cuts.difference_update, mine)

    def _cut_off_leader(self) -> None:
        """Let some leader be heard by few others or none, or let it hear few."""
        for member, _ in list(self._leading()):
            share = self.rng.choice([0.3, 0.7, 1.0])
            others = {each for each in self.members if self.rng.random() < share} - {member.name}
            away = {(member.name, each) for each in others}
            back = {(each, member.name) for each in others}
            self._cut(self.rng.choice([away, back, away | back]))

    def _partition(self) -> None:
        side = {each for each in self.members if self.rng.random() < 0.5}
        others = self.members.keys() - side
        self._cut((a, b) for one, two in [(side, others), (others, side)] for a in one for b in two)

    def _isolate(self) -> None:
        name = self._some().name
        self._cut(pair for each in self.members for pair in [(name, each), (each, name)])

    def _cut_one_way(self) -> None:
        self._cut(
            (one, two) for one in self.members for two in self.members if self.rng.random() < 0.3
        )

    def _transfer(self) -> None:
        for member, replica in list(self._leading()):
            to = self._some().name
            if replica.can_transfer(to):
                self._act(member, lambda it, now_ms, to=to: it.transfer(to, now_ms))  # type: ignore[misc]

    def _snapshot(self) -> None:
        member = self._some()
        if member.replica is not None and member.paused_until_ms <= self.now_ms:
            index, state = member.state.index, member.state.to_bytes()
            self._act(member, lambda it, now_ms: it.compact(index, state, now_ms))

    def _change_members(self) -> None:
        for member, replica in list(self._leading()):
            wanted = set(replica.members) ^ {self._some().name}
            if replica.can_change(sorted(wanted)):
                self.result.changes += 1
                names = sorted(wanted)
                self._act(member, lambda it, now_ms, n=names: it.change_members(n, now_ms)[1])  # type: ignore[misc]

    def _look_for_progress(self) -> None:
        """Be done when an entry that was proposed after the healing is at all members."""
        self._later(20, self._look_for_progress)
        for _, replica in self._leading():
            states = [self.members[name].state.index for name in replica.members]
            newest = self._committed[min(states) - 1] if min(states) else LogEntry(term=0)
            if newest.command and int(newest.command) > self._goal:
                raise _Done

    # -- rules -----------------------------------------------------------------------------

    def _check_leader(self, member: Member, replica: Replica, term: int) -> None:
        """A term has one leader, and it has all that was committed in earlier ones.

        Votes may come so late that a newer term has a leader, and commits of its own.
        """
        if not term:
            return  # It leads none.
        if self._leaders.setdefault(term, member.name) != member.name:
            raise RuleBroken(f"{member.name} and {self._leaders[term]} lead term {term}")
        log = replica.log
        for index in range(log.base_index + 1, len(self._committed) + 1):
            is_earlier = self._committed_in[index - 1] < term
            if is_earlier and log.term_at(index) != self._committed[index - 1].term:
                raise RuleBroken(f"{member.name} leads term {term} without entry {index}")

    def _check_entries(self, member: Member, write: DiskWrite) -> None:
        """Entries of the same index and term are the same, and so are those before them."""
        replica = member.replica
        assert replica is not None
        previous = replica.log.term_at(write.first - 1)
        for index, entry in enumerate(write.entries, write.first):
            assert previous is not None
            known = self._entries.setdefault((index, entry.term), (previous, entry))
            if known != (previous, entry):
                raise RuleBroken(f"{member.name} has another entry {index} of term {entry.term}")
            previous = entry.term

    def _check_commit(self, member: Member, replica: Replica, index: int) -> None:
        if index > replica.log.base_index:
            entry = replica.log.entry(index)
            if index <= len(self._committed):
                if entry != self._committed[index - 1]:
                    raise RuleBroken(f"{member.name} commits another entry {index} than others")
            elif index == len(self._committed) + 1:
                self._committed.append(entry)
                self._committed_in.append(replica.term)
                self._check_majority(member, replica, index, entry.term)
        elif index > len(self._committed):
            raise RuleBroken(f"{member.name} has a snapshot of what nobody has committed")

    def _check_majority(self, member: Member, replica: Replica, index: int, term: int) -> None:
        names = replica.members
        having = [each for each in names if self.members[each].disk.has(index, term)]
        if 2 * len(having) <= len(names):
            raise RuleBroken(f"{member.name} commits {index}, on the disks of {having} of {names}")

    def _picture(self) -> str:
        return ", ".join(
            f"{each.name}: {each.replica.role} of term {each.replica.term}, "
            f"{each.state.index} of {each.replica.log.last_index} applied, "
            f"members {' '.join(each.replica.members)}"
            if each.replica
            else f"{each.name}: down"
            for each in self.members.values()
        )


class _Done(Exception):
    """All is as it should be."""


def run_consensus_seed(seed: int, events_max: int | None = None) -> ConsensusResult:
    """Return what comes of a seed; all is healed after so many events, or after a while."""
    return ConsensusWorld(seed).run(events_max)


class FirstNumber(random.Random):
    def randrange(self, *_: Any, **__: Any) -> int:
        return 0
