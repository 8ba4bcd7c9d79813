"""Masters: questions to the master of a cluster, over a network that may fail."""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from gearpy.config.schema import Config
from gearpy.errors import (
    ActorStopped,
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GearpyError,
    LeadershipLost,
    ProtocolError,
)
from gearpy.messages.client import (
    ApplicationChange,
    ChangeMasters,
    ClusterSummary,
    GetArtifactPart,
    GetCluster,
    NotLeader,
    Refused,
)
from gearpy.transport.api import TransportLimits
from gearpy.transport.letters.client import ControlClient, WhileSilent
from gearpy.transport.security.credentials import Shown

_log = logging.getLogger(__name__)
#: What was asked may have been done when these come: an answer, or the master, is lost.
_LOSSES: Final = (ConnectionLost, AskTimeout, LeadershipLost, ActorStopped)
_AGAIN_S: Final = 0.2
#: Several masters have found a leader within this time, if a majority is there.
_ELECTION_S: Final = 10.0
#: One of several masters that says nothing for so long is passed over by who looks for a leader.
_SILENCE_S: Final = 2.0
#: While a master says nothing, the others are asked so often whether one of them leads, ...
_ELSEWHERE_S: Final = 0.2
#: ... and have so long to say so.
_WORD_S: Final = 0.4


def the_only(masters: Sequence[str]) -> str:
    if len(masters) == 1:
        return masters[0]
    raise ConfigError(
        f"cluster.masters is {', '.join(masters)}: name one master here, a cluster in one process "
        "has no others"
    )


def several_masters(config: Config) -> tuple[str, ...]:
    masters = config.cluster.masters
    return masters if len(masters) > 1 else ()


class _MayBeDone(Exception):
    """A change was asked for, and may have been made."""

    def __init__(self, error: GearpyError) -> None:
        self.error = error


class Masters:
    """Asks one master after the other, until the one that leads answers or patience ends.

    With patience a question may be asked several times, and a broken connection costs only time.
    Several masters are always waited for until they have found a leader; but a change of an
    application that may have been made is not asked for again. One that says nothing is waited for
    until another one leads, which a majority has told that one just then. Masters that were added
    are heard of from the others.
    Use as a context manager, or call `close`.

    Runs on: any thread; `ask` blocks.

    Args:
        one_cluster: keep the connection, and refuse a master of another cluster that has taken
            its place: applications have numbers, and those of another cluster have the same ones.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        shown: Shown,
        limits: TransportLimits,
        *,
        timeout_s: float,
        patience_s: float = 0.0,
        one_cluster: bool = False,
    ) -> None:
        self._shown, self._limits = shown, limits
        self._clients = {each: ControlClient(each, shown, limits) for each in addresses}
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._one_cluster = one_cluster
        self._cluster_id = ""
        self._leader = ""  # By the last answer.

    def ask(self, message: Any) -> Any:
        """Return the first answer of a master that leads."""
        begun_s = time.monotonic()
        while True:
            try:
                answer = self._ask_all(message)
            except _MayBeDone as uncertain:
                raise uncertain.error from None
            if not isinstance(answer, GearpyError):
                return answer
            patience_s = max(self._patience_s, _ELECTION_S if self._are_several else 0.0)
            if time.monotonic() >= begun_s + patience_s:
                raise answer
            _log.warning("no answer of a master: %s", answer)
            time.sleep(_AGAIN_S)

    def _ask_all(self, message: Any) -> Any:
        failure: GearpyError = ConnectionLost("no master leads at present")
        refused: Refused | None = None
        words: list[str] = []
        for client in self._in_order():
            try:
                answer = self._reach(client) or self._ask(client, message)
            except AuthenticationFailed:
                raise
            except (*_LOSSES, ProtocolError) as error:
                failure, self._leader = error, ""
                words.append(str(error))
                continue
            if isinstance(answer, NotLeader):
                self._leader = answer.leader
                self._learn(answer.masters)
                words.append(f"{client.address} answers and does not lead")
            elif isinstance(answer, Refused) and isinstance(message, GetArtifactPart):
                refused = answer  # Another master may have it.
            else:
                return answer
        if len(words) > 1 and isinstance(failure, ConnectionLost | AskTimeout):
            failure = ConnectionLost(f"no master leads at present: {'; '.join(words)}")
        return refused or failure

    def _ask(self, client: ControlClient, message: Any) -> Any:
        try:
            return client.ask(message, self._timeout_s, silence=self._silence(client))
        except _LOSSES as error:
            if isinstance(message, ApplicationChange | ChangeMasters):
                raise _MayBeDone(error) from error
            raise
        finally:
            if not self._one_cluster:
                client.close()

    @property
    def _are_several(self) -> bool:
        return len(self._clients) > 1

    def _in_order(self) -> Iterator[ControlClient]:
        asked = set[str]()
        while True:
            leader = self._leader
            if leader:
                self._learn([leader])
            clients = self._clients
            left = [each for each in clients if each not in asked]
            if not left:
                return
            address = leader if leader in left else left[0]
            asked.add(address)
            yield clients[address]

    def know(self, masters: Sequence[str]) -> None:
        """Ask these from now on, and no others before one of these has named them."""
        before = self._clients
        self._leader = ""
        self._clients = {
            each: before.get(each) or ControlClient(each, self._shown, self._limits)
            for each in masters
        }
        for address, client in before.items():
            if address not in masters:
                client.close()

    def _learn(self, masters: Iterable[str]) -> None:
        for each in masters:
            if each not in self._clients:
                client = ControlClient(each, self._shown, self._limits)
                self._clients = {**self._clients, each: client}

    def _silence(self, client: ControlClient) -> WhileSilent | None:
        """Return the action while a master says nothing: see whether another one leads."""
        if not self._are_several:
            return None
        return WhileSilent(_ELSEWHERE_S, lambda: self._led_elsewhere(client.address))

    def _led_elsewhere(self, silent: str) -> str:
        """Say which other master leads, by its own word; empty if none does."""
        for address in [each for each in self._clients if each != silent]:
            # A connection that nobody else waits on: two who wait must not wait for each other.
            asker = ControlClient(address, self._shown, self._limits)
            with asker, suppress(GearpyError):
                found = asker.ask(GetCluster(), _WORD_S)
                if isinstance(found, ClusterSummary):
                    self._leader = address
                    return f"{address} leads now"
                if isinstance(found, NotLeader):
                    self._learn([*found.masters, *filter(None, [found.leader])])
        return ""

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reach(self, client: ControlClient) -> NotLeader | None:
        if not self._one_cluster or client.is_connected:
            return None
        timeout_s = min(self._timeout_s, _SILENCE_S) if self._are_several else self._timeout_s
        found = client.ask(GetCluster(), timeout_s, silence=self._silence(client))
        if isinstance(found, NotLeader):
            return found
        if not isinstance(found, ClusterSummary):
            return None  # It is no master, and answers the question itself no better.
        if self._cluster_id not in {"", found.cluster_id}:
            client.close()
            raise ConnectionLost(
                f"the master at {client.address} is of cluster {found.cluster_id} now, and "
                f"this command began with cluster {self._cluster_id}: see which master.folder it "
                "was started over"
            )
        self._cluster_id = found.cluster_id
        self._learn(found.masters)
        return None
