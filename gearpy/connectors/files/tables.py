"""One file as a row of tables: the common part of all formats, and the fate of bad rows."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from reprlib import Repr
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.texts import shortened
from gearpy.columns.widening import wider_schema
from gearpy.columns.workable import workable_column, workable_type
from gearpy.connectors.files.column_times import PLAIN_TIMES, TimeForm, cell_at, column_at, times_of
from gearpy.connectors.locations import FoundFile
from gearpy.core.base.times import EventTime, event_time_ms
from gearpy.core.base.zones import zone_of
from gearpy.errors import ConfigError, OperatorError
from gearpy.expressions.comparisons import Comparison
from gearpy.expressions.expr import Expr
from gearpy.messages.table import rows_of
from gearpy.task.api.sides import BadRecord

T = TypeVar("T")

#: The places to read in a file, as shares of it; None for all of it.
Places: TypeAlias = Sequence[float] | None

#: The fate of a row that cannot be read.
OnBad: TypeAlias = Literal["fail", "skip", "quarantine", "side"]

#: Errors of pyarrow for a value that it cannot convert, those of parsers, and of `Fit`.
ARROW_ERRORS: Final = (
    pa.ArrowException,
    TypeError,
    ValueError,
    ArithmeticError,
    KeyError,
    RecursionError,
)

_LOG: Final = logging.getLogger(__name__)
#: The cure where a file is none, or cannot be read further.
FILE_CURE: Final = (
    'correct the file, or leave such files out with on_bad="skip", "quarantine" or "side"'
)
_LOGGED_MAX: Final = 10  # A file is logged so often.
_repr = Repr()
_repr.maxstring = _repr.maxother = 200


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Some rows of a file: a record batch or a list, and their event times, if rows tell them."""

    values: Any
    times: pa.Array | None

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, count: int) -> "FilePiece":
        times = None if self.times is None else self.times.slice(start, count)
        if isinstance(self.values, list):
            return FilePiece(self.values[start : start + count], times)
        return FilePiece(self.values.slice(start, count), times)


class FileTables(Protocol):
    """A file that is being read."""

    def take(self, max_rows: int) -> FilePiece | None:
        """Return the next rows; None at the end."""
        ...

    @property
    def place(self) -> Any:
        """The place of the next row, as plain data."""
        ...

    @property
    def part_read(self) -> float:
        """The share of the file that was read, from 0 to 1."""
        ...

    def step_over(self) -> str:
        """Go on behind the next line or group of rows, unparsed; say what it was."""
        ...

    def close(self) -> None: ...


class FileFormat(ABC):
    """The way in which files are written."""

    name: str
    note = ""  #: The plan says it of how files are read.
    grows = False  #: Rows may be added to a file that was read.
    narrows = False  #: Rows are good or bad without the columns that are not read.

    @abstractmethod
    def schemas(self, file: FoundFile, places: Places, on_bad: OnBad) -> Iterator[pa.Schema]:
        """Yield the columns of parts of a file; by its good rows, if bad ones are left out.

        Args:
            places: where to look, as shares of the file; None for all of it.
        """

    def merged(self, one: pa.Schema, other: pa.Schema) -> pa.Schema:
        """Return columns that keep the values of two, or raise `ValueError`."""
        return wider_schema(one, other)

    def whole(self, file: FoundFile) -> int:
        """Return how many bytes of a file on this machine are whole rows, where it ``grows``."""
        return file.size

    def check(self, schema: pa.Schema) -> None:  # noqa: B027 - most have all
        """Refuse columns that such a file cannot have."""

    @abstractmethod
    def begin(self, file: FoundFile, fit: "Fit", bad: "BadRows", place: Any) -> FileTables:
        """Begin to read, or go on at a place."""


@dataclass(slots=True)
class Fit:
    """The demands on rows: their columns, and the place of their event times.

    Attributes:
        columns: what is given, of those of the schema; None: everything.
        is_found: nobody gave the schema, so that it may change no value.
        is_whole: all columns are read, so that there may be no others.
        is_sure: the types of such a schema are those of all rows.
        empty: columns of it for which no value was seen.
        reads_little: no more lines are parsed at a time than are asked for.
        unread: names of columns that may be there, and are not read.
        bounds: rows that are not within them all may be left out.
    """

    schema: pa.Schema | None
    columns: Sequence[str] | None
    time: str | Callable[[Any], EventTime] | None
    form: TimeForm = PLAIN_TIMES
    _: KW_ONLY
    is_found: bool = False
    is_whole: bool = False
    is_sure: bool = True
    empty: frozenset[str] = frozenset()
    reads_little: bool = False
    unread: Sequence[str] = ()
    bounds: Sequence[Comparison] = ()

    def piece(self, values: Any) -> FilePiece:
        """Return the rows with their times; one without, or without a value, is a `ValueError`."""
        if self.schema is not None:
            for field in self.schema:
                if not field.nullable and values.column(field.name).null_count:
                    raise ValueError(f"column {field.name!r} is missing, the schema needs a value")
        times = self._times(values)
        if self.columns is not None:
            if self.schema is not None:
                values = values.select(list(self.columns))
            else:
                values = [{name: row[name] for name in self.columns} for row in values]
        return FilePiece(values, times)

    def _times(self, values: Any) -> pa.Array | None:
        if self.time is None:
            return None
        is_computed = isinstance(self.time, Expr) and self.schema is not None
        if callable(self.time) and not is_computed:
            rows = values if self.schema is None else rows_of(values)
            zone = None if self.form.zone == "UTC" else zone_of(self.form.zone)
            try:
                return pa.array([event_time_ms(self.time(row), zone) for row in rows], pa.int64())
            except Exception as error:
                kind = type(error).__name__
                raise ValueError(f"the time function raised {kind}: {error}") from error
        if self.schema is None:
            assert isinstance(self.time, str), "functions were called"
            try:
                cells = [cell_at(row, self.time) for row in values]
            except (LookupError, TypeError) as error:
                raise ValueError(f"there is no {self.time!r}, which has the event time") from error
            try:
                column = pa.array(cells) if cells else pa.array([], pa.int64())
            except ARROW_ERRORS as error:
                raise ValueError(f"column {self.time!r} is no event time: {error}") from error
        else:
            try:
                column = column_at(values, cast("str | Expr", self.time))
            except ARROW_ERRORS as error:
                raise ValueError(f"time {self.time}: {error}") from error
        if column.null_count:
            raise ValueError(f"column {self.time!r} has no event time")
        try:
            return times_of(column, self.form)
        except ARROW_ERRORS as error:
            raise ValueError(f"column {self.time!r}: {error}") from error


