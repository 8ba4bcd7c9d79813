"""Groups: aggregates by key, in windows, over all of a bounded input, or running."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.connectors.tables import rows
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.trigger import after_watermark, every
from gearpy.core.window.windows import Windows, global_window, tumbling
from gearpy.dsl.operators.expressions import ResultsOperator
from gearpy.dsl.operators.groups import AggregateOperator
from gearpy.dsl.operators.operator import ReadOperator
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError
from gearpy.expressions.expr import col
from gearpy.sql.names.aggregates import AGGREGATES
from gearpy.sql.parse.syntax import Cast, Expression, FunctionCall, Literal, Name, calls_in
from gearpy.sql.parse.tokens import SqlText
from gearpy.sql.plan.records import GroupRows, everything
from gearpy.sql.plan.relations import Column, Fields, Relation, free_name, selected
from gearpy.sql.plan.values import Scope
from gearpy.task.chain.fused import RowOperator

#: The type of bounds of windows.
TIMES: Final = pa.timestamp("us", "UTC")
START: Final = "window_start"
END: Final = "window_end"
#: All results of a window have the same event time, so they meet in windows of one millisecond.
SAME_WINDOW: Final = tumbling("1ms")


def aggregates_in(nodes: Iterable[Expression | None]) -> list[FunctionCall]:
    return calls_in(nodes, AGGREGATES)


def aggregate_of(
    call: FunctionCall, scope: Scope, field: Callable[[Expression, str], str], *, among_others: bool
) -> Aggregate:
    """Return an aggregate of fields.

    Args:
        field: returns the field that an expression is put into; its name may be that of the hint.
        among_others: one record of nothing but nulls is there, too, and does not count.

    Raises:
        ConfigError: it takes no such values.
    """
    text, function = scope.text, AGGREGATES[call.name]
    columns, options, where = function.taken(call, text)
    if function.makes_fraction:  # Of decimals, too.
        columns = [
            Cast(each.at, each, "double") if pa.types.is_decimal(scope.type_of(each)) else each
            for each in columns
        ]
    if not columns and where is None and among_others:
        where = Literal(call.at, True)
    if where is not None and scope.type_of(where) != pa.bool_():
        raise text.error(where.at, "this is neither true nor false: compare it with something")
    try:
        return function.build(
            [field(each, _hint(each)) for each in columns],
            options,
            is_distinct=call.is_distinct,
            where=None if where is None else field(where, "is_counted"),
        )
    except ConfigError as error:
        raise text.error(call.at, str(error)) from None


def aggregate_type(
    name: str, call: FunctionCall, step: AggregateOperator, text: SqlText
) -> pa.DataType:
    """Return the type of an aggregate of a step.

    Raises:
        ConfigError: it has none.
    """
    kind = step.types_told().get(name)
    if kind is None:
        raise text.error(
            call.at,
            f"{call.name} takes no values of this type: cast its argument, such as to double",
        )
    return kind


class GroupPlan:
    """Plans a group: gathers what its records need, and the columns that come of it.

    Args:
        scope: what names mean before it.
        aliases: names that are asked for, by what is selected.
        at: the place of the select.
        emit: "final" where a group over all of a bounded input gives its last result alone,
            "changes" where windows give a result with each record, too; "per batch"; or empty.
    """

    def __init__(
        self,
        scope: Scope,
        aliases: dict[Expression, str],
        at: int,
        emit: str = "final",
    ) -> None:
        self._scope = scope
        self._relation = scope.relation
        self._aliases = aliases
        self._at = at
        self._emit = emit
        self._needed = Fields()
        self._fields: dict[Expression, str] = {}
        self._computed: dict[Expression, Column] = {}
        #: Names that results of windows have besides.
        self._taken = () if scope.relation.windows is None else (START, END)

    def planned(self, keys: Sequence[Expression], calls: Sequence[FunctionCall]) -> Scope:
        """Return the scope of names after the group.

        Raises:
            ConfigError: it cannot be done on a stream, and what to do.
        """
        if self._relation.changes:
            raise self._scope.text.error(
                self._at,
                "this groups the changing rows of a running aggregate, which would count a group "
                "anew with each change: give the inner query windows, such as FROM tumble(...)",
            )
        fields = tuple(self._key(node) for node in keys if not self._is_bound(node))
        bounds = [node for node in keys if self._is_bound(node)]
        windows = self._windows(bounds)
        is_one = not fields and self._emit == "final" and self._relation.windows is None
        names = self._names(calls, fields)
        aggregates = {
            name: self._aggregate(call, among_others=is_one) for call, name in names.items()
        }
        stream: Any = selected(self._relation.stream, self._needed)
        if is_one:
            stream = self._with_one_more(stream)
        if fields or windows is None:
            stream = stream.key_by(*fields) if fields else stream.key_by(everything)
        if windows is not None:
            stream = stream.window(windows)
        elif self._emit == "per batch":
            stream = stream.per_batch()
        results = stream.aggregate(**aggregates or {"count": AGGREGATES["count"].build([], [])})
        is_early = self._relation.windows is not None and self._emit == "changes"
        changes = windows is None or is_early
        return self._behind(results, fields, bounds, names, changes=changes)

    # ----------------------------------------------------------------------------------------------

    def _is_bound(self, node: Expression) -> bool:
        """Tell whether this is the start or end of windows that nothing has taken yet."""
        column = self._scope.column(node)
        return self._relation.windows is not None and column is not None and column.is_bound

    def _windows(self, bounds: Sequence[Expression]) -> Windows | None:
        if self._relation.windows is not None:
            if not bounds:
                raise self._scope.text.error(
                    self._at,
                    "rows of windows are grouped, but not by their window: add "
                    f"{START} to GROUP BY",
                )
            windows = self._relation.windows
            if self._emit == "per batch":
                raise self._scope.text.error(
                    self._at,
                    "EMIT PER BATCH is for groups without windows: a window gives one result, and "
                    "with EMIT CHANGES one with each record, too",
                )
            if self._emit == "changes":
                windows = windows.triggering(after_watermark(early=every(count=1)))
                return windows.accumulating()
            return windows
        if self._emit == "final":
            return global_window()
        is_of_window = any(each.is_bound for each in self._computed.values())
        return SAME_WINDOW if is_of_window else None

    def _key(self, node: Expression) -> str:
        column = self._scope.column(node)
        name = column.name if column else self._aliases.get(node, "key")
        field = self._field(node, name)
        self._computed[node] = Column(
            name,
            field,
            self._scope.type_of(node),
            column.table if column else "",
            is_bound=column is not None and column.is_bound,
        )
        return field

    def _field(self, node: Expression, name: str) -> str:
        if node not in self._fields:
            self._fields[node] = self._needed.add(self._scope.value(node), name, self._taken)
        return self._fields[node]

    def _names(self, calls: Sequence[FunctionCall], keys: Sequence[str]) -> dict[FunctionCall, str]:
        found: dict[FunctionCall, str] = {}
        for call in calls:
            name = self._aliases.get(call, call.name)
            found[call] = free_name(name, [*keys, *found.values(), *self._taken])
        return found

    def _aggregate(self, call: FunctionCall, *, among_others: bool) -> Aggregate:
        inner = aggregates_in([*call.arguments, call.where])
        if inner:
            raise self._scope.text.error(
                inner[0].at, f"{inner[0].name} stands inside of another aggregate"
            )
        return aggregate_of(call, self._scope, self._field, among_others=among_others)

    def _with_one_more(self, stream: Stream[Any]) -> Stream[Any]:
        """Return the records and one more of nothing but nulls: of no records there is a result."""
        fields = [
            pa.field(name, value.bind(self._relation.schema).type)
            for name, value in self._needed.items()
        ]
        if not fields:
            return stream
        none = pa.table([pa.nulls(1, each.type) for each in fields], schema=pa.schema(fields))
        program = stream._program
        return stream.merge(program.add(ReadOperator(name="no record", source=rows(none))))

    def _behind(
        self,
        results: Stream[Any],
        keys: tuple[str, ...],
        bounds: Sequence[Expression],
        names: dict[FunctionCall, str],
        *,
        changes: bool,
    ) -> Scope:
        for of in self._relation.columns if bounds else ():
            if of.is_bound:  # Both are known, whichever was asked for.
                self._computed[Name(self._at, (of.table, of.name))] = of
        step = results._step
        assert isinstance(step, AggregateOperator), "it is just made"
        for call, name in names.items():
            kind = aggregate_type(name, call, step, self._scope.text)
            self._computed[call] = Column(name, name, kind)
        columns = tuple(dict.fromkeys(self._computed.values()))
        shown = GroupRows(keys, bool(names), *((START, END) if bounds else ()))
        schema = pa.schema([(each.field, each.type) for each in columns])
        rows_step = ResultsOperator(
            name="rows of groups",
            inputs=(step,),
            expressions=tuple(col(_column_of(each, keys)).alias(each) for each in schema.names),
            row=RowOperator("map", "rows of groups", shown),
            gives=RowSchema(schema),
        )
        stream = results._program.add(rows_step)
        # Results of windows have the time at which these end, but for the last ms.
        time = "" if changes else next((each.field for each in columns if each.name == END), "")
        relation = Relation(stream, columns, time if bounds else "", changes=changes)
        return Scope(
            self._scope.text,
            relation,
            self._computed,
            self._relation,
            self._scope.functions,
        )


def _column_of(field: str, keys: Sequence[str]) -> str:
    if field not in keys:
        return field
    return "key" if len(keys) == 1 else f"key_{keys.index(field) + 1}"


def _hint(node: Expression) -> str:
    return node.parts[-1] if isinstance(node, Name) else "value"
