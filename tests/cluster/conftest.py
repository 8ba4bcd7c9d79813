"""A cluster for each test that asks for one, with a secret of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.config.schema import Config


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Config]:
    secret = {"transport.secret-file": str(tmp_path / "secret")}
    return lambda **overrides: load(env={}, overrides={**secret, **_keys(overrides)})


def _keys(overrides: dict[str, object]) -> dict[str, str]:
    return {
        key.replace("__", ".").replace("_", "-"): str(value) for key, value in overrides.items()
    }


@pytest.fixture
def cluster(configured: Callable[..., Config]) -> Iterator[LocalCluster]:
    config = configured(resource_allocation_timeout_seconds=5)
    with LocalCluster(config, workers=2, slots=8) as made:
        yield made
