"""A system for each test, and both ways to run an actor."""

import logging
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TypeAlias

import pytest

from gearpy.actor.dispatcher import DispatcherChoice, SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from tests.actor.build import DeadLetters, Log

How: TypeAlias = DispatcherChoice


@pytest.fixture
def shared() -> Iterator[SharedDispatcher]:
    dispatcher = SharedDispatcher()
    yield dispatcher
    dispatcher.close()


@pytest.fixture
def system(shared: SharedDispatcher) -> Iterator[ThreadedActorSystem]:
    system = ThreadedActorSystem(stop_timeout_ms=5_000)
    yield system
    assert system.shutdown(10)


@pytest.fixture
def log() -> Log:
    return SimpleQueue()


@pytest.fixture(params=["pinned", "shared"])
def how(request: pytest.FixtureRequest, shared: SharedDispatcher) -> How:
    """Return a dispatcher; what is tested with it must not depend on it."""
    return "pinned" if request.param == "pinned" else shared


@pytest.fixture
def dead_letters() -> Iterator[DeadLetters]:
    counted, logger = DeadLetters(), logging.getLogger("gearpy.actor")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(counted)
    yield counted
    logger.removeHandler(counted)
    logger.setLevel(level)
