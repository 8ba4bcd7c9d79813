"""A Delta table as its log tells it: what it has noted, and one transaction after the other.

`deltalake` notes the ids of transactions and refuses one if an id of it was noted by somebody else
since the table was read; it does not compare their numbers. So that is done by `table_commits`.
It also makes nothing durable on a disk, so that is done here.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from gearpy.clocks import wall_ms
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.core.handover.table_commits import Change, Lane, Shown
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.folder.files import sync_folder

_LOG: Final = "_delta_log"
_POINTER: Final = "_last_checkpoint"
_OURS: Final = "gearpy"  # Our part of what a transaction tells of itself.
#: Files that were written longer ago are on disk, whichever program has written them.
_UNSAFE_S: Final = 600
#: What would be needed to write into a table with them is more than to add files.
_REFUSED: Final = {
    "delta.columnMapping.mode": "none",
    "delta.enableRowTracking": "false",
    "delta.enableIcebergCompatV1": "false",
    "delta.enableIcebergCompatV2": "false",
}
_CONSTRAINT: Final = "delta.constraints."


class CommitConflict(Exception):
    """Somebody else has changed the table meanwhile."""


class DeltaFile(NamedTuple):
    """A file to add to the table."""

    path: str
    size: int
    values: Mapping[str, str | None]
    stats: str


class DeltaLog:
    """The log of one table, as it was when it was read last. Runs on one thread."""

    def __init__(
        self, name: str, url: str, options: Mapping[str, str] | None, folder: Path | None
    ) -> None:
        self._name = name
        self._url = url
        self._options = dict(options) if options else None
        self._folder = folder
        self._table: DeltaTable | None = None
        self._durable = -1  # Versions up to this are on disk.
        self._pointer_ns = 0  # Its time when checkpoints were made durable.

    @property
    def exists(self) -> bool:
        return self._table is not None

    def refresh(self) -> bool:
        """Read the new versions; return whether there is a table."""
        with self._blamed("read"):
            if self._table is not None:
                self._table.update_incremental()
            else:
                try:
                    opened = DeltaTable(self._url, storage_options=self._options)
                except TableNotFoundError:
                    opened = None
                self._table = opened
        return self._table is not None

    def create(
        self, schema: pa.Schema, *, partition_by: Sequence[str], properties: Mapping[str, str]
    ) -> None:
        """Make the table, unless somebody else does."""
        if self._folder is not None:
            self._folder.mkdir(exist_ok=True)
            sync_folder(self._folder.parent)
        with self._blamed("make"), suppress(CommitFailedError):  # Another task was faster.
            DeltaTable.create(
                self._url,
                Schema.from_arrow(schema),
                mode="ignore",
                partition_by=list(partition_by),
                configuration=dict(properties),
                storage_options=self._options,
            )
        if not self.refresh():
            raise GearpyError(f"{self._name}: table {self._url} was made and is not there")

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self._read().schema().to_arrow())

    @property
    def partition_columns(self) -> list[str]:
        return list(self._read().metadata().partition_columns)

    def check(self) -> None:
        """Refuse a table whose files need more than rows."""
        table = self._read()
        mistakes = [
            f"{self._name}: table {self._url} has {key}={value}, which gearpy cannot write"
            for key, value in table.metadata().configuration.items()
            if key.startswith(_CONSTRAINT) or _REFUSED.get(key, value) != value
        ]
        for field in table.schema().fields:
            special = sorted(key for key in field.metadata if key.startswith("delta."))
            if special:
                mistakes.append(
                    f"{self._name}: column {field.name!r} of table {self._url} has {special[0]}, "
                    "which gearpy cannot write"
                )
            elif not field.nullable:
                mistakes.append(
                    f"{self._name}: column {field.name!r} of table {self._url} must not be null, "
                    "which gearpy does not promise: use DeltaTable.alter.drop_column_not_null"
                )
        if mistakes:
            raise ConfigError(*mistakes)

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        added = Schema.from_arrow(pa.schema(fields)).fields
        new = [Field(each.name, each.type, nullable=True) for each in added]
        with self._blamed("add columns to"):
            self._read().alter.add_columns(new)
        self.refresh()
        self.sync()

    # -- lanes -----------------------------------------------------------------------------

    def entry(self, lane: Lane) -> LedgerEntry:
        version = self._read().transaction_version
        return LedgerEntry(version(lane.owner_id) or 0, version(lane.epoch_id) or 0)

    def paths(self) -> list[str]:
        actions: Any = pa.table(self._read().get_add_actions())
        return [unquote(path) for path in actions.column("path").to_pylist()]

    def history(self, lane: Lane) -> Iterator[Shown]:
        """Return the transactions of a lane, the latest first, as far back as the log goes."""
        with self._blamed("read the history of"):
            entries = self._read().history()
        for entry in entries:
            ours = entry.get(_OURS)
            if isinstance(ours, dict) and ours.get("lane") == lane.epoch_id:
                yield Shown(ours["epoch"], ours["begun"], ours["files"], ours["undoes"])

    def commit(self, lane: Lane, change: Change, *, files: Sequence[DeltaFile], begun: int) -> None:
        """Write one transaction, durably; on a `CommitConflict` nothing was written."""
        now_ms = wall_ms()
        entry, table = change.step.entry, self._read()
        added = [
            AddAction(each.path, each.size, each.values, now_ms, data_change=True, stats=each.stats)
            for each in files
        ]
        removed = [RemoveAction(path, True, now_ms) for path in change.remove]
        ours = {
            "lane": lane.epoch_id,
            "epoch": entry.committed,
            "begun": begun,
            "files": len(files),
            "removed": len(removed),
            "undoes": change.step.undoes,
        }
        properties = CommitProperties(
            custom_metadata={_OURS: ours},
            # A file that is to be removed may have been merged into another one meanwhile.
            max_commit_retries=0 if removed else None,
            app_transactions=[
                Transaction(lane.owner_id, entry.owner, now_ms),
                Transaction(lane.epoch_id, entry.committed, now_ms),
            ],
        )
        with self._blamed("write to"):
            table.create_write_transaction(
                [*added, *removed],
                "append",
                table.schema(),
                self.partition_columns,
                commit_properties=properties,
            )
        self.sync()

    def _read(self) -> DeltaTable:
        assert self._table is not None, "refresh() comes first"
        return self._table

    @contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        try:
            yield
        except CommitFailedError as error:
            raise CommitConflict(str(error)) from error
        except (DeltaError, OSError) as error:
            raise GearpyError(f"{self._name}: cannot {what} table {self._url}: {error}") from error

    # -- on a disk -------------------------------------------------------------------------

    def sync(self) -> None:
        """Make the log durable, also the versions that others have written: it is a chain."""
        if self._folder is None:
            return
        log = self._folder / _LOG
        if self._durable < 0:
            try:
                checkpoint_of = int(json.loads((log / _POINTER).read_bytes())["version"])
            except (OSError, ValueError, KeyError, TypeError):
                checkpoint_of = 0
            since, first = time.time() - _UNSAFE_S, f"{checkpoint_of:020}"
            for each in log.iterdir():
                if each.name >= first and each.is_file() and each.stat().st_mtime >= since:
                    _sync(each)
            self._durable = self._read().version()
        while (entry := log / f"{self._durable + 1:020}.json").exists():
            _sync(entry)
            self._durable += 1
        self._sync_checkpoints(log)
        sync_folder(log)

    def _sync_checkpoints(self, log: Path) -> None:
        with suppress(FileNotFoundError):
            changed_ns = (log / _POINTER).stat().st_mtime_ns
            if changed_ns != self._pointer_ns:
                _sync(log / _POINTER)
                for each in log.glob("*.checkpoint*"):
                    if each.stat().st_mtime_ns > self._pointer_ns:
                        _sync(each)
                self._pointer_ns = changed_ns


def _sync(file: Path) -> None:
    with suppress(FileNotFoundError):
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
