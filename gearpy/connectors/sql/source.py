"""A table or query of any database as a source: polled for rows behind the last one."""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import SchemaLike, row_schema_of
from gearpy.connectors.database.table_reader import (
    BadRow,
    DatabaseReader,
    DatabaseSource,
    FetchedRows,
    TablePlace,
    TableQuery,
)
from gearpy.connectors.database.table_writer import TableColumn, chosen, column_names
from gearpy.connectors.files.column_times import TimeUnit, time_form
from gearpy.connectors.files.tables import ARROW_ERRORS, OnBad, known_on_bad
from gearpy.connectors.postgres.connection import read_as_texts_what_python_lacks
from gearpy.connectors.sql.database import Database, duckdb_at
from gearpy.connectors.sql.found_columns import (
    columns_of,
    duckdb_columns,
    duckdb_unique_keys,
    unique_keys,
)
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.api.interfaces import Source

if TYPE_CHECKING:
    import sqlalchemy as sa
    from duckdb import DuckDBPyConnection

_ONLY: Final = "0"
_ROWS: Final = "gearpy_rows"  #: What statements call the table or query.


def sql_source(
    url: str,
    query_or_table: str,
    *,
    cursor: str | Sequence[str] = "id",
    columns: Sequence[str] | None = None,
    schema: SchemaLike[Any] | None = None,
    follow: bool = False,
    every: Duration = "1s",
    lag: Duration = "0s",
    time: str | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    on_bad: OnBad = "fail",
) -> Source[dict[str, Any]]:
    """Read rows of SQLite, DuckDB, MySQL, MariaDB or PostgreSQL: once, or also later ones.

    Rows come in the order of ``cursor``. A reader goes on behind the last row that it has given,
    also after a restart: each row is read once, as it is then.

    ``follow=True`` asks for rows with a greater ``cursor`` again and again. What this cannot see:
    rows that are deleted; changes that leave ``cursor`` as it is; rows that are committed when one
    with a greater ``cursor`` was read, as where transactions overlap: for these there is ``lag``.

    Args:
        url: ``sqlite:///FILE``, ``duckdb:///FILE``, ``postgresql://user:password@host/database``,
            ``mysql://...`` or ``mariadb://...``, as SQLAlchemy has them.
        query_or_table: name of a table or view, perhaps with that of its schema before a dot; or a
            ``select`` statement, which needs ``schema``.
        cursor: the column, or columns, that order the rows, such as "id", or ["changed_at", "id"].
            No two rows have the same: if those of a time may, add the primary key behind it. Rows
            with null in it are left out. An index should be there.
        columns: names of the columns to read; by default all. Those of ``cursor`` and ``time`` are
            read in any case.
        schema: of the rows, such as ``{"id": int, "name": str}``; by default that of the table.
        follow: go on with rows that come later.
        every: between two questions for more.
        lag: rows are read so long after they were seen first; longer than any transaction that
            writes some.
        time: column of the event time; without it rows have the time at which they were read, or,
            without ``follow``, the time 0.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later row may be.
        on_bad: what becomes of a row with a value that its column here cannot hold, such as a text
            in a column of numbers of SQLite, or an endless date of PostgreSQL: "fail" ends the
            application and names row and column; "skip" leaves it out, logs and counts it;
            "quarantine" keeps its text for ``gear quarantine``; "side" gives it to
            `Stream.errors`.

    Raises:
        ConfigError: the address or an option is none, or a library is missing. A table that is not
            there is found when the program is built.

    Example:
        >>> import gearpy as gp
        >>> gp.sql_source("sqlite:///shop.db", "orders", cursor=["changed_at", "id"]).description
        'sql_source(orders)'
    """
    if not isinstance(query_or_table, str):
        raise ConfigError(
            f"sql_source: query_or_table is {query_or_table!r}, must be the name of a table, or a "
            "select statement"
        )
    is_query = len(query_or_table.split()) > 1
    operator = "sql_source(query)" if is_query else f"sql_source({query_or_table})"
    by = column_names(operator, "cursor", cursor)
    if not query_or_table.strip() or not by:
        raise ConfigError(f"{operator}: name a table, and its primary key as cursor=")
    if is_query and schema is None:
        raise ConfigError(
            f"{operator}: a query does not tell the types of its columns: give schema=, such as "
            "{'id': int, 'name': str}, or make a view of it"
        )
    if (every_ms := duration_ms(every, f"{operator}: every")) <= 0:
        raise ConfigError(f"{operator}: every is {every!r}, must be more than 0, such as '1s'")
    query = TableQuery(
        table=query_or_table.strip().rstrip(";"),
        by=by,
        columns=None if columns is None else column_names(operator, "columns", columns),
        time=time,
        form=time_form(operator, time_unit, zone),
        follows=follow,
        interval_ms=every_ms,
        bound_ms=duration_ms(out_of_order, f"{operator}: out_of_order"),
        lag_ms=duration_ms(lag, f"{operator}: lag"),
        on_bad=known_on_bad(operator, on_bad),
    )
    told = None if schema is None else row_schema_of(schema).arrow
    return SqlSource(operator, Database(operator, url), query, told, is_query=is_query)


