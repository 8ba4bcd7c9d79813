"""A system for each test, and both ways to run an actor."""

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Literal, TypeAlias

import pytest

from gearpy.actor.threaded import ThreadedActorSystem
from tests.actor.build import Log

How: TypeAlias = Literal["pinned", "shared"]


@pytest.fixture
def system() -> Iterator[ThreadedActorSystem]:
    system = ThreadedActorSystem(stop_timeout_ms=5_000)
    yield system
    assert system.shutdown(10)


@pytest.fixture
def log() -> Log:
    return SimpleQueue()


@pytest.fixture(params=["pinned", "shared"])
def how(request: pytest.FixtureRequest) -> How:
    """Return a dispatcher; what is tested with it must not depend on it."""
    how: How = request.param
    return how
