"""SQL over tables of state, by DuckDB, which runs in this process and sees nothing else."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.distribution import require
from gearpy.errors import ConfigError

#: The name that a table has in SQL beside its own, where there is only one.
STATE: Final = "state"


def query(tables: Mapping[str, pa.Table], sql: str) -> pa.Table:
    require("SQL", "duckdb")
    import duckdb  # noqa: PLC0415 - an extra

    named = {**tables, STATE: next(iter(tables.values()))} if len(tables) == 1 else tables
    settings: dict[str, Any] = {
        "enable_external_access": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        for name, table in named.items():
            connection.register(name, table)
        try:
            found = connection.sql(sql)
            if found is None:
                raise ConfigError("the query is refused: it gives no table")
            return found.to_arrow_table()
        except duckdb.Error as error:
            known = ", ".join(f'"{name}"' for name in sorted(named))
            raise ConfigError(f"the query is refused: {error}; tables are {known}") from error
