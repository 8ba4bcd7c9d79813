"""The checker of histories: the program in Go of `tests/checker`, around Porcupine (ADR 0004)."""

from pathlib import Path
from typing import Final

from tests.servers.recipes import built_in_go

_SOURCE: Final = Path(__file__).parents[1] / "checker"


def checker() -> Path:
    """Return the program; it is built when it is asked for first."""
    return built_in_go("checker", _SOURCE)
