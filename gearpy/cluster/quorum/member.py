"""ReplicaActor: a master's part in the log of all: messages, disk, ticks."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never

import msgspec

from gearpy.actor.api import BatchActor, Exited
from gearpy.actor.mailbox import Reply
from gearpy.cluster.net.post import Post
from gearpy.cluster.quorum.disks import DiskBook, refusal_of
from gearpy.cluster.quorum.log import (
    Confirm,
    Inspect,
    LookAround,
    MemberChange,
    MemberStatus,
    Propose,
    ReplicatedLog,
    StateMachine,
    lost,
)
from gearpy.core.base.versions import MASTERS, CommonVersion
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
from gearpy.core.consensus.messages import ReplicaMessage, decode_message, encode_message
from gearpy.core.consensus.replica import Replica
from gearpy.core.consensus.stored import DiskWrite, LogEntry
from gearpy.errors import GearpyError, LeadershipLost
from gearpy.ids import ActorPath, address_of
from gearpy.messages.client import ChangeMasters
from gearpy.messages.cluster import ReplicaPart, ReplicaRefused
from gearpy.messages.masters import MasterList, MasterSummary
from gearpy.messages.versions import KnownVersions
from gearpy.storage.replica_store import ReplicaStore

if TYPE_CHECKING:
    from random import Random

_log = logging.getLogger(__name__)

#: The name of the actor; with an address it is the path by which other masters find it.
REPLICA: Final = "replica"
_TICK_MS: Final = 50
_WATCH_AGAIN_MS: Final = 1000
#: After so many entries, or bytes of them, a master writes its whole state.
SNAPSHOT_ENTRIES: Final = 10_000
_SNAPSHOT_BYTES: Final = 64 << 20
#: What waits is proposed together up to about this size.
_ENTRY_BYTES: Final = 128 << 10
_RECORDS: Final = msgspec.msgpack.Decoder(tuple[bytes, ...])


class _Tick:
    pass


_Message: TypeAlias = (
    ReplicaPart | ReplicaRefused | Propose | Confirm | LookAround | Inspect | MemberChange | _Tick
)
#: Called with the term and the log when this master leads, and has all that was ever agreed on.
Lead: TypeAlias = Callable[[int, ReplicatedLog], None]


class ReplicaActor(BatchActor[_Message]):
    """Carries out the commands of a `Replica`, and folds the agreed entries into a state.

    Invariant: nothing is said that is not on disk before; one write holds all changes that came
    while the write before was under way.

    Runs on: its own thread, on which it writes. Restart: none: one that has led and does not any
    more, tells so and stops; one whose disk fails, fails with `LogBroken`. Its owner ends the node
    then. A new incarnation goes on from the disk, so that all who watched the old one lose it.
    """

    takes = _Message

    def __init__(
        self,
        me: str,
        store: ReplicaStore,
        post: Post,
        state: StateMachine,
        *,
        disks: DiskBook,
        rng: "Random",
        versions: KnownVersions = MASTERS,
        on_status: Callable[[MemberStatus], None],
        lead: Lead,
        on_over: Callable[[LeadershipLost], None],
    ) -> None:
        self._me, self._store, self._post, self._state = me, store, post, state
        self._disks = disks
        self._rng, self._limits = rng, ReplicaLimits()
        self._on_status, self._lead, self._on_over = on_status, lead, on_over
        self._versions = versions
        self._parts = PartsTaken(versions)
        self._spoken = CommonVersion(versions)
        self._written = versions.oldest  # The version in which the log is written.
        self._role = RoleChange("follower", 0, "")
        self._is_leading = False  # And somebody was told so.
        self._has_led = False
        self._led: ReplicatedLog | None = None
        self._to_write: DiskWrite | None = None
        self._proposed: dict[int, list[Reply]] = {}
        self._waiting: deque[Propose] = deque()  # While leadership is handed over.
        self._reads: dict[int, Reply] = {}
        self._read_number = 0
        self._entries = self._bytes = 0  # Applied since the snapshot.
        self._watched: set[str] = set()
        self._lost_ms: dict[str, int] = {}
        self._away_since_ms: dict[str, int] = {}  # Wall time.
        self._told = MemberStatus()

    def on_start(self) -> None:
        now_ms = self.context.now_ms()
        self._replica = Replica(self._me, self._store.stored, self._limits, self._rng, now_ms)
        self.context.schedule(_TICK_MS, _Tick())
        self.receive_batch([_Tick()])

    def receive_batch(self, messages: list[_Message]) -> None:
        for message in messages:
            self._take(message)
        others = [each for each in self._replica.members if each != self._me]
        version = self._spoken.of_all(others)
        if version != self._written:
            _log.info("the log is written in version %d from here on", version)
            self._written = version
        for _ in range(2):  # A write may make room for more.
            if self._waiting and not self._is_leading:
                self._fail_all("this master does not lead")
            while self._waiting and self._replica.can_propose:
                records, replies, size = list[bytes](), list[Reply](), 0
                while self._waiting and size < _ENTRY_BYTES:
                    message = self._waiting.popleft()
                    records += message.records
                    replies.append(message.reply)
                    size += sum(map(len, message.records))
                command = msgspec.msgpack.encode(records)
                index, actions = self._replica.propose(command, self.context.now_ms())
                self._proposed[index] = replies
                self._do(actions)
            self._write_all()

        if self._entries >= SNAPSHOT_ENTRIES or self._bytes >= _SNAPSHOT_BYTES:
            self._entries = self._bytes = 0
            index, now_ms = self._replica.applied_index, self.context.now_ms()
            self._do(self._replica.compact(index, self._state.to_bytes(self._written), now_ms))
            self._write_all()

        self._tell_status()

    def on_exited(self, exited: Exited) -> None:
        member = address_of(exited.ref.path.node)
        self._watched.discard(member)
        self._lost_ms[member] = self.context.now_ms()
        self._away_since_ms.setdefault(member, self.context.wall_ms())
        _log.info("master %s is lost", member)
        self._do(self._replica.on_lost(member, self.context.now_ms()))
        self._write_all()

    def on_stop(self) -> None:
        self._fail_all("this master ends")

    # -- what comes ------------------------------------------------------------------------

    def _take(self, message: _Message) -> None:
        now_ms = self.context.now_ms()
        match message:
            case _Tick():
                self._watch_others(now_ms)
                self._do(self._replica.on_tick(now_ms))
            case ReplicaPart():
                self._on_part(message, now_ms)
            case ReplicaRefused():
                if message.disk == self._disks.own:
                    raise refusal_of(self._me, message.member)
            case Propose():
                self._waiting.append(message)
            case Confirm():
                reply = message.reply
                if not self._is_leading:
                    reply.set_exception(lost("this master does not lead"))
                    return
                self._read_number += 1
                self._reads[self._read_number] = reply
                self._do(self._replica.read(self._read_number, now_ms))
            case LookAround():
                message.reply.set(self._looked(now_ms))
            case Inspect():
                role = self._role
                may_know = self._is_leading if role.role == "leader" else bool(role.leader)
                is_new = may_know and self._replica.applied_index == self._replica.commit_index
                message.reply.set(message.read(self._state) if is_new else None)
            case MemberChange():
                asked, reply, members = message.asked, message.reply, set(self._replica.members)
                refusal = why_not_changed(asked, self._me, members)
                wanted = members ^ {asked.address}
                if refusal or not self._is_leading:
                    reply.set(refusal or "this master does not lead")
                elif asked.change == "transfer":
                    self._do(self._replica.transfer(asked.address, now_ms))
                    reply.set("")
                elif not self._replica.can_change(sorted(wanted)):
                    reply.set("another change of the masters is under way: try again in a moment")
                else:
                    index, actions = self._replica.change_members(sorted(wanted), now_ms)
                    self._proposed[index] = [reply]
                    self._do(actions)
            case _:
                assert_never(message)

    def _looked(self, now_ms: int) -> MasterList:
        replica = self._replica
        last, is_long = replica.commit_index, self._limits.election_ms
        seen = list[MasterSummary]()
        for member, match, silent_ms in replica.others(now_ms):
            if silent_ms >= is_long:
                self._away_since_ms.setdefault(member, self.context.wall_ms() - silent_ms)
            since_ms, behind = self._away_since_ms.get(member), max(0, last - match)
            role: Literal["follower", "away"] = "follower" if since_ms is None else "away"
            seen.append(
                MasterSummary(
                    address=member,
                    role=role,
                    behind=behind,
                    away_since_ms=since_ms or 0,
                    silent_ms=silent_ms,
                )
            )
        own = MasterSummary(address=self._me, role="leader" if self._is_leading else "follower")
        masters = tuple(sorted([own, *seen], key=lambda each: each.address))
        return MasterList(masters=masters, term=replica.term)

    def _watch_others(self, now_ms: int) -> None:
        for member in self._replica.members:
            is_due = now_ms - self._lost_ms.get(member, -_WATCH_AGAIN_MS) >= _WATCH_AGAIN_MS
            if member == self._me or member in self._watched or not is_due:
                continue
            if (ref := self._post.find(_path(member))) is not None:
                self._watched.add(member)
                self.context.watch(ref)

    def _on_part(self, part: ReplicaPart, now_ms: int) -> None:
        if not self._disks.admits(part.member, part.disk):
            if part.is_first:
                _log.error("a message was dropped: %s", refusal_of(part.member, self._me))
                refused = ReplicaRefused(member=self._me, disk=part.disk)
                self._post.tell(_path(part.member), refused)
            return
        try:
            self._spoken.on_told(part.member, part.speaks)
            message = self._parts.take(part)
        except GearpyError as error:
            _log.warning("a message of master %s was dropped: %s", part.member, error)
            return
        if message is not None:
            self._lost_ms.pop(part.member, None)
            self._away_since_ms.pop(part.member, None)
            self._do(self._replica.on_message(part.member, message, now_ms))

    # -- what follows ----------------------------------------------------------------------

    def _do(self, actions: Iterable[ReplicaAction]) -> None:
        for action in actions:
            match action:
                case Transmit():
                    self._send(action)
                case Persist(write):
                    assert self._to_write is None, "one write at a time"
                    self._to_write = write
                case ApplyEntry(index, entry):
                    self._apply(index, entry)
                case RestoreState(snapshot):
                    self._state.restore(snapshot.state)
                    self._entries = self._bytes = 0
                case Readable(number):
                    self._reads.pop(number).set(None)
                case RoleChange():
                    self._on_role(action)
                case _:
                    assert_never(action)

    def _send(self, action: Transmit) -> None:
        if action.to in self._lost_ms and action.to not in self._watched:
            return  # Nobody is there; a new connection is tried when it is watched again.
        version = self._spoken.to(action.to)
        speaks, disk = self._versions.newest, self._disks.own
        for part in parts_of(self._me, disk, action.message, version=version, speaks=speaks):
            self._post.tell(_path(action.to), part)

    def _write_all(self) -> None:
        while self._to_write is not None:
            write, self._to_write = self._to_write, None
            self._store.write(write, self._written)
            self._do(self._replica.on_written(self.context.now_ms()))

    def _apply(self, index: int, entry: LogEntry) -> None:
        if entry.command:
            for record in _RECORDS.decode(entry.command):
                self._state.apply(record)
        self._entries += 1
        self._bytes += len(entry.command)
        is_of_mine = self._role.role == "leader" and entry.term == self._role.term
        if is_of_mine and not self._has_led:
            self._is_leading = self._has_led = True
            _log.info("master %s leads in term %d", self._me, self._role.term)
            self._tell_status()
            state = self._state.to_bytes(self._written)
            log = ReplicatedLog(
                state, self.context.self_ref, self.context.system, lambda: self._written
            )
            self._lead(self._role.term, log)
            self._led = log
            log.on_members(self._replica.members)
        for reply in self._proposed.pop(index, ()):
            reply.set("")

    def _on_role(self, role: RoleChange) -> None:
        self._role = role
        if role.leader and role.leader != self._me:
            _log.info("master %s leads in term %d", role.leader, role.term)
        if self._is_leading and role.role != "leader":
            _log.warning("master %s does not lead any more, and begins anew", self._me)
        if role.role != "leader":
            self._fail_all("another master may lead now")
            if self._is_leading:
                self._is_leading = False
                self._on_over(LeadershipLost(f"master {self._me} does not lead any more"))
                self.context.stop_self()

    def _fail_all(self, why: str) -> None:
        replies = [*chain.from_iterable(self._proposed.values()), *self._reads.values()]
        replies += [each.reply for each in self._waiting]
        self._proposed, self._reads = {}, {}
        self._waiting.clear()
        for reply in replies:
            reply.set_exception(lost(f"{why}; what it was asked last may have been done"))

    def _tell_status(self) -> None:
        role = self._role
        is_ready = role.role != "leader" or self._is_leading
        status = MemberStatus(
            role=role.role if is_ready else "candidate",
            term=role.term,
            leader=role.leader if is_ready else "",
            members=self._replica.members,
            applied=self._replica.applied_index,
            committed=self._replica.commit_index,
        )
        if self._led is not None and status.members != self._told.members:
            self._led.on_members(status.members)
        if status != self._told:
            self._told = status
            self._on_status(status)


def _path(member: str) -> ActorPath:
    return ActorPath(member, REPLICA)


def why_not_changed(asked: ChangeMasters, me: str, members: AbstractSet[str]) -> str:
    address, known = asked.address, ", ".join(sorted(members))
    if asked.change == "add":
        return f"{address} is one of the masters already: {known}" if address in members else ""
    if address not in members:
        return f"{address} is none of the masters: {known}"
    if asked.change == "transfer" and address == me:
        return f"{address} leads already"
    return f"{address} is the only master" if len(members) == 1 else ""


_PART_BYTES: Final = 512 << 10


def parts_of(
    member: str, disk: str, message: ReplicaMessage, *, version: int, speaks: int
) -> Iterator[ReplicaPart]:
    data = encode_message(message, version)
    for start in range(0, len(data), _PART_BYTES):
        end = start + _PART_BYTES
        yield ReplicaPart(
            member=member,
            disk=disk,
            part=data[start:end],
            is_first=start == 0,
            is_last=end >= len(data),
            speaks=speaks,
        )


class PartsTaken:
    """Puts the messages of other members together. One whose parts do not all come is dropped."""

    def __init__(self, versions: KnownVersions = MASTERS) -> None:
        self._versions = versions
        self._begun: dict[str, bytearray] = {}

    def take(self, part: ReplicaPart) -> ReplicaMessage | None:
        if part.is_first:
            self._begun[part.member] = bytearray()
        data = self._begun.get(part.member)
        if data is None:
            return None
        data += part.part
        if not part.is_last:
            return None
        del self._begun[part.member]
        return decode_message(bytes(data), self._versions)
