"""Snapshots of tasks, each in a file of its own, found again by location and checksum."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final, Protocol

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.disk import TEMPORARY, FolderDisk, replace

__all__ = ["CheckpointStore", "Checkpoints", "MemoryCheckpoints"]

#: Leftovers younger than this may belong to a process that still writes.
_LEFTOVER_S: Final = 3600
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PARTS_MAX: Final = 8
_serial = count(1)


class Checkpoints(Protocol):
    """Keeps bytes under a name such as ``app3/attempt2/epoch7-executor1``.

    Runs on: any thread.
    """

    def save(self, name: str, data: bytes) -> tuple[str, str]:
        """Store; return location and SHA-256 once it is durable. Replaces what has the name.

        Raises:
            ConfigError: this is no name.
            OSError: it could not be stored; nothing has changed.
        """
        ...

    def load(self, location: str, sha256: str) -> bytes:
        """Return what was stored.

        Raises:
            SnapshotDamaged: it is not there, or is not what was stored.
        """
        ...

    def drop(self, location: str) -> None:
        """Remove it. Does nothing when it is not there."""
        ...

    def drop_all(self, prefix: str) -> None:
        """Remove everything below a name such as ``app3`` or ``app3/attempt2``."""
        ...


class CheckpointStore:
    """`Checkpoints` in a folder that all machines of a cluster see.

    A location is the name itself, so that machines may mount the folder in different places.

    Runs on: any thread, in many processes at a time; no two may save under one name.

    Raises:
        OSError: the folder cannot be used.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder).expanduser()
        FolderDisk(self._folder)  # Makes it.
        self._remove_leftovers()

    def save(self, name: str, data: bytes) -> tuple[str, str]:
        """See `Checkpoints`."""
        path = self._path(name)
        # Unique, as another process may be at it with a number that is out of date.
        temporary = f".{path.name}.{os.getpid()}-{next(_serial)}{TEMPORARY}"
        disk = FolderDisk(path.parent)
        try:
            replace(disk, path.name, data, temporary=temporary)
        except OSError:
            with suppress(OSError):
                disk.remove(temporary)
            raise
        finally:
            disk.unlock()
        return name, sha256(data).hexdigest()

    def load(self, location: str, sha256: str) -> bytes:
        """See `Checkpoints`."""
        try:
            data = self._path(location).read_bytes()
        except (OSError, ConfigError) as error:
            raise SnapshotDamaged(location=location, reason=str(error)) from error
        return _checked(location, data, sha256)

    def drop(self, location: str) -> None:
        """See `Checkpoints`."""
        self._path(location).unlink(missing_ok=True)

    def drop_all(self, prefix: str) -> None:
        """See `Checkpoints`."""
        path = self._path(prefix)
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError):  # Somebody else was quicker.
            if path.exists():
                shutil.rmtree(path)

    def _path(self, name: str) -> Path:
        return self._folder.joinpath(*_parts_of(name))

    def _remove_leftovers(self) -> None:
        latest_s = time.time() - _LEFTOVER_S
        for path in self._leftovers():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < latest_s:
                    path.unlink()

    def _leftovers(self) -> Iterator[Path]:
        for folder, _, files in os.walk(self._folder):
            yield from (Path(folder, each) for each in files if each.endswith(TEMPORARY))


class MemoryCheckpoints:
    """`Checkpoints` in memory, for clusters of one process, and for simulations."""

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    def save(self, name: str, data: bytes) -> tuple[str, str]:
        """See `Checkpoints`."""
        _parts_of(name)
        self._stored[name] = bytes(data)
        return name, sha256(data).hexdigest()

    def load(self, location: str, sha256: str) -> bytes:
        """See `Checkpoints`."""
        data = self._stored.get(location)
        if data is None:
            raise SnapshotDamaged(location=location, reason="it is not there")
        return _checked(location, data, sha256)

    def drop(self, location: str) -> None:
        """See `Checkpoints`."""
        _parts_of(location)
        self._stored.pop(location, None)

    def drop_all(self, prefix: str) -> None:
        """See `Checkpoints`."""
        below = _parts_of(prefix)
        for name in list(self._stored):  # At once, as others may save meanwhile.
            if name.split("/")[: len(below)] == below:
                self._stored.pop(name, None)


def _parts_of(name: str) -> list[str]:
    """Return the parts of a name, none of which leads out of the folder."""
    parts = name.split("/")
    is_good = len(parts) <= _PARTS_MAX and all(map(_PART.fullmatch, parts))
    if not is_good or name.endswith(TEMPORARY):
        raise ConfigError(
            f"checkpoint name {name[:200]!r} is not allowed: at most {_PARTS_MAX} parts with a "
            "slash between, each of letters, digits, dots, dashes and underscores, beginning "
            f"with a letter or digit, and not ending with {TEMPORARY}"
        )
    return parts


def _checked(location: str, data: bytes, wanted: str) -> bytes:
    found = sha256(data).hexdigest()
    if found != wanted:
        raise SnapshotDamaged(
            location=location,
            reason=f"the {len(data)} bytes found have SHA-256 {found}, stored was {wanted}",
        )
    return data
