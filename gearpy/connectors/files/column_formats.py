"""Parquet and Arrow files as formats of files: both are read by groups of rows.

A place is the number of a group, and of rows in it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.columns.texts import check_texts, is_text, shortened, without_texts
from gearpy.columns.values import check_cast
from gearpy.columns.widening import wider_type
from gearpy.columns.workable import workable_type
from gearpy.connectors.files.tables import (
    ARROW_ERRORS,
    FILE_CURE,
    BadRows,
    FileFormat,
    FilePiece,
    Fit,
    OnBad,
    Places,
    check_names,
    conformed,
    fitting_parts,
    plain_schema,
)
from gearpy.connectors.locations import FoundFile, check_is_damage, open_found
from gearpy.errors import ConfigError
from gearpy.expressions.comparisons import Comparison

_BATCH_ROWS: Final = 1 << 16
_MAGIC: Final = b"ARROW1"
_DAMAGE: Final = (*ARROW_ERRORS, OSError, EOFError, MemoryError)


class GroupPlace(TypedDict):
    """The place of a reader: a group of rows, and the number of its rows that were taken."""

    group: int
    row: int


class _Groups(ABC):
    """The groups of rows of an open file."""

    schema: pa.Schema
    count: int

    def rows(self, group: int) -> int:
        return 1

    def may_have(self, group: int, bounds: Sequence[Comparison]) -> bool:
        """Tell whether a row of a group may be within some bounds."""
        return True

    def has_more(self, group: int, row: int) -> bool:
        return True

    @abstractmethod
    def batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        pass

    @abstractmethod
    def close(self) -> None:
        pass


class GroupTables:
    """Reads one file by groups of rows."""

    def __init__(
        self, file: FoundFile, groups: _Groups, fit: Fit, bad: BadRows, place: GroupPlace
    ) -> None:
        assert fit.schema is not None, "columns have a schema"
        self._file = file
        self._groups = groups
        self._fit = fit
        self._schema: pa.Schema = fit.schema
        self._bad = bad
        self._columns = [name for name in fit.schema.names if name in groups.schema.names]
        self._group = place["group"]
        self._row = place["row"]  # So many rows of the group are taken or bad.
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None  # It is left of a batch.
        self._is_text = True  # All texts of the batch are.

    def take(self, max_rows: int) -> FilePiece | None:
        batch = self._next()
        if batch is None:
            return None
        taken = batch.slice(0, max_rows)
        self._rest = batch.slice(max_rows) if batch.num_rows > max_rows else None
        first = self._row
        self._row += taken.num_rows
        try:
            return self._piece(taken)
        except ARROW_ERRORS:

            def on_bad(at: int, error: Exception) -> None:
                where = f"row {first + at} of group {self._group}"
                row = taken.slice(at, 1)
                shown = {}
                for name, column in zip(row.schema.names, without_texts(row).columns, strict=True):
                    try:
                        shown[name] = column[0].as_py()
                    except Exception:  # noqa: BLE001 - a value that Python has none for; the error tells it
                        shown[name] = f"<{column.type}>"
                self._bad.take(where, error, shown)

            def make(rows: Sequence[int]) -> FilePiece:
                return self._piece(taken.slice(rows[0], len(rows)))

            parts = list(fitting_parts(range(taken.num_rows), make, on_bad))
            if not parts:
                return self._fit.piece(conformed(taken.slice(0, 0), self._schema))
            table = pa.Table.from_batches([part.values for part in parts]).combine_chunks()
            times = [part.times for part in parts if part.times is not None]
            (batch,) = table.to_batches() or [parts[0].values]
            return FilePiece(batch, pa.concat_arrays(times) if times else None)

    @property
    def place(self) -> GroupPlace:
        return {"group": self._group, "row": self._row}

    @property
    def part_read(self) -> float:
        return min(1.0, self._group / max(1, self._groups.count))

    def step_over(self) -> str:
        if self._row and not self._groups.has_more(self._group, self._row):
            self._group, self._row = self._group + 1, 0
        if self._group >= self._groups.count:
            return ""
        left_out = f"group {self._group} of rows, from row {self._row} on"
        self._group, self._row = self._group + 1, 0
        self._batches = self._rest = None
        return left_out

    def close(self) -> None:
        self._batches = self._rest = None
        self._groups.close()

    def _next(self) -> pa.RecordBatch | None:
        if self._rest is not None:
            return self._rest
        while self._group < self._groups.count:
            if self._batches is None and not self._groups.may_have(self._group, self._fit.bounds):
                self._group, self._row = self._group + 1, 0
                continue
            if self._batches is None:
                self._batches = _behind(self._groups.batches(self._group, self._columns), self._row)
            try:
                for batch in self._batches:
                    if batch.num_rows:
                        self._is_text = is_text(batch)
                        return batch
            except _DAMAGE as error:
                check_is_damage(error)
                where = f"from row {self._row} of group {self._group} on"
                left = max(1, self._groups.rows(self._group) - self._row)
                self._bad.take(where, error, self._file.name, what="file", count=left)
            self._group, self._row, self._batches = self._group + 1, 0, None
        return None

    def _piece(self, batch: pa.RecordBatch) -> FilePiece:
        if not self._is_text:
            check_texts(batch)
        return self._fit.piece(conformed(batch, self._schema))


class ParquetFileFormat(FileFormat):
    name = "parquet"
    narrows = True

    def schemas(self, file: FoundFile, places: Places, on_bad: OnBad) -> Iterator[pa.Schema]:
        groups = _opened_groups(self.name, file)
        groups.close()
        yield groups.schema

    def begin(self, file: FoundFile, fit: Fit, bad: BadRows, place: Any) -> GroupTables:
        groups = _opened_groups(self.name, file)
        try:
            check_names(self.name, file, groups.schema.names, fit)
            _check_types(self.name, file, groups.schema, fit)
        except BaseException:
            groups.close()
            raise
        begin = GroupPlace(group=0, row=0) if place is None else place
        return GroupTables(file, groups, fit, bad, begin)


class ArrowFormat(ParquetFileFormat):
    """Files of Arrow's IPC, and streams of it in a file; Feather is the same."""

    name = "arrow"


