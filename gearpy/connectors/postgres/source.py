"""A table of PostgreSQL as a source: read once from end to end, or polled for new rows."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as arrow_csv  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema
from gearpy.connectors.files.column_times import (
    TimeForm,
    TimeUnit,
    check_time_column,
    time_form,
    times_of,
)
from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.connectors.files.stamps import OrderedReader
from gearpy.connectors.files.tables import (
    ARROW_ERRORS,
    BadRows,
    FilePiece,
    OnBad,
    fitting_parts,
    known_on_bad,
)
from gearpy.connectors.postgres.columns import columns_of
from gearpy.connectors.postgres.connection import PostgresAddress
from gearpy.connectors.table_writer import TableColumn
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source
from gearpy.task.api.sides import SetAside
from gearpy.task.sources.share import numbered_partitions

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed

_RETRY_MS: Final = 1000
#: PostgreSQL copies rows in this dialect.
_DIALECT: Final = Dialect(multiline=True)
_COLUMN: Final = re.compile(r"^In CSV column #(\d+): (?:Row #\d+: )?")
_CURE: Final = " (a view can give it as text)"
#: Rows that are asked for at a time, at least: a question may take long, whatever it brings.
_ASKED_ROWS: Final = 10_000
#: Rows of transactions that began when an earlier one had not ended: that one may bring rows before
#: these, which would be missed.
_SETTLED: Final = """age(xmin) > age(
    (pg_snapshot_xmin(pg_current_snapshot())::text::bigint & 4294967295)::text::xid)"""


def postgres(
    url: str,
    table: str,
    *,
    by: str | Sequence[str],
    columns: Sequence[str] | None = None,
    follow: bool = False,
    interval: Duration = "1s",
    partitions: int = 1,
    split: tuple[int, int] | None = None,
    time: str | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    on_bad: OnBad = "fail",
) -> Source[dict[str, Any]]:
    """Read the rows of a table of PostgreSQL, as columns: once, or also those that come later.

    Rows come in the order of ``by``. A reader goes on behind the last row that it has given, so a
    row that is changed or removed meanwhile is read as it is then.

    ``follow=True`` asks for rows with a greater ``by`` again and again. What this cannot see: rows
    that are deleted; changes that leave ``by`` as it is; rows that come with a ``by`` that is less
    than one that was read. Rows wait until all transactions that are older than theirs have ended.

    Args:
        url: ``postgresql://user:password@host:port/database``; take the password from
            `os.environ` rather than write it into the program.
        table: name of the table or view, perhaps with that of its schema before a dot.
        by: the column, or columns, that order the rows, such as "id", or ["changed_at", "id"].
            No two rows have the same, none has null in it, and an index should be there.
        columns: names of the columns to read; by default all. Those of ``by`` and ``time`` are
            read in any case.
        follow: go on with rows that come later.
        interval: between two questions for more.
        partitions: number of ranges of ``by``, which is then one column of whole numbers.
        split: where the ranges lie: that of equal ones between these two numbers. The first has
            all that is less, the last all that is more.
        time: column of the event time; without it rows have the time at which they were read, or,
            without ``follow``, the time 0.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later row may be.
        on_bad: what becomes of a row with a value that no column here can hold, such as a numeric
            that is NaN, an endless date or one before Christ, or without an event time: "fail"
            ends the application and names row and column; "skip" leaves it out, logs and counts
            it; "quarantine" keeps its text for ``gear quarantine``; "side" gives it to
            `Stream.errors`, and counts it.

    Raises:
        ConfigError: an option is not understood, or psycopg is missing.

    Example:
        >>> import gearpy as gp
        >>> gp.postgres("postgresql://ann@localhost/shop", "orders", by="id").description
        'postgres(orders)'
    """
    operator = f"postgres({table})"
    order = (by,) if isinstance(by, str) else tuple(by)
    times = time_form(operator, time_unit, zone)
    on_bad = known_on_bad(operator, on_bad)
    if not order:
        raise ConfigError(f"{operator}: by= names no column: give the primary key")
    if partitions < 1 or (partitions > 1 and (split is None or len(order) > 1)):
        raise ConfigError(
            f"{operator}: partitions is {partitions}: for more than one give split=(low, high), "
            "and by= as one column of whole numbers"
        )
    query = TableQuery(
        table=table,
        by=order,
        columns=None if columns is None else tuple(columns),
        time=time,
        form=times,
        follows=follow,
        interval_ms=duration_ms(interval),
        bound_ms=duration_ms(out_of_order),
        on_bad=on_bad,
    )
    bounds: list[int | None] = [None, None]
    if partitions > 1 and split is not None:
        low, high = split
        bounds[1:1] = [low + (high - low) * part // partitions for part in range(1, partitions)]
    return PostgresSource(PostgresAddress(operator, url), query, bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """The options of a table that is read; see `postgres`."""

    table: str
    by: tuple[str, ...]
    columns: tuple[str, ...] | None
    time: str | None
    form: TimeForm
    follows: bool
    interval_ms: int
    bound_ms: int
    on_bad: OnBad = "fail"
    up_to_now: bool = False  #: It ends at the last row when it is opened; others come later.

    @property
    def grows(self) -> bool:
        return self.follows or self.up_to_now

    @property
    def ends(self) -> bool:
        return self.up_to_now or not self.follows


class _BadRow(NamedTuple):
    """A row that cannot be read: its order, its text, and why."""

    at: list[Any]
    text: bytes
    cause: str


class PostgresPlace(TypedDict):
    """Snapshot of a reader: the order of the last row it gave, and of the last that it will give.

    ``end`` is None as long as that is not known; empty if there is nothing to read.
    """

    at: list[Any]
    end: list[Any] | None
    watermark_ms: int
    count: int


class PostgresSource(Source[dict[str, Any]]):
    """A table; see `postgres`."""

    replayable = True

    def __init__(
        self, address: PostgresAddress, query: TableQuery, bounds: Sequence[int | None]
    ) -> None:
        self._address = address
        self._query = query
        self._ranges = list(pairwise(bounds))
        self.bounded = not query.follows
        self.sets_bad_aside = query.on_bad == "side"
        self.quarantines_bad = query.on_bad == "quarantine"
        self.is_by_arrival = query.follows and query.time is None
        self.time_column = query.time or ""

    @property
    def description(self) -> str:
        return f"postgres({self._query.table})"

    @property
    def note(self) -> str:
        return self._query.form.note(self._query.time, self.schema.arrow)

    @cached_property
    def _columns(self) -> list[TableColumn]:
        """The columns, as the database tells them; asked for once."""
        query, wanted = self._query, None
        if query.columns is not None:
            needed = (*query.columns, *query.by, *([query.time] if query.time else ()))
            wanted = list(dict.fromkeys(needed))
        try:
            with self._address.connect() as connection:
                found = columns_of(self.description, connection, query.table, wanted)
        except OperatorError as error:
            raise ConfigError(error.cause) from error
        except Exception as error:
            raise ConfigError(self._address.failure(error).cause) from error
        names = [each.name for each in found]
        if not names:
            raise ConfigError(
                f"{self.description}: there is no table {self._query.table} in postgres "
                f"{self._address.shown}"
            )
        if missing := [each for each in self._query.by if each not in names]:
            raise ConfigError(
                f"{self.description}: by={missing[0]!r} is no column: there are {', '.join(names)}"
            )
        if self._query.time is not None:
            fields = pa.schema([each.field for each in found])
            check_time_column(self.description, self._query.time, fields)
        return found

    @property
    def schema(self) -> RowSchema:
        return RowSchema(pa.schema([each.field for each in self._columns]))

    def up_to_now(self) -> "PostgresSource":
        other = copy(self)
        other._query = replace(self._query, up_to_now=True)  # noqa: SLF001 - of the same class
        other.bounded = True
        return other

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(len(self._ranges))

    def open(self, partition: str, resume: PostgresPlace | None) -> "PostgresReader":
        return PostgresReader(
            self.description,
            self._address,
            self._query,
            columns=self._columns,
            span=self._ranges[int(partition)],
            resume=resume,
        )


class PostgresReader(OrderedReader[dict[str, Any]]):
    """Reads the rows of a range in order, a portion with each question."""

    def __init__(
        self,
        operator: str,
        address: PostgresAddress,
        query: TableQuery,
        *,
        columns: Sequence[TableColumn],
        span: tuple[int | None, int | None],
        resume: PostgresPlace | None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._operator = operator
        self._address = address
        self._query = query
        self._columns = columns
        self._span = span
        self._now_ms = now_ms
        self._connection: Connection[Any] | None = None
        self._ask_at_ms = 0
        self._fetched = deque[pa.RecordBatch | _BadRow]()  # Rows that are not given yet.
        self._aside = SetAside()
        self._bad = BadRows(operator, query.table, query.on_bad, self._aside)
        place: PostgresPlace = resume or {"at": [], "end": None, "watermark_ms": MIN_MS, "count": 0}
        self._at, self._count = place["at"], place["count"]
        self._end = None if query.up_to_now else place["end"]
        self._order = BoundedOutOfOrder(0 if query.time is None else query.bound_ms)
        self._order.watermark_ms = place["watermark_ms"]
        self.is_by_arrival = query.follows and query.time is None
        self.out_of_order_ms = None if self.is_by_arrival else query.bound_ms

    def read_batch(self, max_records: int) -> Batch[dict[str, Any]] | None:
        now_ms = self._now_ms()
        if not self._fetched and not self._fetch(max_records, now_ms):
            return None
        batch = None
        if isinstance(rows := self._fetched.popleft(), _BadRow):
            self._at, taken = rows.at, 1
            pairs = zip(self._query.by, rows.at, strict=True)
            where = f"row {', '.join(f'{name}={value}' for name, value in pairs)}"
            self._bad.take(where, rows.cause, rows.text)
            self.skipped_records = self._bad.skipped
        else:
            if rows.num_rows > max_records:
                self._fetched.appendleft(rows.slice(max_records))
                rows = rows.slice(0, max_records)
            self._at, taken = self._order_of(rows), rows.num_rows
            if self._query.time is None:
                self._order.on_records([now_ms if self._query.follows else 0])
                times = Times.of([self.watermark_ms] * rows.num_rows)
            else:
                times = Times(times_of(rows.column(self._query.time), self._query.form))
                self._order.on_records([times.bounds()[1]])
            batch = Batch(Table(rows), times)
        self._count += taken
        self.finished = self._end is not None and self._at == self._end
        return batch

    def snapshot(self) -> PostgresPlace:
        return {
            "at": list(self._at),
            "end": None if self._query.up_to_now or self._end is None else list(self._end),
            "watermark_ms": self.watermark_ms,
            "count": self._count,
        }

    @property
    def progress(self) -> tuple[int, int]:
        return self._count, 0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- questions ---------------------------------------------------------------------------

    def _fetch(self, max_records: int, now_ms: int) -> bool:
        """Ask for rows, if it is time to; tell whether there are some."""
        if now_ms < self._ask_at_ms:
            return False
        try:
            rows = self._next_rows(max(max_records, _ASKED_ROWS))
        except OperatorError:
            raise
        except Exception as error:
            self.close()
            self.waits_for = self._address.trouble(error)
            if not self.waits_for:
                raise self._address.failure(error) from error
            self._ask_at_ms = now_ms + _RETRY_MS
            return False
        self.waits_for = ""
        if not rows:
            self.finished = self._query.ends
            self._ask_at_ms = now_ms + self._query.interval_ms
            return False
        self._fetched.extend(rows)
        return True

    def _next_rows(self, max_records: int) -> "list[pa.RecordBatch | _BadRow]":
        from psycopg import sql  # noqa: PLC0415 - an extra

        if self._connection is None:
            self._connection = self._address.connect()
            self._connection.execute("set timezone = 'UTC'; set datestyle = 'ISO'")
        connection, table = self._connection, sql.Identifier(*self._query.table.split("."))
        settled = [sql.SQL(_SETTLED)] if self._query.grows else []
        if self._end is None and self._query.ends:
            down = [sql.SQL("{} desc").format(sql.Identifier(name)) for name in self._query.by]
            found = connection.execute(
                sql.SQL("select {} from {} {} order by {} limit 1").format(
                    self._names(self._query.by),
                    table,
                    self._where(settled),
                    sql.SQL(", ").join(down),
                )
            ).fetchone()
            self._end = [] if found is None else list(found)
        if self._end == []:
            return []
        own: list[Composable] = []
        if self._at:
            own.append(self._compared(">", self._at))
        if self._end:
            own.append(self._compared("<=", self._end))
        own += settled
        statement = sql.SQL(
            "copy (select {} from {} {} order by {} limit {}) to stdout (format csv)"
        ).format(
            self._names([each.name for each in self._columns]),
            table,
            self._where(own),
            self._names(self._query.by),
            sql.Literal(max_records),
        )
        with connection.cursor().copy(statement) as copy:
            data = b"".join(copy)
        return self._parsed(data) if data else []

    def _compared(self, sign: str, place: Sequence[Any]) -> "Composed":
        from psycopg import sql  # noqa: PLC0415 - an extra

        values = sql.SQL(", ").join(map(sql.Literal, place))
        return sql.SQL("({}) {} ({})").format(self._names(self._query.by), sql.SQL(sign), values)

    def _where(self, own: "Sequence[Composable]") -> "Composable":
        from psycopg import sql  # noqa: PLC0415 - an extra

        column = sql.Identifier(self._query.by[0])
        ends = zip((">=", "<"), self._span, strict=True)
        parts = [
            sql.SQL("{} {} {}").format(column, sql.SQL(sign), sql.Literal(end))
            for sign, end in ends
            if end is not None
        ]
        parts += own  # type: ignore[arg-type] # the same
        return sql.SQL("where {}").format(sql.SQL(" and ").join(parts)) if parts else sql.SQL("")

    def _names(self, names: Sequence[str]) -> "Composed":
        from psycopg import sql  # noqa: PLC0415 - an extra

        return sql.SQL(", ").join(map(sql.Identifier, names))

    # -- rows --------------------------------------------------------------------------------

    def _parsed(self, data: bytes) -> "list[pa.RecordBatch | _BadRow]":
        """Return the rows in their order; bad ones apart."""
        try:
            return [self._columns_of(data)]
        except ARROW_ERRORS:
            lines = _DIALECT.lines(data)
        found: list[pa.RecordBatch | _BadRow] = []

        def on_bad(at: int, error: Exception) -> None:
            text = lines[at]
            cause = _COLUMN.sub(self._named, str(error)) + _CURE
            try:
                order = self._order_of(self._columns_of(text, self._query.by))
            except ARROW_ERRORS as unordered:  # Nobody knows where to go on behind it.
                shown = text.decode(errors="backslashreplace").strip()
                raise OperatorError(
                    operator=self._operator,
                    cause=f"{self._query.table}, row {shown:.300}: {cause}: it orders the rows: "
                    "correct it, or read a view without such rows",
                    is_final=True,
                ) from unordered
            found.append(_BadRow(order, text.rstrip(b"\r\n"), cause))

        def make(some: Sequence[bytes]) -> FilePiece:
            return FilePiece(self._columns_of(b"".join(some)), None)

        for piece in fitting_parts(lines, make, on_bad):
            found.append(piece.values)  # noqa: PERF401 - bad ones come in between
        return found

    def _columns_of(self, data: bytes, names: Sequence[str] | None = None) -> pa.RecordBatch:
        kinds = {each.name: each.field.type for each in self._columns}
        raw = {name for name, kind in kinds.items() if pa.types.is_binary(kind)}
        table = arrow_csv.read_csv(
            BytesIO(data),
            read_options=arrow_csv.ReadOptions(column_names=list(kinds), block_size=1 << 30),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={n: pa.string() if n in raw else kind for n, kind in kinds.items()},
                include_columns=None if names is None else list(names),
                null_values=[""],
                true_values=["t"],
                false_values=["f"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        fields = [each.field for each in self._columns if names is None or each.name in names]
        arrays = [
            _bytes_of(table.column(field.name))
            if field.name in raw
            else table.column(field.name).combine_chunks()
            for field in fields
        ]
        time = self._query.time
        if names is None and time is not None and table.column(time).null_count:
            raise ValueError(f"column {time!r} has no event time")
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _order_of(self, rows: pa.RecordBatch) -> list[Any]:
        last = rows.slice(rows.num_rows - 1).to_pylist()[0]
        return [last[name] for name in self._query.by]

    def _named(self, found: "re.Match[str]") -> str:
        return f"column {self._columns[int(found[1])].name!r}: "


def _bytes_of(column: Any) -> pa.Array:
    cells = [None if text is None else bytes.fromhex(text[2:]) for text in column.to_pylist()]
    return pa.array(cells, pa.binary())
