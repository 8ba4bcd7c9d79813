"""The story of a few members that agree on a log: messages wait until they are delivered."""

from collections.abc import Callable, Iterator
from typing import Any, Final

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
from gearpy.core.consensus.replica import Replica
from gearpy.core.consensus.stored import DiskWrite, LogEntry, StoredLog
from tests.core.consensus_world import FirstNumber
from tests.transcripts.transcript import Player, Words


def _entry(entry: LogEntry) -> str:
    if entry.members:
        return f"members {' '.join(entry.members)}"
    return entry.command.decode() or "nothing"


def _ask_vote(it: AskVote) -> str:
    kind = "would you vote" if it.is_trial else "vote"
    over = ", I take over" if it.takes_over else ""
    end = f"my log ends with {it.last_index} of term {it.last_term}{over}"
    return f"{kind} for me in term {it.term}? {end}"


def _vote(it: CastVote) -> str:
    would = " would" if it.is_trial else ""
    return f"{'yes' if it.is_granted else 'no'}, I{would} vote in term {it.term}"


def _append(it: AppendEntries) -> str:
    new = [f"{at} {_entry(each)}" for at, each in enumerate(it.entries, it.previous_index + 1)]
    place = f"behind {it.previous_index} of term {it.previous_term}"
    return f"{place}: {', '.join(new) or 'nothing new'}; {it.commit_index} committed"


#: How a message reads.
_READS: Final[dict[type, Callable[[Any], str]]] = {
    AskVote: _ask_vote,
    CastVote: _vote,
    AppendEntries: _append,
    EntriesAppended: lambda it: (
        f"I have {it.index}" if it.is_match else f"no match, try behind {it.index}"
    ),
    SendSnapshotPart: lambda it: f"snapshot of {it.index}: {it.part.decode()}",
    SnapshotPartTaken: lambda it: f"I have {it.offset} bytes of the snapshot of {it.index}",
    TakeOver: lambda _: "take over",
}


def _message(message: ReplicaMessage) -> str:
    return _READS[type(message)](message)


def _write(write: DiskWrite) -> str:
    parts = [f"term {write.term}"]
    if write.vote:
        parts.append(f"vote for {write.vote}")
    parts += [f"{at} {_entry(each)}" for at, each in enumerate(write.entries, write.first)]
    if write.snapshot is not None:
        parts.append(f"snapshot of {write.snapshot.index}")
    return ", ".join(parts)


