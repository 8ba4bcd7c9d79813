"""A query as a stream: what `StreamApp.sql` and `Stream.sql` call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gearpy.dsl.streams.program import Program
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError
from gearpy.sql.parse.statements import parse_query
from gearpy.sql.parse.tokens import SqlText
from gearpy.sql.plan.queries import plan_query
from gearpy.sql.plan.tables import Named, Tables
from gearpy.task.api.interfaces import Source


def stream_of(
    program: Program,
    query: str,
    named: Mapping[str, object],
    functions: Mapping[str, Callable[..., Any]],
) -> Stream[Any]:
    """Return the rows of a query as a stream.

    Raises:
        ConfigError: it is no query, or cannot be done on a stream; and where.
    """
    tables: dict[str, Named] = {}
    for name, table in named.items():
        if isinstance(table, Stream):
            program.check_own("sql", table._program)
        elif not isinstance(table, Source):
            raise ConfigError(
                f"sql: {name} is {type(table).__name__}: a table is a stream of this application, "
                "or a source such as gp.csv('sales.csv')"
            )
        tables[name] = table
    text = SqlText(query)
    own = {name.lower(): function for name, function in functions.items()}
    return plan_query(parse_query(text), Tables(program, text, tables, own)).stream
