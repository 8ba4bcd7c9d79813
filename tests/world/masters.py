"""Several masters in virtual time: their processes, their disks, and what clients ask them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from gearpy.actor.api import Exited, Failed, Ref
from gearpy.cluster.master.actor import MasterActor
from gearpy.cluster.master.store import MasterFold
from gearpy.cluster.quorum.disks import DiskBook
from gearpy.cluster.quorum.gateway import MemberGateway
from gearpy.cluster.quorum.log import MemberStatus, ReplicatedLog, ask_replica
from gearpy.cluster.quorum.member import REPLICA, ReplicaActor
from gearpy.core.base.versions import MASTERS
from gearpy.core.consensus.stored import StoredLog
from gearpy.errors import ActorStopped, AskTimeout, ConnectionLost, GearpyError, LeadershipLost
from gearpy.messages.client import ApplicationChange, GetApplication, NotLeader
from gearpy.messages.versions import KnownVersions
from gearpy.storage.log import MemoryLog
from gearpy.storage.replica_store import ReplicaStore
from gearpy.wire.codec import decode_control, encode_control

if TYPE_CHECKING:
    from tests.world.cluster import ClusterSimulation, Process

_MASTER: Final = "master"
_ASK_S: Final = 20.0  #: Of the wall: nothing that is asked waits for virtual time.
_AGAIN_MS: Final = 100
_ELECTION_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _LeaderDesk:
    master: Ref[Any]

    def answer(self, message: object, _: object = None, /) -> object:
        question: Any = decode_control(encode_control(message))
        return decode_control(encode_control(self.master.ask(question, _ASK_S)))


@dataclass(slots=True)
class Member:
    process: Process
    log: MemoryLog
    desk: MemberGateway


class SimulatedMasters:
    """Masters of one cluster, at ``master0:1``, ``master1:1`` and so on."""

    #: What each understands that is of another version of gearpy, by its address.
    versions: ClassVar[dict[str, KnownVersions]] = {}

    def __init__(self, cluster: ClusterSimulation, count: int) -> None:
        self._cluster = cluster
        self.addresses = addresses_of(count)
        self.problems: list[str] = []  #: Actors that have failed, and must not.
        self.terms: list[int] = []  #: Of those that have led.
        self._members = [self._start(each, MemoryLog()) for each in self.addresses]

    @property
    def logs(self) -> list[MemoryLog]:
        return [each.log for each in self._members]

    @property
    def processes(self) -> list[Process]:
        return [each.process for each in self._members]

    @property
    def leader(self) -> Process:
        """The master of the newest term that lives; else the first."""
        leading = [
            each
            for each in self._members
            if each.process.is_alive and each.process.system.resolve(_MASTER) is not None
        ]
        return max(leading or self._members, key=lambda each: each.desk.status.term).process

    @property
    def standings(self) -> list[MemberStatus]:
        return [each.desk.status for each in self._members]

    def start_dead(self) -> None:
        for number, member in enumerate(self._members):
            if not member.process.is_alive:
                self._members[number] = self._start(self.addresses[number], member.log)

    def on_killed(self, process: Process) -> None:
        for member in self._members:
            if member.process is process:
                member.log = member.log.crash(self._cluster.world.rng)

    def ask(self, message: Any) -> Any:
        """Return the answer of the one that leads, as `Masters` does."""
        world = self._cluster.world
        patience_ms = 2000 if isinstance(message, GetApplication) else _ELECTION_MS
        until_ms, failure = world.now_ms + patience_ms, GearpyError()
        while True:
            for member in list(self._members):
                if not member.process.is_alive or member.process.system.is_paused:
                    continue
                try:
                    answer = member.desk.answer(message)
                except (LeadershipLost, AskTimeout, ActorStopped) as error:
                    if isinstance(message, ApplicationChange):
                        raise
                    failure = error
                    continue
                if not isinstance(answer, NotLeader):
                    return answer
            if world.now_ms >= until_ms:
                raise ConnectionLost(f"no master leads: {failure}")
            world.run(lambda: False, within_ms=_AGAIN_MS)

    def _start(self, address: str, log: MemoryLog) -> Member:
        process = self._cluster.new_process(address.partition(":")[0], address)
        system = process.system
        store = ReplicaStore(log, StoredLog.of_members(*self.addresses))
        disks = DiskBook(log.folder, is_new=store.stored.term == 0)
        desk = MemberGateway(
            cast("Any", None), lambda make: ask_replica(replica, system, make, _ASK_S)
        )

        def lead(term: int, log: ReplicatedLog) -> None:
            self.terms.append(term)
            master = system.spawn(
                lambda: MasterActor(
                    process.post,
                    log=log,
                    config=self._cluster.config,
                    rng=self._cluster.world.rng,
                    term=term,
                ),
                _MASTER,
            )
            master.add_watcher(self, lambda exited: self._on_exited(process, exited))
            desk.lead(_LeaderDesk(master))

        replica: Ref[Any] = system.spawn(
            lambda: ReplicaActor(
                address,
                store,
                process.post,
                MasterFold(),
                disks=disks,
                rng=random.Random(self._cluster.world.rng.random()),
                versions=self.versions.get(address, MASTERS),
                on_status=desk.on_status,
                lead=lead,
                on_over=lambda _: self._begin_anew(process),
            ),
            REPLICA,
        )
        replica.add_watcher(self, lambda exited: self._on_exited(process, exited))
        return Member(process, log, desk)

    def _begin_anew(self, process: Process) -> None:
        def begin() -> None:
            if process.is_alive:
                self._cluster.kill(process)
                self.start_dead_one(process)

        self._cluster.world.later(1, lambda: process.system.do(begin))

    def start_dead_one(self, process: Process) -> None:
        for number, member in enumerate(self._members):
            if member.process is process:
                self._members[number] = self._start(self.addresses[number], member.log)

    def _on_exited(self, process: Process, exited: Exited) -> None:
        reason = exited.reason
        if not process.is_alive or not isinstance(reason, Failed):
            return
        if not isinstance(reason.cause, LeadershipLost):
            self.problems.append(f"{exited.ref.path}: {reason}")


def addresses_of(count: int) -> list[str]:
    return [f"master{number}:1" for number in range(count)]
