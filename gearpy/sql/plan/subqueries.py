"""Queries in the place of values: IN, EXISTS and single values, each as a join with its rows."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.window.accumulators import itself
from gearpy.expressions.expr import Expr, coalesce, col, lit
from gearpy.sql.parse.syntax import (
    Case,
    Expression,
    FunctionCall,
    Item,
    JoinTable,
    Literal,
    Name,
    QueryValue,
    Select,
    Star,
    SubQuery,
    Table,
    TableName,
    parts_of,
)
from gearpy.sql.plan.groups import END, START, TIMES, GroupPlan, aggregates_in
from gearpy.sql.plan.joins import RelationJoin
from gearpy.sql.plan.records import GroupedRows, Marking, TableKey
from gearpy.sql.plan.relations import Column, Fields, Relation, free_name, made, selected
from gearpy.sql.plan.tables import Tables
from gearpy.sql.plan.values import Scope, conjunction, conjuncts
from gearpy.task.api.interfaces import Source

_Plan: TypeAlias = Callable[..., Relation]
#: Tables of a join with the rows of a query: what is around it, and its rows.
_AROUND: Final = "#around"
_ROWS: Final = "#rows"


def with_queries(
    scope: Scope,
    nodes: Sequence[Expression],
    tables: Tables,
    plan: _Plan,
    conditions: Container[Expression] = (),
) -> Scope:
    """Return a scope in which queries in the place of values stand in columns.

    Args:
        conditions: those of which null counts as false.

    Raises:
        ConfigError: one of them gives no such value, or would look at rows without end.
    """
    for node in nodes:
        for use in _uses(node):
            if use not in scope.computed:
                planner = _ValuePlan(scope, use, tables, plan)
                scope = planner.planned(knows_null=use not in conditions)
    return scope


def _uses(node: Expression) -> Iterator[FunctionCall | QueryValue]:
    """Yield queries, each with the IN or EXISTS around it."""
    inside: list[QueryValue] = []
    for part in parts_of(node):
        if isinstance(part, FunctionCall) and part.arguments:
            query = part.arguments[-1]
            is_one = part.name == "exists" or (part.name == "in" and len(part.arguments) == 2)  # noqa: PLR2004
            if isinstance(query, QueryValue) and is_one:
                inside.append(query)
                yield part
        elif isinstance(part, QueryValue) and not any(part is each for each in inside):
            yield part


class _ValuePlan:
    """Plans one query in the place of a value."""

    def __init__(
        self, scope: Scope, use: FunctionCall | QueryValue, tables: Tables, plan: _Plan
    ) -> None:
        value = use.arguments[-1] if isinstance(use, FunctionCall) else use
        assert isinstance(value, QueryValue)
        self._scope, self._use, self._tables, self._plan = scope, use, tables, plan
        self._query = value.query
        self._kind = use.name if isinstance(use, FunctionCall) else "value"
        #: What is equal in a row around the query and in one of its own.
        self._around: list[Expression] = []

    @property
    def _compared(self) -> tuple[Expression, ...]:
        """The values that IN looks for: one, or those of a row."""
        if self._kind != "in":
            return ()
        assert isinstance(self._use, FunctionCall)
        of = self._use.arguments[0]
        return of.arguments if isinstance(of, FunctionCall) and of.name == "row" else (of,)

    def planned(self, *, knows_null: bool) -> Scope:
        scope, use = self._scope, self._use
        if scope.relation.windows is not None and self._kind == "in" and not knows_null:
            return self._in_windows()
        if not scope.relation.is_bounded or scope.relation.windows is not None:
            return self._beside_table(knows_null=knows_null)
        rows = self._rows()
        if isinstance(use, FunctionCall) and self._kind == "in":
            self._around += self._compared
        scope, found, kind = self._joined(rows)
        there = col(found)
        if self._kind == "value":
            is_count = isinstance(item := self._item(), FunctionCall) and item.name == "count"
            made = coalesce(there, 0) if is_count else there
            return _with_column(scope, use, made, kind)
        if self._kind == "exists" or not knows_null:
            return _with_column(scope, use, ~there.is_null(), pa.bool_())
        mark = Name(use.at, (_ROWS, f"found {len(scope.computed)}"))
        return self._with_null(_with_column(scope, mark, ~there.is_null(), pa.bool_()), mark)

    def _in_windows(self) -> Scope:
        """Tell whether a query has such a row in the same window."""
        scope, use, error = self._scope, self._use, self._scope.text.error
        relation, compared = scope.relation, self._compared
        rows = self._plan(self._query, self._tables, is_table=True)
        values = [each for each in rows.columns if not each.is_bound]
        if rows.windows != relation.windows or rows.changes or len(values) != len(compared):
            raise error(
                use.at,
                "rows of windows are looked for among such of the same windows: IN (SELECT id FROM "
                "tumble(...)), with the same lengths on both sides, and as many values",
            )
        fields, own = relation.fields, Fields()
        shown = tuple(fields)
        keys = [fields.add(scope.value(each), "around") for each in compared]
        for each, value in zip(compared, values, strict=True):
            own.add(col(value.field).cast(scope.type_of(each)), "value")
        sides: list[Any] = []
        for stream, names in (
            (selected(relation.stream, fields), keys),
            (selected(rows.stream, own), [*own]),
        ):
            is_null = reduce(or_, (col(name).is_null() for name in names))
            sides.append(stream.filter(~is_null).key_by(*names))  # Nothing equals null.
        found = sides[0].cogroup(sides[1], relation.windows)
        mark = free_name("found", [*shown, START, END])
        kept = tuple(each for each in relation.columns if not each.is_bound)
        schema = pa.schema([*relation.schema, (START, TIMES), (END, TIMES), (mark, pa.bool_())])
        function = GroupedRows(shown, START, END, mark)
        stream = made(found, "flat_map", function, schema, "rows of windows")
        bounds = tuple(each for each in relation.columns if each.is_bound)
        now = replace(relation, stream=stream, columns=(*kept, *bounds), time=END, windows=None)
        return _with_column(replace(scope, relation=now), use, col(mark), pa.bool_())

    def _beside_table(self, *, knows_null: bool) -> Scope:
        """Tell whether a table has such a row, which is read before a stream without end begins."""
        scope, use, select = self._scope, self._use, self._query.body
        table = select.table if isinstance(select, Select) else None
        _, source = self._tables.find(table) if isinstance(table, TableName) else ("", None)
        if (
            not isinstance(use, FunctionCall)
            or not isinstance(select, Select)
            or (self._kind == "in" and (knows_null or len(select.items) != len(self._compared)))
            or not isinstance(table, TableName)
            or not isinstance(source, Source)
            or not source.bounded
            or source.schema is None
            or select.group
            or self._query.limit is not None
            or aggregates_in([item.value for item in select.items])
            or scope.relation.windows is not None
        ):
            raise scope.text.error(
                use.at,
                "of a stream without end a query in the place of a value is IN (SELECT ...) alone "
                "in WHERE, or EXISTS, over a source that ends (NOT EXISTS for NOT IN): else join "
                "with it, by time or windows",
            )
        select, keys = self._apart(select)
        if not keys and self._kind != "in":
            raise scope.text.error(use.at, "EXISTS looks at the row around it: WHERE u.id = t.id")
        if self._kind == "in":
            keys += tuple(each.value for each in select.items)
            self._around += self._compared
        columns = tuple(Column(each.name, each.name, each.type) for each in source.schema.arrow)
        of_table = Relation(scope.relation.stream, columns).named(table.alias or table.name)
        rows = Scope(scope.text, of_table, functions=scope.functions)
        fields = scope.relation.fields
        shown = tuple(fields)
        values: list[Expr] = []
        for around, key in zip(self._around, keys, strict=True):
            fields.add(scope.value(around), "around")
            values.append(rows.value(key).cast(scope.type_of(around)))
        where = None if select.where is None else rows.condition(select.where)
        mark = free_name("found", fields)
        left = selected(scope.relation.stream, fields or {"around": lit(0)})
        found = left.join_table(
            source,
            on=([*fields][len(shown) :], TableKey(tuple(values), where)),
            how="left",
            combine=Marking(shown, mark),
            many="first",
        )
        schema = pa.schema([*scope.relation.schema, (mark, pa.bool_())])
        stream = made(found, "map", itself, schema, "rows of a table")
        scope = replace(scope, relation=replace(scope.relation, stream=stream))
        is_there = col(mark)
        for around in self._around:  # Nothing equals null.
            is_there &= ~scope.value(around).is_null()
        return _with_column(scope, use, is_there, pa.bool_())

    # -- the rows of the query ---------------------------------------------------------------------

    def _rows(self) -> Relation:
        """Return the rows of the query: a value, and what is equal in those around it."""
        query, text = self._query, self._scope.text
        select, keys = query.body, tuple[Expression, ...]()
        if isinstance(select, Select):
            select, keys = self._apart(select)
        if self._kind == "value" and not self._is_single(select):
            raise text.error(
                self._use.at,
                "a query in the place of a value may give several rows: take an aggregate, such as "
                "max(price), or LIMIT 1",
            )
        if keys and isinstance(select, Select):
            if query.limit is not None or select.group or select.having is not None:
                raise text.error(
                    self._use.at,
                    "a query that looks at the row around it has no GROUP BY and no LIMIT: join "
                    "with it instead",
                )
            items = () if self._kind == "exists" else select.items
            items += tuple(Item(key, f"key {n}") for n, key in enumerate(keys))
            has_aggregate = bool(aggregates_in([item.value for item in select.items]))
            if has_aggregate != (self._kind == "value"):
                raise text.error(self._use.at, "compare an aggregate with = (SELECT max(...) ...)")
            group = keys if has_aggregate else ()
            query = replace(query, body=replace(select, items=items, group=group), order=())
        rows = self._plan(query, self._tables)
        if rows.changes or not rows.is_bounded:
            raise text.error(self._use.at, "the rows of this query have no end: join by time")
        values = len(rows.columns) - len(keys)
        wanted = len(self._compared) or 1
        if self._kind != "exists" and values != wanted:
            raise text.error(
                self._use.at, f"this query gives {values} columns, and {wanted} are compared"
            )
        # The value comes last, as it does in what is around.
        places = [*range(values, len(rows.columns)), *range(values)]
        if self._kind == "exists" and not keys:
            places = []
        return replace(rows, columns=tuple(rows.columns[place] for place in places))

    def _apart(self, select: Select) -> tuple[Select, tuple[Expression, ...]]:
        """Take the conditions out of a select that say what is equal in the row around it."""
        own = {name.lower() for name in names_in(select.table)}
        others = {each.table.lower() for each in self._scope.relation.columns} - own - {""}

        def looks_around(node: Expression) -> bool:
            names = [part for part in parts_of(node) if isinstance(part, Name)]
            return any(each.parts[0].lower() in others and each.parts[1:] for each in names)

        kept: list[Expression] = []
        keys: list[Expression] = []
        for each in conjuncts(select.where):
            pair = each.arguments if isinstance(each, FunctionCall) and each.name == "=" else ()
            around = [looks_around(part) for part in pair]
            if not looks_around(each):
                kept.append(each)
            elif sum(around) == 1:
                keys.append(pair[around.index(False)])
                self._around.append(pair[around.index(True)])
            else:
                raise self._scope.text.error(
                    each.at,
                    "a query is joined with the row around it by what is equal, such as WHERE u.id "
                    "= t.id: join with it instead",
                )
        return replace(select, where=conjunction(kept)), tuple(keys)

    def _is_single(self, body: object) -> bool:
        if not isinstance(body, Select):
            return self._query.limit == 1
        has_aggregate = bool(aggregates_in([item.value for item in body.items]))
        return self._query.limit == 1 or (has_aggregate and not body.group)

    def _item(self) -> Expression | None:
        body = self._query.body
        return body.items[0].value if isinstance(body, Select) else None

    # -- the join ----------------------------------------------------------------------------------

    def _joined(self, rows: Relation) -> tuple[Scope, str, pa.DataType]:
        """Return the rows around, a field that is null where the query has none, and its type."""
        scope, text, at = self._scope, self._scope.text, self._use.at
        fields = scope.relation.fields
        around: list[Column] = []
        for node in self._around or [Literal(at, 0)]:
            name = fields.add(scope.value(node), "around")
            around.append(Column(f"{len(around)}", name, scope.type_of(node), _AROUND))
        left = scope.relation.with_fields(fields, *around)
        rows, kind = self._right(rows, len(self._around))
        on = conjunction(
            [
                FunctionCall(at, "=", (Name(at, (_AROUND, f"{n}")), Name(at, (_ROWS, f"{n}"))))
                for n in range(len(around))
            ]
        )
        sides = SubQuery(at, self._query, ""), SubQuery(at, self._query, "")
        joined = RelationJoin(
            JoinTable(at, *sides, "left", on, (), False), left, rows, text
        ).planned(None)
        now = dict(zip(scope.relation.columns, joined.columns, strict=False))
        relation = replace(joined, columns=tuple(now.values()))
        computed = {node: now[column] for node, column in scope.computed.items()}
        return replace(scope, relation=relation, computed=computed), joined.columns[-1].field, kind

    def _right(self, rows: Relation, count: int) -> tuple[Relation, pa.DataType]:
        """Return the rows with a mark or value behind what is equal, each of these once."""
        at = self._use.at
        fields = {f"{n}": col(each.field) for n, each in enumerate(rows.columns[:count])}
        if not fields:
            fields = {"0": lit(0)}
        mark = lit(1) if self._kind != "value" else col(rows.columns[-1].field)
        fields["mark"] = mark
        schema = pa.schema([(name, each.bind(rows.schema).type) for name, each in fields.items()])
        columns = tuple(Column(each.name, each.name, each.type, _ROWS) for each in schema)
        found = Relation(selected(rows.stream, fields), columns)
        if self._kind != "value":
            names = [Name(at, (_ROWS, name)) for name in fields]
            grouped = GroupPlan(Scope(self._scope.text, found), {}, at)
            found = grouped.planned(names, []).relation
        return found, schema.field("mark").type

    # -- null --------------------------------------------------------------------------------------

    def _with_null(self, scope: Scope, mark: Name) -> Scope:
        """Tell false from null: of no rows IN is false, and null where a null might be equal."""
        use, at = self._use, self._use.at
        assert isinstance(use, FunctionCall)
        item, body = self._item(), self._query.body
        star = FunctionCall(at, "count", (Star(at),))
        if item is None or self._query.limit is not None or not isinstance(body, Select):
            raise scope.text.error(at, "IN over such a query stands alone in WHERE, without NOT")
        if body.group or body.having is not None or aggregates_in([item]):
            raise scope.text.error(at, "IN over groups stands alone in WHERE, without NOT")

        def counted(where: Expression | None) -> Expression:
            item = Item(replace(star, where=where), "")
            select = replace(body, items=(item,), is_distinct=False)
            return QueryValue(at, replace(self._query, body=select, order=()))

        none = Literal(at, 0)
        if len(self._compared) > 1:
            raise scope.text.error(at, "IN of a row stands alone in WHERE, without NOT")
        is_null = [FunctionCall(at, "is null", (each,)) for each in (use.arguments[0], item)]
        nulls = FunctionCall(at, ">", (counted(is_null[1]), none))
        tree = Case(
            at,
            (
                (mark, Literal(at, True)),
                (FunctionCall(at, "=", (counted(None), none)), Literal(at, False)),
                (FunctionCall(at, "or", (is_null[0], nulls)), Literal(at, None)),
            ),
            Literal(at, False),
        )
        scope = with_queries(scope, [tree], self._tables, self._plan)
        return _with_column(scope, use, scope.value(tree), pa.bool_())


def _with_column(scope: Scope, node: Expression, value: Expr, kind: pa.DataType) -> Scope:
    fields = scope.relation.fields
    name = fields.add(value, "value")
    column = Column(name, name, kind, _ROWS)
    relation = scope.relation.with_fields(fields, column)
    return replace(scope, relation=relation, computed={**scope.computed, node: column})


def names_in(table: Table) -> Iterator[str]:
    if isinstance(table, JoinTable):
        yield from names_in(table.left)
        yield from names_in(table.right)
    else:
        yield getattr(table, "alias", "") or getattr(table, "name", "")
