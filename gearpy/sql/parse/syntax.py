"""What SQL says, as a tree. Places in the text do not count when trees are compared."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the text, and where it begins."""

    at: int = field(compare=False)


# -- expressions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, text, truth value, date, time, or null (None)."""

    value: Any


@dataclass(frozen=True, slots=True)
class TimeSpan(Node):
    """A length of time; months are of no length that is known, but of a calendar."""

    microseconds: int
    months: int = 0

    @property
    def ms(self) -> int:
        return self.microseconds // 1000


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column, with its table before it, or fields of it behind it."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(filter(None, self.parts))


@dataclass(frozen=True, slots=True)
class Star(Node):
    """All columns, of a table if one is named, without some, and with others in their places."""

    table: str = ""
    without: tuple[str, ...] = ()
    changed: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFrame:
    """The rows around a row that a function sees.

    Attributes:
        unit: "rows"; or "range", of what they are ordered by.
        start: how far behind the row the first one is, 0 for the row itself; None: it has no bound.
        end: likewise of the last one.
    """

    unit: str
    start: int | TimeSpan | None
    end: int | TimeSpan | None


@dataclass(frozen=True, slots=True)
class Over:
    """The rows that a function over rows sees; with the name of a window, as that has them."""

    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: RowFrame
    window: str = ""


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function or an operator, whose name is its symbol or word, and its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    is_distinct: bool = False
    where: Expression | None = None
    over: Over | None = None


@dataclass(frozen=True, slots=True)
class Case(Node):
    """The value of the first condition that is true."""

    cases: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class MacroCall(Node):
    """A call, and the expression of other functions that stands for it."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A value as another type."""

    value: Expression
    type: str
    is_try: bool = False


@dataclass(frozen=True, slots=True)
class QueryValue(Node):
    """A query in the place of a value, or of what ``in`` and ``exists`` look at."""

    query: Query


Expression: TypeAlias = (
    Literal | TimeSpan | Name | Star | FunctionCall | Case | Cast | MacroCall | QueryValue
)


@dataclass(frozen=True, slots=True)
class Order:
    """What rows are ordered by."""

    by: Expression
    is_descending: bool
    nulls_first: bool


# -- queries ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """What is selected, under a name if there is one."""

    value: Expression
    alias: str


@dataclass(frozen=True, slots=True)
class TableName(Node):
    """A stream, view or file by name."""

    name: str
    alias: str
    is_file: bool = False
    as_of: Expression | None = None


@dataclass(frozen=True, slots=True)
class SubQuery(Node):
    """A query in the place of a table, whose columns may get other names."""

    query: Query
    alias: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Values(Node):
    """Rows of plain values."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class WindowTable(Node):
    """The rows of a table in windows: of the kind "tumble", "hop" or "session"."""

    kind: str
    table: TableName | SubQuery
    time: str
    time_at: int
    sizes: tuple[TimeSpan, ...]
    alias: str


@dataclass(frozen=True, slots=True)
class JoinTable(Node):
    """Rows of two tables beside each other.

    Its ``kind`` is "inner", "left", "right", "full", or "cross" where WHERE says what is equal.
    """

    left: Table
    right: Table
    kind: str
    on: Expression | None
    using: tuple[str, ...]
    is_asof: bool


@dataclass(frozen=True, slots=True)
class Unnest(Node):
    """The items of a list in each row of the tables before it, as a column; see `JoinTable`."""

    value: Expression
    alias: str
    name: str


Table: TypeAlias = TableName | SubQuery | Values | WindowTable | Unnest | JoinTable


@dataclass(frozen=True, slots=True)
class Select(Node):
    """One select."""

    items: tuple[Item, ...]
    table: Table
    where: Expression | None
    group: tuple[Expression, ...]
    having: Expression | None
    qualify: Expression | None
    is_distinct: bool
    distinct_on: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Union(Node):
    """The rows of both; ``kind`` is "union", or "intersect" or "except" for some of the first."""

    left: Body
    right: Body
    kind: str
    is_all: bool


Body: TypeAlias = "Select | Union | Query"


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A select, or several united, with what stands before and behind it.

    Attributes:
        views: queries by name, from ``with``.
        emit: "changes", "per batch", "final", or empty if nothing is said.
    """

    views: tuple[tuple[str, Query], ...]
    body: Body
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    emit: str


# -- statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateConnector(Node):
    """A source or sink ("source", "sink") of a connector, its options, and its columns if given."""

    what: str
    name: str
    options: Mapping[str, Any]
    columns: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class CreateView(Node):
    """A query under a name."""

    name: str
    query: Query


@dataclass(frozen=True, slots=True)
class Insert(Node):
    """The rows of a query into a sink."""

    sink: str
    query: Query


@dataclass(frozen=True, slots=True)
class Explain(Node):
    """The plan of a query, instead of its rows."""

    query: Query


@dataclass(frozen=True, slots=True)
class Describe(Node):
    """The columns of a query and their types; the names of all tables without one."""

    query: Query | None


Statement: TypeAlias = CreateConnector | CreateView | Insert | Explain | Describe | Query


def parts_of(node: Expression) -> Iterator[Expression]:
    """Yield an expression and all in it, but for queries, whose names are their own."""
    yield node
    for each in fields(node):
        yield from _inside(getattr(node, each.name))


def _inside(value: Any) -> Iterator[Expression]:
    if isinstance(value, Node) and not isinstance(value, Query):
        yield from parts_of(value)  # type: ignore[arg-type]
    elif isinstance(value, tuple):
        for each in value:
            yield from _inside(each)
    elif isinstance(value, Over):
        yield from _inside((*value.partition, *(each.by for each in value.order)))


def calls_in(nodes: Iterable[Expression | None], names: Container[str]) -> list[FunctionCall]:
    """Return the calls of some functions over single records or groups, each once."""
    return [each for each in _calls(nodes) if each.over is None and each.name in names]


def overs_in(nodes: Iterable[Expression | None]) -> list[FunctionCall]:
    return [each for each in _calls(nodes) if each.over is not None]


def _calls(nodes: Iterable[Expression | None]) -> list[FunctionCall]:
    parts = (part for node in nodes if node is not None for part in parts_of(node))
    return list(dict.fromkeys(each for each in parts if isinstance(each, FunctionCall)))


def rewritten(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with those parts replaced for which a function gives others."""
    changed = change(node)
    if changed is not None:
        return changed
    return replace(
        node, **{each.name: _in_all(getattr(node, each.name), change) for each in fields(node)}
    )


def _in_all(value: Any, change: Callable[[Expression], Expression | None]) -> Any:
    if isinstance(value, Node) and not isinstance(value, Query):
        return rewritten(value, change)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return tuple(_in_all(each, change) for each in value)
    if isinstance(value, Over | Order):
        return replace(
            value,
            **{each.name: _in_all(getattr(value, each.name), change) for each in fields(value)},
        )
    return value
