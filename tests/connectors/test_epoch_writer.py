"""A store that is written an epoch at a time, and a database that does it."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gearpy.connectors.epoch_writer import EpochOwner, EpochRecords, EpochWriter
from gearpy.errors import GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.testing import check_sink

TABLES = """
create table if not exists owner (
    run text, sink text, task integer, incarnation integer, epoch integer,
    primary key (run, sink, task));
create table if not exists result (
    run text, sink text, task integer, epoch integer, place integer, value,
    primary key (run, sink, task, epoch, place));
"""


class SqliteSink(Sink):
    transactional = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, task_index: int, parallelism: int) -> "SqliteWriter":
        return SqliteWriter(self.path, task_index)


class SqliteWriter(EpochWriter):
    """Writes records, and which epoch they belong to, in one transaction."""

    epoch_records_max = 1000

    def __init__(self, path: Path, task_index: int) -> None:
        super().__init__("sqlite", task_index)
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript(TABLES)

    def row_of(self, record: Any) -> int:
        return int(record)

    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        run, sink, task, incarnation = owner
        with self.transaction() as run_sql:
            noted, last = self.noted(owner)
            if noted > incarnation:
                raise GearpyError(f"task {task} has a later owner")
            run_sql(
                "insert or replace into owner values (?, ?, ?, ?, ?)",
                (run, sink, task, incarnation, min(last, epoch)),
            )
            run_sql(
                "delete from result where run = ? and sink = ? and task = ? and epoch > ?",
                (run, sink, task, epoch),
            )

    def write_epoch(self, owner: EpochOwner, epoch: int, batch: Batch) -> None:
        run, sink, task, incarnation = owner
        with self.transaction() as run_sql:
            noted, last = self.noted(owner)
            if noted != incarnation:
                raise GearpyError(f"task {task} has another owner")
            if epoch <= last:
                return
            for place, value in enumerate(batch.values):
                run_sql(
                    "insert into result values (?, ?, ?, ?, ?, ?)",
                    (run, sink, task, epoch, place, value),
                )
            run_sql(
                "update owner set epoch = ? where run = ? and sink = ? and task = ?",
                (epoch, run, sink, task),
            )

    def close(self, *, completed: bool) -> None:
        self.database.close()

    def noted(self, owner: EpochOwner) -> tuple[int, int]:
        found = self.database.execute(
            "select incarnation, epoch from owner where run = ? and sink = ? and task = ?",
            owner[:3],
        ).fetchone()
        return found or (0, 0)

    def transaction(self) -> "Transaction":
        """Return what commits, or rolls back if it is left by an exception."""
        return Transaction(self.database)


class Transaction:
    """One transaction, which takes the lock of the database when it begins."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database

    def __enter__(self) -> Any:
        self.database.execute("begin immediate")
        return self.database.execute

    def __exit__(self, kind: object, *_: object) -> None:
        self.database.execute("commit" if kind is None else "rollback")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


def seen(path: Path) -> list[int]:
    database = sqlite3.connect(path)
    database.executescript(TABLES)
    rows = database.execute(
        "select value from result order by run, sink, task, epoch, place"
    ).fetchall()
    database.close()
    return [value for (value,) in rows]


def opened(
    path: Path,
    prepared: Mapping[int, EpochRecords | None] | None = None,
    epoch: int = 0,
    *,
    run: str = "r",
    incarnation: int = 1,
) -> SqliteWriter:
    writer = SqliteSink(path).open(0, 1)
    writer.recover(prepared or {}, epoch=epoch, run=run, incarnation=incarnation)
    return writer


def batch(*values: Any) -> Batch:
    return Batch(list(values), [0] * len(values))


def test_what_was_prepared_travels_through_a_checkpoint(path: Path) -> None:
    writer = opened(path)
    writer.write_batch(Batch([1, 2], [10, 20]))
    encoded = encode_state("sqlite", writer.prepare(1))
    writer.close(completed=False)

    assert isinstance(encoded, bytes)
    prepared = decode_state(encoded)
    opened(path, {1: prepared}, epoch=1, incarnation=2).close(completed=True)

    assert prepared == {"run": "r", "values": [1, 2], "timestamps": [10, 20]}
    assert seen(path) == [1, 2]


def test_a_record_is_refused_when_it_comes(path: Path) -> None:
    """Later nobody could deal with it; nothing of its batch is kept."""
    writer = opened(path)

    with pytest.raises(OperatorError, match="invalid literal") as caught:
        writer.write_batch(batch(1, "x"))
    prepared = writer.prepare(1)
    writer.close(completed=False)

    assert writer.atomic
    assert (caught.value.operator, caught.value.record, prepared) == ("sqlite", "'x'", None)


def test_an_epoch_has_a_limit(path: Path) -> None:
    writer = opened(path)
    writer.write_batch(batch(*range(1000)))

    with pytest.raises(
        GearpyError, match="more than 1000 records came before their epoch could end: raise"
    ):
        writer.write_batch(batch(1))
    writer.close(completed=False)


def test_a_run_may_go_on_from_a_checkpoint_of_another(path: Path) -> None:
    writer = opened(path)
    prepared = {}
    for epoch in (1, 2, 3):
        writer.write_batch(batch(epoch))
        prepared[epoch] = writer.prepare(epoch)
    writer.commit(1, prepared[1])
    del prepared[3]

    other = opened(path, prepared, 2, run="s")
    before = seen(path)
    other.write_batch(batch(30))
    other.commit(3, other.prepare(3))
    with pytest.raises(GearpyError, match="another owner"):
        writer.commit(2, prepared[2])
    for each in (writer, other):
        each.close(completed=False)

    assert (before, seen(path)) == ([1, 2], [1, 2, 30])


def test_a_run_that_another_has_gone_on_from_is_over(path: Path) -> None:
    """However often it was started: what follows comes again from the other, and from a third."""
    first = opened(path, incarnation=1000)
    first.write_batch(batch(1))
    prepared = {1: first.prepare(1)}
    for run in ("s", "t"):
        opened(path, prepared, 1, run=run, incarnation=1).close(completed=False)

    with pytest.raises(GearpyError, match="a later owner"):
        opened(path, prepared, 1, incarnation=1001)
    first.close(completed=False)

    assert seen(path) == [1]


def test_the_contract_of_a_sink_holds(tmp_path: Path) -> None:
    """Kills at any line, zombies, lost commits, going back."""

    def place(name: str) -> Path:
        return tmp_path / f"{name}.db"

    check_sink(
        lambda name: SqliteSink(place(name)),
        lambda name: seen(place(name)),
        record=lambda number: number,
        bad="x",
    )
