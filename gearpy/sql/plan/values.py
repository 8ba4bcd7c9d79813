"""Expressions of SQL as expressions of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, get_type_hints

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.types import field_of
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, col, lit, when
from gearpy.sql.names.aggregates import AGGREGATES
from gearpy.sql.names.functions import FUNCTIONS
from gearpy.sql.names.types import arrow_type
from gearpy.sql.parse.expressions import as_duration, as_time
from gearpy.sql.parse.syntax import (
    Case,
    Cast,
    Expression,
    FunctionCall,
    Literal,
    MacroCall,
    Name,
    QueryValue,
    Star,
    TimeSpan,
    parts_of,
)
from gearpy.sql.parse.tokens import SqlText, did_you_mean
from gearpy.sql.plan.records import Computing
from gearpy.sql.plan.relations import Column, Computed, Relation, free_name, made, selected

#: What compares its arguments with each other.
_COMPARING: Final = frozenset(
    {*("=", "<>", "<", "<=", ">", ">="), *("in", "between", "is not distinct")}
)
#: What to write in place of functions of other databases.
_ADVICE: Final = {
    "unnest": "it stands in SELECT, or in FROM: FROM t, UNNEST(t.tags) AS tag",
    **dict.fromkeys(
        ("now", "today", "current_timestamp", "current_date"),
        "an answer does not depend on when it is asked: write the time, or pass it in",
    ),
    **dict.fromkeys(("date_format", "to_char"), "write strftime(at, '%Y-%m-%d')"),
    "unix_timestamp": "write epoch(at), or epoch_ms(at)",
}
#: A name in the text of an error, where a column is neither grouped nor aggregated.
_NOT_GROUPED: Final = "is neither grouped nor aggregated: add it to GROUP BY, or take any_value({})"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in an expression mean.

    Attributes:
        computed: expressions that stand in columns already.
        grouped: the rows before they were grouped: names of these need a group.
        functions: of the user, by name.
    """

    text: SqlText
    relation: Relation
    computed: Computed = field(default_factory=dict)
    grouped: Relation | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def value(self, node: Expression) -> Expr:
        """Return an expression over the records of the relation.

        Raises:
            ConfigError: it names what is not there, or its types do not fit; and where.
        """
        found = self._value(node)
        self.type_of(node, found)
        return found

    def condition(self, node: Expression) -> Expr:
        """Return an expression that is true, false or null.

        Raises:
            ConfigError: it is something else.
        """
        found = self.value(node)
        kind = self.type_of(node, found)
        if kind not in (pa.bool_(), pa.null()):
            raise self.text.error(
                node.at, f"a condition is true or false, and this is {kind}: compare it"
            )
        return found

    def type_of(self, node: Expression, value: Expr | None = None) -> pa.DataType:
        """Return the type of an expression, of whose parts the smallest that has none is told."""
        value = self._value(node) if value is None else value
        try:
            return value.bind(self.relation.schema).type
        except ConfigError as error:
            for part in parts_of(node):
                if part is not node and not isinstance(part, Star):
                    self.type_of(part)
            raise self.text.error(node.at, str(error)) from None

    def column(self, node: Expression) -> Column | None:
        """Return the column that an expression is; None if it is none."""
        if node in self.computed:
            return self.computed[node]
        if isinstance(node, Name) and self.grouped is None:
            found, fields = self.relation.find(node, self.text)
            return None if fields else found
        return None

    def narrowed(self, nodes: Sequence[Expression | None]) -> Scope:
        """Return a scope without the columns that no expression looks at."""
        parts = [part for node in nodes if node is not None for part in parts_of(node)]
        if any(isinstance(part, QueryValue) for part in parts):  # It may look at any of them.
            return self
        used = {self.computed[part] for part in parts if part in self.computed}
        if self.grouped is None:
            used |= {self.relation.find(p, self.text)[0] for p in parts if isinstance(p, Name)}
        columns = tuple(
            each
            for each in self.relation.columns
            if each in used or each.is_bound or each.field == self.relation.time
        )
        return replace(self, relation=replace(self.relation, columns=columns))

    # ----------------------------------------------------------------------------------------------

    def _value(self, node: Expression) -> Expr:
        if node in self.computed:
            return col(self.computed[node].field)
        match node:
            case Literal(value=value):
                return lit(value)
            case TimeSpan(months=months):
                if months:
                    raise self.text.error(
                        node.at, "months and years differ in length: add them to a time or date"
                    )
                return lit(as_duration(node))
            case Name():
                return self._named(node)
            case Star():
                raise self.text.error(node.at, "* stands for columns, not for a value")
            case Case():
                return self._case(node)
            case MacroCall(value=value):
                return self._value(value)
            case Cast():
                kind = arrow_type(node.type, node.at, self.text)
                return self._cast(node, kind)
            case QueryValue():
                raise self.text.error(
                    node.at, "a query cannot stand here: take it in SELECT, WHERE or HAVING"
                )
            case FunctionCall():
                return self._call(node)

    def _named(self, name: Name) -> Expr:
        if self.grouped is not None:
            self.grouped.find(name, self.text)  # An unknown one is told as such.
            raise self.text.error(name.at, f"{name} {_NOT_GROUPED.format(name)}")
        column, fields = self.relation.find(name, self.text)
        value = col(column.field)
        for each in fields:
            value = value.field(each)
        return value

    def _case(self, node: Case) -> Expr:
        chain: Any = None
        for condition, value in node.cases:
            begun = (
                when(self._value(condition))
                if chain is None
                else chain.when(self._value(condition))
            )
            chain = begun.then(self._value(value))
        otherwise = None if node.otherwise is None else self._value(node.otherwise)
        found: Expr = chain.otherwise(otherwise)
        return found

    def _cast(self, node: Cast, kind: pa.DataType) -> Expr:
        value = self._value(node.value)
        if pa.types.is_floating(self.type_of(node.value)):
            if pa.types.is_decimal(kind):
                value = value.round(kind.scale, half="away")
            elif pa.types.is_integer(kind):  # The nearest one, and the even one of two.
                value = value.round()
        return value.cast(kind, strict=not node.is_try)

    def _call(self, node: FunctionCall) -> Expr:
        if node.over is not None:
            raise self.text.error(
                node.at,
                f"{node.name}(...) OVER is not known yet here: take it in a query in FROM, or in "
                "QUALIFY",
            )
        if node.name in AGGREGATES:
            raise self.text.error(
                node.at, f"the aggregate {node.name} cannot stand here: use it in SELECT or HAVING"
            )
        function = FUNCTIONS.get(node.name)
        if function is None:
            known = [
                name for name in (*FUNCTIONS, *AGGREGATES, *self.functions) if name[0].isalpha()
            ]
            advice = _ADVICE.get(node.name)
            near = f": {advice}" if advice else did_you_mean(node.name, known)
            raise self.text.error(node.at, f"there is no function {node.name!r}{near}")
        taken: Sequence[Expression] = node.arguments
        if node.name in _COMPARING:
            taken = self._compared(node)
        elif node.name == "||":
            kinds = [self.type_of(each) for each in taken]
            taken = [
                each if kind in (pa.string(), pa.null()) else Cast(each.at, each, "text")
                for each, kind in zip(taken, kinds, strict=True)
            ]
        elif node.name in ("+", "-") and (moved := self._moved(node)) is not None:
            return moved
        plain = [each.value for each in taken[1:] if isinstance(each, Literal)]
        is_listed = len(plain) == len(taken) - 1 and len({*map(type, plain)}) == 1
        try:
            if node.name == "in" and is_listed and None not in plain:
                return self._value(taken[0]).is_in(plain)
            return function.made(replace(node, arguments=tuple(taken)), self._value, self.text)
        except ConfigError as error:
            raise self.text.error(node.at, str(error)) from None

    def _moved(self, node: FunctionCall) -> Expr | None:
        """Return a time or date with a length of time added; None if this is something else."""
        first, more = node.arguments
        kind, by = (
            pa.duration("us") if isinstance(each, TimeSpan) else self.type_of(each)
            for each in node.arguments
        )
        if pa.types.is_date(kind):
            time = Cast(first.at, first, "timestamp")
            if isinstance(more, Literal) and type(more.value) is int:
                days = TimeSpan(more.at, more.value * 86_400_000_000)
                found = FunctionCall(node.at, node.name, (time, days))
                return self._value(Cast(node.at, found, "date"))
            if pa.types.is_duration(by):
                return self._value(replace(node, arguments=(time, more)))
            if pa.types.is_date(by) and node.name == "-":
                unit = Literal(node.at, "day")
                return self._value(FunctionCall(node.at, "date_diff", (unit, more, first)))
        if not isinstance(more, TimeSpan) or not more.months:
            return None
        moved = self._value(replace(node, arguments=(first, replace(more, months=0))))
        return moved.dt.add_months(more.months if node.name == "+" else -more.months)

    def _compared(self, node: FunctionCall) -> Sequence[Expression]:
        """Return the operands of a comparison, with dates and texts beside times as times."""
        kinds = [self.type_of(each) for each in node.arguments if not isinstance(each, Literal)]
        times = next((each for each in kinds if pa.types.is_temporal(each)), None)
        if times is None or pa.types.is_duration(times) or pa.types.is_time(times):
            return node.arguments
        is_date = pa.types.is_date(times)
        return [
            as_time(each, self.text, is_date=is_date, is_local=not is_date and times.tz is None)
            if isinstance(each, Literal) and isinstance(each.value, str | date)
            else each
            for each in node.arguments
        ]


