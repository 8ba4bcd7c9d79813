"""The base of all operators: every question that planning, lowering and drawing ask a step.

A class of operator answers all of them, by itself or by one of the answer classes here; `operator`
refuses a class that forgets one when it is imported. Only `lower` knows more, of the four kinds of
step that decide where tasks begin and end: sources, sinks, side outputs and tasks of users.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, TypeVar, dataclass_transform

from gearpy.columns.row_schema import RowSchema
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.signature import key_text
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import columns_in
from gearpy.expressions.rows import advice_on
from gearpy.spark.query.plan import Step
from gearpy.task.api.interfaces import Source, TaskContext
from gearpy.task.api.rejects import StepOnError
from gearpy.task.chain.fused import RowOperator
from gearpy.task.chain.stage import Stage
from gearpy.task.sources.task import WhenIdle
from gearpy.task.time.late import SourceLate

Dispatcher: TypeAlias = Literal["default", "shared", "pinned"]
#: The form of the records of a batch.
Kind: TypeAlias = Literal["rows", "table"]
#: The order that a step goes by, if it sees more than which records there are.
Order: TypeAlias = Literal["", "event time", "arrival", "wall time"]
#: Tags of the side outputs that are read, by the step that makes them and its own tag.
Sides: TypeAlias = "Mapping[tuple[Operator, str], str]"
_Made = TypeVar("_Made", bound="Operator")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a step has no counterpart in a query over all records at once."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinPlace:
    """The place of a step in a Spark query.

    Attributes:
        is_grouped: a step before it groups records.
        takes_endless: a source without an end is taken, since it will be cut.
    """

    is_grouped: bool = False
    takes_endless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """The surroundings of a step in the plan that will run.

    Attributes:
        inputs: the steps that it reads there.
        given: the forms in which the steps that it reads as written give their records.
        taken: the form in which it gets them.
        parallelism: of steps that do not say otherwise.
        is_only_reader: no other step reads its inputs.
        wanted: the forms in which its records are wanted.
    """

    inputs: tuple[Operator, ...]
    given: Sequence[Kind]
    taken: Kind
    parallelism: int
    is_only_reader: bool
    wanted: Collection[Kind] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Operator(ABC):
    """One step of a program; its inputs were made before it.

    Attributes:
        name: for people; derived, unless it was given.
        given: the name that the user gave; empty if none.
        kind: the word for it in the stream language.
        inputs: the steps that it reads.
        parallelism: None means: as its input, or the application's.
        key: by which the records of its inputs must come; None: it does not matter.
        origin: the written step in whose place this one runs; None: this one was written.
        part: the word for its part of ``origin``; empty for the part that gives the results.
        on_error: what becomes of a record on which its code raises; None: as in the application.
    """

    name: str
    given: str = ""
    kind: str = ""
    inputs: tuple[Operator, ...] = ()
    parallelism: int | None = None
    key: Key | None = None
    origin: Operator | None = None
    part: str = ""
    on_error: StepOnError | None = None

    # -- every class answers these -----------------------------------------------------------------

    @abstractmethod
    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        """Return the form in which the step takes records, if its inputs give these forms."""

    @abstractmethod
    def kind_given(self, taken: Kind) -> Kind:
        """Return the form in which the step gives records, if it takes this form."""

    @abstractmethod
    def schema_given(self, *, declared: bool) -> RowSchema | None:
        """Return the schema of the records that the step gives; None if nothing tells it.

        Args:
            declared: annotations of functions do not count, since records may differ from them.
        """

    def fields_told(self) -> Mapping[str, Any]:
        """Return Arrow types of fields of the values that the step gives, as far as it knows."""
        return {}

    @property
    @abstractmethod
    def keeps(self) -> str:
        """The state that is kept over restarts, and its form; empty for none.

        This text is alike in every process and says nothing of functions, which may change. Two
        steps whose texts differ cannot go on from each other's state.
        """

    @property
    def gives_results(self) -> bool:
        """Whether records that it gives may be results of windows."""
        return False

    @property
    def result_names(self) -> frozenset[str]:
        """The columns of these, where they come as a table."""
        return frozenset()

    @property
    def note(self) -> str:
        """What the step does to values that its name does not say, for people."""
        return "" if self.on_error is None else f"on error: {self.on_error}"

    @property
    def why_rows(self) -> str:
        """Why the step takes rows of its inputs where they have columns; empty if that is plain."""
        return ""

    @property
    @abstractmethod
    def order(self) -> Order:
        """The order in which the step gets records; empty if results do not depend on it."""

    @property
    @abstractmethod
    def acts(self) -> bool:
        """Whether the step may do something that is seen outside of the program."""

    @abstractmethod
    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        """Make the stages that run the step in one task."""

    #: Why no Spark query has such a step; a class whose steps have a `twin` leaves it empty.
    no_twin = ""

    def twin(self, place: TwinPlace) -> Step | Refusal | None:
        """Return the counterpart in a Spark query; None if that leaves the step out."""
        return Refusal(self.no_twin)

    # -- most classes need not answer these --------------------------------------------------------

    @property
    def structure(self) -> str:
        """The text that tells the step from others of its kind."""
        return self.keeps

    @property
    def shown_key(self) -> str:
        """The key as people see it; empty for none."""
        return key_text(self.key)

    @property
    def fused(self) -> RowOperator | None:
        """The function over single records that the step is, if it is nothing else."""
        return None

    @property
    def schema_taken(self) -> RowSchema | None:
        """The schema by which rows become the columns that the step takes, if it was given."""
        return None

    def named_fields(self) -> Iterator[tuple[Operator, Sequence[str]]]:
        """Yield the names of fields that the step was given, with the input that has them."""
        if self.key is not None:
            yield self.inputs[0], self.key.columns

    def named_expressions(self) -> Iterator[tuple[Operator, Sequence[Expr]]]:
        """Yield the expressions that the step was given, with the input that they are of."""
        if self.key is not None and self.key.expressions:
            yield self.inputs[0], self.key.expressions

    def mistakes(self) -> Iterator[str]:
        """Yield the mistakes that are known before the step runs, other than unknown fields."""
        yield from ()

    def parts(self, placing: Placing) -> list[Operator]:
        """Return the steps that run in place of this one; the last gives its records."""
        if placing.inputs == self.inputs:
            return [self]
        return [self.changed(inputs=placing.inputs, origin=self.origin or self)]

    # -- the same for all classes ------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether records wait for event time, to come in its order."""
        return self.order == "event time"

    def changed(self, **changes: Any) -> Self:
        """Return a copy with other values of some attributes."""
        return replace(self, **changes)


