"""Operators that keep something for each key and see the order of its records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import key_getter
from gearpy.core.window.accumulators import Aggregate
from gearpy.dsl.operators.by_names import by_names, computing, without_computed
from gearpy.dsl.operators.keys import EVERYTHING, ITSELF, Key, key_of
from gearpy.dsl.operators.operator import (
    ActsInside,
    GivesNewRecords,
    Kind,
    Operator,
    PassesRecords,
    Placing,
    SeesOrder,
    Sides,
    TakesRows,
    operator,
    reads_attributes,
)
from gearpy.dsl.operators.signature import by_text
from gearpy.task.aggregates.rolling import OverStage, RollingSpan, RollingStage
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import OrderedStage, PeersGate, ordered_stage
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.stateful import DistinctStage, KeyedStage, PlaceStage, StateFunction


class _Keyed(TakesRows, SeesOrder, ActsInside):
    """The common answers of the operators here."""

    @property
    def _by(self) -> str:
        """The key as it was written, also where columns of it are computed before."""
        return by_text((self.origin or self).key)

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        assert self.key is not None, f"{self.kind} is by key"
        key = self.key.function
        return [ordered_stage(context, self._stage(context), key, waits=self.waits)]

    @abstractmethod
    def _stage(self, context: TaskContext) -> Stage:
        """Make the stage for records that come in the right order."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columnar(_Keyed):
    """The common answers of those that give tables of tables."""

    schema: RowSchema | None = None  #: Of the columns that it takes, in the plan that will run.

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if self._taken_schema(given) is None else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    def parts(self, placing: Placing) -> list[Operator]:
        schema, names = self._taken_schema(placing.given), by_names(self.key)
        if schema is None:
            return super().parts(placing)
        step = self.changed(inputs=placing.inputs, origin=self.origin or self, schema=schema)
        if not names.computed:
            return [step]
        columns = computing(self, placing.inputs[0], names.computed)
        return [columns, step.changed(inputs=(columns,), key=key_of("key_by", names.key))]

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.schema is None or self.key is None:
            return super().make_stages(context, sides)
        stage, key = self._stage(context), self.key.function
        return [in_order(context, stage, key, self.schema, waits=self.waits)]

    def _taken_schema(self, given: Sequence[Kind]) -> RowSchema | None:
        names, schema = by_names(self.key), self.inputs[0].schema_given(declared=False)
        if not names.computed or schema is None or reads_attributes(names.computed, schema):
            return keyed_schema(self.inputs[0], self.key, given)
        found = names.row_schema(schema) if [*given] == ["table"] else None
        return found if found is not None and _can_be_key(found, names.key) else None

    @property
    def why_rows(self) -> str:
        if self.kind_taken(["table"]) == "table":
            return ""
        if self.key is ITSELF:
            return "its key is the whole record, of a class: name its columns"
        if self.key is not EVERYTHING and not by_names(self.key).key:
            return "its key is a function: a name or an expression keeps them"
        is_known = self.inputs[0].schema_given(declared=False) is not None
        return "a column cannot be its key" if is_known else "nothing tells the schema"


class _Passing(_Columnar, PassesRecords):
    """The common answers of those that let some records pass; of columns they look at the key."""

    def parts(self, placing: Placing) -> list[Operator]:
        *before, passing = super().parts(placing)
        schema = self.inputs[0].schema_given(declared=False)
        if not before or schema is None:
            return [*before, passing]
        return [*before, passing, without_computed(self, passing, by_names(self.key), schema)]


def in_order(
    context: TaskContext,
    stage: Stage,
    key: Callable[[Any], Any],
    schema: RowSchema,
    *,
    waits: bool,
) -> Stage:
    """Return a stage that takes tables with its gate, if its records wait for event time."""
    if not waits:
        return stage
    from gearpy.task.chain.table_gate import TableGate  # noqa: PLC0415 - Arrow

    return OrderedStage(context, stage, TableGate(context, key, schema))


def keyed_schema(source: Operator, key: Key | None, given: Sequence[Kind]) -> RowSchema | None:
    """Return the schema of the columns that a step by key can take; None if it is to take rows."""
    schema = source.schema_given(declared=False)
    if [*given] != ["table"] or schema is None or key is None:
        return None
    if not key.columns:
        return schema if key.function is EVERYTHING.function else None
    return schema if _can_be_key(schema, key.columns) else None


