"""The connection of a command to the master of its cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters, the_only
from gearpy.config.schema import Config
from gearpy.transport.security.credentials import Credentials


@contextmanager
def connected(config: Config) -> Iterator[ClusterClient]:
    """Give a client of the master, and of no other cluster that takes its place.

    Raises:
        ConfigError: several masters are named.
    """
    with Masters(
        [the_only(config.cluster.masters)],
        Credentials.of_cluster(config),
        transport_limits(config),
        timeout_s=config.masterclient.timeout_s,
        one_cluster=True,
    ) as master:
        yield ClusterClient(master.ask)
