"""Joins: which one of the stream language a condition asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.window.windows import global_window
from gearpy.expressions.expr import Expr, col, when
from gearpy.sql.parse.syntax import (
    Expression,
    FunctionCall,
    JoinTable,
    Name,
    Table,
    TableName,
    TimeSpan,
    parts_of,
    rewritten,
)
from gearpy.sql.parse.syntax import Literal as Value
from gearpy.sql.parse.tokens import SqlText
from gearpy.sql.plan.groups import END, START
from gearpy.sql.plan.records import JoinRows
from gearpy.sql.plan.relations import Column, Relation, common_type, free_name, made, selected
from gearpy.sql.plan.tables import Tables
from gearpy.sql.plan.values import Scope, conjunction, conjuncts
from gearpy.task.api.interfaces import Source

Side: TypeAlias = Literal["left", "right"]

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_HOW: Final = {"inner": "inner", "left": "left", "right": "right", "full": "outer"}
_MS: Final = 1000


@dataclass(slots=True)
class _Condition:
    """What a condition says, taken apart.

    Attributes:
        keys: pairs of a left expression and a right one that are equal.
        lower: microseconds that the right time is behind the left one at least; None: no bound.
        upper: likewise at most.
        same_window: windows of both sides are the same.
        rest: what else is to hold.
        alone: conditions of one side.
    """

    keys: list[tuple[Expression, Expression, int]] = field(default_factory=list)
    lower: int | None = None
    upper: int | None = None
    same_window: bool = False
    rest: list[Expression] = field(default_factory=list)
    alone: dict[Side, list[Expression]] = field(default_factory=lambda: {"left": [], "right": []})


def plan_join(
    join: JoinTable, tables: Tables, plan_table: Callable[[Table, Tables], Relation]
) -> Relation:
    """Return the rows of a join.

    Raises:
        ConfigError: the streams cannot be joined so, and what to do.
    """
    text = tables.text
    left = plan_table(join.left, tables)
    source = _table_source(join, left, tables)
    if source is None:
        right = plan_table(join.right, tables)
    else:
        assert isinstance(join.right, TableName)
        assert source.schema is not None
        columns = tuple(Column(each.name, each.name, each.type) for each in source.schema.arrow)
        right = Relation(left.stream, columns).named(join.right.alias or join.right.name)
    if left.changes or right.changes:
        raise text.error(
            join.at,
            "a running aggregate is joined with each of its values: give the inner query windows",
        )
    return RelationJoin(join, left, right, text).planned(source)


def _table_source(join: JoinTable, left: Relation, tables: Tables) -> Source[Any] | None:
    """Return the source of a table that is complete before a stream without end begins."""
    if not isinstance(join.right, TableName) or left.is_bounded or join.is_asof:
        return None
    _, found = tables.find(join.right)
    if isinstance(found, Source) and found.bounded and found.schema is not None:
        return found
    return None


class RelationJoin:
    """Plans a join of two relations."""

    def __init__(self, join: JoinTable, left: Relation, right: Relation, text: SqlText) -> None:
        self._join = join
        self._text = text
        self._sides: dict[Side, Relation] = {"left": left, "right": right}
        names: list[str] = []
        columns: list[Column] = []
        self._from: list[tuple[Side, Column]] = []
        for side, relation in self._sides.items():
            for each in relation.columns:
                names.append(free_name(each.name, names))
                columns.append(replace(each, field=names[-1]))
                self._from.append((side, each))
        self._both = Relation(left.stream, tuple(columns))
        self._timed: Side | None = None  #: Rows have the event time of this one.
        #: Names of keys of the right side, and those that a record of both sides has them by.
        self._merged: dict[str, str] | None = None

    def planned(self, source: Source[Any] | None) -> Relation:
        """Return the rows; ``source`` is a table that is complete before the left side begins."""
        said = self._condition()
        if not said.keys and all(relation.is_bounded for relation in self._sides.values()):
            everything = Value(self._join.at, 0)
            said.keys.append((everything, everything, self._join.at))
        if not said.keys:
            raise self._text.error(
                self._join.at,
                "a join needs something that is equal on both sides: ON a.id = b.id AND ...",
            )
        is_inner = self._join.kind == "inner"
        if said.rest and not is_inner:
            raise self._text.error(
                said.rest[0].at,
                f"a {self._join.kind} join gives rows without a partner, which this condition "
                "would not see: take it into an inner join, or into WHERE",
            )
        for side, conditions in said.alone.items():
            if conditions and self._keeps(side):
                raise self._text.error(
                    conditions[0].at,
                    f"a {self._join.kind} join gives all rows of this side, so a condition for "
                    "them stands in WHERE",
                )
        if source is not None and said.alone["right"]:  # The table is read as it is.
            if not is_inner:
                raise self._text.error(
                    said.alone["right"][0].at,
                    "rows of a table are chosen by an inner join, or in the source itself",
                )
            said.rest += said.alone["right"]
        streams, keys = self._keyed(said, source)
        pairs = self._paired(said, streams, keys, source)
        return self._rows(pairs, said)

    # -- the condition -----------------------------------------------------------------------------

    def _condition(self) -> _Condition:
        said = _Condition()
        for name in self._join.using:
            at = self._join.at
            shared = Name(at, (name,))
            for relation in self._sides.values():
                relation.find(shared, self._text)
            said.keys.append((shared, shared, at))
        for condition in conjuncts(self._join.on):
            if isinstance(condition, FunctionCall) and condition.name == "between":
                value, low, high = condition.arguments
                self._take(FunctionCall(condition.at, ">=", (value, low)), said)
                self._take(FunctionCall(condition.at, "<=", (value, high)), said)
            else:
                self._take(condition, said)
        return said

    def _take(self, node: Expression, said: _Condition) -> None:
        node = rewritten(node, self._resolved)
        sides = self._sides_of(node)
        if len(sides) == 1:
            said.alone[next(iter(sides))].append(node)
            return
        if not isinstance(node, FunctionCall) or node.name not in _FLIPPED:
            said.rest.append(node)
            return
        first, second = node.arguments
        name = node.name
        if self._sides_of(first) == {"right"} and self._sides_of(second) == {"left"}:
            first, second, name = second, first, _FLIPPED[name]
        if (self._sides_of(first), self._sides_of(second)) != ({"left"}, {"right"}):
            said.rest.append(node)
        elif name == "=":
            bounds = [self._bound(first), self._bound(second)]
            if all(bounds) and bounds[0] == bounds[1]:
                said.same_window = True
            else:
                said.keys.append((first, second, node.at))
        elif not self._take_times(first, name, second, said):
            said.rest.append(node)

    def _take_times(
        self, first: Expression, name: str, second: Expression, said: _Condition
    ) -> bool:
        """Take a comparison of the times of both sides, if it is one."""
        left, right = self._offset(first, "left"), self._offset(second, "right")
        if left is None or right is None:
            return False
        # left + a <= right + b: the right time is behind the left one by a - b at least.
        apart = left - right
        if name in ("<", "<="):
            apart += _MS if name == "<" else 0
            said.lower = apart if said.lower is None else max(said.lower, apart)
        else:
            apart -= _MS if name == ">" else 0
            said.upper = apart if said.upper is None else min(said.upper, apart)
        return True

    def _offset(self, node: Expression, side: Side) -> int | None:
        """Return the microseconds added to the event time of a side; None if it is none."""
        if isinstance(node, Name):
            column, fields = self._sides[side].find(node, self._text)
            time = self._sides[side].time
            is_time = not fields and time and column.field == time and not column.is_bound
            return 0 if is_time else None
        if isinstance(node, FunctionCall) and node.name in ("+", "-"):
            first, more = node.arguments
            start = self._offset(first, side)
            if start is not None and isinstance(more, TimeSpan):
                return start + (more.microseconds if node.name == "+" else -more.microseconds)
            if start is not None and isinstance(more, Value) and type(more.value) is int:
                return start + (more.value if node.name == "+" else -more.value) * _MS
        return None

    def _bound(self, node: Expression) -> str:
        """Return the name of the bound of an open window that this is; empty if it is none."""
        if not isinstance(node, Name):
            return ""
        for relation in self._sides.values():
            if relation.windows is not None and any(
                each.is_bound and (each.table, each.name) == node.parts for each in relation.columns
            ):
                return node.parts[-1]
        return ""

    def _resolved(self, part: Expression) -> Expression | None:
        if not isinstance(part, Name):
            return None
        column, fields = self._both.find(part, self._text)
        return Name(part.at, (column.table, column.name, *fields))

    def _sides_of(self, node: Expression) -> set[Side]:
        found: set[Side] = set()
        for part in parts_of(node):
            if isinstance(part, Name):
                column, _ = self._both.find(part, self._text)
                found.add(self._from[self._both.columns.index(column)][0])
        return found

    # -- streams -----------------------------------------------------------------------------------

    def _keeps(self, side: Side) -> bool:
        """Tell whether all rows of a side come out, with or without a partner."""
        return self._join.kind in (side, "full")

    def _keyed(
        self, said: _Condition, source: Source[Any] | None
    ) -> tuple[dict[Side, Any], dict[Side, list[str]]]:
        """Return the records of both sides, with fields for their keys."""
        streams: dict[Side, Any] = {}
        keys: dict[Side, list[str]] = {}
        kinds = [self._kind(*pair) for pair in said.keys]
        for place, (side, relation) in enumerate(self._sides.items()):
            scope = Scope(self._text, relation)
            fields = relation.fields
            names: list[str] = []
            has_no_key: Expr | None = None
            for pair, kind in zip(said.keys, kinds, strict=True):
                node = pair[0] if place == 0 else pair[1]
                column, value = scope.column(node), scope.value(node)
                value = value if scope.type_of(node) == kind else value.cast(kind)
                is_there = column is not None and column.type == kind
                names.append(column.field if column and is_there else fields.add(value, "key"))
                is_null = value.is_null()
                has_no_key = is_null if has_no_key is None else has_no_key | is_null
            assert has_no_key is not None
            if side == "right" and source is not None:
                streams[side], keys[side] = None, names
                continue
            stream: Any = relation.stream
            if said.alone[side]:
                condition = conjunction(said.alone[side])
                assert condition is not None
                stream = stream.filter(scope.condition(condition))
            if not self._keeps(side):  # Nothing equals null.
                stream = stream.filter(~has_no_key)
            elif self._join.kind == "full":
                names.append(fields.add(when(has_no_key).then(place + 1).otherwise(0), "key"))
            streams[side], keys[side] = selected(stream, fields), names
        return streams, keys

    def _kind(self, left: Expression, right: Expression, at: int) -> pa.DataType:
        """Return the type in which both sides of an equality are compared."""
        a = Scope(self._text, self._sides["left"]).type_of(left)
        b = Scope(self._text, self._sides["right"]).type_of(right)
        kind = common_type(a, b)
        if kind is not None:
            return kind
        raise self._text.error(at, f"this compares {a} with {b}: cast one of them")

    # -- joins -------------------------------------------------------------------------------------

    def _paired(
        self,
        said: _Condition,
        streams: dict[Side, Any],
        keys: dict[Side, list[str]],
        source: Source[Any] | None,
    ) -> Any:
        join, how = self._join, _HOW[self._join.kind]
        if source is not None:
            self._timed = "left"
            return self._with_table(streams["left"], source, keys)
        left = streams["left"].key_by(*keys["left"])
        right = streams["right"].key_by(*keys["right"])
        windows = [relation.windows for relation in self._sides.values()]
        if any(windows):
            if not said.same_window or windows[0] != windows[1]:
                raise self._text.error(
                    join.at,
                    "windows are joined with equal ones: ON a.id = b.id AND a.window_start = "
                    "b.window_start, and the same tumble, hop or session on both sides",
                )
            return left.join(right, windows[0], how=how)
        as_of = join.right.as_of if isinstance(join.right, TableName) else None
        if as_of is not None or join.is_asof:
            return self._as_of(said, left, right, as_of, how)
        if said.lower is not None and said.upper is not None:
            return self._interval(said, left, right, how)
        if all(relation.is_bounded for relation in self._sides.values()):
            return left.join(right, global_window(), how=how)
        raise self._text.error(
            join.at,
            "a join of streams without end would keep all of both for good: add a bound in time, "
            "such as AND b.at BETWEEN a.at - INTERVAL '5' MINUTES AND a.at (of the columns that "
            "event times come from), join windows, or ASOF JOIN",
        )

    def _as_of(
        self, said: _Condition, left: Any, right: Any, as_of: Expression | None, how: str
    ) -> Any:
        if how not in ("inner", "left"):
            raise self._text.error(self._join.at, "an as-of join is an inner or a left one")
        if as_of is not None:
            if self._offset(rewritten(as_of, self._resolved), "left") != 0:
                raise self._text.error(
                    as_of.at, "this is not the column that event times of the left side come from"
                )
            self._timed = "left"
            return left.join_latest(right, how=how)
        bounds = (said.lower, said.upper)
        if bounds not in ((None, 0), (0, None)):
            raise self._text.error(
                self._join.at,
                "ASOF JOIN takes one comparison of the columns that event times come from: ON a.id "
                "= b.id AND a.at >= b.at",
            )
        direction = "backward" if said.upper == 0 else "forward"
        return left.join_asof(right, how=how, direction=direction)

    def _interval(self, said: _Condition, left: Any, right: Any, how: str) -> Any:
        assert said.lower is not None
        assert said.upper is not None
        before, after = -said.lower // _MS, said.upper // _MS
        if how == "inner" and 0 in (before, after):  # Pairs have the time of the later one.
            self._timed = "right" if before == 0 else "left"
        if before < 0 or after < 0:
            raise self._text.error(
                self._join.at,
                "the bounds in time lie on one side of the row: begin or end them at its own time",
            )
        return left.join_interval(right, before=f"{before}ms", after=f"{after}ms", how=how)

    def _with_table(self, left: Any, source: Source[Any], keys: dict[Side, list[str]]) -> Any:
        known = {each.name for each in self._sides["right"].schema}
        if self._join.kind not in ("inner", "left") or not known.issuperset(keys["right"]):
            raise self._text.error(
                self._join.at,
                "a stream is joined with a table by an inner or left join ON columns of the table",
            )
        assert isinstance(self._join.right, TableName)
        there, rows = left._step.schema_given(declared=False), source.schema
        assert rows is not None, "see `_table_source`"
        if there is not None and self._join.kind == "inner":
            pairs = dict(zip(keys["right"], keys["left"], strict=True))
            # Columns stay columns where both are one record, which has the keys of the left alone.
            if known.difference(pairs).isdisjoint(there.arrow.names) and all(
                there.arrow.field(own).type == rows.arrow.field(of).type
                for of, own in pairs.items()
            ):
                self._merged = pairs
        return left.join_table(
            source,
            on=(keys["left"], keys["right"]),
            how=self._join.kind,
            many="all",
            versioned=self._join.right.as_of is not None,
            combine=None if self._merged is None else "merge",
        )

    def _rows(self, pairs: Any, said: _Condition) -> Relation:
        fields: dict[Side, list[tuple[str, str]]] = {"left": [], "right": []}
        bounds: dict[str, list[str]] = {START: [], END: []}
        for (side, of), column in zip(self._from, self._both.columns, strict=True):
            if of.is_bound and self._sides[side].windows is not None:
                bounds[of.field].append(column.field)
            else:
                fields[side].append((of.field, column.field))
        into: dict[str, Expr] | None = None  # Pairs of columns stay columns.
        if self._merged is not None:
            merged: dict[Side, dict[str, str]] = {"left": {}, "right": self._merged}
            into = {
                name: col(merged[side].get(field, field))
                for side in fields
                for field, name in fields[side]
            }
        elif pairs._step.schema_given(declared=False) is not None:
            into = {name: col(side).field(field) for side in fields for field, name in fields[side]}
            for bound, of_pair in ((START, "start"), (END, "end")):
                into |= dict.fromkeys(bounds[bound], col(of_pair).dt.from_epoch())
        if into is not None:
            stream = selected(pairs, {each.field: into[each.field] for each in self._both.columns})
        else:
            rows = JoinRows(
                *(tuple(fields["left"]), tuple(fields["right"])),
                *(tuple(bounds[START]), tuple(bounds[END])),
            )
            stream = made(pairs, "map", rows, self._both.schema, "rows of pairs")
        columns = self._both.columns
        if self._join.using:  # Such a column is there once.
            columns = tuple(
                each
                for (side, _), each in zip(self._from, columns, strict=True)
                if side == "left" or each.name not in self._join.using
            )
        times = [
            column.field
            for (side, of), column in zip(self._from, self._both.columns, strict=True)
            if side == self._timed and of.field == self._sides[side].time
        ]
        relation = Relation(stream, columns, times[0] if times else "")
        if (condition := conjunction(said.rest)) is not None:
            relation = replace(
                relation, stream=stream.filter(Scope(self._text, relation).condition(condition))
            )
        return relation
