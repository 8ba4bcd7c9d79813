"""The connection of a command to the master of its cluster."""

from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.config.schema import Config


def connected(config: Config) -> RemoteCluster:
    """Return a client of the master, and of no other cluster that takes its place.

    Raises:
        ConfigError: several masters are named.
    """
    return connect(config=config)
