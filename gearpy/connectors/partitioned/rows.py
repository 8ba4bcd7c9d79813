"""Writes the records of a sink into files of partitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import EVENT_TIME, FIRST_ROWS_MAX, LogColumns
from gearpy.columns.spark_types import exact_schema
from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.tables import conformed
from gearpy.connectors.folders.columns import checked_schema
from gearpy.connectors.folders.parts import prefix_mistakes
from gearpy.connectors.folders.writer import FormState
from gearpy.connectors.partitioned.columns import PartitionField, Partitioning, PartitionPiece
from gearpy.connectors.partitioned.files import BegunFile, PartitionFiles, WrittenFile
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Batch

_CODECS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options of a table.

    Attributes:
        schema: None to take that of the first epoch's.
        key: names of the columns of keys.
        fields: by which it is partitioned.
        partitions_max: of one task in one epoch.
    """

    operator: str
    schema: pa.Schema | None
    key: tuple[str, ...]
    fields: tuple[PartitionField, ...]
    compression: str
    partitions_max: int
    prefix: str

    def __post_init__(self) -> None:
        mistakes = []
        if self.compression not in _CODECS:
            mistakes.append(
                f"{self.operator}: compression is {self.compression!r}, must be one of "
                f"{', '.join(_CODECS)}"
            )
        if self.partitions_max < 1:
            mistakes.append(
                f"{self.operator}: partitions_max is {self.partitions_max}, must be at least 1"
            )
        mistakes += prefix_mistakes(self.operator, self.prefix)
        if mistakes:
            raise ConfigError(*mistakes)

    @property
    def is_stamped(self) -> bool:
        """Whether records without windows need a column with their event time."""
        is_asked_for = self.schema is not None and EVENT_TIME in self.schema.names
        return is_asked_for or any(field.column == EVENT_TIME for field in self.fields)


def table_schema(operator: str, schema: Any) -> pa.Schema | None:
    known = checked_schema(operator, schema)
    return None if known is None else exact_schema(known, name=operator)


class PartitionRows(FormState):
    """Writes the records of a sink into files, one for each partition."""

    def __init__(self, options: TableOptions, begin: Callable[[str], BegunFile]) -> None:
        self._options = options
        self._begin = begin
        self._columns = LogColumns(options.operator, schema=options.schema, key=options.key)
        self._files: PartitionFiles | None = None
        self._first: list[pa.RecordBatch] = []  # They tell the schema.
        #: Known from the first records on.
        self.partitioning: Partitioning | None = None

    def restore(self, state: bytes | None) -> None:
        if state is not None and self._options.schema is None:
            self._columns.adopt(pa.ipc.read_schema(pa.py_buffer(state)))
            self._start()

    def snapshot(self) -> bytes | None:
        schema = None if self._files is None else self._columns.schema
        return None if schema is None else schema.serialize().to_pybytes()

    def write(self, batch: Batch) -> None:
        """Take records, all or none."""
        if not len(batch.values):
            return
        rows = self._columns.batch_of(
            batch.values, batch.timestamps if self._options.is_stamped else ()
        )
        if self._files is not None and self.partitioning is not None:
            self._files.write(self._cut(self.partitioning, rows, batch.values))
            return
        settled = self._columns.settled_schema()
        partitioning = Partitioning(self._options.operator, self._options.fields, settled)
        # A value that makes no folder is refused while its record is known.
        self._cut(partitioning, conformed(rows, settled), batch.values)
        self._first.append(rows)
        if not self._columns.may_grow or sum(map(len, self._first)) >= FIRST_ROWS_MAX:
            self.settle()

    def settle(self) -> None:
        """Take the schema of the first records, and write them."""
        first, self._first = self._first, []
        if first:
            self._columns.settle()
            self._start()
        for rows in first:
            assert self._files is not None
            assert self.partitioning is not None
            self._files.write(self.partitioning.cut(self._columns.fitted(rows)))

    def finish(self) -> list[WrittenFile]:
        self.settle()
        return [] if self._files is None else self._files.finish()

    def drop(self) -> list[str]:
        self._first = []
        return [] if self._files is None else self._files.drop()

    def expect(self, keys: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self._columns.keys, self._columns.fields = keys, fields

    def _start(self) -> None:
        options, schema = self._options, self._columns.schema
        assert schema is not None, "records come first"
        self.partitioning = Partitioning(options.operator, options.fields, schema)
        self._files = PartitionFiles(
            options.operator,
            self.partitioning,
            self._begin,
            compression=options.compression,
            partitions_max=options.partitions_max,
        )

    def _cut(
        self, partitioning: Partitioning, rows: pa.RecordBatch, records: Sequence[Any]
    ) -> list[PartitionPiece]:
        cut = partitioning.cut
        try:
            return cut(rows)
        except ValueError:
            name, places = self._options.operator, range(rows.num_rows)
            each(name, lambda place: cut(rows.slice(place, 1)), places, records=records)
            raise
