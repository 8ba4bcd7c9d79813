"""Long work in tiny pieces, so that a short stream has others go on in between."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from unittest.mock import patch

_MODULES: Final = (
    "base.in_pieces",
    "join.asof",
    "join.interval",
    "join.session",
    "join.sides",
    "window.aligned",
    "window.panes",
    "window.sessions",
)


@contextmanager
def tiny_pieces() -> Iterator[None]:
    """Let others go on behind each thing that is looked at; sort two at a time."""
    with ExitStack() as stack:
        stack.enter_context(patch("gearpy.core.base.in_pieces.SORTED_AT_ONCE", 2))
        for module in _MODULES:
            stack.enter_context(patch(f"gearpy.core.{module}.LOOKED_AT_ONCE", 1))
        yield
