"""Files of checkpoints in a folder, found again by location and checksum."""

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.folder.api import TEMPORARY, Folder, parent_of
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.memory import MemoryFolder

_log = logging.getLogger(__name__)

#: Leftovers younger than this may belong to a process that still writes.
_LEFTOVER_MS: Final = 3_600_000
_PARTS_MAX: Final = 8
_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_NAME: Final = re.compile(rf"{_PART}(?:/{_PART}){{0,{_PARTS_MAX - 1}}}", re.ASCII)


class StoredFile(NamedTuple):
    """The place of a file, and the checksum by which it is known to be the same."""

    location: str
    sha256: str
    size_bytes: int


class Checkpoints(Protocol):
    """Keeps bytes under a name such as ``k3f9a1c2/app3/epochs/region0/epoch7-executor1``.

    A file is there whole or not at all. That it is missing or not as it was stored is one thing,
    `SnapshotDamaged`; that it cannot be told is another, `OSError`.

    Runs on: any thread.
    """

    @property
    def place(self) -> str:
        """The folder or URL, for people."""
        ...

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """Store a file durably; return how it is found. Replaces the one of this name.

        Raises:
            OSError: it could not be stored; nothing has changed.
        """
        ...

    def open(self, location: str) -> BinaryIO:
        """Return a stored file, to be read in portions; the reader checks it."""
        ...

    def load(self, location: str, sha256: str = "") -> bytes:
        """Return the whole of a stored file, checked if its SHA-256 is given.

        Raises:
            SnapshotDamaged: it is not there, or is not what was stored.
            OSError: it cannot be told.
        """
        ...

    def names(self, prefix: str) -> list[str]:
        """Return all names below a name such as ``k3f9a1c2/app3``, sorted; of "", all.

        Raises:
            ConfigError: the prefix is no name.
            OSError: it cannot be told; never a part of them.
        """
        ...

    def has(self, name: str) -> bool:
        """Tell whether there is a file of this name."""
        ...

    def hold(self, prefix: str) -> None:
        """Never make the folder of an application anew from now on; see `HeldCheckpoints`."""
        ...

    def drop(self, location: str) -> None:
        """Remove a file. Does nothing when it is not there."""
        ...

    def drop_all(self, prefix: str) -> None:
        """Remove the file of this name, such as ``k3f9a1c2/app3``, and everything below it."""
        ...


class FolderCheckpoints:
    """`Checkpoints` in a folder that all machines of a cluster see.

    A location is the name itself, so that machines may mount the folder in different places.

    Runs on: any thread, in many processes at a time; no two may save under one name.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder  #: The folder with the files.
        try:
            # A store that puts files whole has no leftovers, and may have a million files.
            names = [] if folder.promises.puts_whole else folder.walk()
            latest_ms = time.time() * 1000 - _LEFTOVER_MS
            for name in names:
                facts = folder.look(name) if name.endswith(TEMPORARY) else None
                # A file of unknown age stays; it does no harm but to take space.
                if facts is not None and 0 < facts.changed_ms < latest_ms:
                    folder.remove(name)
        except OSError as error:
            _log.warning("leftovers in %s stay: %s", folder.place, error)

    @property
    def place(self) -> str:
        return self.folder.place

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        _check_name(name)
        digest, size = hashlib.sha256(), 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                yield chunk

        self.folder.write(name, counted())
        return StoredFile(name, digest.hexdigest(), size)

    def open(self, location: str) -> BinaryIO:
        try:
            _check_name(location)
            return self.folder.open(location)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ConfigError) as error:
            raise SnapshotDamaged(location=location, reason=str(error)) from error

    def load(self, location: str, sha256: str = "") -> bytes:
        with self.open(location) as file:
            data = file.read()
        found = hashlib.sha256(data).hexdigest() if sha256 else ""
        if found != sha256:
            reason = f"the {len(data)} bytes found have SHA-256 {found}, stored was {sha256}"
            raise SnapshotDamaged(location=location, reason=reason)
        return data

    def names(self, prefix: str) -> list[str]:
        if prefix:
            _check_name(prefix)
        return sorted(filter(_is_name, self.folder.walk(prefix)))

    def has(self, name: str) -> bool:
        _check_name(name)
        return self.folder.look(name) is not None

    def hold(self, prefix: str) -> None:
        _check_name(prefix)
        self.folder.hold(prefix)

    def drop(self, location: str) -> None:
        _check_name(location)
        self.folder.remove(location)
        self.folder.prune(parent_of(location))

    def drop_all(self, prefix: str) -> None:
        _check_name(prefix)
        self.folder.remove_tree(prefix)
        self.folder.prune(parent_of(prefix))


class MemoryCheckpoints(FolderCheckpoints):
    """`Checkpoints` in memory, for clusters of one process, and for simulations."""

    def __init__(self) -> None:
        super().__init__(MemoryFolder())


class RunCheckpoints(FolderCheckpoints):
    """`Checkpoints` of one run, whose master ends with it: they keep what that would know."""


def checkpoints_at(folder_or_url: str | Path) -> FolderCheckpoints:
    """Return the store in a folder, or at a URL that fsspec knows; warn of one without promises.

    Raises:
        ConfigError: it is no URL that can be used here.
    """
    folder = folder_at(folder_or_url, key="checkpoint.folder", private=True)
    if not folder.promises.keeps_checkpoints:
        _log.warning(
            "checkpoint.folder %s is in a store that does not promise to show files as a whole and "
            "at once: after a failure an application may have to go back to an older epoch",
            folder.place,
        )
    return FolderCheckpoints(folder)


def orphans(checkpoints: Checkpoints, prefix: str, needed: Iterable[str]) -> list[str]:
    return sorted(set(checkpoints.names(prefix)).difference(needed))


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and not text.endswith(TEMPORARY)


def _check_name(name: str) -> None:
    """Refuse a name that may lead out of the store."""
    if not _is_name(name):
        raise ConfigError(
            f"checkpoint name {name[:200]!r} is not allowed: at most {_PARTS_MAX} parts with a "
            "slash between, each of letters, digits, dots, dashes and underscores, beginning "
            f"with a letter or digit, and not ending with {TEMPORARY}"
        )
