"""A command line with a cluster to talk to, over a real connection."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.secret import load_or_create_secret
from tests.cli.build import FakeCluster, Gear


@pytest.fixture(autouse=True)
def _loud_again() -> Iterator[None]:
    """What ``--quiet`` has set for its process is not for the tests behind it."""
    log = logging.getLogger("gearpy.app")
    level = log.level
    yield
    log.setLevel(level)


@pytest.fixture
def gear(tmp_path: Path) -> Iterator[Gear]:
    secret_file = tmp_path / "secret"
    listener = TcpTransport(load_or_create_secret(str(secret_file)))
    cluster = FakeCluster()
    address = listener.start()
    listener.serve_control(cluster.answer)
    yield Gear(cluster, address, secret_file)
    listener.stop()
