"""The checkpoints of one application, in a store that may be away for a while.

A folder that was moved or is not mounted looks like an empty one. A file in the folder of the
application, its mark, tells them apart: it is written once, before all else.
"""

import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from gearpy.errors import SnapshotDamaged, StoreAway
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints, RunCheckpoints, StoredFile

_MARK: Final = "coordinator/mark"
_TEXT: Final = b"While this file is missing, gearpy takes this checkpoint folder for absent.\n"


def log_folder(prefix: str) -> str:
    return f"{prefix}/coordinator"


class HeldCheckpoints:
    """`Checkpoints` of one application; while its folder is away, each step raises `StoreAway`.

    Invariant: nothing is stored, listed, or found to be missing, unless the mark of the
    application was there before and is there after. On a disk no folder is made anew in between.

    Runs on: any thread.

    Args:
        prefix: below which name everything of the application is.
    """

    def __init__(self, store: Checkpoints, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._mark = f"{prefix}/{_MARK}"

    def begin(self, *, is_known: bool, after: str = "") -> None:
        """Find the folder of the application; make it if nothing was ever stored there.

        Args:
            is_known: a launch of the application has stored something.
            after: the name of another one, which it goes on from.

        Raises:
            StoreAway: one of these is known, and not there.
        """
        if not self._store.has(self._mark):
            known = self._prefix if is_known else after
            if known and not self._store.names(log_folder(known)):
                raise self._away(known)
            self._store.save(self._mark, [_TEXT])
        self._store.hold(self._prefix)

    @property
    def is_in_memory(self) -> bool:
        return isinstance(self._store, MemoryCheckpoints)

    @property
    def outlive_master(self) -> bool:
        return isinstance(self._store, RunCheckpoints)

    @property
    def place(self) -> str:
        return self._store.place

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        with self._there():
            return self._store.save(name, chunks)

    def open(self, location: str) -> BinaryIO:
        with self._told():
            return self._store.open(location)

    def load(self, location: str, sha256: str = "") -> bytes:
        with self._told():
            return self._store.load(location, sha256)

    def names(self, prefix: str) -> list[str]:
        with self._there():
            return self._store.names(prefix)

    def has(self, name: str) -> bool:
        with self._there():
            return self._store.has(name)

    def hold(self, prefix: str) -> None:
        self._store.hold(prefix)

    def drop(self, location: str) -> None:
        with self._told():
            self._store.drop(location)

    def drop_all(self, prefix: str) -> None:
        with self._told():
            self._store.drop_all(prefix)

    @contextmanager
    def _there(self) -> Iterator[None]:
        self._check()
        with self._told():
            yield
        self._check()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell what is damaged from what is away."""
        try:
            yield
        except (SnapshotDamaged, OSError):
            self._check()
            raise

    def _check(self) -> None:
        # A gearpy of before has stored no mark, but a log.
        if not self._store.has(self._mark) and not self._store.names(log_folder(self._prefix)):
            raise self._away(self._prefix)

    def _away(self, prefix: str) -> StoreAway:
        return StoreAway(
            f"checkpoint folder {self._store.place} has nothing of {prefix} on "
            f"{platform.node()}: mount it, or bring it back"
        )
