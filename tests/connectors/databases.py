"""Asks databases of all kinds, as a reader of their tables does."""

from contextlib import closing
from typing import Any

import duckdb

from gearpy.connectors.sql.database import Database


def ask(url: str, text: str) -> list[tuple[Any, ...]]:
    """Return what a reader sees, by the database's own library."""
    if url.startswith("duckdb"):
        with closing(duckdb.connect(url.removeprefix("duckdb:///"))) as file:
            file.execute("set timezone = 'UTC'")
            return file.execute(text).fetchall()
    with closing(Database("test", url).connect()) as connection, connection.begin():
        done = connection.exec_driver_sql(text)
        return [tuple(row) for row in done.all()] if done.returns_rows else []
