"""A cluster in this process, an application on it, and services that show both."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.config.schema import Config
from gearpy.services.security.limits import RequestLimits
from gearpy.services.server import Services
from tests.eventually import eventually

API = "/api/v1.0"
#: Of tests, which ask more often than people.
PLENTY = RequestLimits(
    asks_per_s=1e6, asks_burst=1e6, changes_per_s=1e6, changes_burst=1e6, logins_burst=1e6
)
#: Later numbers raise nothing: a quarantine is not endless.
_GOOD_FROM = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    cluster: LocalCluster
    services: Services
    http: httpx.Client
    running: RunningApplication

    def get(self, path: str, **params: str | int) -> httpx.Response:
        return self.http.get(f"{API}/{path}", params=params)


def endless(name: str = "endless") -> gp.StreamApp:
    """Return an application that counts for ever; of its first numbers some cannot be counted."""
    app = gp.StreamApp(name, parallelism=2)
    numbers = app.read(gp.generate(itertools.count, rate=100))
    numbers.map(_checked, name="check").key_by(lambda n: n % 5).count().write(gp.to_list([]))
    return app


def _checked(number: int) -> int:
    if number % 7 == 0 and number < _GOOD_FROM:
        raise ValueError(f"{number} is a multiple of seven")
    return number


def a_config(folder: Path, **overrides: str) -> Config:
    keys = {
        "transport.secret-file": f"{folder}/secret",
        "services.token-file": f"{folder}/tokens",
        "services.port": "0",
        "log.folder": f"{folder}/log",
        "cluster.masters": "127.0.0.1:0",
        "checkpoint.interval-ms": "200",
        "application.on-error": "quarantine",
    }
    return gp.load_config(env={}, overrides={**keys, **overrides})


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a cluster with an application that runs for ever and has an epoch."""
    config = a_config(tmp_path_factory.mktemp("services"))
    with (
        LocalCluster(config, workers=2, slots=50) as cluster,
        Services(cluster.client, config, limits=PLENTY, needs_token=False) as services,
        httpx.Client(base_url=services.url, timeout=60) as http,
        cluster.submitted(endless(), executors=2) as running,
    ):
        eventually(lambda: running.summary().progress.epoch > 1)
        eventually(lambda: running.summary().progress.quarantined_records > 1)
        yield Served(cluster=cluster, services=services, http=http, running=running)
        running.shutdown()
