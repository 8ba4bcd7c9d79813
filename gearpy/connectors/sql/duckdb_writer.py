"""Writes records into a table of DuckDB by its own library, which takes Arrow's columns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import (
    EPOCH_COLUMN,
    OWNERS,
    TableColumn,
    TableWriter,
    TargetTable,
    last_of_each,
    wanted_columns,
)
from gearpy.connectors.epoch_writer import EpochOwner
from gearpy.connectors.sql.database import Database, duckdb_at
from gearpy.connectors.sql.found_columns import duckdb_columns, quoted
from gearpy.core.handover.ledger import LedgerEntry

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OWNERS: Final = f"""create table if not exists {OWNERS} (run text, sink text, task integer,
    incarnation bigint not null, epoch bigint not null, primary key (run, sink, task))"""
_OF: Final = "where run = ? and sink = ? and task = ?"


class DuckdbWriter(TableWriter["DuckDBPyConnection"]):
    """Writes the records of one task; see `TableWriter`.

    One process at a time may have the file: it is closed behind each epoch, so that others get at
    it, and a process that finds it taken tries again.
    """

    def __init__(
        self, operator: str, database: Database, table: TargetTable, task_index: int
    ) -> None:
        super().__init__(operator, database, table, task_index)
        self._database = database

    def work(self) -> None:
        with self._lock:
            if self._due or self._unclaimed or not self._is_known:
                super().work()
                self.disconnect()

    def new_connection(self) -> "DuckDBPyConnection":
        return duckdb_at(self._database, read_only=False)

    def make_ledger(self) -> None:
        self.connected.execute(_OWNERS)

    # -- the table ---------------------------------------------------------------------------

    def columns_there(self) -> list[TableColumn]:
        found = duckdb_columns(self.connected, self._table.name)
        return wanted_columns(self._name, self._database.shown, self._table, found)

    def create(self, fields: Sequence[pa.Field]) -> None:
        """Let DuckDB find the types: it has one for each of Arrow's."""
        stage = pa.Table.from_batches([], pa.schema(fields))
        self.connected.register("gearpy_stage", stage)
        types = self.connected.execute("describe select * from gearpy_stage").fetchall()
        self.connected.unregister("gearpy_stage")
        parts = [
            f"{quoted(field.name)} {kind[1]}{'' if field.nullable else ' not null'}"
            for field, kind in zip(fields, types, strict=True)
        ]
        keys = ", ".join(map(quoted, self._table.upsert))
        parts.append(f"primary key ({keys})" if keys else f"{EPOCH_COLUMN} text")
        self.connected.execute(f"create table if not exists {self._target} ({', '.join(parts)})")

    # -- transactions ------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connected.begin()
        try:
            yield
        except BaseException:
            self.connected.rollback()
            raise
        self.connected.commit()

    def entry(self, owner: EpochOwner) -> LedgerEntry:
        """Return the entry; of two that change it at a time DuckDB lets one fail."""
        ask = f"select incarnation, epoch from {OWNERS} {_OF}"  # noqa: S608 - names of ours
        found = self.connected.execute(ask, owner[:3]).fetchall()
        if not found:
            self.connected.execute(
                f"insert into {OWNERS} values (?, ?, ?, 0, 0)",  # noqa: S608 - a name of ours
                owner[:3],
            )
        return LedgerEntry(*found[0]) if found else LedgerEntry()

    def note(self, owner: EpochOwner, entry: LedgerEntry) -> None:
        self.connected.execute(
            f"update {OWNERS} set incarnation = ?, epoch = ? {_OF}",  # noqa: S608 - names of ours
            (*entry, *owner[:3]),
        )

    def delete_marked(self, first: str, last: str) -> None:
        where = f"where {EPOCH_COLUMN} between ? and ?"
        self.connected.execute(f"delete from {self._target} {where}", (first, last))  # noqa: S608

    def put(self, rows: Sequence[pa.RecordBatch]) -> None:
        keys = self._table.upsert
        table = last_of_each(pa.Table.from_batches(rows), keys)
        names = ", ".join(map(quoted, table.schema.names))
        others = [quoted(each) for each in table.schema.names if each not in keys]
        behind = ""
        if keys:
            changes = ", ".join(f"{each} = excluded.{each}" for each in others)
            what = f"update set {changes}" if others else "nothing"
            behind = f" on conflict ({', '.join(map(quoted, keys))}) do {what}"
        self.connected.register("gearpy_stage", table)
        self.connected.execute(
            f"insert into {self._target} ({names}) "  # noqa: S608 - quoted
            f"select {names} from gearpy_stage{behind}"
        )
        self.connected.unregister("gearpy_stage")

    @property
    def _target(self) -> str:
        return ".".join(map(quoted, self._table.name.split(".")))