class SqlSource(DatabaseSource):
    """A table or query; see `sql_source`."""

    def __init__(
        self,
        operator: str,
        database: Database,
        query: TableQuery,
        schema: pa.Schema | None,
        *,
        is_query: bool,
    ) -> None:
        super().__init__(database, query)
        self._operator = operator
        self._database = database
        self._schema = schema
        self._is_query = is_query

    @property
    def description(self) -> str:
        return self._operator

    def find_columns(self) -> list[TableColumn]:
        database, query = self._database, self._query
        if database.is_file and not Path(database.url.database or "").exists():
            raise ConfigError(f"{self._operator}: there is no file {database.url.database}")
        keys: list[set[str]] = []
        if self._schema is not None:
            found = [TableColumn(each.name, "", each) for each in self._schema]
        elif database.dialect == "duckdb":
            with duckdb_at(database) as file:
                found = duckdb_columns(file, query.table)
                keys = duckdb_unique_keys(file, query.table)
        else:
            with database.connect(writes=False) as connection, connection.begin():
                found = columns_of(database, connection, query.table)
                keys = unique_keys(connection, query.table)
        found = chosen(self._operator, database.shown, query.table, found, query.wanted)
        is_there = {*query.by} <= {each.name for each in found}
        if keys and is_there and not any(key <= {*query.by} for key in keys):
            whole = [*query.by, *sorted(min(keys, key=len) - {*query.by})]
            raise ConfigError(
                f"{self._operator}: two rows may have the same {', '.join(query.by)}, and one of "
                f"them would be missed: say cursor={whole}"
            )
        return found

    def partitions(self) -> Sequence[str]:
        return (_ONLY,)

    def open(self, partition: str, resume: TablePlace | None) -> "SqlReader":
        return SqlReader(
            self._operator,
            self._database,
            self._query,
            columns=self.columns,
            is_query=self._is_query,
            resume=resume,
        )


