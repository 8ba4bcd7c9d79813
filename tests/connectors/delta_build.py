"""A Delta table in memory, whose log refuses what was decided on an old version; can lose power."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.connectors.delta.log import CommitConflict, DeltaFile
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.core.handover.table_commits import Change, Lane, Shown
from gearpy.storage.folder.memory import MemoryFolder


@dataclass
class Version:
    add: dict[str, int] = field(default_factory=dict)  # Size of each file.
    remove: tuple[str, ...] = ()
    noted: tuple[Lane, LedgerEntry] | None = None
    shown: Shown | None = None
    schema: pa.Schema | None = None


class MemoryTable:
    """The store: versions and files. ``on_step`` is called before each step, and may raise."""

    def __init__(self, on_step: Callable[[str], None] = lambda _: None) -> None:
        self.folder = MemoryFolder(on_step)
        self.versions: list[Version] = []
        self.durable = 0  # Versions that a power cut leaves.

    @property
    def on_step(self) -> Callable[[str], None]:
        return self.folder.on_step

    @on_step.setter
    def on_step(self, value: Callable[[str], None]) -> None:
        self.folder.on_step = value

    def crash(self, rng: Random) -> None:
        """Lose power: versions that were not synced may be gone, the later ones with them."""
        self.versions = self.versions[: rng.randint(self.durable, len(self.versions))]
        self.folder.crash(rng)

    def active(self, upto: int | None = None) -> dict[str, int]:
        files: dict[str, int] = {}
        for version in self.versions[:upto]:
            files |= version.add
            for path in version.remove:
                files.pop(path, None)
        return files

    def rows(self) -> list[dict[str, Any]]:
        found = [pq.read_table(self.folder.open(path)) for path in sorted(self.active())]
        return [row for table in found for row in table.to_pylist()]


class MemoryLog:
    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self._version = 0
        self._partition_columns: list[str] = []

    @property
    def exists(self) -> bool:
        return self._version > 0

    def refresh(self) -> bool:
        self._table.on_step("refresh")
        self._version = len(self._table.versions)
        return self.exists

    def create(
        self, schema: pa.Schema, *, partition_by: Sequence[str], properties: Mapping[str, str]
    ) -> None:
        self._table.on_step("create")
        if not self._table.versions:
            self._table.versions.append(Version(schema=schema))
        self.refresh()

    @property
    def schema(self) -> pa.Schema:
        seen = self._table.versions[: self._version]
        return next(each.schema for each in reversed(seen) if each.schema is not None)

    @property
    def partition_columns(self) -> list[str]:
        return ["p"]

    def check(self) -> None:
        """See `DeltaLog`."""

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        self._table.versions.append(Version(schema=pa.schema([*self.schema, *fields])))

    def entry(self, lane: Lane) -> LedgerEntry:
        for version in reversed(self._table.versions[: self._version]):
            if version.noted is not None and version.noted[0] == lane:
                return version.noted[1]
        return LedgerEntry()

    def paths(self) -> list[str]:
        return list(self._table.active(self._version))

    def history(self, lane: Lane) -> Iterator[Shown]:
        for version in reversed(self._table.versions[: self._version]):
            if version.shown is not None and version.noted and version.noted[0] == lane:
                yield version.shown

    def commit(self, lane: Lane, change: Change, *, files: Sequence[DeltaFile], begun: int) -> None:
        self._table.on_step("commit")
        later = self._table.versions[self._version :]
        if any(each.noted is not None and each.noted[0] == lane for each in later):
            raise CommitConflict("the lane was written")
        if later and change.remove:
            raise CommitConflict("files may be gone")
        entry = change.step.entry
        self._table.versions.append(
            Version(
                add={each.path: each.size for each in files},
                remove=change.remove,
                noted=(lane, entry),
                shown=Shown(entry.committed, begun, len(files), change.step.undoes),
            )
        )
        self.sync()

    def sync(self) -> None:
        self._table.on_step("sync")
        self._table.durable = len(self._table.versions)


def stats(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found
