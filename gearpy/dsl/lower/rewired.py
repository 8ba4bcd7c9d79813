"""A program with other sources and sinks, whose records are gathered in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gearpy.connectors.memory import to_list
from gearpy.dsl.lower.lower import lower
from gearpy.dsl.operators.groups import AggregateOperator, FoldOperator
from gearpy.dsl.operators.operator import Operator, ReadOperator
from gearpy.dsl.operators.routes import SideOperator, WriteOperator
from gearpy.messages.data import Message
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import Sink, Source
from gearpy.task.time.late import LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """A program that gathers its results in lists.

    Attributes:
        application: the application to run, in this process.
        written: by sink, in the order of the program: the records with their event times.
        late: by the name of a step: the late records that it left out, if that was asked for.
    """

    application: StreamApplication
    written: tuple[list[Message], ...]
    late: Mapping[str, list[Message]]


def gathering(
    name: str,
    steps: Sequence[Operator],
    *,
    parallelism: int,
    sources: Mapping[Source, Source],
    late: Literal["as written", "keep", "gather"] = "as written",
) -> Gathering:
    """Return a program that gathers the records that another one would write to its sinks.

    Args:
        steps: the steps as they were written.
        parallelism: of steps that do not say otherwise.
        sources: the source to read instead of another.
        late: the rule for late records: as the program says; sources leave them to the windows
            ("keep"); or they are gathered, too.
    """
    written: list[list[Message]] = []

    def gather(_: Operator) -> Sink:
        written.append([])
        return to_list(written[-1], messages=True)

    maker = _Maker(sources, gather, late)
    needed: set[Operator] = set()  # Something of theirs comes to a sink.
    for step in reversed(steps):
        if isinstance(step, WriteOperator) or step in needed:
            needed.add(step)
            needed |= {
                (each.inputs[0] if isinstance(each, SideOperator) else each) for each in step.inputs
            }
    for step in steps:
        if step in needed:
            maker.place(step)
    application = lower(name, maker.steps, parallelism=parallelism)
    return Gathering(application=application, written=tuple(written), late=maker.late)


def watched(
    name: str,
    steps: Sequence[Operator],
    *,
    parallelism: int,
    sources: Mapping[Source, Source],
    sink_of: Callable[[int], Sink],
    every_step: bool = False,
    is_serial: bool = False,
) -> StreamApplication:
    """Return a program that writes to other sinks.

    Args:
        steps: the steps as they were written.
        parallelism: of steps that do not say otherwise.
        sources: the source to read instead of another.
        sink_of: returns the sink for the records of a step, by its place among the steps.
        every_step: those of steps that are no sink go to one, too.
        is_serial: each step has one task, so that records of a source come in one order.
    """
    maker = _Maker(sources, lambda step: sink_of(steps.index(step)), is_serial=is_serial)
    for step in steps:
        made = maker.place(step)
        if every_step and not isinstance(step, WriteOperator):
            at = steps.index(step)
            sink = WriteOperator(name=f"{at} {step.name}", inputs=(made,), sink=sink_of(at))
            maker.steps.append(sink)
    return lower(name, maker.steps, parallelism=1 if is_serial else parallelism)


class _Maker:
    """Copies the steps of a program."""

    def __init__(
        self,
        sources: Mapping[Source, Source],
        sink_of: Callable[[Operator], Sink],
        late: str = "as written",
        *,
        is_serial: bool = False,
    ) -> None:
        self.steps: list[Operator] = []
        self.late: dict[str, list[Message]] = {}
        self._sources = sources
        self._sink_of = sink_of
        self._policy = late
        self._is_serial = is_serial
        self._now: dict[Operator, Operator] = {}

    def place(self, step: Operator) -> Operator:
        """Copy a step whose inputs were copied; return the copy."""
        inputs = [
            replace(each, inputs=(self._now[each.inputs[0]],))
            if isinstance(each, SideOperator)
            else self._now[each]
            for each in step.inputs
        ]
        changes: dict[str, Any] = {"inputs": tuple(inputs)}
        if self._is_serial:
            changes["parallelism"] = None
        if isinstance(step, ReadOperator):
            changes["source"] = self._sources.get(step.source, step.source)
        elif isinstance(step, WriteOperator):
            changes |= {"sink": self._sink_of(step), "dispatcher": "default"}
        may_find_late = isinstance(step, ReadOperator)
        if isinstance(step, FoldOperator | AggregateOperator):
            may_find_late = step.windows is not None
        gathers = self._policy == "gather" and may_find_late
        if gathers:
            changes["late"] = "side"
        elif self._policy == "keep" and isinstance(step, ReadOperator):
            changes["late"] = "keep"
        made = replace(step, **changes)
        self._now[step] = made
        self.steps.append(made)
        if gathers:
            found = self.late.setdefault(made.name, [])
            side = SideOperator(name=f"late of {made.name}", inputs=(made,), tag=LATE)
            sink = to_list(found, messages=True)
            self.steps.append(WriteOperator(name=f"late of {made.name}", inputs=(side,), sink=sink))
        return made
