"""Relations: streams whose columns have names and types, as a query sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.core.window.windows import Windows
from gearpy.dsl.operators.operator import sources_of
from gearpy.dsl.operators.records import FunctionOperator
from gearpy.dsl.streams.stream import Stream
from gearpy.expressions import kernels
from gearpy.expressions.arrow_types import plain_type
from gearpy.expressions.expr import Expr, col
from gearpy.expressions.nodes import ColumnNode
from gearpy.sql.parse.syntax import Expression, Name, Star
from gearpy.sql.parse.tokens import SqlText, did_you_mean
from gearpy.task.chain.fused import RowOperator
from gearpy.task.stages.plan import PhysicalPlan, physical_plan

if TYPE_CHECKING:
    from gearpy.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation.

    Attributes:
        name: in SQL.
        field: of the records.
        table: the name of its table.
        is_bound: it is the start or end of a window, and the results of that window have the same
            event time.
    """

    name: str
    field: str
    type: pa.DataType
    table: str = ""
    is_bound: bool = False


class Fields(dict[str, Expr]):
    """The fields that records get, by name, and what each one is."""

    def add(self, value: Expr, wanted: str, taken: Iterable[str] = ()) -> str:
        """Add a field; return its name, which is that one, or has a number behind it."""
        name = free_name(wanted, [*self, *taken])
        self[name] = value
        return name


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of a table or query.

    Attributes:
        time: the field that event times come from; empty if none does, None if that is not known.
        windows: what the rows are cut into, where nothing has taken them together yet.
        changes: rows replace earlier ones, which a running aggregate has given.
        most: how many rows come at most; None: nobody knows.
    """

    stream: Stream[Any]
    columns: tuple[Column, ...]
    time: str | None = None
    windows: Windows | None = None
    changes: bool = False
    most: int | None = None

    @property
    def is_bounded(self) -> bool:
        return all(read.source.bounded for read in sources_of(self.stream._step))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the records, which have no bounds of windows that nothing has taken yet."""
        there = [each for each in self.columns if not (self.windows and each.is_bound)]
        return pa.schema([(each.field, each.type) for each in there])

    @property
    def fields(self) -> Fields:
        """All fields of the records, as they are."""
        return Fields({each.name: col(each.name) for each in self.schema})

    def with_fields(self, fields: Fields, *columns: Column) -> Relation:
        """Return the rows with other fields, some of which are columns, too."""
        stream = selected(self.stream, fields)
        return replace(self, stream=stream, columns=(*self.columns, *columns))

    def plan(self) -> PhysicalPlan:
        """Return the plan of all that leads here.

        Raises:
            ConfigError: it cannot run; all mistakes at once.
        """
        return physical_plan(self.stream._up_to(self.stream._step))

    def named(self, table: str) -> Relation:
        """Return the same rows under another name of the table."""
        columns = tuple(replace(each, table=table) for each in self.columns)
        return replace(self, columns=columns)

    # -- names -------------------------------------------------------------------------------------

    def find(self, name: Name, text: SqlText) -> tuple[Column, tuple[str, ...]]:
        """Return the column that a name means, and the fields in it.

        Raises:
            ConfigError: there is none, or there are several.
        """
        first, *rest = name.parts
        if rest and (of_table := _alike(first, self.columns, "table")):
            found = _alike(rest[0], of_table, "name")
            fields = tuple(rest[1:])
            if not found:
                raise self._unknown(rest[0], of_table, name.at, text, f" in {first!r}")
        else:
            found, fields = _alike(first, self.columns, "name"), tuple(rest)
        if not found:
            raise self._unknown(first, self.columns, name.at, text, "")
        if len(found) > 1:
            tables = dict.fromkeys(f"{each.table}.{each.name}" for each in found)
            advice = f"write {' or '.join(tables)}"
            if len(tables) < len(found):
                advice = "give each a name, as in FROM sales AS a JOIN sales AS b"
            raise text.error(name.at, f"{name} is in several tables: {advice}")
        return found[0], fields

    def stars(self, star: Star, text: SqlText) -> list[Column]:
        columns: Sequence[Column] = self.columns
        if star.table:
            columns = _alike(star.table, columns, "table")
            if not columns:
                tables = dict.fromkeys(each.table for each in self.columns if each.table)
                raise text.error(
                    star.at,
                    f"there is no table {star.table!r}{did_you_mean(star.table, tables)} "
                    f"(there are: {', '.join(tables)})",
                )
        for name in star.without:
            if not _alike(name, columns, "name"):
                raise self._unknown(name, columns, star.at, text, "")
        left_out = {each for name in star.without for each in _alike(name, columns, "name")}
        return [each for each in columns if each not in left_out]

    def _unknown(
        self, name: str, columns: Iterable[Column], at: int, text: SqlText, where: str
    ) -> ConfigError:
        names = list(dict.fromkeys(each.name for each in columns))
        return text.error(
            at,
            f"there is no column {name!r}{where}{did_you_mean(name, names)} "
            f"(there are: {', '.join(names)})",
        )


def _alike(name: str, columns: Iterable[Column], what: str) -> list[Column]:
    """Return the columns of a name or table: letter by letter, else whatever the case."""
    listed = list(columns)
    exact = [each for each in listed if getattr(each, what) == name]
    return exact or [each for each in listed if getattr(each, what).lower() == name.lower()]


#: Columns in which the values of expressions stand, as those of groups and aggregates.
Computed = Mapping[Expression, Column]


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: as it is, or with a number behind it."""
    known = {each.lower() for each in taken}
    if wanted.lower() not in known:
        return wanted
    number = 1
    while f"{wanted}_{number}".lower() in known:
        number += 1
    return f"{wanted}_{number}"


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both; None if there is none without a cast."""
    if a == b:
        return a
    try:
        return kernels.common_type("", [plain_type(a), plain_type(b)])
    except TypeError:
        return None


def selected(stream: Stream[Any], fields: Mapping[str, Expr]) -> Stream[Any]:
    """Return dicts of some fields, whatever their names are; records that are such as they are."""
    schema = stream._step.schema_given(declared=False)
    names = schema.arrow.names if schema is not None and schema.row_type is None else ()
    as_it_is = [(name, ColumnNode(name)) for name in names]
    if not fields or [(name, each.node) for name, each in fields.items()] == as_it_is:
        return stream
    return stream.select(*(value.alias(name) for name, value in fields.items()))


def made(
    stream: Stream[Any],
    kind: Literal["map", "flat_map"],
    function: Callable[[Any], Any],
    schema: pa.Schema,
    name: str,
) -> Stream[Any]:
    """Return the rows, of a schema, that a function makes of records."""
    step = FunctionOperator(
        name=name,
        kind=kind,
        inputs=(stream._step,),
        operator=RowOperator(kind, name, function),
        gives=RowSchema(schema),
    )
    return stream._program.add(step)
