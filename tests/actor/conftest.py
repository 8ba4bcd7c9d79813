"""A system for each test, and both ways to run an actor."""

import logging
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Literal, TypeAlias

import pytest

from gearpy.actor.threaded import ThreadedActorSystem
from tests.actor.build import DeadLetters, Log

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


@pytest.fixture
def dead_letters() -> Iterator[DeadLetters]:
    counted, logger = DeadLetters(), logging.getLogger("gearpy.actor")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(counted)
    yield counted
    logger.removeHandler(counted)
    logger.setLevel(level)