@dataclass_transform(
    kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(field,)
)
def operator(made: type[_Made]) -> type[_Made]:
    """Make a class of operator a frozen dataclass, shown as the base is, which loads sooner."""
    made = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(made)
    questions = {*made.__abstractmethods__}
    if made.twin is Operator.twin and not made.no_twin:
        questions.add("twin")
    if questions:
        listed = ", ".join(sorted(questions))
        raise TypeError(f"operator {made.__name__} has no answer for: {listed}")
    return made


# -- answers that several operators share ----------------------------------------------------------


class TakesRows(Operator):
    """Answers: rows come in, rows go out."""

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return "rows"


class TakesTables(Operator):
    """Answers: tables come in, tables go out."""

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "table"

    def kind_given(self, taken: Kind) -> Kind:
        return "table"


class NoStage(Operator):
    """Answers: the graph of tasks does it; no chain has a stage for it."""

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return ()


class PassesRecords(Operator):
    """Answers: each outgoing record is one of the incoming records."""

    @property
    def gives_results(self) -> bool:
        return any(source.gives_results for source in self.inputs)

    @property
    def result_names(self) -> frozenset[str]:
        return frozenset.intersection(*(source.result_names for source in self.inputs))

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        schemas = [source.schema_given(declared=declared) for source in self.inputs]
        return schemas[0] if all(schema == schemas[0] for schema in schemas) else None


