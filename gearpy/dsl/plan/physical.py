"""Turns the plan as written into the one that runs: adds conversions, parts of steps.

Where a step takes rows of columns, they are converted once: in the task that makes them, if their
key is a function, or if several steps need rows; else in the task that takes them, since columns
travel for less. Streams of several classes become one behind that, or the classes would be lost.
"""

from collections.abc import Sequence
from itertools import chain

from gearpy.columns.row_schema import RowSchema
from gearpy.dsl.operators.expressions import (
    ColumnsOperator,
    ConditionOperator,
    expression_text,
)
from gearpy.dsl.operators.groups import AggregateOperator
from gearpy.dsl.operators.joins import TableJoinOperator
from gearpy.dsl.operators.operator import Kind, Operator, PassesRecords, Placing, ReadOperator
from gearpy.dsl.operators.records import ToColumnsOperator, ToRowsOperator
from gearpy.dsl.operators.routes import BranchOperator, ProcessOperator, SideOperator
from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import ColumnNode, columns_in


def physical(steps: Sequence[Operator], parallelism: int = 1) -> list[Operator]:
    """Return the plan as it runs.

    Steps whose inputs are others now are copies; ``origin`` of a step has the step that was
    written, where this is not the same.
    """
    plan = _Plan(steps, parallelism)
    for step in steps:
        plan.place(step)
    return plan.placed


