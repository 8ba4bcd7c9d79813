"""Tests with PostgreSQL leave nothing behind."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _connections_of_the_killed() -> Iterator[None]:
    """Whoever is killed in a simulation closes nothing; in a later file that would be a fault."""
    yield
    gc.collect()