def _can_be_key(schema: RowSchema, names: Sequence[str]) -> bool:
    # A program without columns needs no Arrow.
    from gearpy.task.aggregates.fitting import key_mistake  # noqa: PLC0415

    types = dict(zip(schema.arrow.names, schema.arrow.types, strict=True))
    return not any(name not in types or key_mistake(types[name]) for name in names)


@operator
class StateOperator(_Keyed, GivesNewRecords):
    """A function over single records and the value that is kept for their key."""

    kind: str = "map_with_state"
    function: StateFunction
    value: str = "a value"

    @property
    def keeps(self) -> str:
        return f"{self.value}{self._by}"

    no_twin = "what it gives depends on the order in which the records of a key come"

    def _stage(self, context: TaskContext) -> Stage:
        assert self.key is not None
        return KeyedStage(context, self.name, self.key.function, self.function)


@operator
class PairwiseOperator(_Columnar, StateOperator):
    """Each record with the one of its key before it, also in columns."""

    def _taken_schema(self, given: Sequence[Kind]) -> RowSchema | None:
        return super()._taken_schema(given) if by_names(self.key).key else None

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        schema = self.inputs[0].schema_given(declared=False)
        if declared or schema is None or self._taken_schema(["table"]) is None:
            return None
        from gearpy.task.stages.pairs import PairSchema  # noqa: PLC0415 - NumPy

        return PairSchema.of_pairs(schema)

    def _stage(self, context: TaskContext) -> Stage:
        if self.schema is None or self.key is None:
            return super()._stage(context)
        from gearpy.task.stages.pairs import PairTablesStage  # noqa: PLC0415 - NumPy

        return PairTablesStage(context, self.name, key_getter(*self.key.columns), self.schema)


@operator
class OverOperator(_Keyed):
    """Rows with what functions over those up to each come to.

    Attributes:
        span: how far back they look; None: to the first row.
        row: makes a row of the record, or of the key where they look to the first row, and results.
        peers: changes rows of one time, of which each sees the others; None: it does not.
    """

    kind: str = "over"
    span: RollingSpan | None
    aggregates: Mapping[str, Aggregate]
    row: Callable[[Any], Any]
    peers: Callable[[list[Any]], list[Any]] | None
    gives: RowSchema

    no_twin = "which rows come before depends on the order in which they come"

    @property
    def keeps(self) -> str:
        return f"{'an aggregate' if self.span is None else 'the last records'}{self._by}"

    @property
    def gives_results(self) -> bool:
        return False

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return self.gives

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.peers is None:
            return super().make_stages(context, sides)
        assert self.key is not None
        gate = PeersGate(context, self.key.function)
        return [OrderedStage(context, self._stage(context), gate)]

    def _stage(self, context: TaskContext) -> Stage:
        assert self.key is not None
        fold, key = fold_of(self.aggregates), self.key.function
        inner: Stage
        if self.span is None:
            inner = RunningAggregate(context, self.name, key, fold)
        else:
            inner = RollingStage(context, self.name, key, self.span, fold, gives_record=True)
        return OverStage(inner, self.row, self.peers)


@operator
class DistinctOperator(_Passing):
    """Lets the first record of each key pass."""

    kind: str = "distinct"
    within_ms: int | None = None

    @property
    def keeps(self) -> str:
        return f"what has passed{self._by}"

    no_twin = "which record of a key comes first depends on the order in which they come"

    def _stage(self, context: TaskContext) -> Stage:
        assert self.key is not None
        key = self.key.function
        return DistinctStage(context, self.name, key, self.within_ms, self.schema)


@operator
class PlaceOperator(_Passing):
    """Lets the first records of a stream pass ("take"), or all but these ("skip"); in one task."""

    count: int

    keeps = "how many came"
    shown_key = ""
    no_twin = "which records are the first depends on the order in which they come"

    def _stage(self, context: TaskContext) -> Stage:
        is_first = self.kind == "take"
        return PlaceStage(context, self.name, self.count, is_first=is_first, is_ordered=self.waits)
