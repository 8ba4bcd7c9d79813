"""Connects to a PostgreSQL server, and tells errors that pass from those that stay."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gearpy.connectors.database.table_writer import TableDatabase
from gearpy.distribution import require
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed, Identifier

_CONNECT_S: Final = 10
#: A process that holds a lock for longer is not at work any more.
_SETTINGS: Final = "-c lock_timeout=10s -c idle_in_transaction_session_timeout=60s"
#: Words of a server that will take connections later.
_LATER: Final = (
    *("starting up", "accepting connections", "recovery mode"),
    *("shutting down", "terminating", "too many"),
)
#: Lines of an error that do not say what it is.
_ASIDE: Final = re.compile(r"(HINT|DETAIL|CONTEXT|LINE \d+):|\s*\^")


class PostgresAddress(TableDatabase):
    """The place of a database, and its user; shown to people without the password."""

    def __init__(self, operator: str, url: str) -> None:
        require(operator, "psycopg")
        from psycopg import ProgrammingError  # noqa: PLC0415 - an extra
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

        try:
            parts: dict[str, Any] = conninfo_to_dict(url)
        except (ProgrammingError, AttributeError) as error:  # No text, or one that is none.
            raise ConfigError(
                f"{operator}: this is no address of a database: write "
                "postgresql://user:password@host:port/database"
            ) from error
        self._url = url
        database = f"/{parts['dbname']}" if parts.get("dbname") else ""
        place = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}{database}"
        super().__init__(operator, f"postgres {place}")

    def connect(self, application: str = "gearpy") -> "Connection[Any]":
        """Connect; each statement is a transaction unless it is in ``connection.transaction()``."""
        import psycopg  # noqa: PLC0415 - an extra

        return psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_S,
            application_name=application,
            options=_SETTINGS,
        )

    def trouble(self, error: Exception) -> str:
        import psycopg  # noqa: PLC0415 - an extra

        if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return ""
        text = str(error)
        if not is_passing(text):
            return ""
        lines = [each for each in text.splitlines() if each.strip() and not _ASIDE.match(each)]
        return f"{self.shown}: {lines[-1] if lines else repr(error)}"


def table_called(name: str) -> "Identifier":
    from psycopg import sql  # noqa: PLC0415 - an extra

    return sql.Identifier(*name.split("."))


def columns_called(names: Sequence[str]) -> "Composed":
    from psycopg import sql  # noqa: PLC0415 - an extra

    return sql.SQL(", ").join(map(sql.Identifier, names))


def read_as_texts_what_python_lacks(connection: "Connection[Any]") -> None:
    """Let values such as an endless date, or one before Christ, come as their texts from now on."""
    from psycopg import DataError  # noqa: PLC0415 - an extra
    from psycopg.types import datetime as types  # noqa: PLC0415

    def or_text(loader: Any) -> Any:
        class OrText(loader):  # type: ignore[misc] # a class, of many
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return OrText

    for name, loader in {
        "date": types.DateLoader,
        "time": types.TimeLoader,
        "timetz": types.TimetzLoader,
        "timestamp": types.TimestampLoader,
        "timestamptz": types.TimestamptzLoader,
        "interval": types.IntervalLoader,
    }.items():
        connection.adapters.register_loader(name, or_text(loader))


def is_passing(text: str) -> bool:
    """Tell from the text of an operational error whether it may pass by itself."""
    return "FATAL" not in text or any(word in text for word in _LATER)