class SqlReader(DatabaseReader):
    """Reads the rows of a table or query of a database; SQLAlchemy writes the statements.

    Values come as the driver has them, so a place is what the database compares: SQLite keeps times
    as texts of more than one form.
    """

    def __init__(
        self,
        operator: str,
        database: Database,
        query: TableQuery,
        *,
        columns: Sequence[TableColumn],
        is_query: bool,
        resume: TablePlace | None,
    ) -> None:
        super().__init__(operator, database, query, columns=columns, resume=resume)
        self._database = database
        self._is_query = is_query
        self._connection: sa.Connection | None = None
        self._file: DuckDBPyConnection | None = None  # Read in place of a connection.
        self._names = [each.name for each in columns]
        self._by = [self._names.index(name) for name in query.by]

    def close(self) -> None:
        for each in (self._connection, self._file):
            if each is not None:
                each.close()
        self._connection = self._file = None

    def rest(self) -> None:
        if self._file is not None:
            self.close()  # Nobody can write to it as long as it is open.

    def newest(self) -> list[Any]:
        down = [each.desc() for each in self._columns_at(self._query.by)]
        found = self._answer(self._select(self._query.by, [], []).order_by(*down).limit(1))
        return [value for row in found for value in row]

    def rows_between(
        self, at: Sequence[Any], end: Sequence[Any], limit: int
    ) -> list[FetchedRows | BadRow]:
        asked = self._select(self._names, at, end).order_by(*self._columns_at(self._query.by))
        rows = self._answer(asked.limit(limit + 1))
        # A reader that goes on behind one of two rows of the same order would miss the other.
        for one, other in pairwise(map(self._order_of, rows)):
            if one == other:
                same = ", ".join(map("{}={!r}".format, self._query.by, one))
                raise OperatorError(
                    operator=self._operator,
                    cause=f"{self._query.table} has two rows with {same}, and one of them may be "
                    "missed: add a column to cursor=, such as the primary key",
                    is_final=True,
                )
        return self.parsed(rows[:limit], self._made, self._bad_row)

    def _select(self, names: Sequence[str], at: Sequence[Any], end: Sequence[Any]) -> Any:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        by = self._columns_at(self._query.by)
        where = [each.is_not(None) for each in by]
        where += [_behind(by, at)] if at else []
        where += [sa.not_(_behind(by, end))] if end else []
        return sa.select(*self._columns_at(names)).where(*where)

    def _columns_at(self, names: Sequence[str]) -> list[Any]:
        return [self._target.c[name] for name in names]

    @cached_property
    def _target(self) -> Any:
        """The table or query, by another name, which is in front of the names of its columns.

        SQLite takes a name alone, if there is no such column, for a text.
        """
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        def exact(name: str) -> Any:  # A dialect knows the reserved words of its own database.
            return sa.sql.quoted_name(name, quote=True)

        columns: list[Any] = [sa.column(exact(name)) for name in self._names]
        if self._is_query:
            text = self._query.table.replace(":", "\\:")  # A colon would begin a parameter.
            return sa.text(text).columns(*columns).subquery(_ROWS)
        *above, table = self._query.table.split(".")
        schema = exact(above[0]) if above else None
        return sa.table(exact(table), *columns, schema=schema).alias(_ROWS)

    def _answer(self, statement: Any) -> list[Any]:
        if self._database.dialect == "duckdb":
            from sqlalchemy.dialects.sqlite import dialect  # noqa: PLC0415 - an extra

            made = statement.compile(dialect=dialect())
            values = [made.params[name] for name in made.positiontup or ()]
            if self._file is None:
                self._file = duckdb_at(self._database)
            table: Any = self._file.sql(str(made), params=values).to_arrow_table()
            return list(zip(*map(_python_values, table.columns), strict=True))
        if self._connection is None:
            self._connection = self._database.connect(writes=False)
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        try:
            return _all_rows(self._connection, statement)
        except sa.exc.DataError:
            if self._connection.dialect.driver != "psycopg":
                raise
            read_as_texts_what_python_lacks(
                cast("Any", self._connection.connection.driver_connection)
            )
            return _all_rows(self._connection, statement)

    # -- rows --------------------------------------------------------------------------------

    def _order_of(self, row: Sequence[Any]) -> list[Any]:
        return [row[place] for place in self._by]

    def _made(self, rows: Sequence[Any]) -> FetchedRows:
        columns = zip(self._columns, zip(*rows, strict=True), strict=True)
        arrays = [_array_of(column.field, cells) for column, cells in columns]
        made = pa.RecordBatch.from_arrays(arrays, names=self._names)
        time = self._query.time
        if time is not None and made.column(time).null_count:
            raise ValueError(f"column {time!r} has no event time")
        return FetchedRows(made, list(map(self._order_of, rows)))

    def _bad_row(self, row: Sequence[Any], error: Exception) -> BadRow:
        text = repr(dict(zip(self._names, row, strict=True)))
        return BadRow(self._order_of(row), text.encode(errors="backslashreplace"), str(error))


def _all_rows(connection: "sa.Connection", statement: Any) -> list[Any]:
    with connection.begin():
        return list(connection.execute(statement).all())


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column of DuckDB; a time that Python lacks is a text."""
    try:
        return list(column.to_pylist())
    except OverflowError:
        found: list[Any] = []
        for cell, text in zip(column, column.cast(pa.string()), strict=True):
            try:
                found.append(cell.as_py())
            except OverflowError:
                found.append(text.as_py())
        return found


def _array_of(field: pa.Field, cells: Sequence[Any]) -> pa.Array:
    plain = _PLAIN.get(field.type.id)
    try:
        values = cells if plain is None else [None if v is None else plain(v) for v in cells]
        return pa.array(values, field.type)
    except ARROW_ERRORS as error:
        raise ValueError(f"column {field.name!r}: {error}") from error


def _behind(by: "Sequence[sa.ColumnElement[Any]]", place: Sequence[Any]) -> Any:
    """Return the condition for rows behind a place, by their first column as far as that tells."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    first, value = by[0], sa.literal(place[0], sa.types.NullType())
    if len(by) == 1:
        return first > value
    return sa.and_(first >= value, sa.or_(first > value, _behind(by[1:], place[1:])))


def _bool_of(value: Any) -> bool:
    if value in {0, 1}:
        return bool(value)
    raise ValueError(f"{value!r:.100} is neither true nor false")


def _text_of(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value) if isinstance(value, UUID) else value


def _decimal_of(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def _time_of(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else _no_number(value)


def _date_of(value: Any) -> Any:
    return date.fromisoformat(value) if isinstance(value, str) else _no_number(value)


def _no_number(value: Any) -> Any:
    if isinstance(value, int | float):
        raise TypeError(f"{value!r} is no time: read it by schema= as a number, with time_unit=")
    return value


#: What drivers give that Arrow does not take for a value of a type.
_PLAIN: Final[dict[int, Callable[[Any], Any]]] = {
    pa.bool_().id: _bool_of,
    pa.string().id: _text_of,
    pa.decimal128(1).id: _decimal_of,
    pa.timestamp("us").id: _time_of,
    pa.date32().id: _date_of,
}