def conjuncts(node: Expression | None) -> list[Expression]:
    """Return the conditions that must all be true."""
    if node is None:
        return []
    if isinstance(node, FunctionCall) and node.name == "and":
        return [*conjuncts(node.arguments[0]), *conjuncts(node.arguments[1])]
    return [node]


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """Return the condition that all of these are true; None without any."""
    found: Expression | None = None
    for each in conditions:
        found = each if found is None else FunctionCall(each.at, "and", (found, each))
    return found


def with_functions(scope: Scope, nodes: Sequence[Expression]) -> Scope:
    """Return a scope in which calls of the user's functions stand in columns.

    Raises:
        ConfigError: a function has no annotation of what it returns.
    """
    for node in nodes:
        for call in _own_calls(node, scope):
            if call not in scope.computed:
                scope = _with_function(scope, call)
    return scope


def _own_calls(node: Expression, scope: Scope) -> Iterator[FunctionCall]:
    """Yield the calls of the user's functions that are not computed, inner ones first."""
    if node in scope.computed:
        return
    if isinstance(node, FunctionCall):
        for each in (*node.arguments, *(() if node.where is None else (node.where,))):
            yield from _own_calls(each, scope)
        if node.name in scope.functions:
            yield node
    else:
        for part in [*parts_of(node)][1:]:
            if isinstance(part, FunctionCall):
                yield from _own_calls(part, scope)


def _with_function(scope: Scope, call: FunctionCall) -> Scope:
    relation, function = scope.relation, scope.functions[call.name]
    fields = relation.fields
    arguments = [fields.add(scope.value(node), "argument") for node in call.arguments]
    try:
        kind = field_of(call.name, get_type_hints(function)["return"]).type
    except (KeyError, NameError, TypeError, ConfigError) as error:
        raise scope.text.error(
            call.at,
            f"{call.name} does not say what it returns: annotate it, as in def "
            f"{call.name}(price: int) -> float ({type(error).__name__})",
        ) from None
    column = Column(call.name, free_name(call.name, fields), kind)
    columns = (*relation.columns, column)
    schema = pa.schema([*relation.schema, (column.field, kind)])
    computing = Computing(column.field, function, tuple(arguments), tuple(schema.names))
    stream = made(selected(relation.stream, fields), "map", computing, schema, call.name)
    return replace(
        scope,
        relation=replace(relation, stream=stream, columns=columns),
        computed={**scope.computed, call: column},
    )
