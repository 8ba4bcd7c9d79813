"""Data files of a Delta table: where they are, and what the log tells readers of them.

A file is in its place from the beginning. Readers do not see it before the log names it.
"""

import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

# Ships no type information.
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]
from deltalake._internal import DeltaFileSystemHandler
from deltalake.fs import DeltaStorageHandler

from gearpy.storage.disk import create_file, sync_file, sync_folder

__all__ = ["LocalFiles", "RemoteFiles", "TableFiles", "local_folder", "stats_of"]

_BUFFER_BYTES: Final = 1 << 17
_ONE_MS: Final = timedelta(milliseconds=1)


class TableFiles(Protocol):
    """Where the files of a table are. Each step may raise `OSError`."""

    def create(self, path: str) -> BinaryIO:
        """Begin a file that nobody else has."""
        ...

    def finish(self, path: str, file: BinaryIO) -> int:
        """Close it, durably; return its size."""
        ...

    def size(self, path: str) -> int | None:
        """Return the size of a file; None if there is none."""
        ...

    def drop(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...


class LocalFiles:
    """`TableFiles` on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, path: str) -> BinaryIO:
        """See `TableFiles`."""
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return create_file(file, "xb", buffering=_BUFFER_BYTES)

    def finish(self, path: str, file: BinaryIO) -> int:
        """See `TableFiles`."""
        with file:
            sync_file(file)
            size = file.tell()
        parents = [self._folder / each for each in Path(path).parents]
        for each in reversed(parents):
            sync_folder(each)
        return size

    def size(self, path: str) -> int | None:
        """See `TableFiles`."""
        try:
            return (self._folder / path).stat().st_size
        except FileNotFoundError:
            return None

    def drop(self, path: str) -> None:
        """See `TableFiles`."""
        (self._folder / path).unlink(missing_ok=True)


class RemoteFiles:
    """`TableFiles` in a store that `deltalake` knows, which keeps what was closed."""

    def __init__(self, url: str, options: Mapping[str, str] | None) -> None:
        given = dict(options) if options else None
        self._handler = DeltaFileSystemHandler(url, given)
        self._store = pa_fs.PyFileSystem(DeltaStorageHandler(url, given))

    def create(self, path: str) -> BinaryIO:
        """See `TableFiles`."""
        return cast("BinaryIO", _RemoteFile(self._handler.open_output_stream(path, None)))

    def finish(self, path: str, file: BinaryIO) -> int:
        """See `TableFiles`."""
        size = file.tell()
        file.close()
        return size

    def size(self, path: str) -> int | None:
        """See `TableFiles`."""
        found = self._store.get_file_info(path)
        return None if found.type == pa_fs.FileType.NotFound else int(found.size)

    def drop(self, path: str) -> None:
        """See `TableFiles`."""
        if self.size(path) is not None:
            self._store.delete_file(path)


class _RemoteFile(io.RawIOBase):
    """A file in a store; `deltalake` takes bytes, and not the buffers that Arrow gives."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self._inner = inner
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = int(self._inner.write(bytes(data)))
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


def local_folder(url: str) -> Path | None:
    """Return the folder of a table on this machine; None if it is elsewhere."""
    parts = urlsplit(url)
    if "://" not in url:
        return Path(url).expanduser().resolve()
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def stats_of(metadata: Any) -> str:
    """Return what the log tells of a Parquet file, so that readers can pass over it.

    The least and greatest values are told of whole numbers, dates and times.

    Args:
        metadata: `pyarrow.parquet.FileMetaData`.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    for place in range(metadata.num_columns):
        chunks = [group.column(place) for group in groups]
        name = chunks[0].path_in_schema if chunks else ""
        found = [chunk.statistics for chunk in chunks]
        if "." in name or not found or not all(each is not None for each in found):
            continue  # Within a list or struct, or not known.
        if all(each.has_null_count for each in found):
            nulls[name] = sum(each.null_count for each in found)
        known = [each for each in found if each.has_min_max]
        # A group of nulls alone has none.
        if known and all(each.has_min_max or not each.num_values for each in found):
            low, high = min(each.min for each in known), max(each.max for each in known)
            if _is_told(low):
                least[name], greatest[name] = _told(low), _told(high, is_upper=True)
    stats = {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return json.dumps(stats, separators=(",", ":"))


def _is_told(value: Any) -> bool:
    return isinstance(value, int | date) and not isinstance(value, bool)


def _told(value: Any, *, is_upper: bool = False) -> Any:
    """Return a bound as Delta writes it; of a time, that of its millisecond or of the next one."""
    if not isinstance(value, date):
        return value
    if not isinstance(value, datetime):
        return value.isoformat()
    if is_upper and value.microsecond % 1000:
        value += _ONE_MS
    if value.tzinfo is None:
        return value.isoformat(timespec="milliseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
