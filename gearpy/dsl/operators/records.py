"""Operators over single records or batches that keep nothing over restarts but calls under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, get_args, get_origin, get_type_hints

from gearpy.columns.row_schema import RowSchema, row_schema_of
from gearpy.dsl.operators.operator import (
    GivesNewRecords,
    IgnoresOrder,
    KeepsNothing,
    Kind,
    NeverWritten,
    Operator,
    PassesRecords,
    Sides,
    TakesRows,
    TakesTables,
    TwinPlace,
    operator,
)
from gearpy.errors import ConfigError
from gearpy.spark.query.plan import BatchStep, RowsStep
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.fused import RowOperator, fused_stages
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.asynchronous import AsyncFunction, AsyncStage
from gearpy.task.stages.stateless import LogStage
from gearpy.task.stages.tables import Form, MapBatchesStage, RowsStage, TableStage

#: What keeps columns, in place of a function.
_INSTEAD: Final = {
    "filter": 'filter(gp.col("price") > 3)',
    "map": 'with_columns(net=gp.col("price") * 0.5)',
}


@operator
class FunctionOperator(TakesRows, PassesRecords, KeepsNothing, IgnoresOrder):
    """A function over single records; several in a row are fused into one loop."""

    operator: RowOperator
    gives: RowSchema | None = None

    @property
    def fused(self) -> RowOperator | None:
        return self.operator if self.on_error is None else None

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        if self.gives is not None:
            return self.gives
        if self._passes:
            return super().schema_given(declared=declared)
        if declared:
            return None
        try:
            found = get_type_hints(self.operator.function).get("return")
        except (NameError, TypeError, AttributeError):  # Names known to checkers only; no function.
            return None
        if self.operator.kind == "flat_map":
            items = get_args(found)
            found = items[0] if len(items) >= 1 and get_origin(found) is not None else None
        if not isinstance(found, type) or not (
            hasattr(found, "__dataclass_fields__")
            or (issubclass(found, tuple | dict) and bool(getattr(found, "__annotations__", None)))
        ):
            return None
        try:
            return row_schema_of(found)
        except ConfigError:  # Rows stay rows; the user did not ask for columns.
            return None

    @property
    def _passes(self) -> bool:
        return self.operator.kind == "filter" or self.kind == "inspect"

    @property
    def gives_results(self) -> bool:
        return self._passes and super().gives_results

    @property
    def acts(self) -> bool:
        return self.kind == "inspect"

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        limit = context.limits.batch_records
        return fused_stages([self.operator], limit=limit, rejects=context.rejects)

    def twin(self, place: TwinPlace) -> RowsStep | None:
        if self.acts:
            return None
        takes = self.inputs[0].schema_given(declared=False)
        return RowsStep(operators=(self.operator,), takes=takes)


@operator
class BatchOperator(TakesTables, KeepsNothing, IgnoresOrder):
    """A function over batches of records in columns."""

    kind: str = "map_batches"
    function: Callable[[Any], Any]
    form: Form = "arrow"
    times: str | None = None
    takes: RowSchema | None = None
    gives: RowSchema | None = None

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return self.gives

    @property
    def schema_taken(self) -> RowSchema | None:
        return self.takes

    acts = True

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        stage = MapBatchesStage(
            context, self.name, self.function, self.form, times=self.times, gives=self.gives
        )
        return [stage]

    def twin(self, place: TwinPlace) -> BatchStep:
        return BatchStep(
            name=self.name,
            function=self.function,
            form=self.form,
            times=self.times,
            takes=self.takes or self.inputs[0].schema_given(declared=False),
            gives=self.gives,
        )


@operator
class LogOperator(TakesRows, PassesRecords, KeepsNothing, IgnoresOrder):
    """Writes a line to the log for one record of ``every``."""

    kind: str = "log"
    level: int
    every: int

    acts = True

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return [LogStage(context, self.name, level=self.level, every=self.every)]

    def twin(self, place: TwinPlace) -> None:
        """Leave it out: effects belong to the stream."""


@operator
class AsyncOperator(TakesRows, GivesNewRecords, IgnoresOrder):
    """A coroutine over single records, many at a time."""

    kind: str = "map_async"
    function: AsyncFunction

    keeps = "records in flight"
    acts = True

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return [AsyncStage(context, self.name, self.function)]

    no_twin = "coroutines run in gearpy's event loop only: use map(...)"


@operator
class ToRowsOperator(TakesRows, GivesNewRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """Makes rows of columns."""

    kind: str = "rows"
    schema: RowSchema | None = None
    reader: Operator | None = None

    @property
    def note(self) -> str:
        read = self.reader
        if read is not None and read.why_rows:
            return f"{read.name} takes rows of columns: {read.why_rows}"
        if not isinstance(read, FunctionOperator) or read.kind not in _INSTEAD:
            return ""
        instead = _INSTEAD[read.kind]
        return f"{read.name} makes rows of columns: an expression such as {instead} keeps them"

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return self.inputs[0].schema_given(declared=declared)

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return [RowsStage(context, self.name, self.schema)]


@operator
class ToColumnsOperator(TakesRows, GivesNewRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """Makes columns of rows."""

    kind: str = "table"
    schema: RowSchema | None = None

    def kind_given(self, taken: Kind) -> Kind:
        return "table"

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return [TableStage(context, self.name, self.schema)]
