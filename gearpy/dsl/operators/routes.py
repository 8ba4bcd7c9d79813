"""Operators that lead records somewhere: together, apart, to a task of the user, to a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gearpy.columns.row_schema import RowSchema, row_schema_of
from gearpy.core.base.fields import value_getter
from gearpy.dsl.operators.expressions import ColumnsOperator, ConditionOperator
from gearpy.dsl.operators.keys import EVERYTHING
from gearpy.dsl.operators.operator import (
    ActsInside,
    Dispatcher,
    GivesNewRecords,
    IgnoresOrder,
    KeepsNothing,
    Kind,
    NoStage,
    Operator,
    Order,
    PassesRecords,
    Placing,
    ReadOperator,
    Refusal,
    SeesOrder,
    Sides,
    TakesRows,
    TwinPlace,
    operator,
    reads_attributes,
)
from gearpy.dsl.operators.signature import by_text
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, col, when
from gearpy.task.api.application import TaskFactory
from gearpy.task.api.interfaces import Sink, TaskContext
from gearpy.task.api.sides import ERRORS, BadRecord
from gearpy.task.chain.stage import Stage
from gearpy.task.joins.join_schema import JoinSchema
from gearpy.task.stages.sink import Told, sink_stage
from gearpy.task.stages.stateless import BranchStage

#: The column that says which output of a branch a row is of.
_BRANCH: Final = "#branch"


@operator
class MergeOperator(NoStage, PassesRecords, KeepsNothing, IgnoresOrder, ActsInside):
    """The records of several streams, in the order they come."""

    kind: str = "merge"

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if "rows" in given else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    no_twin = "it joins several streams, and the query goes from one source to one sink"


@operator
class RepartitionOperator(NoStage, PassesRecords, KeepsNothing, IgnoresOrder, ActsInside):
    """The same records, dealt evenly to a number of tasks: a chain begins with it."""

    kind: str = "repartition"

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return given[0]

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    def twin(self, place: TwinPlace) -> None:
        return


@operator
class BranchOperator(PassesRecords, KeepsNothing, IgnoresOrder, ActsInside):
    """Puts each record into the side output of the first predicate that is true of it.

    In columns it adds one that says which predicate that is, and each output takes its rows.
    """

    kind: str = "branch"
    predicates: Mapping[str, Callable[[object], object]]
    default: str | None

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if "rows" in given or self.why_rows else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    @property
    def why_rows(self) -> str:
        schema = self.inputs[0].schema_given(declared=False)
        if schema is None or self.inputs[0].gives_results:
            return "the columns of its records are not known"
        if not all(isinstance(each, Expr) for each in self.predicates.values()):
            return 'expressions such as gp.col("price") > 3 in place of functions keep them'
        return (
            ""
            if all(_is_condition(each, schema) for each in self._conditions)
            else "a predicate is no condition"
        )

    def named_expressions(self) -> Iterator[tuple[Operator, Sequence[Expr]]]:
        yield self.inputs[0], self._conditions

    @property
    def _conditions(self) -> list[Expr]:
        return [each for each in self.predicates.values() if isinstance(each, Expr)]

    @property
    def structure(self) -> str:
        return ", ".join([*self.predicates, self.default or ""])

    def parts(self, placing: Placing) -> list[Operator]:
        if placing.taken == "rows":
            return super().parts(placing)
        first, *others = self._conditions
        chosen = when(first).then(0)
        for number, each in enumerate(others, 1):
            chosen = chosen.when(each).then(number)
        place = chosen.otherwise(len(others) + 1).alias(_BRANCH)
        return [
            ColumnsOperator(
                name=self.name,
                kind=self.kind,
                inputs=placing.inputs,
                expressions=(place,),
                keeps_columns=True,
                is_columnar=True,
                on_error=self.on_error,
                origin=self,
            )
        ]

    def side_parts(self, side: SideOperator, branch: Operator) -> list[Operator]:
        """Return the steps that take the rows of an output from the columns of this one."""
        schema = self.inputs[0].schema_given(declared=False)
        assert schema is not None, "it has columns"
        number = [*self.predicates, self.default].index(side.tag)
        rows = ConditionOperator(
            name=side.name,
            inputs=(branch,),
            expressions=(col(_BRANCH) == number,),
            is_columnar=True,
            origin=self,
            part=f"rows of {side.tag}",
        )
        columns = ColumnsOperator(
            name=f"columns of {side.name}",
            kind="select",
            inputs=(rows,),
            expressions=tuple(map(col, schema.arrow.names)),
            keeps_columns=False,
            is_columnar=True,
            gives=schema,
            origin=self,
            part=f"{side.tag}",
        )
        return [rows, columns]

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        tags = {tag: sides.get((self, tag), "") for tag in self.predicates}
        routes = [(value_getter(of), tags[tag]) for tag, of in self.predicates.items()]
        default = "" if self.default is None else sides.get((self, self.default), "")
        return [BranchStage(context, self.name, routes, default)]

    no_twin = "it gives several streams: use filter(...) for each of them"


@operator
class SideOperator(NoStage, TakesRows, PassesRecords, KeepsNothing, IgnoresOrder, ActsInside):
    """The records that its input sets aside under a tag: no step, but another output of one."""

    kind: str = "side"
    tag: str

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        if self.tag == ERRORS and isinstance(self.inputs[0], ReadOperator):
            return row_schema_of(BadRecord)
        if self.tag == ERRORS or isinstance(self.inputs[0], ProcessOperator):
            return None
        return super().schema_given(declared=declared)

    def twin(self, place: TwinPlace) -> Refusal | None:
        if isinstance(self.inputs[0], BranchOperator):
            return None
        return Refusal(f"it is a side output ({self.tag}), and a query over all records has none")


@operator
class ProcessOperator(NoStage, TakesRows, GivesNewRecords, SeesOrder):
    """A user's task; with a key, all records of one key go to the same of its tasks."""

    kind: str = "process"
    task: TaskFactory
    dispatcher: Dispatcher = "default"

    @property
    def keeps(self) -> str:
        return f"what its task keeps{by_text(self.key)}"

    @property
    def structure(self) -> str:
        name: str = getattr(self.task, "__qualname__", type(self.task).__qualname__)
        return name

    @property
    def order(self) -> Order:
        return "arrival" if self.key is None else self._order_by(self.key)

    acts = True

    no_twin = "a task of one's own runs in gearpy only: it has state, timers and a clock"


