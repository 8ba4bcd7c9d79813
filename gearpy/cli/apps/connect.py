"""Finds the master, and stays with its cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import the_only
from gearpy.config.schema import Config
from gearpy.errors import ConnectionLost
from gearpy.messages.cluster import ClusterSummary, GetCluster
from gearpy.transport.control.client import ControlClient
from gearpy.transport.security.credentials import Credentials

__all__ = ["connected"]


@contextmanager
def connected(config: Config) -> Iterator[ClusterClient]:
    """Give a client of the master.

    Raises:
        ConfigError: several masters are named.
    """
    master = _Master(config)
    try:
        yield ClusterClient(master.ask)
    finally:
        master.close()


class _Master:
    """Asks a master; one of another cluster, which has taken its place meanwhile, is refused.

    Applications have numbers: those of another cluster have the same ones.
    """

    def __init__(self, config: Config) -> None:
        address = the_only(config.cluster.masters)
        self._client = ControlClient(
            address, Credentials.of_cluster(config), transport_limits(config)
        )
        self._timeout_s = config.masterclient.timeout_s
        self._cluster_id = ""

    def ask(self, message: Any) -> Any:
        if not self._client.is_connected:
            self._check_cluster()
        return self._client.ask(message, self._timeout_s)

    def close(self) -> None:
        self._client.close()

    def _check_cluster(self) -> None:
        found = self._client.ask(GetCluster(), self._timeout_s)
        if not isinstance(found, ClusterSummary):
            return  # Whoever that is, it answers the question itself no better.
        if self._cluster_id not in {"", found.cluster_id}:
            self.close()
            raise ConnectionLost(
                f"the master at {self._client.address} is of cluster {found.cluster_id} now, and "
                f"this command began with cluster {self._cluster_id}: see which master.folder it "
                "was started over"
            )
        self._cluster_id = found.cluster_id
