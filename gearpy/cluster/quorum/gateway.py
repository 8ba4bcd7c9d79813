"""The answers of one of several masters to clients."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from msgspec.structs import replace

from gearpy.actor.api import Ref
from gearpy.actor.mailbox import Reply
from gearpy.cluster.client.gateway import AnswersArtifacts, Gateway
from gearpy.cluster.host.audit import note_action
from gearpy.cluster.quorum.disks import MemberDisks
from gearpy.cluster.quorum.log import Confirm, Inspect, LookAround, MemberChange, MemberStatus
from gearpy.errors import ActorStopped, LeadershipLost, LogBroken
from gearpy.messages.client import ChangeMasters, ClusterSummary, NotLeader, Refused
from gearpy.messages.masters import GetMasterDisk, GetMasters
from gearpy.messages.metrics import GetProcessMetrics, ProcessMetricsData
from gearpy.storage.artifacts import ARTIFACT_QUESTIONS
from gearpy.wire.connection.keys import CLUSTER, Principal


class AnswersClients(Protocol):
    """A `Gateway`."""

    def answer(self, message: object, principal: Principal = CLUSTER, /) -> object: ...


class MemberGateway:
    """Answers clients as the leader; a master that does not lead says who does.

    Every one answers for the programs that it has. A leader answers only after a majority has said,
    since it was asked, that it still leads: no answer is old.

    Runs on: any thread, several at once; blocks until there is an answer.
    """

    def __init__(
        self,
        artifacts: AnswersArtifacts,
        ask: Callable[[Callable[[Reply], object]], Any],
        *,
        disks: MemberDisks | None = None,
        admins: AbstractSet[str] = frozenset(),
    ) -> None:
        self._artifacts, self._ask, self._disks = artifacts, ask, disks
        self._admins = admins
        self._status = MemberStatus()
        self._leading: AnswersClients | None = None
        self.replica: Ref[Any]  #: Its part in the log; set before anybody asks.

    allows = staticmethod(Gateway.allows)

    def on_status(self, status: MemberStatus) -> None:
        self._status = status

    def lead(self, gateway: AnswersClients) -> None:
        self._leading = gateway

    @property
    def status(self) -> MemberStatus:
        return self._status

    def inspect(self, read: Callable[[Any], object]) -> Any:
        return self._ask(lambda reply: Inspect(read, reply))

    def gauges(self) -> dict[str, float]:
        return self._status.gauges()

    def answer(self, message: object, principal: Principal = CLUSTER) -> object:
        if not self.allows(principal, message):
            return Refused(reason=f"{principal} may not ask this {type(message).__name__}")
        if isinstance(message, ARTIFACT_QUESTIONS):
            return self._artifacts.answer(message)
        if isinstance(message, GetMasterDisk) and self._disks is not None:
            return self._disks.own()
        if self._leading is None:
            return NotLeader(leader=self._status.leader, masters=self._status.members)
        if isinstance(message, GetMasters | ChangeMasters):
            if isinstance(message, GetMasters):
                found = self._ask(LookAround)
                return self._disks.added(found) if message.with_disks and self._disks else found
            by = message.by
            if by.is_admin or by.user in self._admins:
                refusal = self._ask(lambda reply: MemberChange(message, reply))
            else:
                refusal = f"{by.user or 'a user without a name'} is no admin (master.admins)"
            note_action(
                by.user, f"master {message.change}", message.address, by.address, refusal or "done"
            )
            return Refused(reason=refusal) if refusal else self._ask(LookAround)
        leading = self._leading
        try:
            self._ask(Confirm)
            answer = leading.answer(message, principal)
        except LeadershipLost:
            raise
        except (ActorStopped, LogBroken) as error:
            raise LeadershipLost(
                f"the master ended meanwhile, and what it was asked may have been done: {error}"
            ) from error
        if isinstance(answer, ClusterSummary):
            answer = replace(answer, masters=self._status.members)
        elif isinstance(message, GetProcessMetrics) and message.worker_id is None:
            assert isinstance(answer, ProcessMetricsData), answer
            answer = replace(answer, gauges={**answer.gauges, **self._status.gauges()})
        return answer
