"""Writes records into an Iceberg table, those of an epoch in one snapshot."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual
from pyiceberg.table import Table

from gearpy.connectors.database.table_writer import (
    EPOCH_COLUMN,
    TableColumn,
    TableDatabase,
    TableWriter,
    TargetTable,
    wanted_columns,
)
from gearpy.connectors.epoch_writer import EpochOwner
from gearpy.core.base.pauses import pause_after
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.data import Batch

#: PyIceberg would commit once more on top of what others have written since, such as a later start
#: of the task: what was decided on the ledger would not hold any more.
_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}
#: Checkers take the arguments for others.
_AT_LEAST: Final[Any] = GreaterThanOrEqual
_AT_MOST: Final[Any] = LessThanOrEqual
#: Names of errors of libraries of catalogs that are not there for a while.
_PASSING: Final = frozenset(
    {"OperationalError", "ServerError", "ServiceUnavailableError", "CommitStateUnknownException"}
)
_ATTEMPTS_MAX: Final = 30
_PAUSE_MS: Final = 20
_PAUSE_MAX_MS: Final = 2_000
_MS_PER_S: Final = 1000


class IcebergCatalog(TableDatabase):
    """A catalog with the properties that were given."""

    def __init__(self, operator: str, given: Mapping[str, str]) -> None:
        super().__init__(operator, f"iceberg {given.get('uri') or given.get('name', 'default')}")
        self.given = given

    def trouble(self, error: Exception) -> str:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        names = {each.__name__ for each in type(error).__mro__}
        passes = isinstance(error, OSError | CommitFailedException) or names & _PASSING
        return f"{self.shown}: {text:.300}" if passes else ""


class IcebergWriter(TableWriter[Catalog]):
    """Writes the records of one task; see `TableWriter`.

    A property of the table is the entry of the ledger: snapshots expire. It changes with a
    snapshot only, also where it is taken over, and a snapshot is refused if another one has come
    since the entry was read.
    """

    def __init__(
        self,
        operator: str,
        name: str,
        catalog: Mapping[str, str],
        target: TargetTable,
        *,
        properties: Mapping[str, str],
        task_index: int,
    ) -> None:
        super().__init__(operator, IcebergCatalog(operator, catalog), target, task_index)
        self._full_name = name
        self._properties = properties
        self._given = catalog
        self._loaded: Table | None = None
        self._noted: tuple[EpochOwner, LedgerEntry] | None = None
        self._rows_due: Sequence[pa.RecordBatch] = ()
        self._deletes: tuple[str, str] | None = None
        self._rng = Random()

    def new_connection(self) -> Catalog:
        return load_catalog(**self._given)

    def disconnect(self) -> None:
        super().disconnect()
        self._loaded = None

    # -- the table ---------------------------------------------------------------------------

    def columns_there(self) -> list[TableColumn]:
        try:
            self._loaded = self.connected.load_table(self._full_name)
        except NoSuchTableError:
            return []
        found = [
            TableColumn(each.name, "", each.with_type(_plain(each.type)))
            for each in self._loaded.schema().as_arrow()
        ]
        return wanted_columns(self._name, self._told.shown, self._table, found)

    def column_for(self, field: pa.Field) -> TableColumn:
        return TableColumn(field.name, "", self._kept(field))

    def create(self, fields: Sequence[pa.Field]) -> None:
        made = pa.schema([*map(self._kept, fields), pa.field(EPOCH_COLUMN, pa.string())])
        self.connected.create_namespace_if_not_exists(self._full_name.rpartition(".")[0])
        self._loaded = self.connected.create_table_if_not_exists(
            self._full_name, schema=made, properties=dict(self._properties)
        )
        for run, claim in self._claims.items():  # There was nothing to take over before.
            self.take_over(self._owner_of(run), claim.since)

    def _kept(self, field: pa.Field) -> pa.Field:
        """Return the field with a type that Iceberg has, and that holds all values."""
        at, kind = pa.types, field.type
        if at.is_integer(kind) and kind != pa.uint64():
            is_long = kind in {pa.int64(), pa.uint32()}
            return field.with_type(pa.int64() if is_long else pa.int32())
        if at.is_float16(kind):
            return field.with_type(pa.float32())
        if at.is_timestamp(kind) and kind.unit != "ns":
            return field.with_type(pa.timestamp("us", "UTC" if kind.tz else None))
        if kind == pa.uint64() or at.is_timestamp(kind) or at.is_duration(kind):
            raise ConfigError(
                f"column {field.name!r} is {kind}, for which Iceberg has no type: map the field to "
                "another one"
            )
        return field.with_type(_plain(kind))

    def check(self, columns: Sequence[TableColumn], rows: pa.RecordBatch) -> None:
        """Nothing is left to check: a value that its column cannot hold was refused."""

    # -- transactions ------------------------------------------------------------------------

    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        if self._loaded is not None:
            self._attempt(lambda: super(IcebergWriter, self).take_over(owner, epoch))

    def write_epoch(self, owner: EpochOwner, epoch: int, batch: Batch[Any]) -> None:
        self._attempt(lambda: super(IcebergWriter, self).write_epoch(owner, epoch, batch))

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do it; again, if somebody else has changed the table meanwhile."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                action()
            except (CommitFailedException, ValidationException) as error:
                conflict = error
            else:
                return
            time.sleep(pause_after(attempt, _PAUSE_MS, _PAUSE_MAX_MS, self._rng) / _MS_PER_S)
        raise GearpyError(
            f"{self._name}: others have changed table {self._full_name} before each of "
            f"{_ATTEMPTS_MAX} attempts to write: {conflict}"
        ) from conflict

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._loaded = self.connected.load_table(self._full_name)
        self._noted, self._rows_due, self._deletes = None, (), None
        yield
        self._commit(self._loaded)

    def _commit(self, table: Table) -> None:
        if self._noted is None:
            return
        owner, entry = self._noted
        told = {"gearpy.task": _lane(owner), "gearpy.epoch": str(entry.committed)}
        own = {**table.metadata.properties, **_NO_RETRIES}
        table.metadata = table.metadata.model_copy(update={"properties": own})
        transaction = table.transaction()
        if self._deletes is not None:
            first, last = self._deletes
            least, most = _AT_LEAST(EPOCH_COLUMN, first), _AT_MOST(EPOCH_COLUMN, last)
            transaction.delete(And(least, most), snapshot_properties=told)
        schema = table.schema().as_arrow()
        rows = pa.Table.from_batches([], schema)
        if self._rows_due:
            names = self._rows_due[0].schema.names
            rows = pa.Table.from_batches(self._rows_due)
            rows = rows.cast(pa.schema([schema.field(name) for name in names]))
        transaction.append(rows, snapshot_properties=told)
        transaction.set_properties({_lane(owner): f"{entry.owner}/{entry.committed}"})
        transaction.commit_transaction()

    def entry(self, owner: EpochOwner) -> LedgerEntry:
        assert self._loaded is not None, "a transaction has read it"
        found = self._loaded.metadata.properties.get(_lane(owner), "0/0")
        return LedgerEntry(*map(int, found.split("/")))

    def note(self, owner: EpochOwner, entry: LedgerEntry) -> None:
        self._noted = owner, entry

    def delete_marked(self, first: str, last: str) -> None:
        self._deletes = first, last

    def put(self, rows: Sequence[pa.RecordBatch]) -> None:
        self._rows_due = rows


def _lane(owner: EpochOwner) -> str:
    return f"gearpy.{owner.run}.{owner.sink}.{owner.task}"


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type for one of long texts or bytes that PyIceberg gives for all."""
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
