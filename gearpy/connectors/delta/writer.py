"""The writing half of `delta_table`: files first, then one transaction for each epoch."""

import io
import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, TypedDict
from urllib.parse import unquote, urlsplit

# Ships no type information.
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]
from deltalake._internal import DeltaFileSystemHandler
from deltalake.fs import DeltaStorageHandler
from fsspec.implementations.arrow import ArrowFSWrapper  # type: ignore[import-untyped]

from gearpy.connectors.delta.log import CommitConflict, DeltaFile, DeltaLog
from gearpy.connectors.folders.part_names import PartNames, run_in_names
from gearpy.connectors.partitioned.files import BegunFile
from gearpy.connectors.partitioned.rows import PartitionRows, TableOptions
from gearpy.core.base.pauses import pause_after
from gearpy.core.handover.ledger import LedgerClaim, claims
from gearpy.core.handover.table_commits import Change, Lane, LanePart, next_change, rewritten
from gearpy.errors import ConfigError, GearpyError, StoreAway
from gearpy.storage.folder.api import Folder, is_whole, parent_of
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.url import UrlFolder
from gearpy.task.api.interfaces import Batch, SinkContext, TransactionalWriter

_log = logging.getLogger(__name__)
_ENDING: Final = ".parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOptions:
    """The options of a Delta table, beyond its columns.

    Attributes:
        keep_rewritten: whether rows stay that come again and cannot be removed.
        attempts_max: of one transaction.
        pause_ms: before the second attempt; twice as long before each further one, ...
        pause_max_ms: ... up to this.
    """

    url: str
    storage: Mapping[str, str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    add_columns: bool = False
    keep_rewritten: bool = False
    attempts_max: int = 30
    pause_ms: int = 20
    pause_max_ms: int = 2_000


class PreparedFile(TypedDict):
    """A file that the log does not name yet."""

    path: str
    size: int
    values: dict[str, str | None]
    stats: str


class PreparedRows(TypedDict):
    """The files of an epoch, as `DeltaWriter.prepare` returns them."""

    run: str
    begun: int
    files: list[PreparedFile]


def delta_writer(table: TableOptions, options: DeltaOptions, *, task: int) -> "DeltaWriter":
    folder = local_folder(options.url)
    if folder is not None and not folder.parent.is_dir():
        raise ConfigError(f"{table.operator}: folder {folder.parent} does not exist: make it first")
    url = options.url if folder is None else str(folder)
    files = remote_folder(url, options.storage) if folder is None else LocalFolder(folder)
    log = DeltaLog(table.operator, url, options.storage, folder)
    return DeltaWriter(log, files, table, options, task=task)


class DeltaWriter(TransactionalWriter):
    """Writes the rows of one task.

    Each of its transactions notes who has written it and for which epoch, so that one that was
    written is not written again, by nobody, and a process that was given up writes none.
    """

    atomic = True

    def __init__(
        self,
        log: DeltaLog,
        files: Folder,
        table: TableOptions,
        options: DeltaOptions,
        *,
        task: int,
        rng: Random | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = table.operator
        self._log = log
        self._files = files
        self._sink = table.prefix
        self._options = options
        self._task = task
        self._rng = rng or random.Random()
        self._pause = pause
        self._rows = PartitionRows(table, self._begin)
        self._names = PartNames(table.prefix, _ENDING)
        self._is_fit = self._has_written = False
        self._run = ""
        self._incarnation = 0
        self._claims: dict[str, LedgerClaim] = {}  # By run.
        self._begun = 1  # Rows that come belong to this epoch or to a later one.

    def begin(self, context: SinkContext) -> None:
        self._rows.expect(context.keys, context.fields)

    def restore(self, state: bytes | None) -> None:
        self._rows.restore(state)
        self._has_written = state is not None

    def snapshot(self) -> bytes | None:
        return self._rows.snapshot()

    def recover(
        self, prepared: Mapping[int, PreparedRows | None], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Take the lane over, remove files of later epochs, show prepared ones."""
        self._run, self._incarnation = run, incarnation
        self._begun = epoch + 1
        if self.resumes and self._has_written:
            self._need_table()
        writer = f"{self._name}: what task {self._task} writes to table {self._options.url}"
        runs = [rows["run"] for rows in prepared.values() if rows]
        self._claims = claims(writer, runs, run, incarnation=incarnation, epoch=epoch)
        if self._log.refresh():
            self._log.check()
            self._log.sync()  # What others have written counts as written from now on.
            for each in self._claims:
                self._settle(each)
        for number in sorted(prepared):
            self.commit(number, prepared[number])

    def write_batch(self, batch: Batch) -> None:
        self._rows.write(batch)
        self._fit()

    def prepare(self, epoch: int) -> PreparedRows | None:
        files: list[PreparedFile] = []
        self._rows.settle()
        self._fit()
        for each in self._rows.finish():
            with each.file:
                self._files.sync(each.file)
                size = each.file.tell()
            self._files.sync_names(parent_of(each.name))
            partitioning = self._rows.partitioning
            assert partitioning is not None
            values = dict(zip(partitioning.names, each.values, strict=True))
            stats = stats_of(each.metadata)
            files.append({"path": each.name, "size": size, "values": values, "stats": stats})
        begun, self._begun = self._begun, epoch + 1  # Now that all names are given.
        return {"run": self._run, "begun": begun, "files": files} if files else None

    def commit(self, epoch: int, prepared: PreparedRows | None) -> None:
        if prepared is None:
            return
        self._need_table()
        self._settle(prepared["run"], epoch, prepared)

    def close(self, *, completed: bool) -> None:
        for path in self._rows.drop():
            with suppress(OSError):
                self._files.remove(path)

    # -- the table -------------------------------------------------------------------------

    def _begin(self, folder: str) -> BegunFile:
        assert self._run, "recover() comes first"
        name = self._names.shown(
            task=self._task,
            epoch=self._begun,
            run=run_in_names(self._run),
            incarnation=self._incarnation,
        )
        path = f"{folder}/{name}" if folder else name
        if self._is_fit:  # Where the table is away, nothing is made.
            self._files.sync_names("_delta_log")
        self._files.make(folder)
        return BegunFile(path, self._files.create(path))

    def _need_table(self) -> None:
        if not self._log.exists and not self._log.refresh():
            raise StoreAway(
                f"{self._name}: table {self._options.url} is gone, or is not the same on all "
                "machines: bring it back"
            )

    def _fit(self) -> None:
        """Make the table if there is none, and see that it has the columns of records."""
        partitioning = self._rows.partitioning
        if self._is_fit or partitioning is None:
            return
        schema, names = partitioning.table_schema, list(partitioning.names)
        if not self._log.refresh():
            self._log.create(schema, partition_by=names, properties=self._options.properties)
            self._settle(self._run)
        self._log.check()
        if self._log.partition_columns != names:
            raise ConfigError(
                f"{self._name}: table {self._options.url} is partitioned by "
                f"{self._log.partition_columns}, partition_by gives {names}"
            )
        known = self._log.schema
        missing = [each for each in schema if each.name not in known.names]
        mistakes = [
            f"{self._name}: column {each.name!r} of table {self._options.url} is "
            f"{known.field(each.name).type}, that of the records is {each.type}"
            for each in schema
            if each.name in known.names and known.field(each.name).type != each.type
        ]
        if missing and not self._options.add_columns:
            mistakes.append(
                f"{self._name}: table {self._options.url} has no column "
                f"{', '.join(repr(each.name) for each in missing)}, only {', '.join(known.names)}: "
                "set add_columns=True, or leave it out"
            )
        if mistakes:
            raise ConfigError(*mistakes)

        def add() -> None:
            self._log.refresh()
            there = self._log.schema.names
            if left := [each for each in missing if each.name not in there]:
                self._log.add_columns(left)

        if missing:
            self._attempt(add)
        self._is_fit = True

    # -- transactions ----------------------------------------------------------------------

    def _settle(
        self, run: str, epoch: int | None = None, prepared: PreparedRows | None = None
    ) -> None:
        """Take a lane over unless it is this writer's, and commit an epoch unless it is."""
        lane, claim = Lane(run_in_names(run), self._sink, self._task), self._claims[run]

        def settle() -> None:
            self._log.refresh()
            found = self._log.entry(lane)
            parts: list[LanePart] = []
            if found.owner != claim.owner and found.committed > claim.since:
                parts = [
                    LanePart(path, part.epoch, part.incarnation)
                    for path in self._log.paths()
                    for part in self._names.shown_parts([path.rpartition("/")[2]])
                    if (part.run, part.task) == (lane.run, lane.task)
                ]
                epochs = rewritten(
                    found, since=claim.since, history=self._log.history(lane), parts=parts
                )
                if epochs:
                    what = (
                        f"{self._name}: back to epoch {claim.since}, but files of epochs {epochs} "
                        f"of task {self._task} were merged with others, or are gone from table "
                        f"{self._options.url}"
                    )
                    if not self._options.keep_rewritten:
                        raise GearpyError(
                            f"{what}: their rows come again and cannot be removed: go on from a "
                            "later epoch, or remove them yourself and set keep_rewritten=True"
                        )
                    _log.warning("%s: their rows may be there twice", what)
            change = next_change(found, claim, epoch=epoch, parts=parts)
            if change is None:
                self._log.sync()  # A process that was given up may have shown it just now.
            else:
                self._apply(lane, change, prepared)

        self._attempt(settle)

    def _apply(self, lane: Lane, change: Change, prepared: PreparedRows | None) -> None:
        files: list[DeltaFile] = []
        if change.step.commits and prepared is not None:
            files = [DeltaFile(**each) for each in prepared["files"]]
        for each in files:
            if not is_whole(self._files, each.path, written=each.size, who=self._name):
                raise GearpyError(
                    f"{self._name}: {each.path} of table {self._options.url}, which was written "
                    "before, is gone: was the table vacuumed with a short retention"
                )
        begun = self._begun if prepared is None else prepared["begun"]
        if change.remove:
            _log.warning(
                "%s: back to epoch %d, so %d files are removed from table %s, whose rows come "
                "again",
                self._name,
                change.step.undoes,
                len(change.remove),
                self._options.url,
            )
        self._log.commit(lane, change, files=files, begun=begun)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do it; again, if somebody else has changed the table meanwhile."""
        options = self._options
        for attempt in range(1, options.attempts_max + 1):
            try:
                action()
            except CommitConflict as error:
                conflict = error
            else:
                return
            pause_ms = pause_after(attempt, options.pause_ms, options.pause_max_ms, self._rng)
            self._pause(pause_ms / 1000)
        raise GearpyError(
            f"{self._name}: others have changed table {options.url} before each of "
            f"{options.attempts_max} attempts to write: {conflict}"
        ) from conflict


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
