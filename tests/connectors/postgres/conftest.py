"""What tests with PostgreSQL leave behind ends with them."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _connections_of_the_killed() -> Iterator[None]:
    """Whoever is killed in a simulation closes nothing; in a later test that would be a fault."""
    yield
    gc.collect()
