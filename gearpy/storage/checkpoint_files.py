"""What all checkpoint stores have in common: names of files, and how files are known again."""

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import BinaryIO, Final, NamedTuple
from uuid import uuid4

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.disk import TEMPORARY

__all__ = [
    "LEFTOVER_S",
    "StoredFile",
    "is_name",
    "loaded",
    "parts_of_name",
    "stored",
    "temporary_name",
]

#: Leftovers younger than this may belong to a process that still writes.
LEFTOVER_S: Final = 3600

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PARTS_MAX: Final = 8


class StoredFile(NamedTuple):
    """Where a file is, and how it is known to be the same."""

    location: str
    sha256: str
    size_bytes: int


def is_name(text: str) -> bool:
    """Tell whether something may be stored under a name."""
    parts = text.split("/")
    is_good = len(parts) <= _PARTS_MAX and all(map(_PART.fullmatch, parts))
    return is_good and not text.endswith(TEMPORARY)


def parts_of_name(name: str) -> list[str]:
    """Return the parts of a name, none of which leads out of the store.

    Raises:
        ConfigError: it is no name.
    """
    if not is_name(name):
        raise ConfigError(
            f"checkpoint name {name[:200]!r} is not allowed: at most {_PARTS_MAX} parts with a "
            "slash between, each of letters, digits, dots, dashes and underscores, beginning "
            f"with a letter or digit, and not ending with {TEMPORARY}"
        )
    return name.split("/")


def temporary_name(name: str) -> str:
    """Return what a file is called while it is written; no two are, on no two machines."""
    return f".{name}.{uuid4().hex}{TEMPORARY}"


def stored(name: str, chunks: Iterable[bytes], write: Callable[[bytes], object]) -> StoredFile:
    """Write chunks, and return how the file they make is known again."""
    digest, size = sha256(), 0
    for chunk in chunks:
        write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return StoredFile(name, digest.hexdigest(), size)


def loaded(file: BinaryIO, location: str, wanted: str) -> bytes:
    """Return all of a file, and close it; checked if its SHA-256 is wanted.

    Raises:
        SnapshotDamaged: it is not what was stored.
        OSError: it cannot be read.
    """
    with file:
        data = file.read()
    found = sha256(data).hexdigest() if wanted else ""
    if found != wanted:
        raise SnapshotDamaged(
            location=location,
            reason=f"the {len(data)} bytes found have SHA-256 {found}, stored was {wanted}",
        )
    return data