class _Members:
    def __init__(self) -> None:
        self._now_ms = 0
        self._replicas: dict[str, Replica] = {}
        self._disks: dict[str, StoredLog] = {}
        self._writes: dict[str, DiskWrite] = {}
        self._wire: list[tuple[str, str, ReplicaMessage]] = []
        self._states: dict[str, list[str]] = {}

    def start(self, words: Words) -> Iterator[str]:
        """Begin with these members; others may be added, and wait for that."""
        self._limits = ReplicaLimits(
            heartbeat_ms=100,
            election_ms=1000,
            message_bytes=words.number("message-bytes", 1000),
            kept_entries=0,
        )
        for name in words.plain:
            self._disks[name] = StoredLog.of_members(*words.plain)
        for name in filter(None, words.settings.get("waiting", "").split(",")):
            self._disks[name] = StoredLog.of_members()
        for name in self._disks:
            yield from self._begin(name)

    def wait(self, words: Words) -> Iterator[str]:
        name, ms = words.plain
        self._now_ms += int(ms)
        yield from self._said(name, self._replicas[name].on_tick(self._now_ms))

    def write(self, words: Words) -> Iterator[str]:
        for name in words.plain:
            self._disks[name].apply(self._writes.pop(name))
            yield from self._said(name, self._replicas[name].on_written(self._now_ms))

    def deliver(self, words: Words) -> Iterator[str]:
        due, self._wire = self._chosen(words)
        for sender, to, message in due:
            if to in self._replicas:
                yield from self._said(
                    to, self._replicas[to].on_message(sender, message, self._now_ms)
                )

    def lose(self, words: Words) -> Iterator[str]:
        _, self._wire = self._chosen(words)
        yield from ()

    def settle(self, words: Words) -> Iterator[str]:
        """Write and deliver until nothing is left; say only what members are, apply and answer."""
        while self._wire or self._writes:
            said = [*self.write(Words(sorted(self._writes))), *self.deliver(Words())]
            yield from (
                each
                for each in said
                if any(word in each for word in (" is ", " applies ", " may "))
            )

    def propose(self, words: Words) -> Iterator[str]:
        name, command = words.plain
        _, actions = self._replicas[name].propose(command.encode(), self._now_ms)
        yield from self._said(name, actions)

    def read(self, words: Words) -> Iterator[str]:
        name, number = words.plain
        yield from self._said(name, self._replicas[name].read(int(number), self._now_ms))

    def transfer(self, words: Words) -> Iterator[str]:
        name, to = words.plain
        yield from self._said(name, self._replicas[name].transfer(to, self._now_ms))

    def change(self, words: Words) -> Iterator[str]:
        name, *members = words.plain
        replica = self._replicas[name]
        if replica.can_change(members):
            yield from self._said(name, replica.change_members(members, self._now_ms)[1])
        else:
            yield "refused"

    def snapshot(self, words: Words) -> Iterator[str]:
        for name in words.plain:
            state = " ".join(self._states[name]).encode()
            replica = self._replicas[name]
            actions = replica.compact(replica.applied_index, state, self._now_ms)
            yield from self._said(name, actions)

    def crash(self, words: Words) -> Iterator[str]:
        """Let members crash; what they were writing is lost."""
        for name in words.plain:
            del self._replicas[name]
            self._writes.pop(name, None)
        yield from ()

    def restart(self, words: Words) -> Iterator[str]:
        for name in words.plain:
            yield from self._begin(name)

    def _begin(self, name: str) -> Iterator[str]:
        self._states[name] = []
        replica = Replica(name, self._disks[name], self._limits, FirstNumber(), self._now_ms)
        self._replicas[name] = replica
        yield from self._said(name, replica.on_tick(self._now_ms))

    def _chosen(
        self, words: Words
    ) -> tuple[list[tuple[str, str, ReplicaMessage]], list[tuple[str, str, ReplicaMessage]]]:
        chosen: tuple[list[tuple[str, str, ReplicaMessage]], ...] = ([], [])
        for sender, to, message in self._wire:
            is_meant = words.settings.get("from", sender) == sender
            is_meant = is_meant and words.settings.get("to", to) == to
            chosen[0 if is_meant else 1].append((sender, to, message))
        return chosen[0], chosen[1]

    def _said(self, name: str, actions: list[ReplicaAction]) -> list[str]:
        return [self._done(name, each) for each in actions]

    def _done(self, name: str, action: ReplicaAction) -> str:
        match action:
            case Transmit(to, message):
                self._wire.append((name, to, message))
                return f"{name} to {to}: {_message(message)}"
            case Persist(write):
                self._writes[name] = write
                return f"{name} writes: {_write(write)}"
            case ApplyEntry(index, entry):
                self._states[name] += [entry.command.decode()] if entry.command else []
                return f"{name} applies {index}: {_entry(entry)}"
            case RestoreState(snapshot):
                state = snapshot.state.decode()
                self._states[name] = state.split()
                return f"{name} applies the snapshot of {snapshot.index}: {state}"
            case Readable(number):
                return f"{name} may answer read {number}"
            case RoleChange(role, term, leader):
                known = f", led by {leader}" if role == "follower" and leader else ""
                return f"{name} is {role} in term {term}{known}"


def consensus_player() -> Player:
    it = _Members()
    named = (it.start, it.wait, it.write, it.deliver, it.lose, it.settle, it.propose, it.read)
    more = (it.transfer, it.change, it.snapshot, it.crash, it.restart)
    return {each.__name__: each for each in (*named, *more)}
