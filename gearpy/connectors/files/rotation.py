"""The files that a log was rotated into: what was read is found again under another name."""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict

from gearpy.errors import GearpyError

_MARK_BYTES: Final = 1024
#: Loggers add a number or a date to the name of a file that they put aside.
_ADDED: Final = r"[._-]\d[\d._T:-]*"
#: Files that were packed since have such names: their lines cannot be read from here.
_PACKED: Final = re.compile(r"\.(gz|bz2|xz|zst|Z)$")


class FileMark(TypedDict):
    """A file as it was: its number on the disk, and a digest of what stands before a byte of it."""

    inode: int
    digest: str


def mark_of(file: Any, offset: int) -> FileMark:
    return {"inode": os.fstat(file.fileno()).st_ino, "digest": _digest(file, offset)}


def found_again(path: str, mark: FileMark, offset: int) -> str | None:
    """Return the path of the file that was read up to a byte, in the folder where it was.

    The file itself counts, or else one with the same bytes: it was copied, and the one that was
    read is cut, or this is another machine.
    """
    if _is_marked(path, mark, offset, inode=mark["inode"]):
        return path
    siblings = [each for each in _siblings(path) if each.path != path]
    for each in siblings:
        if _is_marked(each.path, mark, offset, inode=mark["inode"]):
            return each.path
    if not offset:
        return None
    if _is_marked(path, mark, offset):
        return path
    put_aside = _put_aside(path)
    copies = [
        each.path
        for each in siblings
        if put_aside.fullmatch(each.name) and _is_marked(each.path, mark, offset)
    ]
    if len(copies) > 1:
        raise GearpyError(
            f"{path} was rotated while nobody read it, and {', '.join(sorted(copies))} all have "
            f"the {offset:,} bytes that were read: move all but the one that is right to another "
            "folder"
        )
    return next(iter(copies), None)


def successor(path: str, read: os.stat_result) -> str:
    """Return the path of the file that came after one that was rotated.

    That is the oldest one that was put aside since, or else the one at the path.
    """
    put_aside = _put_aside(path)
    later = []
    for each in _siblings(path):
        if each.path != path and put_aside.fullmatch(each.name):
            with suppress(FileNotFoundError):
                info = each.stat()
                if info.st_ino != read.st_ino and info.st_mtime_ns > read.st_mtime_ns:
                    later.append((info.st_mtime_ns, each.path))
    if not later:
        return path
    _, found = min(later)
    if _PACKED.search(found):
        raise GearpyError(
            f"{path} was rotated several times since it was read, and {found} is packed, which is "
            "read next: unpack it there"
        )
    return found


def _siblings(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(Path(path).parent) as entries:
            return [each for each in entries if each.is_file()]
    except FileNotFoundError:
        return []


def _put_aside(path: str) -> re.Pattern[str]:
    """Return the pattern of rotated names: ``a.log.1``, ``a.log-20261122`` or ``a.1.log``."""
    named = Path(path)
    whole, first, last = map(re.escape, (named.name, named.stem, named.suffix))
    names = f"{whole}{_ADDED}|{first}{_ADDED}{last}"
    return re.compile(f"({names})({_PACKED.pattern})?")


def _is_marked(path: str, mark: FileMark, offset: int, *, inode: int | None = None) -> bool:
    """Tell whether a file has this number, if it is given, and begins with what was read."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            info = os.fstat(file.fileno())
            is_same = inode is None or info.st_ino == inode
            return is_same and info.st_size >= offset and _digest(file, offset) == mark["digest"]
    except OSError:
        return False


def _digest(file: Any, offset: int) -> str:
    digest = sha256(os.pread(file.fileno(), min(offset, _MARK_BYTES), 0))
    begin = max(0, offset - _MARK_BYTES)
    digest.update(os.pread(file.fileno(), offset - begin, begin))
    return digest.hexdigest()[:32]