class BadRows:
    """Refuses bad rows of one file; or counts them, and sets them aside if that is the policy."""

    def __init__(
        self, operator: str, file: str, policy: OnBad, aside: list[BadRecord] | None = None
    ) -> None:
        self.skipped = 0
        self._aside: list[BadRecord] = [] if aside is None else aside
        self._told = 0
        self._operator = operator
        self._file = file
        self._policy = policy

    def take(
        self,
        where: str,
        cause: object,
        record: Any,
        *,
        what: str = "row",
        count: int = 1,
        time_ms: int | None = None,
    ) -> None:
        """Count one bad row, or so many of a bad file, and go on, unless it is to be refused."""
        cause = shortened(str(cause) or type(cause).__name__)
        if self._policy == "fail":
            raise OperatorError(
                operator=self._operator,
                cause=f"{self._file}, {where}: {cause}: correct the {what}, or leave such "
                f'{what}s out with on_bad="skip", "quarantine" or "side"',
                record=_repr.repr(record),
            )
        if self._policy != "quarantine":  # It counts them itself.
            self.skipped += count
        if self._policy in {"quarantine", "side"}:
            place = f"{self._file}, {where}"
            bad = BadRecord.of(record, step=self._operator, error=cause, where=place)
            self._aside.append(bad if time_ms is None else replace(bad, time=time_ms))
            return
        self._told += 1
        if self._told <= _LOGGED_MAX:
            _LOG.warning("%s, %s, left out: %s", self._file, where, cause)

    @property
    def mark(self) -> tuple[int, int]:
        return self.skipped, len(self._aside)

    def go_back(self, mark: tuple[int, int] = (0, 0)) -> None:
        """Take back what was counted and set aside since a `mark`."""
        self.skipped, length = mark
        del self._aside[length:]


def fitting_parts(
    items: Sequence[T],
    make: Callable[[Sequence[T]], FilePiece],
    on_bad: Callable[[int, Exception], None],
    first: int = 0,
) -> Iterator[FilePiece]:
    """Yield the results of all items but bad ones, in their order.

    Args:
        make: raises one of `ARROW_ERRORS` if there is a bad one among them.
        on_bad: told the place of each bad one.
        first: the place of the first item.
    """
    if not items:
        return
    try:
        yield make(items)
    except ARROW_ERRORS as error:
        if len(items) == 1:
            on_bad(first, error)
            return
        half = len(items) // 2
        yield from fitting_parts(items[:half], make, on_bad, first)
        yield from fitting_parts(items[half:], make, on_bad, first + half)


def check_names(operator: str, file: FoundFile, names: Sequence[str], fit: Fit) -> None:
    """Refuse a file without a column that it needs, or with one that files of before had not."""
    for field in fit.schema or ():
        if file.size and field.name not in names and not field.nullable:
            raise ConfigError(
                f"{operator}: {file.name} has no column {field.name!r}: it has "
                f"{', '.join(names) or 'none'}"
            )
    if fit.is_whole and fit.schema is not None:
        for name in names:
            if name not in fit.schema.names and name not in fit.unread:
                raise ConfigError(
                    f"{operator}: {file.name} has a column {name!r} that files looked at before "
                    "did not have: give schema= with all columns, or columns= with those to read"
                )


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of the schema, in its order and of its types; missing ones are null."""
    if batch.schema.equals(schema):
        return batch
    names = batch.schema.names
    columns = []
    for field in schema:
        if field.name not in names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column, kind = batch.column(field.name), field.type
        try:
            # A time that is read as a number keeps its nanoseconds.
            as_number = pa.types.is_integer(kind) and pa.types.is_temporal(column.type)
            if column.type != kind:
                whole = column if as_number else workable_column(column)
                column = whole if whole.type == kind else whole.cast(kind)
            columns.append(column)
        except ARROW_ERRORS as error:
            raise ValueError(
                f"column {field.name!r} is {column.type}, does not fit {field.type}: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the workable schema without notes of other programs, and without dictionaries."""
    fields = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(pa.field(field.name, workable_type(kind), field.nullable))
    return pa.schema(fields)


def known_on_bad(operator: str, policy: str) -> OnBad:
    """Return a policy for bad rows; ``error``, its earlier word, is taken for ``fail``."""
    if policy == "error":
        return "fail"
    if policy not in get_args(OnBad):
        raise ConfigError(
            f"{operator}: on_bad is {policy!r}, must be one of {', '.join(get_args(OnBad))}"
        )
    return cast("OnBad", policy)