class _Plan:
    """The plan as it will run, as far as it was placed."""

    def __init__(self, steps: Sequence[Operator], parallelism: int) -> None:
        self._steps = steps
        self._parallelism = parallelism
        self.placed: list[Operator] = []
        self._now: dict[Operator, Operator] = {}  # Now gives the records of a step.
        self._given: dict[Operator, Kind] = {}  # The form of these records.
        self._conversions: dict[Operator, list[Operator]] = {}

    def place(self, step: Operator) -> None:
        if isinstance(step, ReadOperator):
            self._now[step] = self._add(self._narrowed(step), step.kind_given("rows"))
            return
        given = [self._kind_of(source) for source in step.inputs]
        taken = step.kind_taken(given)
        if taken == "table" and _has_classes(step) and self._wanted_of(step) == {"rows"}:
            taken = "rows"
        inputs = tuple(self._ready(source, step, taken) for source in step.inputs)
        placing = Placing(
            inputs=inputs,
            given=given,
            taken=taken,
            parallelism=self._parallelism,
            is_only_reader=all(len(self._readers_of(source)) == 1 for source in step.inputs),
            wanted=self._wanted_of(step),
        )
        *before, last = self._without_unused(step, taken).parts(placing)
        for part in before:
            self._add(part, part.kind_given(taken))
        self._now[step] = self._add(last, last.kind_given(taken))

    def _narrowed(self, step: ReadOperator) -> ReadOperator:
        """Return a step that reads no more than the steps behind it take, if its source can."""
        schema = step.source.schema
        if schema is None or schema.row_type is not None:
            return step
        names = self._names_taken(step)
        columns = None
        if names is not None:
            columns = [name for name in schema.arrow.names if _is_in(name, names)]
            columns = columns or schema.arrow.names[:1]  # Rows are counted, by any of them.
        conditions: list[Expr] = []
        reader: Operator = step
        while len(readers := self._readers_of(reader)) == 1:
            (reader,) = readers
            if not isinstance(reader, ConditionOperator) or reader.on_error is not None:
                break
            conditions += reader.expressions
        if columns is None and not conditions:
            return step
        source = step.source.narrowed(columns, conditions)
        if source is step.source:
            return step
        return step.changed(source=source, origin=step)

    def _without_unused(self, step: Operator, taken: Kind) -> Operator:
        """Return a step that passes no more columns than the steps behind it take."""
        if not isinstance(step, ColumnsOperator) or taken != "table":
            return step
        used = self._used(step) or step.expressions[:1]
        if len(used) == len(step.expressions):
            return step
        name = step.name.replace(expression_text(step.expressions), expression_text(used))
        return step.changed(name=name, expressions=tuple(used), origin=step)

    def _used(self, step: ColumnsOperator) -> Sequence[Expr]:
        """Return the expressions of a step without columns that nobody takes.

        What is computed may fail, and its record is told then, whether it is used or not.
        """
        names = None if type(step) is not ColumnsOperator else self._names_taken(step)
        if names is None or step.keeps_columns:
            return step.expressions
        return [
            each
            for each in step.expressions
            if not isinstance(each.node, ColumnNode) or _is_in(each.name, names)
        ]

    def _names_taken(self, step: Operator) -> set[str] | None:
        """Return the columns of a step that those behind it take; None: all, or nobody knows."""
        found: set[str] = set()
        readers = self._readers_of(step)
        if not readers:
            return None
        for reader in readers:
            if len(reader.inputs) > 1 or reader.kind_taken(["table"]) != "table":
                return None
            if isinstance(reader, AggregateOperator) and _takes_records(reader):
                return None
            if isinstance(reader, AggregateOperator | TableJoinOperator):
                found.update(*(names for _, names in reader.named_fields()))
            elif not isinstance(reader, ConditionOperator | ColumnsOperator):
                return None  # A join of streams may need other columns of what it keeps one day.
            if isinstance(reader, ColumnsOperator):
                found.update(*(columns_in(each.node) for each in self._used(reader)))
            else:
                for _, expressions in reader.named_expressions():
                    found.update(*(columns_in(each.node) for each in expressions))
            if isinstance(reader, ConditionOperator | TableJoinOperator) or getattr(
                reader, "keeps_columns", False
            ):
                behind = self._names_taken(reader)
                if behind is None:
                    return None
                found |= behind
        return found

    def _readers_of(self, source: Operator) -> list[Operator]:
        return [step for step in self._steps if source in step.inputs]

    def _wanted_of(self, step: Operator) -> set[Kind]:
        """Return the forms in which the records of a step are wanted, also behind such as pass."""
        wanted: set[Kind] = set()
        for reader in self._readers_of(step):
            kind = reader.kind_taken(["table"] * len(reader.inputs))
            behind = self._wanted_of(reader) if isinstance(reader, PassesRecords) else set()
            wanted |= behind if kind == "table" and behind else {kind}
        return wanted

    def _add(self, step: Operator, kind: Kind) -> Operator:
        self.placed.append(step)
        self._given[step] = kind
        return step

    def _of(self, step: Operator) -> Operator:
        """Return the step that runs in place of a step, or of the maker of a side output."""
        if not isinstance(step, SideOperator):
            return self._now[step]
        written = step.inputs[0]
        maker = self._now[written]
        if isinstance(written, BranchOperator) and self._given[maker] == "table":
            if step not in self._now:
                *before, last = written.side_parts(step, maker)
                for part in before:
                    self._add(part, "table")
                self._now[step] = self._add(last, "table")
            return self._now[step]
        if maker is step.inputs[0]:
            return step
        return step.changed(inputs=(maker,), origin=step.origin or step)

    def _kind_of(self, step: Operator) -> Kind:
        if isinstance(step, SideOperator) and not isinstance(step.inputs[0], BranchOperator):
            return "rows"  # Set aside one by one.
        return self._given[self._now[step.inputs[0] if isinstance(step, SideOperator) else step]]

    def _ready(self, source: Operator, reader: Operator, taken: Kind) -> Operator:
        """Return the step that gives records in the form that their reader takes."""
        if self._kind_of(source) == taken:
            return self._of(source)
        schema = source.schema_given(declared=False)
        if taken == "rows" and _has_classes(source):  # Others want them as columns.
            inputs = tuple(self._ready(each, source, "rows") for each in source.inputs)
            same = source.changed(inputs=inputs, origin=source.origin or source)
            return self._once(same, "rows", at=self._of(source))
        if taken == "table":
            schema = reader.schema_taken or schema
            table = ToColumnsOperator(name="table", inputs=(self._of(source),), schema=schema)
            return self._once(table, "table")
        made_of = (self._of(source),)
        rows = ToRowsOperator(name="rows", inputs=made_of, schema=schema, reader=reader)
        row_readers = [
            step
            for step in self._readers_of(source)
            if step.kind_taken(["table"] * len(step.inputs)) == "rows"
        ]
        if (
            len(row_readers) > 1
            or isinstance(reader, ProcessOperator)
            or len(reader.inputs) > 1
            or (reader.key is not None and not reader.key.columns)
        ):
            return self._once(rows, "rows")
        return self._add(rows.changed(key=reader.key, parallelism=reader.parallelism), "rows")

    def _once(self, step: Operator, kind: Kind, at: Operator | None = None) -> Operator:
        """Add a conversion of what a step gives, unless there is the same already."""
        found = self._conversions.setdefault(at or step.inputs[0], [])
        for known in found:
            if type(known) is type(step) and _schema_of(known) == _schema_of(step):
                return known
        found.append(step)
        return self._add(step, kind)


def _takes_records(step: AggregateOperator) -> bool:
    """Tell whether aggregates are of records, such as the largest of them, not of fields alone."""
    fields = chain.from_iterable(each.fields for each in step.aggregates.values())
    return not all(isinstance(each, str | Expr) for each in fields)


def _is_in(name: str, names: set[str]) -> bool:
    """Tell whether a column, or a field in it, is among those named."""
    return name in names or any(each.startswith(f"{name}.") for each in names)


def _schema_of(step: Operator) -> RowSchema | None:
    return step.schema if isinstance(step, ToRowsOperator | ToColumnsOperator) else None


def _has_classes(step: Operator) -> bool:
    """Tell whether a step passes records of several classes, or with and without one."""
    if not isinstance(step, PassesRecords) or step.schema_given(declared=False) is not None:
        return False
    schemas = [source.schema_given(declared=False) for source in step.inputs]
    return any(
        _has_classes(source) if schema is None else schema.row_type is not None
        for source, schema in zip(step.inputs, schemas, strict=True)
    )
