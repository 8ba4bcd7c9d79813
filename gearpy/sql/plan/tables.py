"""What the names of tables in a query stand for: streams, sources, views and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from gearpy.connectors.files.datasets import arrow, csv, jsonl, parquet
from gearpy.dsl.operators.operator import ReadOperator, sources_of
from gearpy.dsl.streams.program import Program
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError
from gearpy.sql.parse.syntax import Query, TableName
from gearpy.sql.parse.tokens import SqlText, did_you_mean
from gearpy.sql.plan.relations import Column, Relation
from gearpy.task.api.interfaces import Source

#: What can be read by a name.
Named: TypeAlias = "Stream[Any] | Source[Any] | Query | Relation"

_READERS: Final[Mapping[str, Callable[..., Source[Any]]]] = {
    ".parquet": parquet,
    ".csv": csv,
    ".jsonl": jsonl,
    ".ndjson": jsonl,
    ".arrow": arrow,
}
_PACKED: Final = frozenset({".gz", ".zst", ".bz2"})


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables that a query can name, and how it is to answer.

    Attributes:
        program: gets the steps.
        named: tables by name.
        functions: of the user, by name.
        emit: "changes", "per batch", "final", or empty for what fits the input.
        reads: what is read already, by name, and of files by the column of event times.
    """

    program: Program
    text: SqlText
    named: dict[str, Named]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    emit: str = ""
    reads: dict[tuple[str, str], Relation] = field(default_factory=dict)

    def with_views(self, views: Mapping[str, Named]) -> Tables:
        return replace(self, named={**self.named, **views})

    def find(self, table: TableName) -> tuple[str, Named]:
        """Return the key of a name and the table that it stands for.

        Raises:
            ConfigError: nothing has it.
        """
        if table.is_file:
            key = f"'{table.name}'"
            if key not in self.named:
                self.named[key] = self._file(table, "")
            return key, self.named[key]
        for key in (
            table.name,
            *(each for each in self.named if each.lower() == table.name.lower()),
        ):
            if key in self.named:
                return key, self.named[key]
        known = ", ".join(each for each in self.named if each[0] != "'") or "none"
        raise self.text.error(
            table.at,
            f"there is no table {table.name!r}{did_you_mean(table.name, self.named)} (there are: "
            f"{known}); a file stands in quotes: 'sales.parquet'",
        )

    def read(self, table: TableName, time: str = "") -> Relation | Query:
        """Return the rows of a stream, source or file; a source is read once, whoever asks.

        Args:
            time: the column of event times, of a file.
        """
        key, found = self.find(table)
        if isinstance(found, Query | Relation):
            return found
        place = (key, time if table.is_file else "")
        if place in self.reads:
            return self.reads[place]
        if isinstance(found, Source):
            if table.is_file and time:
                found = self._file(table, time)
            name = found.description if table.is_file else key
            # The name of a source is its own, so that what it keeps is found by it.
            given = "" if table.is_file else key
            found = self.program.add(ReadOperator(name=name, given=given, source=found))
        self.reads[place] = relation = self._relation(found, table)
        return relation

    def _relation(self, stream: Stream[Any], table: TableName) -> Relation:
        schema = stream._step.schema_given(declared=False)
        if schema is None:
            raise self.text.error(
                table.at,
                f"the records of {table.name} have no columns that are known: give its source a "
                "schema, as in gp.collection(values, schema={'shop': str, 'price': int}), or map "
                "to a class: def to_sale(line) -> Sale",
            )
        columns = tuple(Column(each.name, each.name, each.type) for each in schema.arrow)
        times = {read.source.time_column for read in sources_of(stream._step)}
        time = times.pop() if len(times) == 1 else None
        return Relation(stream, columns, time if time in schema.arrow.names else None)

    def _file(self, table: TableName, time: str) -> Source[Any]:
        path = PurePath(table.name)
        suffixes = [each for each in path.suffixes if each not in _PACKED]
        reader = _READERS.get(suffixes[-1] if suffixes else "")
        if reader is None:
            raise self.text.error(
                table.at,
                f"what {table.name!r} holds is not told by its name: files end with "
                f"{', '.join(_READERS)}; of another one make a source, as in CREATE SOURCE sales "
                f"WITH (connector = 'csv', path = '{table.name}')",
            )
        try:
            return reader(table.name, **({"time": time} if time else {}))
        except ConfigError as error:
            raise self.text.error(table.at, str(error)) from None
