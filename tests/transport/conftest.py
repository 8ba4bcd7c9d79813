"""Certificates for tests of transports, made once, and a stack for what a test opens."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gearpy.transport.security.certificates import make_authority_and_node, make_node
from gearpy.transport.security.credentials import Credentials
from gearpy.transport.security.tls import TlsContexts, load_contexts
from tests.transport.build import KEYS, Folders

DAYS = 365


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    parent = tmp_path_factory.mktemp("certificates")
    made = Folders(*(parent / name for name in Folders._fields))
    make_authority_and_node(made.cluster, ["node.example"], days=DAYS)
    make_authority_and_node(made.other_cluster, [], days=DAYS)
    for folder, days in ((made.expired, 0), (made.expiring, 10), (made.elsewhere, DAYS)):
        make_node(folder, ["other.example"], authority=made.cluster, days=days)
    return made


@pytest.fixture(scope="session")
def contexts(folders: Folders) -> TlsContexts:
    return load_contexts(folders.cluster)


@pytest.fixture(scope="session")
def shown(contexts: TlsContexts) -> Credentials:
    return Credentials(keys=KEYS, tls=contexts)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack
