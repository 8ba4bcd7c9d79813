"""Writes a folder so that readers see each record once: a file for each task and epoch.

A file is pending until its epoch is complete, and is then shown: by a rename, where the store has
one, else by a copy within the store, which is seen when it is whole.
"""

import glob
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict

from gearpy.config.hidden import without_password
from gearpy.connectors.folders.part_names import FilePart
from gearpy.connectors.folders.parts import (
    PREFIX,
    FolderShare,
    PartFolder,
    PreparedPart,
    prefix_mistakes,
    store_mistakes,
    target_folder,
)
from gearpy.core.handover.window_log import PENDING
from gearpy.errors import ConfigError
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.local import LocalFolder
from gearpy.task.api.interfaces import Batch, Sink, SinkContext, TransactionalWriter

_NAMES_MAX: Final = 10  # In a line of the log.


class RowWriter(ABC):
    """Writes the records of one file."""

    @abstractmethod
    def write(self, values: Sequence[Any]) -> bool:
        """Write records; False if they have other columns than the file, and need a new one."""

    def finish(self) -> None:  # noqa: B027 - lines have nothing at their end
        pass


class FormState:
    """All that files of one task have in common; by default a file is nothing to the next one."""

    def expect(self, keys: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """Learn which columns keys and fields will have, as `SinkContext` tells it."""

    def snapshot(self) -> bytes | None:
        """Return the state that later files have to keep to; None if there is none."""
        return None

    def restore(self, state: bytes | None) -> None:
        """Keep to the state of earlier files."""


class PartFormat(FormState, ABC):
    """The format of the files of one task."""

    ending: str

    @abstractmethod
    def begin(self, file: BinaryIO) -> RowWriter: ...


class PartSink(Sink):
    """A folder with files of each task and epoch; ``pattern`` says where in it they are."""

    transactional = True
    waits_for_store = True

    def __init__(
        self,
        name: str,
        path: str | Path,
        *,
        prefix: str,
        overwrite: bool,
        columnar: bool,
        pattern: str = "",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._is_url = "://" in str(path)
        if mistakes := [*prefix_mistakes(name, prefix), *store_mistakes(name, str(path))]:
            raise ConfigError(*mistakes)
        self.name = name
        self.columnar = columnar
        self._path = str(path) if self._is_url else str(Path(path).expanduser())
        self._storage_options = storage_options
        self._prefix = prefix
        self._overwrite = overwrite
        self._pattern = f"{pattern}{prefix}-*"

    @property
    def description(self) -> str:
        folder = without_password(self._path)
        files = folder if self._prefix == PREFIX else f"{folder.rstrip('/')}/{self._pattern}"
        return f"{self.name}({files})"

    @property
    def earlier_output(self) -> str:
        """The folder to which it adds what it writes, if there is output of others in it."""
        if self._is_url or self._overwrite:
            return ""
        is_there = any(Path(self._path).glob(f"{glob.escape(self._prefix)}-*"))
        return str(self._path) if is_there else ""

    @property
    def pending_folders(self) -> Sequence[Path]:
        return [] if self._is_url else [Path(self._path).resolve() / PENDING]

    def folder(self) -> Folder:
        if self._is_url:
            return folder_at(self._path, self._storage_options, key=self.name)
        return LocalFolder(target_folder(self.name, Path(self._path)))

    def share(self, task_index: int, parallelism: int) -> FolderShare:
        return FolderShare(
            task=task_index, tasks=parallelism, prefix=self._prefix, overwrite=self._overwrite
        )


class FolderOptions(TypedDict, total=False):
    """Options of all folders with a file for each task and epoch.

    Attributes:
        prefix: of the names of files. Two sinks of one application that write into one folder need
            different ones.
        overwrite: whether files of earlier runs with this prefix are removed.
        file_bytes: a file that has so many ends, and another one of its epoch begins; about, as
            records are written together. By default an epoch is one file.
        storage_options: of the store at a URL, as fsspec takes them; by default as its library
            finds them in the environment.
    """

    prefix: str
    overwrite: bool
    file_bytes: int | None
    storage_options: Mapping[str, Any] | None


class FolderSink(PartSink):
    """A folder with a file for each task and epoch; see `jsonl_folder` and `parquet_folder`."""

    def __init__(
        self,
        name: str,
        path: str | Path,
        make_format: Callable[[], PartFormat],
        *,
        prefix: str = PREFIX,
        overwrite: bool = False,
        columnar: bool = False,
        takes_results: bool = True,
        file_bytes: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name,
            path,
            prefix=prefix,
            overwrite=overwrite,
            columnar=columnar,
            storage_options=storage_options,
        )
        if file_bytes is not None and file_bytes < 1:
            raise ConfigError(f"{name}: file_bytes is {file_bytes}, must be 1 or more")
        self.takes_results = takes_results
        self._make_format = make_format
        self._file_bytes = file_bytes

    def open(self, task_index: int, parallelism: int) -> "FolderWriter":
        share = self.share(task_index, parallelism)
        return FolderWriter(
            self.name, self.folder(), self._make_format(), share, file_bytes=self._file_bytes
        )


class PartWriter(TransactionalWriter):
    """Shows the files of one task, and recovers them; `PartFolder` lists the possible faults."""

    atomic = True

    def __init__(self, files: PartFolder, form: FormState) -> None:
        self._files = files
        self._form = form

    def begin(self, context: SinkContext) -> None:
        self._form.expect(context.keys, context.fields)

    def restore(self, state: bytes | None) -> None:
        self._form.restore(state)

    def snapshot(self) -> bytes | None:
        return self._form.snapshot()

    def recover(
        self,
        prepared: Mapping[int, PreparedPart | list[PreparedPart] | None],
        *,
        epoch: int,
        run: str,
        incarnation: int,
    ) -> None:
        """Show prepared files, remove files that earlier incarnations have left."""
        waiting = [_parts(prepared[number]) for number in sorted(prepared)]
        self._files.recover(
            waiting, epoch=epoch, run=run, incarnation=incarnation, is_there=self.resumes
        )

    def commit(self, epoch: int, prepared: PreparedPart | list[PreparedPart] | None) -> None:
        self._files.show(_parts(prepared))


class FolderWriter(PartWriter):
    """Writes the files of one task: one for each epoch, or more where it would be too large."""

    def __init__(
        self,
        name: str,
        folder: Folder,
        form: PartFormat,
        share: FolderShare,
        *,
        file_bytes: int | None = None,
    ) -> None:
        super().__init__(PartFolder(name, folder, form.ending, share, listed=_listed), form)
        self._format = form
        self._file_bytes = file_bytes
        self._full: list[_OpenPart] = []
        self._part: _OpenPart | None = None

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        if self._part is None:
            name, file = self._files.begin()
            self._part = _OpenPart(name, file, self._format.begin(file))
        if not self._part.rows.write(batch.values):
            self._full.append(self._part)
            self._part = None
            self.write_batch(batch)
            return
        self._part.count += len(batch.values)
        if self._file_bytes is not None and self._part.file.tell() >= self._file_bytes:
            self._full.append(self._part)
            self._part = None

    def prepare(self, epoch: int) -> PreparedPart | list[PreparedPart] | None:
        prepared: list[PreparedPart] = []
        for part in self._taken():
            if part.count:
                with part.file:
                    part.rows.finish()
                    finished = self._files.finish(
                        part.name, part.file, epoch=epoch, rows=part.count, piece=len(prepared)
                    )
                prepared.append(finished)
            else:  # Its records were refused.
                self._drop(part)
        if prepared:
            self._files.sync_pending()
        return prepared if len(prepared) > 1 else next(iter(prepared), None)

    def close(self, *, completed: bool) -> None:
        for part in self._taken():
            self._drop(part)

    def _taken(self) -> list["_OpenPart"]:
        taken = self._full if self._part is None else [*self._full, self._part]
        self._full, self._part = [], None
        return taken

    def _drop(self, part: "_OpenPart") -> None:
        with suppress(OSError), part.file:
            part.rows.finish()
        self._files.drop(part.name)


@dataclass(slots=True)
class _OpenPart:
    """The pending file that is being written."""

    name: str
    file: BinaryIO
    rows: RowWriter
    count: int = 0


def _parts(prepared: PreparedPart | list[PreparedPart] | None) -> list[PreparedPart]:
    if prepared is None:
        return []
    return prepared if isinstance(prepared, list) else [prepared]


def _listed(parts: Sequence[FilePart]) -> str:
    names = [part.name for part in parts]
    more = [] if len(names) <= _NAMES_MAX else [f"and {len(names) - _NAMES_MAX} more"]
    return ": " + ", ".join([*names[:_NAMES_MAX], *more])
