"""Modules that this process does without, though libraries import them where they are installed."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(MetaPathFinder):
    """Says of some modules that they are not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"this command does without {fullname}", name=fullname)
        return None


def leave_out(*names: str) -> None:
    """Have modules be absent from now on; what is imported already stays."""
    sys.meta_path.insert(0, _Absent(names))
