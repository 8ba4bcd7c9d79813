"""Tests with databases leave nothing behind."""

import gc
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

_NUMBERS: Final = count()
DATABASES: Final = ("sqlite", "duckdb", "mariadb", "postgres")


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, or of one that has tables of other names."""
    if request.param in {"sqlite", "duckdb"}:
        return f"{request.param}:///{tmp_path}/shop.db"
    found: str = request.getfixturevalue(request.param).url
    return found


@pytest.fixture
def name() -> str:
    return f"sql{os.getpid()}_{next(_NUMBERS)}"  # Processes of tests share a server.


@pytest.fixture(autouse=True, scope="module")
def _connections_of_the_killed() -> Iterator[None]:
    """Whoever is killed in a simulation closes nothing; in a later file that would be a fault."""
    yield
    gc.collect()
