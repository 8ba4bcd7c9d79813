"""A command stays with the cluster that it began with."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.runs import is_there
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


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")])
def test_a_cluster_is_there_if_somebody_listens_at_its_address(host: str, family: str) -> None:
    try:
        listener = socket.create_server((host, 0), family=getattr(socket, family))
    except OSError:
        pytest.skip(f"this machine has no {host}")
    written = f"[{host}]" if ":" in host else host
    address = f"{written}:{listener.getsockname()[1]}"
    with listener:
        assert is_there(address)

    assert not is_there(address)
