"""Turns the plan as written into the one that runs: adds conversions, parts of steps.

Where a step takes rows of columns, they are converted once: in the task that makes them, if their
key is a function, or if several steps need rows; else in the task that takes them, since columns
travel for less. Streams of several classes become one behind that, or the classes would be lost.
"""

from collections.abc import Sequence

from gearpy.columns.row_schema import RowSchema
from gearpy.dsl.operators.operator import Kind, Operator, PassesRecords, Placing
from gearpy.dsl.operators.records import ToColumnsOperator, ToRowsOperator
from gearpy.dsl.operators.routes import BranchOperator, ProcessOperator, SideOperator


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
        *before, last = step.parts(placing)
        for part in before:
            self._add(part, part.kind_given(taken))
        self._now[step] = self._add(last, last.kind_given(taken))

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
