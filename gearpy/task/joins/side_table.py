"""A table that a step looks rows up in: read whole, once in each process, shared by all its tasks.

A table is immutable once it was read; one that has changed is read anew, beside it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from gearpy.columns.row_schema import RowSchema
from gearpy.columns.values import field_names, has_fields
from gearpy.core.base.copies import own_each
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.core.join.table import Many, RowsOfKeys
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.table import Table
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import Source

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_READ_ROWS: Final = 65_536
_POLL_S: Final = 0.005
_DIGEST_BYTES: Final = 8
_LOG: Final = logging.getLogger(__name__)


class TableRows:
    """The rows of a table as they were read at one time, and which of them a key has.

    Args:
        version: the answer of `Source.version` when it was read.
    """

    def __init__(
        self,
        values: list[Any],
        schema: RowSchema | None,
        of_keys: RowsOfKeys,
        version: str | None,
    ) -> None:
        self._values = values
        self._schema = schema
        self._rows: list[Any] | None = None if type(values) is Table else values
        self._lock = Lock()
        self.of_keys = of_keys
        self.version = version

    @property
    def rows(self) -> list[Any]:
        """The rows in Python; they are made of columns on first use."""
        with self._lock:
            if self._rows is None:
                assert type(self._values) is Table
                schema = self._schema
                batch = self._values.batch
                self._rows = list(self._values) if schema is None else schema.rows(batch)
            return self._rows

    @property
    def columns(self) -> "pa.RecordBatch":
        assert type(self._values) is Table, "the source has a schema"
        return self._values.batch

    @property
    def names(self) -> tuple[str, ...]:
        if type(self._values) is Table:
            return tuple(self._values.batch.schema.names)
        return tuple(dict.fromkeys(name for row in self._values for name in fields_of_row(row)))

    @cached_property
    def digest(self) -> str:
        """Text that tells rows from others."""
        digest = blake2b(digest_size=_DIGEST_BYTES)
        if type(self._values) is Table:
            for column in self._values.batch.columns:
                for buffer in column.buffers():
                    digest.update(b"" if buffer is None else buffer)
        else:
            for row in self._values:
                digest.update(repr(row).encode(errors="backslashreplace"))
        return digest.hexdigest()


class SideTable:
    """Reads a table, and keeps its rows for all tasks of the process that look rows up.

    Runs on: the threads of these tasks.
    Restart: a table that is not in use any more is forgotten, and read anew.

    Args:
        source: where the rows come from; it ends.
        many: the rule for several rows with one key.
    """

    def __init__(
        self,
        operator: str,
        source: Source,
        key: Callable[[Any], Any],
        *,
        many: Many = "error",
        versioned: bool = False,
    ) -> None:
        self.source = source
        self.versioned = versioned
        self._operator = operator
        self._key = key
        self._many: Many = many
        self._lock = Lock()
        self._read: Callable[[], TableRows | None] = lambda: None
        self._run = ""
        self._read_ms = 0

    def rows(self, run: str, now_ms: int, *, age_ms: int | None = None) -> TableRows:
        """Return the table; read it if the run has not, or too long ago.

        Args:
            age_ms: how old the rows may be; then the table is read again, if it may have
                changed.

        Raises:
            OperatorError: it cannot be read, or a row has no key, or several have one.
        """
        with self._lock:
            known = self._read() if self._run == run else None
            is_old = age_ms is not None and now_ms - self._read_ms >= age_ms
            if known is None:
                known = self._load(run, now_ms)
            elif is_old:
                known = self._renewed(known, run, now_ms)
            return known

    def _renewed(self, known: TableRows, run: str, now_ms: int) -> TableRows:
        """Read the table anew; keep the one that is known if that fails, or nothing has changed."""
        try:
            version = self.source.renewed().version()
            if version is None or version != known.version:
                return self._load(run, now_ms)
        except (OperatorError, ConfigError) as error:
            _LOG.warning("%s keeps the table that it has: %s", self._operator, error)
        self._read_ms = now_ms
        return known

    def _load(self, run: str, now_ms: int) -> TableRows:
        try:
            rows = self._read_all()
        except USER_ERRORS as error:
            raise self._refusal(error) from error
        self._read, self._run, self._read_ms = ref(rows), run, now_ms
        return rows

    def _refusal(self, error: BaseException) -> OperatorError:
        blamed = operator_error(self._operator, error)
        cause = str(error) if isinstance(error, ConfigError) else blamed.cause
        return OperatorError(
            operator=self._operator,
            cause=f"table {self.source.description}: {cause}",
            source=blamed.source,
            source_line=blamed.source_line,
            record=blamed.record,
            traceback=blamed.traceback,
        )

    def _read_all(self) -> TableRows:
        source = self.source.renewed()
        version = source.version()
        values: list[Any] = []
        times: list[int] = []
        tables: list[Table] = []
        for partition in source.partitions():
            for part, part_times in _batches(source, partition):
                if type(part) is Table:
                    tables.append(part)
                else:
                    values += own_each(part)
                if self.versioned:
                    times += part_times
        schema = source.schema
        if schema is not None:
            import pyarrow as pa  # noqa: PLC0415 - there are columns, so Arrow is there

            batches = [each.batch for each in tables]
            whole = pa.Table.from_batches(
                batches, None if batches else schema.arrow
            ).combine_chunks()
            (batch,) = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema=whole.schema)]
            values = Table(batch)
        keys = self._keys(values)
        of_keys = RowsOfKeys(keys, times=times if self.versioned else None, many=self._many)
        return TableRows(values, schema, of_keys, version)

    def _keys(self, values: list[Any]) -> Sequence[Any]:
        key = self._key
        if type(values) is Table and isinstance(key, FieldGetter | FieldsGetter):
            found = distinct_keys(values, key)
            if found is not None:
                return [found[0][place] for place in found[1].to_pylist()]
        keys = []
        for row in values:
            try:
                keys.append(key(row))
            except USER_ERRORS as error:
                raise operator_error(self._operator, error, record=row) from error
        return keys


def fields_of_row(row: Any) -> Sequence[str]:
    if isinstance(row, dict):
        return tuple(row)
    return field_names(row) if has_fields(row) else ()


def _batches(source: Source, partition: str) -> Any:
    reader = source.open(partition, None)
    try:
        while not reader.finished:
            batch = reader.read_batch(_READ_ROWS)
            if batch is not None:
                yield batch.values, batch.timestamps
            elif not reader.finished:
                time.sleep(_POLL_S)  # It makes rows at a rate.
    finally:
        reader.close()
