"""What simulations share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
