"""The places of files: paths and patterns, on this machine or at URLs that fsspec knows."""

import bz2
import errno
import glob
import gzip
import io
import lzma
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from gearpy.config.hidden import without_password
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.folder.at import file_system_at

#: Options of the file system of a URL, as fsspec takes them.
StoreOptions: TypeAlias = Mapping[str, Any]

_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1000
#: What fsspec's file systems call the time of the last change.
_TIME_KEYS: Final = ("mtime", "LastModified", "last_modified", "updated", "created")
#: What they call something that is other when the content is.
_VERSION_KEYS: Final = ("ETag", "etag", "md5Hash")
_EDGE_BYTES: Final = 4096  # Beginning and end tell the content.
_DIGEST_BYTES: Final = 16
_ASKED_FILES: Final = 32  # Each is a request; many files are on all machines anyway.


def _open_zstd(source: Any) -> BinaryIO:
    from gearpy.connectors.zstd_files import open_zstd  # noqa: PLC0415 - it loads Arrow

    return open_zstd(source)


_UNPACK: Final[dict[str, Callable[[Any], Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
_DAMAGE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)
#: Files that are not complete, or not meant to be read: pending ones, markers, checksums.
_HIDDEN: Final = ("_", ".")
_UNFINISHED: Final = (".tmp", ".part", ".partial", ".pending", ".crdownload", ".filepart")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it was when it was looked up.

    Attributes:
        name: absolute path or URL.
        changed_ms: when it was last changed; 0 if nobody knows.
        version: what its file system says that is another when the content is; "" if nothing.
    """

    name: str
    size: int
    changed_ms: int
    version: str = ""
    options: StoreOptions = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        return not _is_url(self.name)

    @property
    def is_packed(self) -> bool:
        return self.name.endswith(tuple(_UNPACK))

    @property
    def plain_name(self) -> str:
        """The name of its content, which it has again when it is unpacked."""
        return self.name.rpartition(".")[0] if self.is_packed else self.name

    @property
    def other_names(self) -> Sequence[str]:
        """The names that it has when it is packed otherwise, or not."""
        plain = self.plain_name
        return [name for name in (plain, *(plain + end for end in _UNPACK)) if name != self.name]

    @property
    def is_settled(self) -> bool:
        base = self.name.rsplit("/", 1)[-1]
        return not base.startswith(_HIDDEN) and not base.endswith(_UNFINISHED)


def check_paths(operator: str, patterns: Sequence[object]) -> None:
    if not patterns:
        raise ConfigError(f"{operator}() needs at least one path, pattern or URL")
    for pattern in patterns:
        if not isinstance(pattern, str | os.PathLike):
            raise ConfigError(
                f"{operator}() got {pattern!r:.100}, which is no path: "
                f"write {operator}(*paths) for a list"
            )


class Locations:
    """Paths and patterns; ``*``, ``?``, ``[...]``, and ``**`` for folders of any depth.

    A folder means all files in it whose names do not begin with ``_`` or a dot.
    """

    def __init__(
        self, operator: str, patterns: Sequence[str | Path], options: StoreOptions | None = None
    ) -> None:
        check_paths(operator, patterns)
        self._operator = operator
        self._patterns = [os.fspath(pattern) for pattern in patterns]
        self._options = options or {}
        if self._options and not any(map(_is_url, self._patterns)):
            raise ConfigError(
                f"{operator}: storage_options are for URLs, and {self} is on this machine: leave "
                "them out"
            )

    def __str__(self) -> str:
        return ", ".join(self._patterns)

    def look_up(self) -> list[FoundFile]:
        """Return the files, by name; each once."""
        found: dict[str, FoundFile] = {}
        mistakes = []
        for pattern in self._patterns:
            files = self._matches(pattern)
            if not files:
                mistakes.append(f"{self._operator}: {no_match(pattern)}")
            found.update((file.name, file) for file in files)
        if mistakes:
            raise ConfigError(*mistakes)
        return [found[name] for name in sorted(found)]

    def look_again(self) -> list[FoundFile]:
        found = [file for pattern in self._patterns for file in self._matches(pattern)]
        settled = {file.name: file for file in found if file.is_settled}
        return [settled[name] for name in sorted(settled)]

    def _matches(self, pattern: str) -> list[FoundFile]:
        if _is_url(pattern):
            files, path = _file_system(self._operator, pattern, self._options)
            files.invalidate_cache()
            try:
                is_folder = files.isdir(path)
                infos = (
                    files.ls(path, detail=True)
                    if is_folder
                    else files.glob(path, detail=True).values()
                )
                named = [each for each in infos if each["type"] == "file"]
                found = [_found_at(files, each, self._options) for each in named]
                return [file for file in found if file.is_settled] if is_folder else found
            except FileNotFoundError:
                return []
            except OSError as error:
                raise _unreachable(self._operator, pattern, error) from error
        pattern = os.path.expanduser(pattern)  # noqa: PTH111
        if os.path.isdir(pattern):  # noqa: PTH112
            everything = glob.glob(os.path.join(glob.escape(pattern), "*"))  # noqa: PTH118, PTH207
            return [file for file in map(_regular, everything) if file and file.is_settled]
        # A name with brackets may be meant as it is.
        is_name = os.path.lexists(pattern)
        paths = [pattern] if is_name else glob.glob(pattern, recursive=True)  # noqa: PTH207
        return [file for file in map(_regular, paths) if file]


def file_at(operator: str, name: str, options: StoreOptions | None = None) -> FoundFile:
    """Return a file that was looked up before, as it is now."""
    if _is_url(name):
        files, path = _file_system(operator, name, options)
        try:
            return _found_at(files, files.info(path), options)
        except FileNotFoundError:
            raise ConfigError(f"{operator}: {name} is not there: was it removed?") from None
        except OSError as error:
            raise _unreachable(operator, name, error) from error
    try:
        return _found(name, os.stat(name))  # noqa: PTH116 - there are many
    except FileNotFoundError:
        raise ConfigError(
            f"{operator}: file {name} is not there: each machine that reads must have the files at "
            "the same paths"
        ) from None


def unpacker_of(name: str) -> Callable[[Any], BinaryIO] | None:
    return _UNPACK.get(os.path.splitext(name)[1])  # noqa: PTH122 - of a URL, too


def open_found(operator: str, file: FoundFile) -> BinaryIO:
    """Open a file to read it; one that is packed as its content."""
    unpack = unpacker_of(file.name)
    try:
        if unpack is not None and not _is_url(file.name):
            return _Content(unpack, file.name)  # type: ignore[return-value] # It has what is asked.
        opened = _opened(operator, file)
    except OSError as error:
        raise _unreadable(operator, file.name, error) from error
    content: BinaryIO = opened if unpack is None else _Content(unpack, opened)  # type: ignore[assignment]
    return content


class DamagedFile(ValueError):
    """A packed file that cannot be unpacked any further; ``data`` was unpacked before."""

    def __init__(self, error: Exception, at: int, data: bytes = b"") -> None:
        self.data = data
        behind = f"behind byte {at} of its content" if at else "at all"
        super().__init__(
            f"cannot be unpacked {behind} ({str(error) or type(error).__name__}): is it complete, "
            "and packed as its name says?"
        )


def check_is_damage(error: Exception) -> None:
    if getattr(error, "errno", None) is not None:
        raise error


class _Content(io.BufferedIOBase):
    """The content of a packed file; raises `DamagedFile` at the damage, or behind it."""

    def __init__(self, unpack: Callable[[Any], Any], packed: Any) -> None:
        self._content = unpack(packed)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        parts: list[bytes] = []
        left = -1 if size is None else size
        try:
            while left and (part := self._content.read1(left)):
                parts.append(part)
                left -= len(part)
                self._at += len(part)
        except _DAMAGE as error:
            check_is_damage(error)
            raise DamagedFile(error, self._at, b"".join(parts)) from error
        return b"".join(parts)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            self._at = self._content.seek(offset, whence)
        except io.UnsupportedOperation:
            raise
        except _DAMAGE as error:
            check_is_damage(error)
            raise DamagedFile(error, self._at) from error
        return self._at

    def close(self) -> None:
        self._content.close()
        super().close()


def content_version(operator: str, file: FoundFile) -> str:
    """Return a version that changes whenever the file's content changes, the same on all machines.

    That is what the file system says; without that a digest of how the file begins and ends, as
    copies may have other times and numbers. So it misses a change in the middle of the same length.
    """
    if file.version:
        return file.version
    try:
        with _opened(operator, file) as opened:
            # What was added since the file was looked up is none of its content.
            size = min(_EDGE_BYTES, file.size)
            edges = blake2b(opened.read(size), digest_size=_DIGEST_BYTES)
            opened.seek(file.size - size)
            edges.update(opened.read(size))
    except OSError as error:
        raise _unreadable(operator, file.name, error) from error
    return edges.hexdigest()


def is_touched(file: FoundFile) -> bool:
    """Tell whether a file on this machine was written to since it was looked up; one may be gone.

    A file of a store is another version then, and who reads it is told by its store.
    """
    found = _regular(file.name) if file.is_local else None
    return found is not None and found != file


def is_gone(file: FoundFile) -> bool:
    return file.is_local and not os.path.lexists(file.name)


def block_hosts(operator: str, found: Sequence[FoundFile]) -> list[str]:
    """Return the machines that have blocks of some files, those with most bytes first.

    Of many files only the largest are asked for. A store that does not tell has none.
    """
    sizes = Counter[str]()
    for file in sorted(found, key=lambda each: each.size, reverse=True)[:_ASKED_FILES]:
        if file.is_local:
            continue
        files, path = _file_system(operator, file.name, file.options)
        if not hasattr(files, "block_hosts"):
            continue
        try:
            blocks = files.block_hosts(path)
        except OSError as error:
            raise _unreachable(operator, file.name, error) from error
        for size, hosts in blocks:
            sizes.update(dict.fromkeys(hosts, size))
    return [host for host, _ in sizes.most_common()]


def _unreadable(operator: str, name: str, error: OSError) -> ConfigError:
    if error.errno == errno.EMFILE:
        return ConfigError(
            f"{operator}: too many files are open at once: read several one after the other, "
            "with partitions=64, for example"
        )
    return ConfigError(f"{operator}: cannot read {name}: {error.strerror or error}")


def _opened(operator: str, file: FoundFile) -> Any:
    if not _is_url(file.name):
        return open(file.name, "rb")  # noqa: PTH123 - its reader closes it
    files, path = _file_system(operator, file.name, file.options)
    return files.open(path, "rb")


def _regular(path: str) -> FoundFile | None:
    path = os.path.abspath(path)  # noqa: PTH100 - links stay links
    try:
        info = os.stat(path)  # noqa: PTH116 - there are many
    except OSError:
        return None
    return _found(path, info) if stat.S_ISREG(info.st_mode) else None


def _found(path: str, info: os.stat_result) -> FoundFile:
    return FoundFile(path, info.st_size, info.st_mtime_ns // _NS_PER_MS)


# -- URLs --------------------------------------------------------------------------------------


def no_match(pattern: str) -> str:
    is_whole = _is_url(pattern) or Path(pattern).is_absolute()
    where = "" if is_whole else f" in {Path.cwd()}; programs on a cluster need absolute paths"
    return f"{pattern!r} matches no file{where}"


def _is_url(name: str) -> bool:
    return "://" in name


def _file_system(operator: str, url: str, options: StoreOptions | None) -> tuple[Any, str]:
    place = f"{operator}: {without_password(url)}"
    try:
        files, path = file_system_at(url, options, needed_for=place)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error
    return files, path


def _found_at(files: Any, info: dict[str, Any], options: StoreOptions | None) -> FoundFile:
    changed_ms = next((_ms(info[key]) for key in _TIME_KEYS if info.get(key)), 0)
    version = next((str(info[key]) for key in _VERSION_KEYS if info.get(key)), "")
    name = files.unstrip_protocol(info["name"])
    return FoundFile(name, int(info.get("size") or 0), changed_ms, version, options or {})


def _ms(time: Any) -> int:
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return int(aware.timestamp() * _MS_PER_S)
    if isinstance(time, str):
        return _ms(datetime.fromisoformat(time))
    return int(time * _MS_PER_S)


def _unreachable(operator: str, name: str, error: OSError) -> GearpyError:
    return GearpyError(f"{operator}: cannot look up {name}: {error}")
