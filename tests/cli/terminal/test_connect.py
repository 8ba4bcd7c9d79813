"""A command stays with the cluster that it began with."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from gearpy.cli.terminal.connect import connected
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConnectionLost
from gearpy.messages.client import GetCluster


def a_config(folder: Path, masters: str) -> Config:
    secret = {"transport.secret-file": str(folder / "secret")}
    return load(env={}, overrides={**secret, "cluster.masters": masters})


def test_a_master_of_another_cluster_at_the_same_address_is_refused(tmp_path: Path) -> None:
    """Its applications have the same numbers: 'gear app kill 1' would end another one."""
    with ExitStack() as first:
        config = a_config(tmp_path, "127.0.0.1:0")
        cluster = first.enter_context(LocalCluster(config, listen=True))
        config = a_config(tmp_path, cluster.address)
        with connected(config) as client:
            cluster_id = client.ask(GetCluster()).cluster_id
            first.close()
            second = first.enter_context(LocalCluster(config, listen=True))
            assert second.client.ask(GetCluster()).cluster_id != cluster_id
            with pytest.raises(ConnectionLost, match=f"began with cluster {cluster_id}"):
                client.applications()
