"""Unpacks uploaded programs; trusts no field of an archive.

A `.py` file is copied; a `.zip` or `.whl` is unpacked into a fresh folder. Refused are: names
that lead out of the folder or that some system would take for one another, links and devices,
encrypted entries, and whatever unpacks to more files or bytes than allowed. All names are checked
before anything is written; sizes are counted while it is written. When an archive is refused,
nothing is left of it.
"""

import errno
import os
import re
import shutil
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, Final

from msgspec import Struct

from gearpy.config.schema import ArtifactConfig
from gearpy.errors import ConfigError
from gearpy.storage.folder.files import sync_folder, told

#: The kinds of artifacts.
SUFFIXES: Final = (".py", ".sql", ".zip", ".whl")

#: An archive may unpack to so many times its size; text does to five times, bombs to a thousand.
RATIO_MAX: Final = 100
#: This may be unpacked whatever the ratio; a table of zeros is no attack.
RATIO_FREE_BYTES: Final = 16 * 1024 * 1024
#: Bytes that the list of files in an archive may take for each file that is allowed.
LISTING_BYTES_PER_FILE: Final = 512
MISTAKES_MAX: Final = 10
FILENAME_BYTES_MAX: Final = 180
NAME_BYTES_MAX: Final = 255
PATH_BYTES_MAX: Final = 1024

#: An artifact may unpack to so many times the size that it may have itself ...
_UNPACKED_TIMES: Final = 4
#: ... and to a file for each of so many bytes, or so many in any case.
_BYTES_PER_FILE: Final = 25 * 1024
_FILES_MIN: Final = 1000

