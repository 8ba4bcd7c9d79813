"""The operators of the largest records, which choose among columns before they make rows."""

from __future__ import annotations

from collections.abc import Sequence

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import key_getter
from gearpy.core.window.windows import AlignedWindows, DisjointWindows, OverlappingWindows
from gearpy.dsl.operators.groups import AggregateOperator
from gearpy.dsl.operators.keyed import in_order, keyed_schema
from gearpy.dsl.operators.keys import EVERYTHING
from gearpy.dsl.operators.operator import (
    IgnoresOrder,
    KeepsNothing,
    Kind,
    NeverWritten,
    Operator,
    PassesRecords,
    Placing,
    Sides,
    TakesTables,
    operator,
)
from gearpy.dsl.operators.records import ToRowsOperator
from gearpy.task.aggregates.fold import PerBatchStage
from gearpy.task.aggregates.top_n import Ranking
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage


@operator
class TopOperator(AggregateOperator):
    """The largest records of a key, running or in windows.

    Attributes:
        by: the column that is compared first.
        ranking: what compares the others, too; None: no others.
    """

    n: int
    by: str
    ranking: Ranking | None = None
    schema: RowSchema | None = None  #: Of the columns that it takes, in the plan that will run.

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if self._taken_schema(given) is None else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return "rows"

    def parts(self, placing: Placing) -> list[Operator]:
        schema = self._taken_schema(placing.given)
        if schema is None:
            return super().parts(placing)
        if self.windows is None:
            return [self.changed(inputs=placing.inputs, origin=self.origin or self, schema=schema)]
        best = BestRowsOperator(
            name=f"best rows of {self.name}",
            kind="best",
            inputs=placing.inputs,
            of=self,
            origin=self,
            part="best",
        )
        rows = ToRowsOperator(
            name="rows",
            inputs=(best,),
            parallelism=self.parallelism,
            key=self.key,
            schema=schema,
            origin=self,
            part="rows",
        )
        return [best, rows, self.changed(inputs=(rows,), origin=self.origin or self)]

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.schema is None:
            return super().make_stages(context, sides)
        from gearpy.task.stages.top_tables import RunningTop  # noqa: PLC0415 - NumPy

        assert self.key is not None
        key = key_getter(*self.key.columns)
        stage = RunningTop(
            context,
            self.name,
            key,
            self.fold,
            n=self.n,
            by=self.by,
            ranking=self.ranking,
            schema=self.schema,
        )
        of_batch = PerBatchStage(stage) if self.is_per_batch else stage
        return [in_order(context, of_batch, key, self.schema, waits=self.waits)]

    def _taken_schema(self, given: Sequence[Kind]) -> RowSchema | None:
        """Return the schema of the columns that it chooses among; None if it is to take rows."""
        windows, key = self.windows, self.key
        if windows is None and not (self.only_changed and key is not None and key.columns):
            return None  # Else each record has a result.
        if windows is not None:
            is_aligned = isinstance(windows, DisjointWindows | OverlappingWindows)
            if not (is_aligned and windows.is_plain and self.late == "drop"):
                return None
        schema = keyed_schema(self.inputs[0], EVERYTHING if key is None else key, given)
        if schema is None or self.by not in schema.arrow.names:
            return None
        from gearpy.task.stages.top_tables import can_choose  # noqa: PLC0415 - NumPy

        kind = schema.arrow.field(self.by).type
        return schema if can_choose(kind, self.ranking) else None


@operator
class BestRowsOperator(TakesTables, PassesRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """Leaves out rows that cannot be among the largest of a window."""

    of: TopOperator

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.stages.top_tables import BestRowsStage  # noqa: PLC0415 - NumPy

        of = self.of
        assert isinstance(of.windows, AlignedWindows), "of others there is no such step"
        made = self.inputs[0].schema_given(declared=False)
        stage = BestRowsStage(
            context,
            self.name,
            key=None if of.key is None else key_getter(*of.key.columns),
            windows=of.windows,
            n=of.n,
            by=of.by,
            ranking=of.ranking,
            makes=made is None or made.row_type is not None,
        )
        return [stage]
