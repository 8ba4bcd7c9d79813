"""The log that a leader writes, and where this master stands among the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gearpy.actor.api import ActorSystem, Ref
from gearpy.actor.mailbox import Reply
from gearpy.core.consensus.actions import ReplicaRole
from gearpy.errors import AskTimeout, LeadershipLost, MailboxFull
from gearpy.messages.client import ChangeMasters
from gearpy.storage.log import Replay

_LOOK_S: Final = 1.0


class StateMachine(Protocol):
    """The state that the entries of a log lead to."""

    def apply(self, record: bytes, /) -> object: ...

    def restore(self, state: bytes, /) -> None: ...

    def to_bytes(self, version: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatus:
    """The knowledge of one master of the others: who leads in which term, and who is a member."""

    role: ReplicaRole = "follower"
    term: int = 0
    leader: str = ""
    members: tuple[str, ...] = ()
    applied: int = 0
    committed: int = 0

    def gauges(self) -> dict[str, float]:
        return {
            "gearpy_master_term": float(self.term),
            "gearpy_master_leads": float(self.role == "leader"),
            "gearpy_master_committed_entries": float(self.committed),
            "gearpy_master_applied_entries": float(self.applied),
        }


@dataclass(frozen=True, slots=True)
class Propose:
    """Have these records agreed on; ``reply`` is set when they are."""

    records: tuple[bytes, ...]
    reply: Reply


@dataclass(frozen=True, slots=True)
class Confirm:
    """Find out whether this master still leads; ``reply`` is set when a majority says so."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class LookAround:
    """Tell how the masters are; ``reply`` is set to a `MasterList`."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Inspect:
    """Read the state; ``reply`` is set to the result, or to None.

    None is the answer of a master that may have missed something: it knows no leader, or has not
    taken all that it knows to be agreed on.
    """

    read: Callable[[Any], object]
    reply: Reply


@dataclass(frozen=True, slots=True)
class MemberChange:
    """Make a change of the masters; ``reply`` is set to why it was not begun, or an empty text."""

    asked: ChangeMasters
    reply: Reply


def lost(text: str) -> tuple[type[LeadershipLost], LeadershipLost, None]:
    error = LeadershipLost(text)
    return type(error), error, None


class ReplicatedLog:
    """`Log` of a leader: an append returns when a majority of the masters has it on disk.

    It begins with the state that all entries before its term have led to. Snapshots are taken by
    each master for itself.

    Runs on: any thread but that of the `ReplicaActor`.
    """

    def __init__(
        self, state: bytes, replica: Ref[Any], system: ActorSystem, version: Callable[[], int]
    ) -> None:
        self._state = state
        self._version = version
        self._replica = replica
        self._system = system
        self._count = 0
        #: Told the addresses of all masters when they have changed.
        self.on_members: Callable[[tuple[str, ...]], object] = lambda _: None

    @property
    def version(self) -> int:
        return self._version()

    def append(self, records: Sequence[bytes]) -> int:
        if records:
            reply = Reply()
            self._replica.tell(Propose(tuple(records), reply))
            await_reply(reply, self._replica, self._system)
            self._count += len(records)
        return self._count

    def replay(self) -> Replay:
        return Replay(self._state or None, ())

    def snapshot(self, state: bytes) -> None:
        """See `Log`; each master does so when it is due."""

    def close(self) -> None:
        """See `Log`."""


def ask_replica(
    replica: Ref[Any], system: ActorSystem, make: Callable[[Reply], object], timeout_s: float
) -> Any:
    reply = Reply()
    try:
        replica.tell(make(reply))
    except MailboxFull as error:
        raise AskTimeout(str(error)) from error
    return await_reply(reply, replica, system, timeout_s)


def await_reply(
    reply: Reply, replica: Ref[Any], system: ActorSystem, timeout_s: float = 1e9
) -> Any:
    waited_s = 0.0
    while not system.wait(reply, min(_LOOK_S, timeout_s)):
        waited_s += _LOOK_S
        if not replica.is_alive and not reply.is_done:
            raise LeadershipLost("this master has ended its part in the log")
        if waited_s >= timeout_s:
            raise AskTimeout(f"no majority of the masters has answered within {timeout_s} s")
    return reply.get()
