"""Modules of an example that is a folder, for tests that call its functions."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


@contextmanager
def modules_of(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Import the modules of a program as Python does when it is run; forget them at the end."""
    sys.path.insert(0, str(folder))
    try:
        yield {name: import_module(name) for name in names}
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)
