"""Fixtures of real servers; a test whose server cannot be had here is skipped, and fails in CI.

`kafka`, `schema_registry`, `postgres`, `mariadb`, `hdfs`, `s3`, `gcs` and `azure` are shared by all
tests of a run: they use names of their own, and leave it alive. A test that kills or freezes one
asks for its own, such as `own_kafka`. What tests start by themselves is a path, such as `chromium`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import programs
from tests.servers.azure import Azure, AzureAddress
from tests.servers.checker import checker
from tests.servers.faulty_proxy import FaultyProxy
from tests.servers.gcs import Gcs, GcsAddress
from tests.servers.hdfs import Hdfs, HdfsAddress
from tests.servers.kafka import Kafka, KafkaAddress
from tests.servers.mariadb import Mariadb, MariadbAddress
from tests.servers.postgres import Postgres, PostgresAddress
from tests.servers.recipes import Unavailable
from tests.servers.registry import Registry
from tests.servers.s3 import S3, S3Address
from tests.servers.shared import shared
from tests.servers.yarn import Yarn


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "servers"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def kafka(servers_folder: Path) -> KafkaAddress:
    def start(folder: Path) -> dict[str, str]:
        cluster = Kafka(folder)
        cluster.start()
        return cluster.address._asdict()

    with skipped_if_unavailable():
        return KafkaAddress(**shared(servers_folder, "kafka", start))


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    with skipped_if_unavailable():
        cluster = Kafka(tmp_path / "kafka")
    with cluster:
        yield cluster


@pytest.fixture
def own_yarn(tmp_path: Path) -> Iterator[Yarn]:
    with skipped_if_unavailable():
        cluster = Yarn(tmp_path / "yarn")
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def schema_registry(servers_folder: Path) -> str:
    def start(folder: Path) -> dict[str, str]:
        registry = Registry(folder)
        registry.server.start()
        return {"url": registry.url}

    with skipped_if_unavailable():
        return shared(servers_folder, "registry", start)["url"]


@pytest.fixture(scope="session")
def postgres(servers_folder: Path) -> PostgresAddress:
    def start(folder: Path) -> dict[str, str]:
        database = Postgres(folder)
        database.server.start()
        return database.address._asdict()

    with skipped_if_unavailable():
        return PostgresAddress(**shared(servers_folder, "postgres", start))


@pytest.fixture(scope="session")
def mariadb(servers_folder: Path) -> MariadbAddress:
    def start(folder: Path) -> dict[str, str]:
        database = Mariadb(folder)
        database.server.start()
        return database.address._asdict()

    with skipped_if_unavailable():
        return MariadbAddress(**shared(servers_folder, "mariadb", start))


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Postgres]:
    with skipped_if_unavailable():
        database = Postgres(tmp_path / "postgres")
    with database:
        yield database


@pytest.fixture(scope="session")
def hdfs(servers_folder: Path) -> HdfsAddress:
    def start(folder: Path) -> dict[str, str]:
        cluster = Hdfs(folder)
        cluster.start()
        return cluster.address._asdict()

    with skipped_if_unavailable():
        return HdfsAddress(**shared(servers_folder, "hdfs", start))


@pytest.fixture
def own_hdfs(tmp_path: Path) -> Iterator[Hdfs]:
    with skipped_if_unavailable():
        cluster = Hdfs(tmp_path / "hdfs")
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def s3(servers_folder: Path) -> S3Address:
    def start(folder: Path) -> dict[str, str]:
        store = S3(folder)
        store.server.start()
        return store.address._asdict()

    with skipped_if_unavailable():
        return S3Address(**shared(servers_folder, "s3", start))


@pytest.fixture(scope="session")
def gcs(servers_folder: Path) -> GcsAddress:
    def start(folder: Path) -> dict[str, str]:
        store = Gcs(folder)
        store.server.start()
        return store.address._asdict()

    with skipped_if_unavailable():
        return GcsAddress(**shared(servers_folder, "gcs", start))


@pytest.fixture(scope="session")
def azure(servers_folder: Path) -> AzureAddress:
    def start(folder: Path) -> dict[str, str]:
        store = Azure(folder)
        store.server.start()
        return store.address._asdict()

    with skipped_if_unavailable():
        return AzureAddress(**shared(servers_folder, "azure", start))


@pytest.fixture
def faulty_s3(s3: S3Address) -> Iterator[tuple[FaultyProxy, S3Address]]:
    with FaultyProxy(s3.endpoint) as proxy:
        yield proxy, S3Address(proxy.endpoint)


@pytest.fixture(scope="session")
def chromium() -> str:
    with skipped_if_unavailable():
        return programs.chromium()


@pytest.fixture(scope="session")
def promtool() -> str:
    with skipped_if_unavailable():
        return programs.prometheus("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    with skipped_if_unavailable():
        return programs.prometheus()


@pytest.fixture(scope="session")
def history_checker() -> Path:
    with skipped_if_unavailable():
        return checker()


@contextmanager
def skipped_if_unavailable() -> Iterator[None]:
    """Skip a test whose server cannot be had here; in CI it fails."""
    try:
        yield
    except Unavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
