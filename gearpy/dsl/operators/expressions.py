"""Operators of expressions, over columns where these come, else over rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from gearpy.columns.row_schema import RowSchema
from gearpy.dsl.operators.operator import (
    ActsInside,
    IgnoresOrder,
    KeepsNothing,
    Kind,
    Operator,
    PassesRecords,
    Placing,
    Sides,
    TwinPlace,
    operator,
    reads_attributes,
)
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import Node, columns_in
from gearpy.expressions.rows import columns_function
from gearpy.spark.query.plan import RowsStep
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import WindowResult
from gearpy.task.chain.fused import RowOperator, fused_stages
from gearpy.task.chain.stage import Stage

_OF_RESULTS: Final = frozenset(WindowResult._fields)
_TEXT_MAX: Final = 80


def expression_text(expressions: Sequence[Expr]) -> str:
    text = ", ".join(map(str, expressions))
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


class _OfExpressions(KeepsNothing, IgnoresOrder, ActsInside):
    """The common answers of operators of expressions."""

    expressions: tuple[Expr, ...]
    is_columnar: bool  # In the plan that runs; as written, nobody knows yet.
    keeps_columns: bool

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        is_table = [*given] == ["table"] and not self._reads_attributes
        source, names = self.inputs[0], self._names
        schema = source.schema_given(declared=False)
        if schema is not None and schema.row_type is tuple:
            return "table"  # Pairs have names as columns alone.
        if source.gives_results:
            # As columns they have the fields of their values; only few names are in both forms.
            if self.keeps_columns or not names <= _OF_RESULTS:
                return "table"
            is_table = is_table and names <= source.result_names
        return "table" if is_table else "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    @property
    def _reads_attributes(self) -> bool:
        schema = self.inputs[0].schema_given(declared=False)
        return schema is not None and reads_attributes(self.expressions, schema)

    def named_expressions(self) -> Iterator[tuple[Operator, Sequence[Expr]]]:
        yield self.inputs[0], self.expressions

    @property
    def _names(self) -> set[str]:
        return {name for each in self.expressions for name in columns_in(each.node)}

    def parts(self, placing: Placing) -> list[Operator]:
        is_columnar = placing.taken == "table"
        return [
            self.changed(inputs=placing.inputs, origin=self.origin or self, is_columnar=is_columnar)
        ]

    @property
    def row_operator(self) -> RowOperator:
        """The same as a function over single records."""
        raise NotImplementedError

    @property
    def fused(self) -> RowOperator | None:
        return None if self.is_columnar or self.on_error is not None else self.row_operator

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.is_columnar:
            return [self._columns_stage(context)]
        limit = context.limits.batch_records
        return fused_stages([self.row_operator], limit=limit, rejects=context.rejects)

    def _columns_stage(self, context: TaskContext) -> Stage:
        raise NotImplementedError

    def twin(self, place: TwinPlace) -> RowsStep:
        takes = self.inputs[0].schema_given(declared=False)
        return RowsStep(operators=(self.row_operator,), takes=takes)


@operator
class ConditionOperator(_OfExpressions, PassesRecords):
    """Keeps the records of which an expression is true."""

    kind: str = "filter"
    expressions: tuple[Expr, ...]
    is_columnar: bool = False
    keeps_columns: bool = False

    @property
    def row_operator(self) -> RowOperator:
        return RowOperator("filter", self.name, self.expressions[0])

    @property
    def fused(self) -> RowOperator | None:
        found = super().fused
        return found and RowOperator("filter", self.name, self.expressions[0].row())

    def _columns_stage(self, context: TaskContext) -> Stage:
        from gearpy.task.stages.expressions import FilterColumnsStage  # noqa: PLC0415 - Arrow

        return FilterColumnsStage(context, self.name, self.expressions[0])


class RowColumns:
    """A function of a record that makes a dict of columns; it can be sent to other processes."""

    def __init__(self, named: Sequence[tuple[str, Node]], *, keeps: bool) -> None:
        self._named = named
        self._keeps = keeps

    @cached_property
    def function(self) -> Any:
        return columns_function(self._named, keeps=self._keeps)

    def __call__(self, record: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.function(record)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"_named": self._named, "_keeps": self._keeps}


@operator
class ColumnsOperator(_OfExpressions):
    """Makes columns of expressions: in place of all that there are, or beside them.

    Attributes:
        gives: the schema of the records, where the expressions do not tell it.
    """

    expressions: tuple[Expr, ...]
    keeps_columns: bool
    is_columnar: bool = False
    gives: RowSchema | None = None

    @property
    def _named(self) -> list[tuple[str, Node]]:
        return [(each.name, each.node) for each in self.expressions]

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        if self.gives is not None:
            return self.gives
        if declared not in self._schemas:  # All steps behind it ask for it, several times.
            self._schemas[declared] = self._schema_of(
                self.inputs[0].schema_given(declared=declared)
            )
        return self._schemas[declared]

    @cached_property
    def _schemas(self) -> dict[bool, RowSchema | None]:
        return {}

    def _schema_of(self, schema: RowSchema | None) -> RowSchema | None:
        if schema is None:
            return None
        from gearpy.expressions.binding import bound_columns  # noqa: PLC0415 - Arrow

        try:
            made = bound_columns(self._named, schema.arrow, keeps=self.keeps_columns)
        except ConfigError:  # Told by `mistakes`, or a property of the class.
            return None
        return RowSchema(made.schema)

    @property
    def row_operator(self) -> RowOperator:
        return RowOperator("map", self.name, RowColumns(self._named, keeps=self.keeps_columns))

    @property
    def fused(self) -> RowOperator | None:
        found = super().fused
        return found and RowOperator("map", self.name, found.function.function)  # type: ignore[attr-defined]

    def _columns_stage(self, context: TaskContext) -> Stage:
        from gearpy.task.stages.expressions import SelectColumnsStage  # noqa: PLC0415 - Arrow

        metadata = None if self.gives is None else self.gives.arrow.metadata
        return SelectColumnsStage(
            context, self.name, self.expressions, keeps=self.keeps_columns, metadata=metadata
        )


@operator
class ResultsOperator(ColumnsOperator):
    """Makes rows of results of windows: by the names of their columns, or else by a function."""

    kind: str = "map"
    expressions: tuple[Expr, ...]
    keeps_columns: bool = False
    is_columnar: bool = False
    row: RowOperator
    gives: RowSchema

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        # Rows would become columns whose types follow from their values alone.
        return "table" if [*given] == ["table"] else "rows"

    def schema_given(self, *, declared: bool) -> RowSchema:
        return self.gives

    @property
    def row_operator(self) -> RowOperator:
        return self.row

    @property
    def fused(self) -> RowOperator | None:
        return None if self.is_columnar else self.row


@operator
class PlacesOperator(ResultsOperator):
    """Makes rows of lists of the largest records, each with its place in the list.

    Attributes:
        place: the field of the place.
        bounds: the fields for the bounds of windows; none where they are not wanted.
    """

    kind: str = "flat_map"
    expressions: tuple[Expr, ...] = ()
    place: str
    bounds: tuple[str, ...]

    def _columns_stage(self, context: TaskContext) -> Stage:
        from gearpy.task.stages.top_tables import PlacesStage  # noqa: PLC0415 - NumPy

        return PlacesStage(context, self.name, self.gives.arrow, self.place, self.bounds)
