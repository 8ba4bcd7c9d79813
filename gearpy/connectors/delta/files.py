"""The data files of a Delta table: their names, and the notes about them in its log."""

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

# Ships no type information.
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]
from deltalake._internal import DeltaFileSystemHandler
from deltalake.fs import DeltaStorageHandler
from fsspec.implementations.arrow import ArrowFSWrapper  # type: ignore[import-untyped]

from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.url import UrlFolder

_ONE_MS: Final = timedelta(milliseconds=1)


def remote_folder(url: str, options: Mapping[str, str] | None) -> Folder:
    given = dict(options) if options else None
    store = pa_fs.PyFileSystem(DeltaStorageHandler(url, given))
    return UrlFolder(_DeltaStore(store, DeltaFileSystemHandler(url, given)), "", place=url)


class _DeltaStore(ArrowFSWrapper):  # type: ignore[misc]
    """A store of `deltalake` as a file system of fsspec."""

    cachable = False

    def __init__(self, store: Any, handler: Any) -> None:
        super().__init__(store)
        self._handler = handler

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "wb":
            return _RemoteFile(self._handler.open_output_stream(path, None))
        return super()._open(path, mode)


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
    """Return the statistics of a Parquet file for the log, so that readers can pass over it.

    The least and greatest values are told of whole numbers, dates and times.
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
            if isinstance(low, int | date) and not isinstance(low, bool):
                with suppress(OverflowError):  # No bound is told for the last ms that there is.
                    least[name], greatest[name] = _told(low), _told(high, is_upper=True)
    stats = {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return json.dumps(stats, separators=(",", ":"))


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
