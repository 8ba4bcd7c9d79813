"""A table of PostgreSQL as a source: read once from end to end, or polled for new rows."""

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as arrow_csv  # type: ignore[import-untyped]

from gearpy.connectors.database.table_reader import (
    BadRow,
    DatabaseReader,
    DatabaseSource,
    FetchedRows,
    TablePlace,
    TableQuery,
)
from gearpy.connectors.database.table_writer import TableColumn, chosen, column_names
from gearpy.connectors.files.column_times import (
    TimeUnit,
    time_form,
)
from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.connectors.files.tables import (
    ARROW_ERRORS,
    OnBad,
    known_on_bad,
)
from gearpy.connectors.postgres.columns import columns_of
from gearpy.connectors.postgres.connection import PostgresAddress, columns_called, table_called
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.api.interfaces import Source
from gearpy.task.sources.share import numbered_partitions

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed

#: PostgreSQL copies rows in this dialect.
_DIALECT: Final = Dialect(multiline=True)
_COLUMN: Final = re.compile(r"^In CSV column #(\d+): (?:Row #\d+: )?")
_CURE: Final = " (a view can give it as text)"
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
    order = column_names(operator, "by", by)
    times = time_form(operator, time_unit, zone)
    on_bad = known_on_bad(operator, on_bad)
    if not order:
        raise ConfigError(f"{operator}: by= names no column: give the primary key")
    if (
        type(partitions) is not int
        or partitions < 1
        or (partitions > 1 and (split is None or len(order) > 1))
    ):
        raise ConfigError(
            f"{operator}: partitions is {partitions!r}: for more than one give split=(low, high), "
            "and by= as one column of whole numbers"
        )
    query = TableQuery(
        table=table,
        by=order,
        columns=None if columns is None else column_names(operator, "columns", columns),
        time=time,
        form=times,
        follows=follow,
        interval_ms=duration_ms(interval, f"{operator}: interval"),
        bound_ms=duration_ms(out_of_order, f"{operator}: out_of_order"),
        on_bad=on_bad,
    )
    bounds: list[int | None] = [None, None]
    if partitions > 1 and split is not None:
        low, high = split
        bounds[1:1] = [low + (high - low) * part // partitions for part in range(1, partitions)]
    return PostgresSource(PostgresAddress(operator, url), query, bounds)


class PostgresSource(DatabaseSource):
    """A table; see `postgres`."""

    def __init__(
        self, address: PostgresAddress, query: TableQuery, bounds: Sequence[int | None]
    ) -> None:
        super().__init__(address, query)
        self._address = address
        self._ranges = list(pairwise(bounds))

    @property
    def description(self) -> str:
        return f"postgres({self._query.table})"

    def find_columns(self) -> list[TableColumn]:
        query, place = self._query, self._address.shown
        with self._address.connect() as connection:
            found = columns_of(connection, query.table)
        return chosen(self.description, place, query.table, found, query.wanted)

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(len(self._ranges))

    def open(self, partition: str, resume: TablePlace | None) -> "PostgresReader":
        return PostgresReader(
            self.description,
            self._address,
            self._query,
            columns=self.columns,
            span=self._ranges[int(partition)],
            resume=resume,
        )


class PostgresReader(DatabaseReader):
    """Reads the rows of a range in order, a portion with each question."""

    def __init__(
        self,
        operator: str,
        address: PostgresAddress,
        query: TableQuery,
        *,
        columns: Sequence[TableColumn],
        span: tuple[int | None, int | None],
        resume: TablePlace | None,
    ) -> None:
        super().__init__(operator, address, query, columns=columns, resume=resume)
        self._address = address
        self._span = span
        self._connection: Connection[Any] | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- questions ---------------------------------------------------------------------------

    def _connected(self) -> "Connection[Any]":
        if self._connection is None:
            self._connection = self._address.connect()
            self._connection.execute("set timezone = 'UTC'; set datestyle = 'ISO'")
        return self._connection

    def newest(self) -> list[Any]:
        from psycopg import sql  # noqa: PLC0415 - an extra

        down = [sql.SQL("{} desc").format(sql.Identifier(name)) for name in self._query.by]
        statement = sql.SQL("select {} from {} {} order by {} limit 1").format(
            columns_called(self._query.by),
            table_called(self._query.table),
            self._where([]),
            sql.SQL(", ").join(down),
        )
        found = self._connected().execute(statement).fetchone()
        return [] if found is None else list(found)

    def rows_between(
        self, at: Sequence[Any], end: Sequence[Any], limit: int
    ) -> list[FetchedRows | BadRow]:
        from psycopg import sql  # noqa: PLC0415 - an extra

        ends = [self._compared(">", at)] if at else []
        ends += [self._compared("<=", end)] if end else []
        statement = sql.SQL(
            "copy (select {} from {} {} order by {} limit {}) to stdout (format csv)"
        ).format(
            columns_called([each.name for each in self._columns]),
            table_called(self._query.table),
            self._where(ends),
            columns_called(self._query.by),
            sql.Literal(limit),
        )
        with self._connected().cursor().copy(statement) as copy:
            data = b"".join(copy)
        return self._parsed(data) if data else []

    def _compared(self, sign: str, place: Sequence[Any]) -> "Composed":
        from psycopg import sql  # noqa: PLC0415 - an extra

        values = sql.SQL(", ").join(map(sql.Literal, place))
        return sql.SQL("({}) {} ({})").format(columns_called(self._query.by), sql.SQL(sign), values)

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
        if self._query.grows:
            parts.append(sql.SQL(_SETTLED).format())
        return sql.SQL("where {}").format(sql.SQL(" and ").join(parts)) if parts else sql.SQL("")

    # -- rows --------------------------------------------------------------------------------

    def _parsed(self, data: bytes) -> list[FetchedRows | BadRow]:
        """Return the rows in their order; bad ones apart."""
        try:
            return [FetchedRows(self._columns_of(data))]
        except ARROW_ERRORS:
            lines = _DIALECT.lines(data)
        return self.parsed(
            lines, lambda some: FetchedRows(self._columns_of(b"".join(some))), self._bad_row
        )

    def _bad_row(self, text: bytes, error: Exception) -> BadRow:
        cause = _COLUMN.sub(self._named, str(error)) + _CURE
        try:
            order = self.order_of(self._columns_of(text, self._query.by))
        except ARROW_ERRORS as unordered:  # Nobody knows where to go on behind it.
            shown = text.decode(errors="backslashreplace").strip()
            raise OperatorError(
                operator=self._operator,
                cause=f"{self._query.table}, row {shown:.300}: {cause}: it orders the rows: "
                "correct it, or read a view without such rows",
                is_final=True,
            ) from unordered
        return BadRow(order, text.rstrip(b"\r\n"), cause)

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

    def _named(self, found: "re.Match[str]") -> str:
        return f"column {self._columns[int(found[1])].name!r}: "


def _bytes_of(column: Any) -> pa.Array:
    cells = [None if text is None else bytes.fromhex(text[2:]) for text in column.to_pylist()]
    return pa.array(cells, pa.binary())
