"""Processes that write letters to each other."""

from contextlib import ExitStack

import pytest

from tests.transport.letters_build import Make, maker


@pytest.fixture
def make(stack: ExitStack) -> Make:
    return maker(stack)
