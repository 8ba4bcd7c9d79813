"""Clusters of processes that tests of the whole share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster_build import Scene


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, workers=1)
    with made.cluster:
        yield made