_CHUNK_BYTES: Final = 64 * 1024
_FILENAME: Final = re.compile(r"[^\x00-\x1f\x7f/\\:]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_STREAMED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000

#: The record at the end of a zip file: how many files its list has, and how large that is.
_END: Final = struct.Struct("<10xHI6x")
_END_SIGN: Final = b"PK\x05\x06"
_COMMENT_BYTES_MAX: Final = 0xFFFF
#: Stands before it in archives of the 64-bit form, whose sizes are elsewhere.
_LOCATOR_SIGN: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20

#: `zipfile` raises these for archives that are not what they claim.
DAMAGED: Final = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class ArtifactLimits(Struct, frozen=True, kw_only=True):
    """The largest size of a program, packed and unpacked."""

    bytes_max: int
    unpacked_bytes_max: int
    files_max: int

    @classmethod
    def of(cls, config: ArtifactConfig) -> "ArtifactLimits":
        return cls(
            bytes_max=config.max_bytes,
            unpacked_bytes_max=_UNPACKED_TIMES * config.max_bytes,
            files_max=max(_FILES_MIN, config.max_bytes // _BYTES_PER_FILE),
        )


def check_filename(filename: str) -> None:
    """Refuse a text that is no plain name of a `.py`, `.sql`, `.zip` or `.whl` file."""
    plain = _FILENAME.fullmatch(filename) is not None and not filename.startswith(".")
    if not plain or len(filename.encode("utf-8", "replace")) > FILENAME_BYTES_MAX:
        raise ConfigError(f"{filename[:80]!r} is no plain file name for an artifact: rename it")
    if not filename.endswith(SUFFIXES):
        raise ConfigError(f"{filename} is not a program: give a .py, .sql, .zip or .whl file")


def unpack(packed: Path, folder: Path, filename: str, limits: ArtifactLimits) -> None:
    """Unpack an artifact into ``folder``, which must not exist. All of it is on disk after.

    Args:
        folder: is made; only its owner can enter.
        filename: what the bytes are.

    Raises:
        ConfigError: it is refused, or damaged; ``folder`` does not exist then.
        OSError: ``packed`` cannot be read, or ``folder`` not be written, as when the disk is full.
    """
    check_filename(filename)
    folder.mkdir(mode=0o700)
    try:
        if filename.endswith((".py", ".sql")):
            target = folder / filename
            meter = _Meter(filename, packed.stat().st_size, limits)
            with packed.open("rb") as source, _created(target) as out:
                meter.copy(source, out, target)
        else:
            _unzip(packed, folder, filename, limits)
        for root, _, _ in os.walk(folder):
            sync_folder(Path(root))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        # An offset before the beginning makes `zipfile` seek there, which the system refuses.
        is_bad_offset = isinstance(error, OSError) and error.errno == errno.EINVAL
        if is_bad_offset or isinstance(error, DAMAGED):
            raise ConfigError(f"{filename} is damaged: {error}") from error
        raise


def _unzip(packed: Path, folder: Path, filename: str, limits: ArtifactLimits) -> None:
    with packed.open("rb") as file:
        check_listing(file, filename, limits)
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check(entries, filename, limits)
            meter = _Meter(filename, packed.stat().st_size, limits)
            for entry in entries:
                target = folder / entry.filename
                if entry.is_dir():
                    _make_folders(folder, target)
                    continue
                _make_folders(folder, target.parent)
                with archive.open(entry) as source, _created(target) as out:
                    meter.copy(source, out, target)


class _Meter:
    """Copies, and counts the copied bytes against the limits."""

    def __init__(self, filename: str, packed_bytes: int, limits: ArtifactLimits) -> None:
        self._filename = filename
        self._limit = limits.unpacked_bytes_max
        self._by_ratio = max(RATIO_FREE_BYTES, packed_bytes * RATIO_MAX)
        self._copied = 0

    def copy(self, source: IO[bytes], out: BinaryIO, target: Path) -> None:
        while chunk := source.read(_CHUNK_BYTES):
            self._copied += len(chunk)
            if self._copied > self._limit:
                raise _too_large(self._filename, self._limit)
            if self._copied > self._by_ratio:
                raise ConfigError(
                    f"{self._filename} unpacks to more than {RATIO_MAX} times its size: "
                    "store large data elsewhere"
                )
            with told(target):
                out.write(chunk)
        with told(target):
            out.flush()
            os.fsync(out.fileno())


def _created(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _make_folders(folder: Path, target: Path) -> None:
    missing = []
    while target != folder and not target.is_dir():
        missing.append(target)
        target = target.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700)


# -- what an archive says of itself ----------------------------------------------------------


def _check(entries: Sequence[zipfile.ZipInfo], filename: str, limits: ArtifactLimits) -> None:
    if len(entries) > limits.files_max:
        raise _too_many(filename, limits.files_max)
    if sum(entry.file_size for entry in entries) > limits.unpacked_bytes_max:
        raise _too_large(filename, limits.unpacked_bytes_max)
    mistakes = [
        f"{filename}: entry {entry.orig_filename[:80]!r} {mistake}"
        for entry in entries
        if (mistake := _mistake_in(entry))
    ]
    # Only names of a sane length are compared.
    mistakes = mistakes or [f"{filename}: {clash}" for clash in _clashes(entries)]
    if mistakes:
        raise ConfigError(*mistakes[:MISTAKES_MAX])


def _mistake_in(entry: zipfile.ZipInfo) -> str:
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR} or (kind == stat.S_IFDIR) > entry.is_dir():
        return "is a link or a device: put a plain file there"
    if entry.compress_type not in _STREAMED:
        return "is compressed in another way than deflate"
    return _mistake_in_name(entry.orig_filename) or _mistake_in_name(entry.filename)


def _mistake_in_name(name: str) -> str:
    if _CONTROL.search(name):
        return "has a control character in its name"
    if name.startswith("/") or "\\" in name or ":" in name:
        return "has an absolute path, a drive or a backslash in its name"
    parts = name.removesuffix("/").split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "has a path that leads elsewhere"
    lengths = [len(part.encode("utf-8", "replace")) for part in parts]
    if max(lengths) > NAME_BYTES_MAX or sum(lengths) + len(lengths) > PATH_BYTES_MAX:
        return "has too long a name"
    return ""


def _clashes(entries: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """Yield which names are there twice, or that some system would take for one another."""
    spellings: dict[str, str] = {}
    files: Counter[str] = Counter()
    folders: set[str] = set()
    for entry in entries:
        name = entry.filename.removesuffix("/")
        above = [name[:place] for place, char in enumerate(name) if char == "/"]
        folders.update(above)
        if entry.is_dir():
            folders.add(name)
        else:
            files[name] += 1
        for each in (*above, name):
            known = spellings.setdefault(
                unicodedata.normalize("NFC", unicodedata.normalize("NFC", each).casefold()), each
            )
            if known != each:
                yield f"{known!r} and {each!r} are one name on some systems: rename one"
    for name, times in files.items():
        if times > 1 or name in folders:
            yield f"{name!r} is there twice: keep one"


def check_listing(file: BinaryIO, filename: str, limits: ArtifactLimits) -> None:
    """Refuse an archive with too many files, or a list of them that is too large for memory."""
    size = file.seek(0, os.SEEK_END)
    tail_bytes = min(size, _LOCATOR_BYTES + _END.size + _COMMENT_BYTES_MAX)
    file.seek(size - tail_bytes)
    tail = file.read(tail_bytes)
    place = tail.rfind(_END_SIGN)
    if place < 0 or len(tail) - place < _END.size:
        raise ConfigError(f"{filename} is damaged: it does not end as a zip file does")
    if tail[: max(0, place - _LOCATOR_BYTES + len(_LOCATOR_SIGN))].endswith(_LOCATOR_SIGN):
        raise ConfigError(f"{filename} is a zip file of the 64-bit form: submit a smaller one")
    files, listing_bytes = _END.unpack_from(tail, place)
    if files > limits.files_max or listing_bytes > limits.files_max * LISTING_BYTES_PER_FILE:
        raise _too_many(filename, limits.files_max)
    file.seek(0)


def _too_large(filename: str, limit: int) -> ConfigError:
    return ConfigError(f"{filename} unpacks to more than {limit} bytes: see artifact.max-bytes")


def _too_many(filename: str, limit: int) -> ConfigError:
    return ConfigError(f"{filename} has more than {limit} files: see artifact.max-bytes")
