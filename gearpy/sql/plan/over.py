"""Functions over rows: OVER (PARTITION BY ... ORDER BY ...), over whole lists or as rows come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import TOP_MAX, Aggregate
from gearpy.core.window.windows import Windows, global_window
from gearpy.dsl.operators.expressions import PlacesOperator
from gearpy.dsl.operators.groups import AggregateOperator
from gearpy.dsl.operators.keyed import OverOperator
from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.streams.stream import Stream
from gearpy.sql.names.aggregates import AGGREGATES
from gearpy.sql.parse.expressions import plain_value
from gearpy.sql.parse.syntax import (
    Expression,
    FunctionCall,
    Literal,
    Name,
    Over,
    Query,
    Select,
    SubQuery,
    TimeSpan,
    overs_in,
)
from gearpy.sql.parse.tokens import did_you_mean
from gearpy.sql.plan.groups import END, SAME_WINDOW, START, aggregate_of, aggregate_type
from gearpy.sql.plan.records import (
    COUNT,
    FIRST,
    ROW,
    OverColumn,
    OverRows,
    PeerRows,
    Rank,
    RunningRow,
    everything,
)
from gearpy.sql.plan.relations import Column, Relation, free_name, made, selected
from gearpy.sql.plan.values import Scope, conjunction, conjuncts
from gearpy.task.aggregates.rolling import RollingSpan
from gearpy.task.chain.fused import RowOperator

ROW_NUMBER: Final = "row_number"
_SHARES: Final = ("percent_rank", "cume_dist")
_RANKS: Final = (ROW_NUMBER, "rank", "dense_rank", *_SHARES)
_SHIFTS: Final = ("lag", "lead")
#: Functions that take a number which is the same for all rows.
_NUMBERED: Final = ("ntile", "nth_value")
#: Functions of which no result is known as long as rows come.
_OF_ALL: Final = ("lead", *_NUMBERED, *_SHARES)
#: How many arguments a function takes, at least and at most; else it is one.
_ARGUMENTS: Final = {
    **dict.fromkeys(_RANKS, (0, 0)),
    **dict.fromkeys(_SHIFTS, (1, 3)),
    "nth_value": (2, 2),
}
_ENDS: Final = ("first_value", "last_value", "first", "last")
#: The place that the last row has, by how it is compared with a number.
LAST: Final = {"<=": 0, "<": -1, "=": 0}


def plan_over(
    scope: Scope, nodes: Sequence[Expression | None], qualify: Expression | None, emit: str
) -> Scope:
    """Return the scope of names after functions over rows, which are columns of it.

    Raises:
        ConfigError: a result cannot be told, or not as long as more rows come.
    """
    calls = overs_in(nodes)
    for call in calls:
        _check(call, scope)
    scope = scope.narrowed(nodes)
    others: Expression | None = qualify
    limit, rest = _bound(calls[0], qualify, scope) if len(calls) == 1 else (None, None)
    plan = _OverPlan(scope, calls[0], emit)
    if limit is not None and limit <= TOP_MAX and (plan.windows or not plan.is_by_time()):
        scope, others = plan.lists(calls, limit), rest
    else:
        groups: dict[Any, list[FunctionCall]] = {}
        for call in calls:
            plan = _OverPlan(scope, call, emit)
            groups.setdefault((plan.over.partition, plan.windows or plan.span()), []).append(call)
        for members in groups.values():
            plan = _OverPlan(scope, members[0], emit)
            scope = plan.lists(members) if plan.windows else plan.running(members)
    if others is not None:
        stream = scope.relation.stream.filter(scope.condition(others))
        scope = replace(scope, relation=replace(scope.relation, stream=stream))
    return scope


def _check(call: FunctionCall, scope: Scope) -> None:
    """Refuse a function that is none over rows, and what it is not given."""
    text, known = scope.text, (*_RANKS, *_SHIFTS, *_NUMBERED, *_ENDS, *AGGREGATES)
    assert call.over is not None
    inner = overs_in([*call.arguments, call.where, *call.over.partition])
    if inner:
        raise text.error(inner[0].at, "a function over rows stands inside of another: nest queries")
    if call.name not in known:
        raise text.error(
            call.at,
            f"there is no function {call.name!r} over rows{did_you_mean(call.name, known)}",
        )
    is_aggregate = call.name in AGGREGATES and call.name not in _ENDS
    if (call.is_distinct or call.where is not None) and not is_aggregate:
        raise text.error(call.at, f"{call.name} is no aggregate: DISTINCT and FILTER are for those")
    if call.name in (*_RANKS[1:], *_SHIFTS, "ntile") and not call.over.order:
        raise text.error(call.at, f"{call.name}() needs an order: OVER (... ORDER BY price DESC)")
    least, most = _ARGUMENTS.get(call.name, (1, 1))
    if not is_aggregate and not least <= len(call.arguments) <= most:
        takes = ("no argument", "one argument", "two arguments", "1 to 3 arguments")[most]
        raise text.error(call.at, f"{call.name} takes {takes}, not {len(call.arguments)}")
    frame = call.over.frame
    if frame.unit == "range" and {frame.start, frame.end} - {None, 0} and len(call.over.order) != 1:
        raise text.error(call.at, "a RANGE so far from the row is of one ORDER BY")
    if frame.unit == "rows" and any(
        isinstance(each, TimeSpan) for each in (frame.start, frame.end)
    ):
        raise text.error(call.at, "a length of time is a RANGE: RANGE BETWEEN INTERVAL ...")


class _OverPlan:
    """Plans functions over the same rows.

    Attributes:
        over: the rows of the first function.
        windows: whose rows are complete when they close; None: results come with each row.
    """

    def __init__(self, scope: Scope, call: FunctionCall, emit: str) -> None:
        assert call.over is not None
        self._scope, self._call, self.over = scope, call, call.over
        self._relation = relation = scope.relation
        self._fields = relation.fields
        self._given: list[str] = []  # The fields of results.
        found = [scope.column(each) for each in self.over.partition]
        bounds = [each is not None and each.is_bound for each in found]
        self._keys = [
            each
            for each, is_bound in zip(self.over.partition, bounds, strict=True)
            if not is_bound or relation.windows is None
        ]
        self.windows: Windows | None = relation.windows
        if relation.windows is not None and not any(bounds):
            raise scope.text.error(
                call.at, f"rows of windows are ranked by window: PARTITION BY {START}"
            )
        if self.windows is None:
            is_final = emit == "final"
            self.windows = global_window() if is_final else SAME_WINDOW if any(bounds) else None
        self._emit = emit

    def is_by_time(self) -> bool:
        """Tell whether rows come in the order that is asked for, that of event time."""
        order, time = self.over.order, self._relation.time
        column = self._scope.column(order[0].by) if len(order) == 1 else None
        if column is None or order[0].is_descending:
            return False
        # Nobody knows where some sources take times from; they are no numbers or texts then.
        return column.field == time if time is not None else pa.types.is_timestamp(column.type)

    def span(self) -> tuple[bool, int | None]:
        """Return whether peers count, and how many rows or milliseconds; None: all so far.

        Raises:
            ConfigError: the result is not known as long as rows come.
        """
        call, frame, error = self._call, self.over.frame, self._scope.text.error
        is_ahead = frame.end != 0 or (isinstance(frame.start, int) and frame.start > 0)
        if call.name in _OF_ALL or (is_ahead and call.name not in (*_RANKS, *_SHIFTS)):
            raise error(
                call.at,
                f"{call.name} needs rows that are still to come, as this input has no end: take "
                "lag(...) or a frame that ends with the CURRENT ROW, or the rows of a window: "
                "PARTITION BY window_start",
            )
        if not self.is_by_time():
            raise error(
                call.at,
                "among all rows that will come nothing is ever known for good: bound the place, as "
                "in QUALIFY row_number() OVER (...) <= 10, take the rows of each window, or ORDER "
                f"BY {self._relation.time or 'the column that event times come from'}",
            )
        if call.name in ("rank", "dense_rank"):
            raise error(call.at, f"{call.name}() by time is a place: take row_number()")
        if self._relation.changes:
            raise error(call.at, "these rows replace earlier ones: give the inner query windows")
        if call.name == ROW_NUMBER:
            return False, None
        if call.name == "lag":
            return False, self._number(call, 1) + 1
        start = frame.start
        if isinstance(start, TimeSpan):  # Rows of both ends are in the frame.
            return True, 1 - start.ms
        if start is None or frame.unit == "rows":
            return frame.unit == "range", None if start is None else 1 - start
        return True, 1 - start

    def lists(self, calls: Sequence[FunctionCall], limit: int | None = None) -> Scope:
        """Plan functions over all rows, which are lists in memory; or over the first ones alone."""
        over = tuple(self._column(call) for call in calls)
        keyed, _ = self._keyed()
        if self.windows is None:
            batched = keyed.per_batch() if self._emit == "per batch" else None
            listed = (
                keyed.top_n(limit, over[0].rank, when="changed")
                if batched is None
                else batched.top_n(limit, over[0].rank)
            )
        elif limit is not None:
            listed = keyed.window(self.windows).top_n(limit, over[0].rank)
        else:
            listed = keyed.window(self.windows).aggregate(rows=agg.collect())
        columns = self._typed(calls, over, listed._step.inputs[0])
        schema = self._schema(columns.values())
        bounds = (START, END) if self._relation.windows is not None else ("", "")
        rows = OverRows(over, tuple(schema.names), *bounds)
        if limit is None:
            stream = made(listed, "flat_map", rows, schema, "functions over rows")
        else:
            places = PlacesOperator(
                name="functions over rows",
                inputs=(listed._step,),
                row=RowOperator("flat_map", "functions over rows", rows),
                gives=RowSchema(schema),
                place=over[0].field,
                bounds=tuple(filter(None, bounds)),
            )
            stream = listed._program.add(places)
        changes = self._relation.changes or self.windows is None
        return self._behind(stream, columns, "", changes=changes)

    def running(self, calls: Sequence[FunctionCall]) -> Scope:
        """Plan functions over the rows so far, in the order of event time."""
        with_peers, span = self.span()
        over = tuple(self._column(call) for call in calls)
        keyed, keys = self._keyed()
        columns = self._typed(calls, over, keyed._grouped.step)
        aggregates: dict[str, Any] = {
            each.field: each.aggregate or agg.count() for each in over if not each.of
        }
        if any(each.of for each in over):
            aggregates |= {FIRST: agg.first(), COUNT: agg.count()}
        if span is None:
            aggregates |= {ROW: agg.last()}
        unit = "time_ms" if with_peers else "records"
        step = OverOperator(
            name="functions over rows",
            inputs=(keyed._grouped.step,),
            parallelism=keyed._grouped.parallelism,
            key=keyed._grouped.key,
            span=None if span is None else RollingSpan(**{unit: span}),
            aggregates=aggregates,
            row=RunningRow(over, tuple(each.field for each in self._relation.columns)),
            peers=PeerRows(tuple(each.field for each in over), tuple(keys)) if with_peers else None,
            gives=RowSchema(self._schema(columns.values())),
        )
        stream = keyed._grouped.add(step)
        return self._behind(stream, columns, self._relation.time, changes=False)

    # -- what functions take -----------------------------------------------------------------------

    def _column(self, call: FunctionCall) -> OverColumn:
        over, scope = call.over, self._scope
        assert over is not None
        of, offset, default = "", 1, ""
        aggregate: Aggregate | None = None
        if call.name in AGGREGATES and call.name not in _ENDS:
            aggregate = aggregate_of(call, scope, self._field, among_others=False)
        elif call.name == "ntile":
            offset = self._number(call, 0)
        elif call.arguments:
            of = self._field(call.arguments[0], "value")
            offset = self._number(call, 1)
            if len(call.arguments) > 2:  # noqa: PLR2004 - the value, how far, and what else
                kind, other = (scope.type_of(call.arguments[place]) for place in (0, 2))
                if other not in (kind, pa.null()) and not pa.types.is_integer(other):
                    raise scope.text.error(
                        call.arguments[2].at, f"this is {other}, and the value {kind}: cast one"
                    )
                other_value = scope.value(call.arguments[2]).cast(kind)
                default = self._fields.add(other_value, "else", self._given)
        self._given.append(free_name(call.name, [*self._fields, *self._given]))
        return OverColumn(
            field=self._given[-1],
            name=call.name,
            of=of,
            offset=-offset if call.name == "lag" else offset,
            default=default,
            aggregate=aggregate,
            rank=self._rank(over),
            is_range=over.frame.unit == "range",
            start=self._reach(over.frame.start, over),
            end=self._reach(over.frame.end, over),
        )

    def _rank(self, over: Over) -> Rank:
        return Rank(
            tuple(
                (self._field(each.by, "key"), each.is_descending, each.nulls_first)
                for each in over.order
            )
        )

    def _reach(self, bound: int | TimeSpan | None, over: Over) -> int | None:
        """Return how far a bound is: in rows, microseconds of times, or as numbers differ."""
        if not bound or over.frame.unit == "rows":
            assert not isinstance(bound, TimeSpan), "it was refused"
            return bound
        kind = self._scope.type_of(over.order[0].by)
        if pa.types.is_temporal(kind) != isinstance(bound, TimeSpan) and not (
            pa.types.is_integer(kind) and isinstance(bound, TimeSpan)
        ):
            raise self._scope.text.error(
                over.order[0].by.at, f"a RANGE of {kind} has no bound of this kind"
            )
        if isinstance(bound, TimeSpan):
            return bound.ms if pa.types.is_integer(kind) else bound.microseconds
        return bound

    def _number(self, call: FunctionCall, place: int) -> int:
        """Return a number that is the same for all rows, by the place of the argument."""
        if place >= len(call.arguments):
            return 1
        given = plain_value(call.arguments[place], self._scope.text)
        if type(given) is not int or given < (call.name in _NUMBERED):
            raise self._scope.text.error(call.at, f"{call.name} takes a number of rows, such as 2")
        return given

    def _field(self, node: Expression, hint: str) -> str:
        """Return the field of an expression; one that is no column gets a field."""
        column = self._scope.column(node)
        if column is not None and column.field in self._fields:
            return column.field
        return self._fields.add(self._scope.value(node), hint, self._given)

    # -- steps -------------------------------------------------------------------------------------

    def _keyed(self) -> tuple[Any, list[str]]:
        keys = [self._field(node, "key") for node in self._keys]
        stream: Any = selected(self._relation.stream, self._fields)
        if keys:
            return stream.key_by(*keys), keys
        return (stream.key_by(everything) if self.windows is None else stream), keys

    def _typed(
        self, calls: Sequence[FunctionCall], over: Sequence[OverColumn], before: Operator
    ) -> dict[FunctionCall, Column]:
        step = AggregateOperator(
            name="over",
            inputs=(before,),
            windows=None,
            aggregates={each.field: each.aggregate for each in over if each.aggregate is not None},
        )
        found: dict[FunctionCall, Column] = {}
        for call, each in zip(calls, over, strict=True):
            if each.aggregate is not None:
                kind = aggregate_type(each.field, call, step, self._scope.text)
            else:
                place = pa.float64() if call.name in _SHARES else pa.int64()
                kind = self._scope.type_of(call.arguments[0]) if each.of else place
            found[call] = Column(each.field, each.field, kind)
        return found

    def _schema(self, columns: Iterable[Column]) -> pa.Schema:
        all_of = (*self._relation.columns, *columns)
        return pa.schema([(each.field, each.type) for each in all_of])

    def _behind(
        self,
        stream: Stream[Any],
        columns: Mapping[Any, Column],
        time: str | None,
        *,
        changes: bool,
    ) -> Scope:
        relation = Relation(
            stream, (*self._relation.columns, *columns.values()), time, changes=changes
        )
        computed = {**self._scope.computed, **columns}
        return replace(self._scope, relation=relation, computed=computed)


def _bound(
    call: FunctionCall, qualify: Expression | None, scope: Scope
) -> tuple[int | None, Expression | None]:
    """Return the last place of a row_number() that is asked for, and the other conditions."""
    limit: int | None = None
    others: list[Expression] = []
    for each in conjuncts(qualify) if call.name == ROW_NUMBER else ():
        if (
            isinstance(each, FunctionCall)
            and each.name in LAST
            and each.arguments[0] == call
            and isinstance(each.arguments[1], Literal)
            and type(each.arguments[1].value) is int
        ):
            last = each.arguments[1].value + LAST[each.name]
            limit = last if limit is None else min(limit, last)
            if each.name == "=" and last != 1:
                others.append(each)
        else:
            others.append(each)
    if limit is not None and limit < 1:
        raise scope.text.error(
            call.at, f"places begin with 1: the last one that is asked for is {limit}"
        )
    return limit, conjunction(others)


def with_bound(select: Select) -> Select:
    """Return a select whose bound for a place of the query in it stands in that query."""
    table = select.table
    if not isinstance(table, SubQuery) or not isinstance(table.query.body, Select):
        return select
    inner = table.query.body
    places = {
        item.alias.lower(): item.value
        for item in inner.items
        if isinstance(item.value, FunctionCall)
        and item.value.over
        and item.value.name == ROW_NUMBER
    }
    bounds: list[Expression] = []
    others: list[Expression] = []
    for each in conjuncts(select.where):
        named = each.arguments[0] if isinstance(each, FunctionCall) and each.name in LAST else None
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
