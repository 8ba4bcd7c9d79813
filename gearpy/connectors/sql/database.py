"""The address of a database, and what SQLAlchemy must be told of each kind."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gearpy.connectors.database.table_writer import TableDatabase
from gearpy.connectors.postgres.connection import is_passing
from gearpy.distribution import require
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlalchemy import Connection

_CONNECT_S: Final = 10
#: Databases that a sink has been tried with, and the driver that speaks to them.
_DRIVERS: Final = {
    "sqlite": ("sqlite3", "sqlite"),
    "duckdb": ("duckdb", "duckdb"),
    "postgresql": ("psycopg", "postgresql+psycopg"),
    "mysql": ("pymysql", "mysql+pymysql"),
    "mariadb": ("pymysql", "mariadb+pymysql"),
}
_CONNECT: Final[dict[str, dict[str, Any]]] = {
    # The task's thread and that of its timer take turns.
    "sqlite": {"timeout": _CONNECT_S, "check_same_thread": False},
    "postgresql": {"connect_timeout": _CONNECT_S},
    "mysql": {"connect_timeout": _CONNECT_S, "charset": "utf8mb4"},
}
#: A process that holds a lock for longer is not at work any more. MySQL would cut off what is too
#: long for a column, and take times to be in the zone of the machine.
_SETTINGS: Final = {
    "postgresql": (
        "set lock_timeout = '10s'",
        "set idle_in_transaction_session_timeout = '60s'",
        "set timezone = 'UTC'",
    ),
    "mysql": (
        "set session sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES')",
        "set session innodb_lock_wait_timeout = 10",
        "set session time_zone = '+00:00'",
    ),
}
#: Words of SQLite, and numbers of MySQL, for what passes by itself.
_PASSES: Final = {
    "sqlite": re.compile("locked|busy|disk is full|disk I/O"),
    "mysql": re.compile(r"^\((1040|1053|1205|1213|1927|2002|2003|2006|2013|0),"),
}


class Database(TableDatabase):
    """A database at a URL; shown to people without the password."""

    def __init__(self, operator: str, url: str) -> None:
        require(operator, "sqlalchemy")
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        try:
            self.url = sa.make_url(url)
        except sa.exc.ArgumentError as error:
            raise ConfigError(
                f"{operator}: this is no address of a database: write sqlite:///FILE, "
                "duckdb:///FILE, postgresql://user:password@host:port/database or mysql://..."
            ) from error
        name, _, driver = self.url.drivername.partition("+")
        if name not in _DRIVERS:
            raise ConfigError(
                f"{operator}: there is nothing here for {name!r}: take one of {', '.join(_DRIVERS)}"
            )
        module, known = _DRIVERS[name]
        if not driver:
            require(operator, module)
            self.url = self.url.set(drivername=known)
        self.dialect = "mysql" if name == "mariadb" else name
        self.is_file = name in {"sqlite", "duckdb"}
        if self.is_file:
            if not self.url.database or self.url.database == ":memory:":
                raise ConfigError(
                    f"{operator}: {url!r} names no file, so its rows would be gone with the "
                    f"process: write {name}:///FILE"
                )
            path = Path(self.url.database).expanduser().absolute()
            self.url = self.url.set(database=str(path))
        port = f":{self.url.port}" if self.url.port else ""
        server = f"{self.url.host or 'localhost'}{port}/{self.url.database or ''}"
        super().__init__(operator, f"{name} {self.url.database if self.is_file else server}")

    def connect(self, *, writes: bool = True) -> "Connection":
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        is_sqlite = self.dialect == "sqlite"
        engine = sa.create_engine(
            self.url,
            poolclass=sa.pool.NullPool,
            connect_args=_CONNECT[self.dialect],
            hide_parameters=True,
        )
        if is_sqlite:
            # Python's module would begin a transaction with the first change, behind what was read.
            sa.event.listen(engine, "connect", _leave_transactions_alone)
            if writes:  # Who reads needs no lock: each statement sees one moment.
                sa.event.listen(engine, "begin", _begin_at_once)
        connection = engine.connect()
        with connection.begin():
            for setting in _SETTINGS.get(self.dialect, ()):
                connection.exec_driver_sql(setting)
            if connection.dialect.name == "mariadb" or getattr(
                connection.dialect, "is_mariadb", False
            ):
                connection.exec_driver_sql("set session idle_transaction_timeout = 60")
        return connection

    def trouble(self, error: Exception) -> str:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        if self.dialect == "duckdb":
            return self._duckdb_trouble(error)
        if not isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
            return ""
        text = str(error.orig)
        if self.dialect == "postgresql":
            passes = is_passing(text)
        else:
            passes = bool(_PASSES[self.dialect].search(text))
        return f"{self.shown}: {text.splitlines()[0]}" if passes else ""

    def _duckdb_trouble(self, error: Exception) -> str:
        import duckdb  # noqa: PLC0415 - an extra

        text = str(error)
        passes = (
            # Another process has it, or this one for writing where it is to be read.
            (isinstance(error, duckdb.IOException) and "lock" in text)
            or (isinstance(error, duckdb.ConnectionException) and "configuration" in text)
            or isinstance(error, duckdb.TransactionException)
        )
        return f"{self.shown}: {text.splitlines()[0]}" if passes else ""


def duckdb_at(database: Database, *, read_only: bool = True) -> "DuckDBPyConnection":
    """Open a file; nobody else can write to it until it is closed."""
    import duckdb  # noqa: PLC0415 - an extra

    file = duckdb.connect(database.url.database or "", read_only=read_only)
    file.execute("set timezone = 'UTC'")
    return file


def _leave_transactions_alone(connection: Any, _: Any) -> None:
    connection.isolation_level = None


def _begin_at_once(connection: "Connection") -> None:
    connection.exec_driver_sql("begin immediate")
