"""Masters: questions to the master of a cluster, over a network that may fail."""

import logging
import time
from collections.abc import Sequence
from typing import Any, Final, Self

from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    ProtocolError,
)
from gearpy.messages.client import ClusterSummary, GetCluster
from gearpy.transport.api import TransportLimits
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.credentials import Shown

_log = logging.getLogger(__name__)
_AGAIN_S: Final = 0.2


def the_only(masters: Sequence[str]) -> str:
    """Return the address of the master.

    Raises:
        ConfigError: several are named. What one of them knows the others do not.
    """
    if len(masters) == 1:
        return masters[0]
    raise ConfigError(
        f"cluster.masters is {', '.join(masters)}: name one master. Several do not share what they "
        "know, so that whoever changes from one to the other finds another cluster; a master that "
        "is started again over its master.folder goes on where it was"
    )


class Masters:
    """Asks one master after the other, until one answers or patience ends.

    With patience a question may be asked several times, and a broken connection costs only time.
    Use as a context manager, or call `close`.

    Runs on: any thread; `ask` blocks.

    Args:
        addresses: of all masters, ``host:port``.
        timeout_s: how long a master may take to answer.
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
        self._clients = [ControlClient(address, shown, limits) for address in addresses]
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._one_cluster = one_cluster
        self._cluster_id = ""

    def ask(self, message: Any) -> Any:
        """Return the first answer of a master.

        Raises:
            AuthenticationFailed: the cluster has another secret.
            ConnectionLost, AskTimeout, ProtocolError: no master has answered for too long.
            GearpyError: what the master raised.
        """
        until_s = time.monotonic() + self._patience_s
        while True:
            for client in self._clients:
                try:
                    return self._ask(client, message)
                except AuthenticationFailed:
                    raise
                except (ConnectionLost, AskTimeout, ProtocolError) as error:
                    if time.monotonic() >= until_s:
                        raise
                    _log.warning("no answer of the master at %s: %s", client.address, error)
            time.sleep(_AGAIN_S)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, client: ControlClient, message: Any) -> Any:
        if not self._one_cluster:
            with client:
                return client.ask(message, self._timeout_s)
        if not client.is_connected:
            self._check_cluster(client)
        return client.ask(message, self._timeout_s)

    def _check_cluster(self, client: ControlClient) -> None:
        found = client.ask(GetCluster(), self._timeout_s)
        if not isinstance(found, ClusterSummary):
            return  # It is no master, and answers the question itself no better.
        if self._cluster_id not in {"", found.cluster_id}:
            client.close()
            raise ConnectionLost(
                f"the master at {client.address} is of cluster {found.cluster_id} now, and "
                f"this command began with cluster {self._cluster_id}: see which master.folder it "
                "was started over"
            )
        self._cluster_id = found.cluster_id
