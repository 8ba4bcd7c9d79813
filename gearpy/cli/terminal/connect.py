"""The connection of a command to the master of its cluster."""

from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.config.schema import Config


def connected(config: Config) -> RemoteCluster:
    """Return a client of the masters, and of no other cluster that takes their place."""
    return connect(config=config)
