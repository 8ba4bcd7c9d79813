"""Files that were uploaded and not yet submitted, by a handle that nobody can guess."""

import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gearpy.errors import ConfigError
from gearpy.storage.archives import check_filename

#: The oldest goes first.
_KEPT_MAX: Final = 20
_HANDLE: Final = re.compile(r"[\w-]{22}", re.ASCII)
_HANDLE_BYTES: Final = 16


class Uploads:
    """Uploaded files below a folder that is for this process alone. Runs on: any thread."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept = OrderedDict[str, Path]()

    @contextmanager
    def file(self, filename: str, content: BinaryIO) -> Iterator[Path]:
        """Store a file for as long as the context lasts; its name is the one that was given."""
        path = self._stored(filename, content)
        try:
            yield path
        finally:
            shutil.rmtree(path.parent, ignore_errors=True)

    def keep(self, filename: str, content: BinaryIO) -> str:
        path = self._stored(filename, content)
        with self._lock:
            self._kept[path.parent.name] = path
            while len(self._kept) > _KEPT_MAX:
                _, oldest = self._kept.popitem(last=False)
                shutil.rmtree(oldest.parent, ignore_errors=True)
        return path.parent.name

    def kept(self, handle: str) -> Path:
        with self._lock:
            path = self._kept.get(handle) if _HANDLE.fullmatch(handle) else None
        if path is None:
            raise ConfigError(f"there is no upload {handle[:40]!r} (any more): upload it again")
        return path

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        folder = self._new_folder()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        folder = self._folder / secrets.token_urlsafe(_HANDLE_BYTES)
        folder.mkdir(mode=0o700)
        return folder

    def _check_size(self, filename: str, size: int) -> None:
        if size > self._bytes_max:
            raise ConfigError(
                f"{filename} has {size} bytes, at most {self._bytes_max} are taken: leave data "
                "out, or raise artifact.max-bytes"
            )

    def _stored(self, filename: str, content: BinaryIO) -> Path:
        check_filename(filename)
        folder = self._new_folder()
        path = folder / filename
        try:
            with path.open("xb") as file:
                shutil.copyfileobj(content, file)
                self._check_size(filename, file.tell())
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return path


def name_of(filename: str | None) -> str:
    return (filename or "").replace("\\", "/").rpartition("/")[2]
