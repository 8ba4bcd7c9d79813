"""The operators of the largest records, which choose among columns before they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import key_getter
from gearpy.core.window.windows import (
    AlignedWindows,
    DisjointWindows,
    OverlappingWindows,
)
from gearpy.dsl.operators.groups import AggregateOperator, MergeAggregateOperator
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
    #: Of the columns that it takes, and the form of what it gives, in the plan that will run.
    schema: RowSchema | None = None
    gives: Kind = "rows"

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if self._taken_schema(given) is None else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return self.gives

    @property
    def why_rows(self) -> str:
        if self.kind_taken(["table"]) == "table":
            return ""
        key, schema = self.key, self.inputs[0].schema_given(declared=False)
        if key is not None and not key.columns:
            return "its key is no name of a column"
        if schema is None:
            return "nothing tells the schema"
        if self.windows is not None and not self._is_aligned:
            return "its windows are sessions, fire more than once, or keep what is late"
        if schema.may_refuse:
            return "the class of its rows may refuse some, which are none of the largest then"
        return "a column that it compares has no order in columns"

    @property
    def results(self) -> Any:
        schema = self._taken_schema(["table"])
        if schema is None:
            return None
        keys = [schema.arrow.field(name).type for name in self.key.columns] if self.key else []
        return self._results_of(keys, self.types_told())

    def types_told(self) -> Mapping[str, Any]:
        schema = self._taken_schema(["table"])
        if schema is None:
            return {}
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

        return {"value": pa.list_(pa.struct(list(schema.arrow)))}

    @property
    def result_names(self) -> frozenset[str]:
        results = None if self.windows is None else self.results
        return frozenset() if results is None else frozenset(results.names)

    def parts(self, placing: Placing) -> list[Operator]:
        schema = self._taken_schema(placing.given)
        if schema is None:
            return super().parts(placing)
        is_table = {*placing.wanted} == {"table"} and self.results and not self.is_per_batch
        gives: Kind = "table" if is_table else "rows"
        if self.windows is None:
            origin = self.origin or self
            return [self.changed(inputs=placing.inputs, origin=origin, schema=schema, gives=gives)]
        before = [self._best(placing)] if self._is_of_numbers(schema) else []
        merging = MergeTopOperator(
            name=self.name,
            given=self.given,
            kind=self.kind,
            inputs=(*before,) or placing.inputs,
            parallelism=self.parallelism,
            key=self.key,
            of=self,
            origin=self,
            schema=schema,
            gives=gives,
        )
        return [*before, merging]

    def _best(self, placing: Placing) -> Operator:
        return BestRowsOperator(
            name=f"best rows of {self.name}",
            kind="best",
            inputs=placing.inputs,
            of=self,
            origin=self,
            part="best",
        )

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.schema is None:
            return super().make_stages(context, sides)
        from gearpy.task.stages.top_tables import RunningTop  # noqa: PLC0415 - NumPy

        written = self.origin
        assert isinstance(written, TopOperator), "it is in its place"
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
            only_changed=self.only_changed,
            results=written.results if self.gives == "table" else None,
        )
        of_batch = PerBatchStage(stage) if self.is_per_batch else stage
        return [in_order(context, of_batch, key, self.schema, waits=self.waits)]

    def _taken_schema(self, given: Sequence[Kind]) -> RowSchema | None:
        """Return the schema of the columns that it chooses among; None if it is to take rows."""
        windows, key = self.windows, self.key
        if windows is None and not (key is not None and key.columns):
            return None
        if windows is not None and not self._is_aligned:
            return None
        schema = keyed_schema(self.inputs[0], EVERYTHING if key is None else key, given)
        if schema is None or schema.may_refuse:
            return None
        from gearpy.task.stages.top_tables import can_rank  # noqa: PLC0415 - NumPy

        is_ranked = can_rank(self.by, self.ranking, schema.arrow)
        return (
            schema if is_ranked and (windows is not None or self._is_of_numbers(schema)) else None
        )

    @property
    def _is_aligned(self) -> bool:
        windows = self.windows
        if not isinstance(windows, DisjointWindows | OverlappingWindows):
            return False
        return windows.is_plain and self.late == "drop"

    def _is_of_numbers(self, schema: RowSchema) -> bool:
        from gearpy.task.stages.top_tables import can_choose  # noqa: PLC0415 - NumPy

        return can_choose(schema.arrow.field(self.by).type, self.ranking)


@operator
class BestRowsOperator(TakesTables, PassesRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """Leaves out rows that cannot be among the largest of a window."""

    of: TopOperator

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.stages.top_tables import BestRowsStage  # noqa: PLC0415 - NumPy

        of = self.of
        assert isinstance(of.windows, AlignedWindows), "of others there is no such step"
        stage = BestRowsStage(
            context,
            self.name,
            key=None if of.key is None else key_getter(*of.key.columns),
            windows=of.windows,
            n=of.n,
            by=of.by,
            ranking=of.ranking,
        )
        return [stage]


@operator
class MergeTopOperator(MergeAggregateOperator):
    """Merges the largest rows of columns; gives its results in the form that is wanted."""

    of: TopOperator
    schema: RowSchema

    @property
    def keeps(self) -> str:
        return self.of.keeps

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.stages.top_tables import TopTablesStage  # noqa: PLC0415 - NumPy

        of = self.of
        assert isinstance(of.windows, DisjointWindows | OverlappingWindows), "else it takes rows"
        stage = TopTablesStage(
            context,
            self.name,
            windows=of.windows,
            key=() if of.key is None else of.key.columns,
            n=of.n,
            by=of.by,
            ranking=of.ranking,
            schema=self.schema,
            results=of.results if self.gives == "table" else None,
            waits="all" if self.waits else "late",
        )
        return [stage]
