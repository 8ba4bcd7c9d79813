"""The first rows of each partition: row_number() OVER (...), with a bound for its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import TOP_MAX
from gearpy.core.window.windows import global_window
from gearpy.expressions.expr import Expr, col
from gearpy.sql.parse.syntax import (
    Expression,
    FunctionCall,
    Literal,
    Name,
    Query,
    Select,
    SubQuery,
    calls_in,
)
from gearpy.sql.parse.tokens import SqlText
from gearpy.sql.plan.groups import END, SAME_WINDOW, START
from gearpy.sql.plan.records import Listed, Rank, everything
from gearpy.sql.plan.relations import Column, Relation, free_name, made, selected
from gearpy.sql.plan.values import Scope, conjunction, conjuncts

_ROW_NUMBER: Final = "row_number"
#: The place that the last row has, by how it is compared with a number.
_LAST: Final = {"<=": 0, "<": -1, "=": 0}


def ranks_of(nodes: Iterable[Expression | None]) -> list[FunctionCall]:
    """Return the calls of row_number() in some expressions, each once."""
    return calls_in(nodes, (_ROW_NUMBER,), over=True)


def with_bound(select: Select) -> Select:
    """Return a select whose bound for a place of the query in it stands in that query."""
    table = select.table
    if not isinstance(table, SubQuery) or not isinstance(table.query.body, Select):
        return select
    inner = table.query.body
    places = {item.alias.lower(): item.value for item in inner.items if ranks_of([item.value])}
    bounds: list[Expression] = []
    others: list[Expression] = []
    for each in conjuncts(select.where):
        named = each.arguments[0] if isinstance(each, FunctionCall) and each.name in _LAST else None
        is_bound = isinstance(named, Name) and named.parts[-1].lower() in places
        (bounds if is_bound else others).append(each)
    if not bounds or inner.qualify is not None:
        return select
    first = bounds[0]
    assert isinstance(first, FunctionCall)
    assert isinstance(first.arguments[0], Name)
    place = places[first.arguments[0].parts[-1].lower()]
    qualify = replace(first, arguments=(place, *first.arguments[1:]))
    query: Query = replace(table.query, body=replace(inner, qualify=qualify))
    return replace(
        select, table=replace(table, query=query), where=conjunction([*others, *bounds[1:]])
    )


def plan_rank(
    scope: Scope, nodes: Sequence[Expression | None], qualify: Expression | None, *, is_final: bool
) -> Scope:
    """Return the scope of names after row_number(), which is a column of it.

    Raises:
        ConfigError: its place has no bound, or there are several.
    """
    text, relation = scope.text, scope.relation
    call, *more = ranks_of(nodes)
    if more:
        raise text.error(more[0].at, "one row_number() OVER (...) is known in a query: nest them")
    assert call.over is not None
    if not call.over.order:
        raise text.error(call.at, "row_number() needs an order: OVER (... ORDER BY price DESC)")
    limit, others = _bound(call, qualify, text)
    fields: dict[str, Expr] = {each.name: col(each.name) for each in relation.schema}
    bounds = [node for node in call.over.partition if _is_open(node, scope)]
    keys = [_field(node, scope, fields) for node in call.over.partition if node not in bounds]
    rank = Rank(
        tuple(
            (_field(each.by, scope, fields), each.is_descending, each.nulls_first)
            for each in call.over.order
        )
    )
    windows = relation.windows
    if windows is not None and not bounds:
        raise text.error(call.at, f"rows of windows are ranked by window: PARTITION BY {START}")
    if windows is None and is_final:
        windows = global_window()
    elif windows is None and any(
        (of := scope.column(node)) is not None and of.is_bound for node in call.over.partition
    ):
        windows = SAME_WINDOW
    if limit is None and windows is None:
        raise text.error(
            call.at,
            "the place of a row among all that will come is never known: bound it, as in QUALIFY "
            "row_number() OVER (...) <= 10, or rank the rows of each window",
        )
    place = free_name(_ROW_NUMBER, fields)
    listed: Any = selected(relation.stream, fields)
    if keys or windows is None:
        listed = listed.key_by(*keys) if keys else listed.key_by(everything)
    is_short = limit is not None and limit <= TOP_MAX
    if windows is None:
        listed = listed.top_n(limit, rank, when="changed")
    elif is_short:
        listed = listed.window(windows).top_n(limit, rank)
    else:
        listed = listed.window(windows).aggregate(rows=agg.collect())
    column = Column(place, place, pa.int64())
    columns = (*relation.columns, column)
    bounds_added = (START, END) if relation.windows is not None else ("", "")
    schema = pa.schema([(each.field, each.type) for each in columns])
    rows = Listed(
        None if is_short else rank, 0, limit, place, *bounds_added, fields=tuple(schema.names)
    )
    stream = made(listed, "flat_map", rows, schema, _ROW_NUMBER)
    found = replace(
        scope,
        relation=Relation(stream, columns, "", changes=windows is None),
        computed={**scope.computed, call: column},
    )
    if others is not None:
        stream = stream.filter(found.condition(others))
        found = replace(found, relation=replace(found.relation, stream=stream))
    return found


def _bound(
    call: FunctionCall, qualify: Expression | None, text: SqlText
) -> tuple[int | None, Expression | None]:
    """Return the last place that is asked for, and the other conditions."""
    limit: int | None = None
    others: list[Expression] = []
    for each in conjuncts(qualify):
        if (
            isinstance(each, FunctionCall)
            and each.name in _LAST
            and each.arguments[0] == call
            and isinstance(each.arguments[1], Literal)
            and type(each.arguments[1].value) is int
        ):
            last = each.arguments[1].value + _LAST[each.name]
            limit = last if limit is None else min(limit, last)
            if each.name == "=" and last != 1:
                others.append(each)
        else:
            others.append(each)
    if limit is not None and limit < 1:
        raise text.error(call.at, f"places begin with 1: the last one that is asked for is {limit}")
    return limit, conjunction(others)


def _is_open(node: Expression, scope: Scope) -> bool:
    """Tell whether this is a bound of windows that nothing has taken yet."""
    column = scope.column(node)
    return column is not None and _is_virtual(column, scope.relation)


def _is_virtual(column: Column, relation: Relation) -> bool:
    return relation.windows is not None and column.is_bound


def _field(node: Expression, scope: Scope, fields: dict[str, Expr]) -> str:
    """Return the field of an expression; one that is none gets a field."""
    column = scope.column(node)
    if column is not None:
        return column.field
    name = free_name("key", fields)
    fields[name] = scope.value(node)
    return name