class GivesNewRecords(Operator):
    """Answers: the records that go out are made here, and nothing tells their schema."""

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return None


class IgnoresOrder(Operator):
    """Answers: results do not depend on the order of records."""

    @property
    def order(self) -> Order:
        return ""


class SeesOrder(Operator):
    """Answers: results depend on the order of a key's records, which is that of event time."""

    @property
    def order(self) -> Order:
        return self._order_by(self.key)

    def _order_by(self, *keys: Key | None) -> Order:
        if any(key is not None and not key.is_ordered for key in keys):
            return "arrival"
        is_by_arrival = all(read.source.is_by_arrival for read in sources_of(self))
        return "arrival" if is_by_arrival else "event time"


class KeepsNothing(Operator):
    """Answers: there is no state."""

    @property
    def keeps(self) -> str:
        return ""


class ActsInside(Operator):
    """Answers: nothing is seen outside of the program."""

    acts = False


class NeverWritten(ActsInside):
    """Answers: the planner puts the step in; users cannot write it."""

    no_twin = "it is a step of gearpy's own plan"


# -- where all begins ------------------------------------------------------------------------------


@operator
class ReadOperator(NoStage, ActsInside):
    """Records of a source."""

    kind: str = "read"
    source: Source
    late: SourceLate = "keep"
    idle_after_ms: int | None = None
    when_idle: WhenIdle = "hold"
    max_ahead_ms: int | None = None

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return "rows" if self.source.schema is None else "table"

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return self.source.schema

    @property
    def keeps(self) -> str:
        return f"places in {type(self.source).__qualname__}"

    @property
    def note(self) -> str:
        return self.source.note

    @property
    def structure(self) -> str:
        return f"{type(self.source).__qualname__} {self.source.description}"

    @property
    def order(self) -> Order:
        return ""

    def twin(self, place: TwinPlace) -> Refusal | None:
        if self.source.bounded or place.takes_endless:
            return None
        return Refusal(
            "its source has no end, or does not say that it has one: give it a limit, or take some "
            "of its records with gear verify --records N"
        )


# -- functions of a step and its inputs ------------------------------------------------------------


def stream_text(stream: object, step: Operator) -> str:
    """Return a stream for people: its kind, and the steps that lead to it."""
    names = [step.name]
    while len(step.inputs) == 1:
        step = step.inputs[0]
        names.insert(0, step.name)
    return f"<{type(stream).__name__}: {' > '.join(names)}>"


def sources_of(step: Operator) -> set[ReadOperator]:
    found: set[ReadOperator] = set()
    pending: list[Operator] = [step]
    seen: set[Operator] = set()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, ReadOperator):
            found.add(each)
        pending += each.inputs
    return found


def unfit_expressions(step: Operator) -> list[str]:
    """Return a mistake for each expression that cannot be computed of the records of an input."""
    mistakes: list[str] = []
    for source, expressions in step.named_expressions():
        schema = source.schema_given(declared=True)
        if schema is None or reads_attributes(expressions, schema):
            continue
        for each in expressions:
            try:
                each.bind(schema)
            except ConfigError as error:
                mistakes += [f"{step.name}: {mistake}" for mistake in error.mistakes]
    return mistakes


def reads_attributes(expressions: Sequence[Expr], schema: RowSchema) -> bool:
    """Tell whether some name is no column, but a property of the class of rows."""
    names = {name for each in expressions for name in columns_in(each.node)}
    return any(name not in schema.arrow.names and hasattr(schema.row_type, name) for name in names)


def unknown_fields(step: Operator) -> list[str]:
    """Return a mistake for each field that a step names and its records do not have."""
    return [
        f"{step.name}: there is no field {name!r} in what {source.name!r} gives"
        f"{advice_on(name, schema.arrow.names)}"
        for source, names in step.named_fields()
        if names and (schema := source.schema_given(declared=True)) is not None
        for name in names
        if name not in schema.arrow.names and not hasattr(schema.row_type, name)
    ]