def _opened_groups(operator: str, file: FoundFile) -> _Groups:
    if file.is_local and not file.is_packed:
        try:
            opened = pa.OSFile(file.name)  # No Python is in between.
        except OSError as error:
            raise ConfigError(f"{operator}: cannot read {file.name}: {error}") from error
    else:
        opened = open_found(operator, file)
    try:
        groups: _Groups
        if operator == "parquet":
            groups = _ParquetGroups(opened)
        else:
            is_file = opened.read(len(_MAGIC)) == _MAGIC
            opened.seek(0)
            groups = _ArrowFileGroups(opened) if is_file else _ArrowStreamGroups(opened)
        plain_schema(groups.schema)  # Names have to be text.
        return groups
    except _DAMAGE as error:
        opened.close()
        check_is_damage(error)
        form = "a Parquet file" if operator == "parquet" else "an Arrow file"
        cause = shortened(f"{file.name} is not {form}: {error}")
        raise ConfigError(f"{operator}: {cause}: {FILE_CURE}") from error


class _ParquetGroups(_Groups):
    def __init__(self, opened: Any) -> None:
        self._opened = opened
        # Arrow would make nanoseconds of INT96, which end in the year 2262.
        self._file = pq.ParquetFile(
            opened, coerce_int96_timestamp_unit="us", page_checksum_verification=True
        )
        self.schema = self._file.schema_arrow
        self.count = self._file.num_row_groups
        leaves = self._file.schema
        self._places = {leaves.column(place).path: place for place in range(len(leaves))}

    def rows(self, group: int) -> int:
        rows: int = self._file.metadata.row_group(group).num_rows
        return rows

    def may_have(self, group: int, bounds: Sequence[Comparison]) -> bool:
        for bound in bounds:
            if bound.column in self._places:
                columns = self._file.metadata.row_group(group)
                statistics = columns.column(self._places[bound.column]).statistics
                is_known = statistics is not None and statistics.has_min_max
                if is_known and not bound.may_have(statistics.min, statistics.max):
                    return False
        return True

    def has_more(self, group: int, row: int) -> bool:
        return row < self.rows(group)

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        found: Iterator[pa.RecordBatch] = self._file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=[group], columns=list(columns)
        )
        return found

    def close(self) -> None:
        self._file.close()
        self._opened.close()


class _ArrowFileGroups(_Groups):
    def __init__(self, opened: Any) -> None:
        self._opened = opened
        self._file = pa_ipc.open_file(opened)
        self.schema = self._file.schema
        self.count = self._file.num_record_batches

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield _sound(self._file.get_batch(group)).select(list(columns))

    def has_more(self, group: int, row: int) -> bool:
        return row < int(self._file.get_batch(group).num_rows)

    def close(self) -> None:
        self._opened.close()


class _ArrowStreamGroups(_Groups):
    """A stream says how many batches it has only when they were read."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened
        self._stream = pa_ipc.open_stream(opened)
        self.schema = self._stream.schema
        self.count = 1

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return (_sound(batch).select(list(columns)) for batch in self._stream)

    def close(self) -> None:
        self._opened.close()


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose offsets and sizes are within it, as to use others ends the process."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        without_texts(batch).validate(full=True)  # Bytes that are no text are of single rows.
    return batch


def _behind(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


def _check_types(operator: str, file: FoundFile, found: pa.Schema, fit: Fit) -> None:
    """Refuse a file that cannot have such rows; whether all of them fit is seen later."""
    for field in fit.schema or ():
        if field.name not in found.names:
            continue
        kind = workable_type(found.field(field.name).type)
        try:
            if pa.types.is_integer(kind) and pa.types.is_timestamp(field.type):
                check_cast(kind, field.type)  # Arrow would count them as microseconds.
            pa.nulls(0, kind).cast(field.type)
            if fit.is_found:
                wider_type(kind, field.type)  # It refuses to make a number of a text 007.
        except ARROW_ERRORS as error:
            raise ConfigError(
                f"{operator}: column {field.name!r} of {file.name} is {kind}, which does not "
                f"become {field.type}: {error}: give a schema that fits, or columns= without it"
            ) from error
