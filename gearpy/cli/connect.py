"""Finds the master among the configured addresses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gearpy.cluster.client import ClusterClient
from gearpy.cluster.limits import transport_limits
from gearpy.config.schema import Config
from gearpy.errors import ConnectionLost
from gearpy.transport.control_client import ControlClient
from gearpy.transport.credentials import Credentials

__all__ = ["connected"]


@contextmanager
def connected(config: Config) -> Iterator[ClusterClient]:
    """Give a client of the first master that answers.

    Raises:
        ConnectionLost: none does.
    """
    masters = _Masters(config)
    try:
        yield ClusterClient(masters.ask)
    finally:
        masters.close()


class _Masters:
    """Asks the masters in the order of the configuration, and stays with the one that answers."""

    def __init__(self, config: Config) -> None:
        shown, limits = Credentials.of_cluster(config), transport_limits(config)
        self._clients = [ControlClient(each, shown, limits) for each in config.cluster.masters]
        self._timeout_s = config.masterclient.timeout_s

    def ask(self, message: Any) -> Any:
        while True:
            try:
                answer = self._clients[0].ask(message, self._timeout_s)
            except ConnectionLost:
                if len(self._clients) == 1:
                    raise
                self._clients.pop(0).close()
            else:
                del self._clients[1:]
                return answer

    def close(self) -> None:
        for client in self._clients:
            client.close()
