"""Keys and aggregates of expressions, as names of columns that are computed before a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gearpy.columns.row_schema import RowSchema
from gearpy.core.window.accumulators import Aggregate
from gearpy.dsl.operators.expressions import ColumnsOperator
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.operator import (
    IgnoresOrder,
    KeepsNothing,
    NeverWritten,
    Operator,
    PassesRecords,
    Sides,
    TakesTables,
    operator,
)
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import ColumnNode, Node
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage


@dataclass(frozen=True)
class ByNames:
    """A key and aggregates by names alone, of columns that are computed before.

    Attributes:
        read: the columns that are taken as they come.
        computed: the others, by their names.
    """

    key: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    read: Sequence[str]
    computed: Sequence[Expr]

    def schema(self, schema: RowSchema) -> Any:
        """Return the columns that there are and those that are computed; None if they cannot be."""
        if not self.computed:
            return schema.arrow
        from gearpy.expressions.binding import bound_columns  # noqa: PLC0415 - Arrow

        try:
            named = [(each.name, each.node) for each in self.computed]
            return bound_columns(named, schema.arrow, keeps=True).schema
        except ConfigError:
            return None

    def row_schema(self, schema: RowSchema) -> RowSchema | None:
        """Return the same, of which rows are the records without what is computed."""
        if not self.computed:
            return schema
        arrow = self.schema(schema)
        if arrow is None:
            return None
        from gearpy.expressions.computed_schema import ComputedSchema  # noqa: PLC0415 - Arrow

        named = tuple((each.name, each.node) for each in self.computed)
        return ComputedSchema(arrow, records=schema, computed=named)

    def types(self, schema: RowSchema) -> Mapping[str, Any]:
        """Return the Arrow types of all columns, as far as they are known."""
        return {each.name: each.type for each in self.schema(schema) or schema.arrow}


def by_names(key: Key | None, aggregates: Mapping[str, Aggregate] | None = None) -> ByNames:
    read: dict[str, None] = {}
    computed: dict[Node, Expr] = {}

    def name(of: Any) -> Any:
        if isinstance(of, Expr) and isinstance(of.node, ColumnNode) and "." not in of.node.name:
            of = of.node.name
        if isinstance(of, str):
            read[of] = None
        if not isinstance(of, Expr):
            return of
        if of.node not in computed:
            text = f"= {of.alias('x')}".removesuffix(" as x")
            names = {each.name for each in computed.values()}
            while text in names:  # Another value may have the same text.
                text += "'"
            computed[of.node] = of.alias(text)
        return computed[of.node].name

    parts: Sequence[Any] = () if key is None else (key.columns or key.expressions)
    names = tuple(map(name, parts))
    named = {
        label: replace(
            each,
            of=each.of if each.kind == "count" else name(each.of),
            by=name(each.by) if each.is_by else each.by,
            where=name(each.where),
        )
        for label, each in (aggregates or {}).items()
    }
    return ByNames(names, named, tuple(read), tuple(computed.values()))


def computing(
    step: Operator,
    source: Operator,
    expressions: Sequence[Expr],
    *,
    keeps: bool = True,
    part: str = "columns",
) -> ColumnsOperator:
    """Return the part of a step that makes columns: beside those that there are, or alone."""
    return ColumnsOperator(
        name=f"{part} of {step.name}",
        kind="select",
        inputs=(source,),
        expressions=tuple(expressions),
        keeps_columns=keeps,
        is_columnar=True,
        origin=step,
        part=part,
    )


@operator
class WithoutColumnsOperator(TakesTables, PassesRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """Leaves out columns that were computed for the step before."""

    names: frozenset[str]
    schema: RowSchema  #: Of what is left, as far as it is read.

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.stages.expressions import DropColumnsStage  # noqa: PLC0415 - Arrow

        return [DropColumnsStage(self.name, self.names, self.schema.arrow.metadata)]


def without_computed(
    step: Operator, source: Operator, names: ByNames, schema: RowSchema
) -> WithoutColumnsOperator:
    """Return the part of a step that leaves out what was computed for it."""
    return WithoutColumnsOperator(
        name=f"records of {step.name}",
        kind="select",
        inputs=(source,),
        names=frozenset(each.name for each in names.computed),
        schema=schema,
        origin=step,
        part="records",
    )
