"""Whole files of SQL: sources, sinks and views, and what is inserted into sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from pathlib import Path, PurePath
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.console import console
from gearpy.connectors.installed import connector
from gearpy.dsl.application import StreamApp
from gearpy.errors import ConfigError
from gearpy.sql.names.types import arrow_type
from gearpy.sql.parse.statements import parse_statements
from gearpy.sql.parse.syntax import (
    CreateConnector,
    CreateView,
    Describe,
    Explain,
    Insert,
    Query,
)
from gearpy.sql.parse.tokens import SqlText, did_you_mean
from gearpy.sql.plan.queries import described, plan_query
from gearpy.sql.plan.relations import Relation
from gearpy.sql.plan.tables import Named, Tables
from gearpy.task.api.interfaces import Sink, Source

#: Options of streams and not of their sources.
_OF_READ: Final = ("idle_after", "late", "max_ahead", "when_idle", "parallelism")
#: What sources and sinks are called, where that is shorter than the name of their function.
_SHORT: Final = {
    "sink": {
        "parquet": "parquet_folder",
        "csv": "csv_folder",
        "jsonl": "jsonl_folder",
        "arrow": "arrow_folder",
        "hive": "hive_folder",
        "delta": "delta_table",
        "kafka": "kafka_sink",
        "postgres": "postgres_sink",
        "sql": "sql_sink",
        "window_log": "window_log_folder",
    },
    "source": {},
}


#: Files of rows, by the ends of their names.
_ROWS: Final = ("parquet", "csv", "jsonl", "arrow")


class Job:
    """An application of statements of SQL.

    Attributes:
        app: has the steps.
        answers: the queries that are asked for by themselves, in their order, and whether their
            plan alone is.
    """

    def __init__(
        self, text: SqlText, app: StreamApp, functions: Mapping[str, Callable[..., Any]]
    ) -> None:
        self._text = text
        self.app = app
        self._sinks: dict[str, Sink[Any]] = {}
        named: dict[str, Named] = {}
        self._tables = Tables(app._program, text, named, functions)
        self.answers: list[tuple[Relation, bool]] = []
        for statement in parse_statements(text):
            match statement:
                case CreateConnector():
                    self._create(statement)
                case CreateView(name=name, query=query):
                    named[self._new(name, statement.at)] = plan_query(query, self._tables)
                case Insert():
                    self._insert(statement)
                case Describe(query=query):
                    self.answers.append((described(query, self._tables), False))
                case Explain(query=query):
                    self.answers.append((plan_query(query, self._tables), True))
                case Query():
                    self.answers.append((plan_query(statement, self._tables), False))

    def _new(self, name: str, at: int) -> str:
        if name in self._tables.named or name in self._sinks:
            raise self._text.error(at, f"{name} is there already")
        return name

    def _create(self, statement: CreateConnector) -> None:
        made = self._made(statement)
        name = self._new(statement.name, statement.at)
        if statement.what == "sink":
            if not isinstance(made, Sink):
                raise self._text.error(statement.at, f"{name}: this connector makes a source")
            self._sinks[name] = made
            return
        if not isinstance(made, Source):
            raise self._text.error(statement.at, f"{name}: this connector makes a sink")
        of_read = {key: statement.options[key] for key in _OF_READ if key in statement.options}
        if of_read:
            self._tables.named[name] = self.app.read(made, name=name, **of_read)
        else:
            self._tables.named[name] = made

    def _made(self, statement: CreateConnector) -> Any:
        """Return the source or sink that a connector's function makes of the options."""
        import gearpy  # noqa: PLC0415 - has the public names of all connectors

        options = {
            key: value
            for key, value in statement.options.items()
            if key not in ("connector", *_OF_READ)
        }
        given = statement.options.get("connector")
        if not isinstance(given, str):
            raise self._text.error(
                statement.at,
                f"{statement.name} has no connector: WITH (connector = 'parquet', ...)",
            )
        name = _SHORT[statement.what].get(given, given)
        if name == "files":  # Rows, if the name of a file says so; else lines.
            path = PurePath(str(options.get("path", "")))
            name = next(
                (kind for kind in (each[1:] for each in path.suffixes) if kind in _ROWS), name
            )
        function = getattr(gearpy, name, None) if name in dir(gearpy) else None
        if function is None:
            try:
                function = connector(given)
            except ConfigError as error:
                near = did_you_mean(given, [*dir(gearpy), *_SHORT[statement.what]])
                raise self._text.error(
                    statement.at, f"there is no connector {given!r}{near}; {error}"
                ) from None
        if statement.columns:
            options["schema"] = pa.schema(
                [(each, arrow_type(kind, at, self._text)) for each, kind, at in statement.columns]
            )
        return self._called(function, options, statement)

    def _called(
        self, function: Callable[..., Any], options: dict[str, Any], statement: CreateConnector
    ) -> Any:
        """Call a function; an option that it takes by place alone is put there."""
        parameters = signature(function).parameters
        is_open = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
        unknown = [
            key
            for key in options
            if key not in parameters and not is_open and not _of_places(key, parameters)
        ]
        if unknown:
            known = ", ".join(parameters)
            raise self._text.error(
                statement.at,
                f"{function.__name__} takes no option {unknown[0]!r}"
                f"{did_you_mean(unknown[0], parameters)} (it takes: {known})",
            )
        places: list[Any] = []
        for name, each in parameters.items():
            if each.kind is Parameter.POSITIONAL_ONLY and name in options:
                places.append(options.pop(name))
            elif each.kind is Parameter.VAR_POSITIONAL:
                key = next((key for key in (name, "path") if key in options), None)
                places += [] if key is None else [options.pop(key)]
        try:
            return function(*places, **options)
        except (ConfigError, TypeError) as error:
            raise self._text.error(statement.at, str(error)) from None

    def _insert(self, statement: Insert) -> None:
        sinks = {name.lower(): sink for name, sink in self._sinks.items()}
        sink = self._sinks.get(statement.sink) or sinks.get(statement.sink.lower())
        if sink is None:
            raise self._text.error(
                statement.at,
                f"there is no sink {statement.sink!r}{did_you_mean(statement.sink, self._sinks)}: "
                f"CREATE SINK {statement.sink} WITH (connector = 'parquet', path = '...')",
            )
        plan_query(statement.query, self._tables).stream.write(sink, name=statement.sink)


def text_of(path: Path) -> SqlText:
    """Return the text of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return SqlText(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def program_of(path: Path) -> StreamApp:
    """Return the application of a file of SQL; its queries answer on the console.

    Raises:
        ConfigError: it is not understood; and where.
    """
    job = Job(text_of(path), StreamApp(path.stem), {})
    for answer, _ in job.answers:
        answer.stream.write(console(), name="answer")
    return job.app


def _of_places(key: str, parameters: Mapping[str, Parameter]) -> bool:
    """Tell whether an option stands for arguments of which there may be many, such as paths."""
    return key == "path" and any(
        each.kind is Parameter.VAR_POSITIONAL for each in parameters.values()
    )
