"""The planner of queries: a tree becomes calls of the stream language."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.tables import rows
from gearpy.core.window import aggregates as agg
from gearpy.core.window.windows import (
    WindowClock,
    Windows,
    global_window,
    session,
    sliding,
    tumbling,
)
from gearpy.dsl.operators.operator import ReadOperator
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, col, lit
from gearpy.sql.parse.expressions import RESERVED, plain_value
from gearpy.sql.parse.statements import PROCTIME
from gearpy.sql.parse.syntax import (
    Body,
    Case,
    Cast,
    Expression,
    FunctionCall,
    Item,
    JoinTable,
    Literal,
    MacroCall,
    Name,
    Order,
    Over,
    Query,
    QueryValue,
    RowFrame,
    Select,
    Star,
    SubQuery,
    Table,
    TableName,
    Union,
    Unnest,
    Values,
    WindowTable,
    calls_in,
    overs_in,
    parts_of,
    rewritten,
)
from gearpy.sql.plan.groups import END, START, TIMES, GroupPlan, aggregates_in
from gearpy.sql.plan.joins import plan_join
from gearpy.sql.plan.over import ROW_NUMBER, plan_over, with_bound
from gearpy.sql.plan.records import Listed, Rank, Unnested
from gearpy.sql.plan.relations import Column, Relation, common_type, free_name, made, selected
from gearpy.sql.plan.subqueries import names_in, with_queries
from gearpy.sql.plan.tables import Tables
from gearpy.sql.plan.values import Scope, conjunction, conjuncts, with_functions

#: Columns by which rows are ordered and which are not selected begin so.
_HIDDEN: Final = "#order"
#: Column that tells rows of the first table from those of the second.
_IS_FIRST: Final = "#first"


def plan_query(query: Query, tables: Tables, *, is_table: bool = False) -> Relation:
    """Return the rows of a query.

    Args:
        is_table: it stands in FROM, and what is around it may take rows of windows together.

    Raises:
        ConfigError: it cannot be done on a stream, or names what is not there; and where.
    """
    tables = tables.with_views(dict(query.views))
    if query.emit:
        tables = replace(tables, emit=query.emit)
    if isinstance(query.body, Select):
        is_table = is_table and not query.order and query.limit is None and not query.offset
        relation = _select(query.body, tables, query.order, is_table=is_table)
    else:
        relation = _body(query.body, tables)
    if query.order or query.limit is not None or query.offset:
        relation = _ordered(relation, query, tables)
    return relation


def described(query: Query | None, tables: Tables) -> Relation:
    """Return the names of columns of a query and their types; of none those of all tables."""
    cells: list[tuple[str, ...]]
    if query is None:
        cells = [(name,) for name in tables.named if name[0] != "'"]
        names: tuple[str, ...] = ("name",)
    else:
        relation = plan_query(query, tables)
        cells = [(each.name, str(each.type)) for each in relation.columns]
        names = ("column_name", "column_type")
    columns = zip(*cells, strict=True) if cells else [[] for _ in names]
    return _of_table(pa.table([pa.array(each, pa.string()) for each in columns], names), tables)


def _body(body: Body, tables: Tables) -> Relation:
    match body:
        case Select():
            return _select(body, tables)
        case Query():
            return plan_query(body, tables)
        case Union():
            return _union(body, tables)


# -- tables ----------------------------------------------------------------------------------------


def plan_table(table: Table, tables: Tables) -> Relation:
    match table:
        case TableName():
            return _named(table, tables)
        case SubQuery(query=query, alias=alias):
            return _renamed(plan_query(query, tables, is_table=True), table, tables).named(alias)
        case Values():
            return _of_values(table, tables)
        case WindowTable():
            return _windowed(table, tables)
        case Unnest():
            raise tables.text.error(
                table.at, "UNNEST takes a list of the tables before it: FROM t, UNNEST(t.tags) AS x"
            )
        case JoinTable(left=left, right=Unnest() as right, kind=kind):
            return _unnested(plan_table(left, tables), right, tables, keeps=kind == "left")
        case JoinTable():
            return plan_join(table, tables, plan_table)


def _unnested(relation: Relation, table: Unnest, tables: Tables, *, keeps: bool) -> Relation:
    """Return rows with the items of a list, which is one of their columns or computed of them."""
    scope = Scope(tables.text, relation, functions=tables.functions)
    kind = scope.type_of(table.value)
    if not hasattr(kind, "value_type") or pa.types.is_dictionary(kind):
        raise tables.text.error(table.value.at, f"UNNEST takes a list, and this is {kind}")
    fields = relation.fields
    shown, into = tuple(fields), free_name(table.name, fields)
    of = fields.add(scope.value(table.value), "list")
    item = Column(table.name, into, kind.value_type, table.alias)
    rows = selected(relation.stream, fields)
    schema = pa.schema([*relation.schema, (into, item.type)])
    stream = made(rows, "flat_map", Unnested(shown, of, into, keeps), schema, "unnest")
    return replace(relation, stream=stream, columns=(*relation.columns, item))


def _named(table: TableName, tables: Tables, time: str = "") -> Relation:
    found = tables.read(table, time)
    if isinstance(found, Query):
        key, _ = tables.find(table)
        # What a view names is not what stands beside it in the query.
        found = plan_query(found, tables)
        tables.named[key] = found
    name = table.name
    if table.is_file:  # That of the file, without its end.
        name = PurePath(name).name.partition(".")[0]
    return found.named(table.alias or name)


def _renamed(relation: Relation, table: SubQuery, tables: Tables) -> Relation:
    if len(table.names) > len(relation.columns):
        raise tables.text.error(table.at, f"this query has {len(relation.columns)} columns")
    columns = [
        replace(column, name=name)
        for column, name in zip(relation.columns, table.names, strict=False)
    ]
    return replace(relation, columns=(*columns, *relation.columns[len(columns) :]))


def _of_values(values: Values, tables: Tables) -> Relation:
    cells = [[plain_value(each, tables.text) for each in row] for row in values.rows]
    try:
        columns = [pa.array(column) for column in zip(*cells, strict=True)]
    except pa.ArrowException as error:
        raise tables.text.error(values.at, f"values of a column are of one type: {error}") from None
    columns = [each.cast(TIMES) if pa.types.is_timestamp(each.type) else each for each in columns]
    names = [f"col{place}" for place in range(len(columns))]
    return _of_table(pa.table(columns, names), tables)


def _of_table(table: pa.Table, tables: Tables) -> Relation:
    stream = tables.program.add(ReadOperator(name="values", source=rows(table)))
    return Relation(stream, tuple(Column(each.name, each.name, each.type) for each in table.schema))


def _windowed(table: WindowTable, tables: Tables) -> Relation:
    text = tables.text
    if isinstance(table.table, SubQuery):
        relation = plan_query(table.table.query, tables)
    else:
        relation = _named(table.table, tables, "" if table.time == PROCTIME else table.time)
    name = Name(table.time_at, (table.time,))
    column = None if table.time == PROCTIME else relation.find(name, text)[0]
    is_known = column is not None and relation.time is not None and not column.is_bound
    if is_known and column is not None and column.field != relation.time:
        raise text.error(
            table.time_at,
            f"event times do not come from {table.time!r}, but from "
            f"{relation.time or 'no column of these'}: windows are of event time, so give the "
            f"source time={table.time!r}",
        )
    if relation.windows is not None or relation.changes:
        raise text.error(table.at, "these rows are in windows already, or replace earlier ones")
    relation = relation.named(table.alias or relation.columns[0].table)
    bounds = tuple(
        Column(each, each, TIMES, relation.columns[0].table, is_bound=True) for each in (START, END)
    )
    kept = tuple(each for each in relation.columns if each.name not in (START, END))
    return replace(relation, columns=kept + bounds, windows=_windows(table, tables))


def _windows(table: WindowTable, tables: Tables) -> Windows:
    sizes = [f"{each.ms}ms" for each in table.sizes]
    clock: WindowClock = "processing" if table.time == PROCTIME else "event"
    try:
        match table.kind:
            case "tumble":
                return tumbling(sizes[0], clock=clock)
            case "session":
                return session(sizes[0], clock=clock)
            case _:
                return sliding(sizes[1], sizes[0], clock=clock)
    except ConfigError as error:
        raise tables.text.error(table.at, str(error)) from None


# -- selects ---------------------------------------------------------------------------------------


def _select(
    select: Select, tables: Tables, order: Sequence[Order] = (), *, is_table: bool = False
) -> Relation:
    select = _with_items(_crossed(with_bound(_with_first(select, order))))
    relation = plan_table(select.table, replace(tables, emit=""))  # It is said of these rows.
    scope = Scope(tables.text, relation, functions=tables.functions)
    items = [each for item in select.items for each in _expanded(item, relation, tables)]
    resolved = _Resolver(scope, items)
    if select.where is not None:
        scope = _filtered(scope, resolved.inner(select.where), tables)
        relation = scope.relation  # A query in WHERE may have taken its windows together.
    items = [Item(resolved.inner(item.value), item.alias) for item in items]
    having, qualify = (
        None if each is None else resolved.outer(each) for each in (select.having, select.qualify)
    )
    hidden = [Item(resolved.outer(each.by), f"{_HIDDEN}{n}") for n, each in enumerate(order)]
    if select.is_distinct:
        hidden = []
    everything = [*(item.value for item in (*items, *hidden)), having, qualify]
    calls = aggregates_in(everything)
    if calls or select.group or having is not None:
        keys = resolved.keys(select.group, items)
        names = {item.value: item.alias for item in items if item.alias}
        scope = _with_values(scope, [*keys, *calls], tables)
        group = GroupPlan(scope, names, select.at, _emit(relation, tables, select.at))
        scope = group.planned(keys, calls)
        if having is not None:
            scope = _filtered(scope, having, tables)
    elif relation.windows is not None and not overs_in(everything):
        if is_table and qualify is None and not select.is_distinct:
            scope = _with_values(scope, [item.value for item in items], tables)
            return _projected(items, scope, relation.windows)
        raise tables.text.error(
            select.at,
            f"rows of windows are taken together by GROUP BY {START}, by a join, or by "
            "a function OVER (PARTITION BY window_start ...)",
        )
    if overs_in(everything):
        emit = _emit(scope.relation, tables, select.at)
        scope = plan_over(scope, everything, qualify, emit)
    elif qualify is not None:
        raise tables.text.error(
            qualify.at, "QUALIFY bounds the place of a row: row_number() OVER (...) <= n"
        )
    scope = _with_values(scope, [item.value for item in items], tables)
    found = _projected([*items, *hidden], scope)
    return _distinct(found, tables, select.at) if select.is_distinct else found


def _with_items(select: Select) -> Select:
    """Return a select with UNNEST among what is selected as a table beside the others."""
    lists = calls_in([each.value for each in select.items], ("unnest",))
    if not lists or len(lists[0].arguments) != 1:
        return select
    name = Name(lists[0].at, ("#unnest", "unnest"))
    items = tuple(
        replace(item, value=rewritten(item.value, lambda part: name if part == lists[0] else None))
        for item in select.items
    )
    of = Unnest(lists[0].at, lists[0].arguments[0], *name.parts)
    table = JoinTable(select.at, select.table, of, "cross", None, (), False)
    return replace(select, items=items, table=table)


def _with_first(select: Select, order: Sequence[Order]) -> Select:
    """Return a select with DISTINCT ON as what it is: the first row of each of some values."""
    if not select.distinct_on:
        return select
    over = Over(select.distinct_on, tuple(order), RowFrame("range", None, 0))
    place = FunctionCall(select.at, ROW_NUMBER, (), over=over)
    first = FunctionCall(select.at, "=", (place, Literal(select.at, 1)))
    return replace(select, qualify=conjunction([*conjuncts(select.qualify), first]))


def _crossed(select: Select) -> Select:
    """Return a select whose tables with commas between them are joined by what WHERE says."""
    conditions = conjuncts(select.where)

    def joined(table: Table, *, takes_all: bool) -> Table:
        if not isinstance(table, JoinTable):
            return table
        own = {name.lower() for name in names_in(table)}
        table = replace(table, left=joined(table.left, takes_all=False))
        if table.kind != "cross" or isinstance(table.right, Unnest):
            return table
        on = [
            each
            for each in conditions
            for parts in [[*parts_of(each)]]
            if not any(isinstance(part, QueryValue) for part in parts)
            and (
                takes_all
                or all(
                    part.parts[1:] and part.parts[0].lower() in own
                    for part in parts
                    if isinstance(part, Name)
                )
            )
        ]
        for each in on:
            conditions.remove(each)
        return replace(table, kind="inner", on=conjunction(on))

    table = joined(select.table, takes_all=True)
    return replace(select, table=table, where=conjunction(conditions))


def _emit(relation: Relation, tables: Tables, at: int) -> str:
    """Return the EMIT of groups: the one that is said, else "final" where there is an end."""
    if tables.emit == "final" and not relation.is_bounded:
        raise tables.text.error(
            at,
            "EMIT FINAL waits for the end of the input, and this input has none: give the query "
            "windows, such as FROM tumble(...), or say EMIT CHANGES",
        )
    return tables.emit or ("final" if relation.is_bounded else "")


def _with_values(
    scope: Scope, nodes: Sequence[Expression], tables: Tables, conditions: Sequence[Expression] = ()
) -> Scope:
    """Return a scope in which what is no expression of a record stands in columns."""
    return with_functions(with_queries(scope, nodes, tables, plan_query, conditions), nodes)


def _filtered(scope: Scope, condition: Expression, tables: Tables) -> Scope:
    found = aggregates_in([condition]) if not scope.computed else []
    if found:
        raise scope.text.error(
            found[0].at, f"{found[0].name} in WHERE is not known yet: put it into HAVING"
        )
    scope = _with_values(scope, [condition], tables, conjuncts(condition))
    relation = scope.relation
    value = scope.condition(condition)
    return replace(scope, relation=replace(relation, stream=relation.stream.filter(value)))


def _expanded(item: Item, relation: Relation, tables: Tables) -> list[Item]:
    if not isinstance(item.value, Star):
        return [item]
    star = item.value
    changed = {each.alias.lower(): each for each in star.changed}
    found: list[Item] = []
    for each in relation.stars(star, tables.text):
        own = Item(Name(star.at, (each.table, each.name)), "")
        found.append(changed.pop(each.name.lower(), own))
    if changed:
        raise tables.text.error(star.at, f"REPLACE: there is no column {next(iter(changed))!r}")
    return found


class _Resolver:
    """Writes names out with their tables, so that equal expressions are equal trees.

    Args:
        items: what is selected, under names of which the others may make use.
    """

    def __init__(self, scope: Scope, items: Sequence[Item]) -> None:
        self._scope = scope
        named = {(item.alias or _name_of(item.value)).lower(): item for item in reversed(items)}
        self._aliases = {name: item.value for name, item in named.items()}
        self._columns = {each.name.lower() for each in scope.relation.columns}
        self._open: set[str] = set()  # A name for what is selected does not stand for itself.

    def inner(self, node: Expression) -> Expression:
        """Resolve what stands before the group: a name is first that of a column."""
        return rewritten(node, lambda part: self._named(part, self._columns | self._open))

    def outer(self, node: Expression) -> Expression:
        """Resolve what stands behind it: a name is first that of what is selected."""
        return rewritten(node, lambda part: self._named(part, self._open))

    def keys(self, nodes: Sequence[Expression], items: Sequence[Item]) -> list[Expression]:
        """Resolve what is grouped by: a place stands for what is selected."""
        found: list[Expression] = []
        for node in nodes:
            if isinstance(node, Star):  # GROUP BY ALL
                found += [each.value for each in items if not aggregates_in([each.value])]
            elif isinstance(node, Literal) and type(node.value) is int:
                if not 1 <= node.value <= len(items):
                    raise self._scope.text.error(
                        node.at, f"there is no column {node.value}: {len(items)} are selected"
                    )
                found.append(items[node.value - 1].value)
            else:
                found.append(self.inner(node))
        return list(dict.fromkeys(found))

    def _named(self, part: Expression, others: Container[str]) -> Expression | None:
        if not isinstance(part, Name):
            return None
        alias = part.parts[0].lower()
        if len(part.parts) == 1 and alias in self._aliases and alias not in others:
            self._open.add(alias)
            found = self.inner(self._aliases[alias])
            self._open.remove(alias)
            return found
        column, fields = self._scope.relation.find(part, self._scope.text)
        return Name(part.at, (column.table, column.name, *fields))


def _projected(items: Sequence[Item], scope: Scope, windows: Windows | None = None) -> Relation:
    """Return the rows of what is selected.

    Args:
        windows: those in which the rows stay, whose bounds are no fields yet.
    """
    relation = scope.relation
    columns: list[Column] = []
    values: dict[str, Expr] = {}
    time = ""
    for item in items:
        of = scope.column(item.value)
        name = item.alias or (of.name if of else _name_of(item.value))
        if windows is not None and of is not None and of.is_bound:
            if name != of.name:
                raise scope.text.error(
                    item.value.at,
                    f"{of.name} of rows that nothing has taken together keeps its name: rename it "
                    "in the query around this one",
                )
            columns.append(of)
            continue
        if item.alias and any(each.name.lower() == name.lower() for each in columns):
            raise scope.text.error(item.value.at, f"two columns are called {name!r}")
        name = free_name(name, values)
        values[name] = scope.value(item.value)
        is_bound = of is not None and of.is_bound
        columns.append(Column(name, name, scope.type_of(item.value), is_bound=is_bound))
        if not time and relation.time and of is not None and of.field == relation.time:
            time = name
    stream = selected(relation.stream, values)
    return Relation(stream, tuple(columns), time, windows, changes=relation.changes)


def _name_of(node: Expression) -> str:
    match node:
        case MacroCall(name=name) | FunctionCall(name=name) if (
            name.replace("_", "").isalnum() and name not in RESERVED
        ):
            return name
        case Name(parts=parts):
            return parts[-1]
        case Cast(value=value):
            return _name_of(value)
        case Case():
            return "case"
        case _:
            return "column"


def _distinct(relation: Relation, tables: Tables, at: int) -> Relation:
    if relation.changes:
        raise tables.text.error(at, "DISTINCT over a running aggregate would show each value of it")
    if _emit(relation, tables, at) == "final":
        return _each_once(relation, at, tables)
    keyed: Any = relation.stream.key_by(*(each.field for each in relation.columns))
    return replace(relation, stream=keyed.distinct())


def _union(union: Union, tables: Tables) -> Relation:
    left, right = _body(union.left, tables), _body(union.right, tables)
    if len(left.columns) != len(right.columns):
        raise tables.text.error(
            union.at,
            f"{union.kind.upper()} takes rows of as many columns: {len(left.columns)} are selected "
            f"before it, and {len(right.columns)} behind it",
        )
    pairs = zip(left.columns, right.columns, strict=True)
    columns = tuple(Column(a.name, a.name, _common(a, b, union, tables)) for a, b in pairs)
    streams: list[Any] = []
    times: list[str] = []
    for side in (left, right):
        sides = [*zip(columns, side.columns, strict=True)]
        fields = {
            to.name: col(of.field) if of.type == to.type else col(of.field).cast(to.type)
            for to, of in sides
        }
        if union.kind != "union":
            fields[_IS_FIRST] = lit(side is left)
        stream = selected(side.stream, fields)
        if streams and stream._step is streams[0]._step:  # Each row once more.
            stream = stream.select(*(value.alias(name) for name, value in fields.items()))
        streams.append(stream)
        times.append(next((to.name for to, of in sides if of.field == side.time), ""))
    time = times[0] if times[0] == times[1] else ""
    changes = left.changes or right.changes
    relation = Relation(streams[0].merge(streams[1]), columns, time, changes=changes)
    if union.kind == "union":
        return relation if union.is_all else _distinct(relation, tables, union.at)
    what = union.kind.upper()
    if union.is_all or not relation.is_bounded:
        raise tables.text.error(
            union.at,
            f"{what} ALL counts rows: leave out ALL, or join with counts of the rows"
            if union.is_all
            else f"{what} compares all rows of two tables, and this input has no end: join the two "
            "by time instead",
        )
    marked = replace(relation, columns=(*columns, Column(_IS_FIRST, _IS_FIRST, pa.bool_())))
    mark = (Name(union.at, ("", _IS_FIRST)),)
    all_of, some = (FunctionCall(union.at, name, mark) for name in ("bool_and", "bool_or"))
    both = FunctionCall(union.at, "and", (FunctionCall(union.at, "not", (all_of,)), some))
    having = all_of if union.kind == "except" else both
    return _each_once(marked, union.at, tables, [all_of, some], having)


def _each_once(
    relation: Relation,
    at: int,
    tables: Tables,
    calls: Sequence[FunctionCall] = (),
    having: Expression | None = None,
) -> Relation:
    """Return each row once; those alone of which a condition over aggregates is true."""
    keys: list[Expression] = [
        Name(at, (each.table, each.name)) for each in relation.columns if each.name != _IS_FIRST
    ]
    group = GroupPlan(Scope(tables.text, relation), {}, at)
    scope = group.planned(keys, calls)
    if having is not None:
        scope = _filtered(scope, having, tables)
    return _projected([Item(key, "") for key in keys], scope)


def _common(left: Column, right: Column, union: Union, tables: Tables) -> pa.DataType:
    kind = common_type(left.type, right.type)
    if kind is None:
        raise tables.text.error(
            union.at,
            f"{union.kind.upper()}: {left.name!r} is {left.type} before it, and {right.name!r} is "
            f"{right.type} behind it: cast one",
        )
    return kind


# -- order -----------------------------------------------------------------------------------------


def _ordered(relation: Relation, query: Query, tables: Tables) -> Relation:
    hidden = [each for each in relation.columns if each.name.startswith(_HIDDEN)]
    shown = tuple(each for each in relation.columns if each not in hidden)
    if not relation.is_bounded:
        what = "ORDER BY" if query.order else "LIMIT"
        raise tables.text.error(
            query.order[0].by.at if query.order else query.at,
            f"{what} needs all rows, and this input has no end: for the first rows of each window "
            "take row_number() OVER (PARTITION BY window_start ORDER BY ...) <= n",
        )
    if not query.order:
        stream = relation.stream if not query.offset else relation.stream.skip(query.offset)
        if query.limit is not None:
            # Without an order any rows will do: those that come first, so that the query can end.
            stream = stream.take(query.limit, ordered=bool(query.offset))
        return replace(relation, stream=stream, most=query.limit)
    scope = Scope(tables.text, replace(relation, columns=shown))
    fields = tuple(
        (_order_field(order, place, relation, scope), order.is_descending, order.nulls_first)
        for place, order in enumerate(query.order)
    )
    everything = relation.stream.window(global_window()).aggregate(rows=agg.collect())
    listed = made(
        everything,
        "flat_map",
        Listed(Rank(fields), query.offset, query.limit),
        relation.schema,
        "order by",
    )
    if hidden:
        listed = selected(listed, {each.field: col(each.field) for each in shown})
    return replace(relation, stream=listed, columns=shown)


def _order_field(order: Order, place: int, relation: Relation, scope: Scope) -> str:
    if isinstance(order.by, Literal) and type(order.by.value) is int:
        if not 1 <= order.by.value <= len(scope.relation.columns):
            raise scope.text.error(order.by.at, f"there is no column {order.by.value}")
        return scope.relation.columns[order.by.value - 1].field
    hidden = f"{_HIDDEN}{place}"
    if any(each.field == hidden for each in relation.columns):
        return hidden
    column = scope.column(order.by)
    if column is None:
        raise scope.text.error(
            order.by.at, "of united or distinct rows the order is that of columns: name one"
        )
    return column.field