@operator
class WriteOperator(GivesNewRecords, IgnoresOrder):
    """Records go to a sink."""

    kind: str = "write"
    sink: Sink
    dispatcher: Dispatcher = "default"

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        if not getattr(self.sink, "columnar", False):
            return "rows"
        schema = self.inputs[0].schema_given(declared=False)
        is_of_pairs = isinstance(schema, JoinSchema)
        if schema is not None and schema.row_type is tuple and not is_of_pairs:
            return "table"  # Results have names as columns alone.
        if "rows" in given:
            return "rows"
        if is_of_pairs and type(schema) is not JoinSchema:
            return "rows"  # Tuples of two records, which no sink has columns for.
        has_results = is_of_pairs or any(source.gives_results for source in self.inputs)
        return "rows" if has_results and not self.sink.takes_results else "table"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    @property
    def keeps(self) -> str:
        return f"what {type(self.sink).__qualname__} has written"

    @property
    def structure(self) -> str:
        return f"{type(self.sink).__qualname__} {self.sink.description}"

    acts = True

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        source = self.inputs[0]
        schema = source.schema_given(declared=False)
        told = Told(_key_columns(source), _ToldFields(source), schema)
        return [sink_stage(context, self.sink, self.name, told)]

    def twin(self, place: TwinPlace) -> None:
        """Leave it out: the query ends here."""


def _is_condition(expression: Expr, schema: RowSchema) -> bool:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - there is a schema

    if reads_attributes([expression], schema):
        return False
    try:
        return bool(pa.types.is_boolean(expression.bind(schema).type))
    except ConfigError:
        return False


def _told_schema(step: Operator) -> RowSchema | None:
    """Return the schema of the records that a sink gets; None for pairs, of which it makes more."""
    schema = step.schema_given(declared=False)
    return None if isinstance(schema, JoinSchema) else schema


def _key_columns(step: Operator) -> dict[str, Any]:
    """Return the columns of the key of results of windows and joins, as `SinkContext` has them."""
    while isinstance(step, PassesRecords) and not isinstance(step, SideOperator):
        step = step.inputs[0]
    step = getattr(step, "of", step)  # The one that the user wrote.
    key, is_windowed = step.key, getattr(step, "windows", None) is not None
    if key is None or key is EVERYTHING or not is_windowed:
        return {}
    schema = None if len(step.inputs) > 1 else step.inputs[0].schema_given(declared=False)
    if key.expressions:
        kinds = [None if schema is None else _type_of(each, schema) for each in key.expressions]
        if len(kinds) == 1:
            return {"key": kinds[0]}
        return {f"key_{at + 1}": kind for at, kind in enumerate(kinds)}
    types = {} if schema is None else {each.name: each.type for each in schema.arrow}
    if len(key.columns) < 2:  # noqa: PLR2004 - a key of several parts has a column for each
        return {"key": types.get(*key.columns) if key.columns else None}
    return {f"key_{at + 1}": types.get(name) for at, name in enumerate(key.columns)}


def _type_of(expression: Expr, schema: RowSchema) -> Any:
    try:
        return expression.bind(schema).type
    except ConfigError:  # Of a property of the class of rows.
        return None


class _ToldFields(Mapping[str, Any]):
    """The fields of records, and of the values of windows, as `SinkContext` has them.

    They are found out when a sink asks for them: one of plain rows then loads no Arrow.
    """

    def __init__(self, step: Operator) -> None:
        self._step = step

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        step = self._step
        if (schema := _told_schema(step)) is not None:
            return {each.name: each.type for each in schema.arrow}
        while isinstance(step, PassesRecords) and not isinstance(step, SideOperator):
            step = step.inputs[0]
        return dict(getattr(step, "of", step).fields_told())

    def __getitem__(self, name: str) -> Any:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def errors_unread(steps: Sequence[Operator]) -> list[str]:
    """Return a mistake for each step that sets bad records aside, where nobody reads them."""
    read = {
        each.inputs[0]
        for step in steps
        for each in step.inputs
        if isinstance(each, SideOperator) and each.tag == ERRORS
    }
    return [
        f"{step.name!r} sets bad records aside, and nothing reads them: write its .errors to a "
        f'sink, or leave them out with {"on_bad" if step.on_error is None else "on_error"}="skip"'
        for step in steps
        if sets_bad_aside(step) and step not in read
    ]


def sets_bad_aside(step: Operator) -> bool:
    if isinstance(step, ReadOperator):
        return step.source.sets_bad_aside
    return step.on_error == "side"


def maker_of(step: Operator) -> Operator:
    """Return the step that makes the records of a step or of a side output."""
    return step.inputs[0] if isinstance(step, SideOperator) else step
