"""A physical plan, and what two of them differ in, as lines of text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Final

from gearpy.cli.terminal import text
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import StateMove, lost
from gearpy.dsl.plan.describe import PhysicalPlan, PlannedPath, PlannedProcessor

__all__ = ["difference_lines", "form_of", "order_text", "plan_lines"]

_COLUMNS: Final = 100
_NAME_COLUMNS: Final = 44


def plan_lines(plan: PhysicalPlan) -> Iterator[str]:
    """Yield a plan: each processor with its steps, what they keep, and where records go."""
    yield (
        f"{plan.name}: {text.plural(len(plan.processors), 'processor')}, "
        f"{text.plural(plan.tasks, 'task')}, {text.plural(plan.regions, 'region')}"
    )
    for processor in plan.processors:
        yield ""
        yield from _processor_lines(plan, processor)
    if plan.paths:
        yield ""
        yield from _path_lines(plan.paths)
    for same in plan.alike:
        yield ""
        yield from _wrapped(
            f"hint: {' and '.join(same)} are alike, so that what they keep is told apart by their "
            "order in the program alone: give each a name",
            "  ",
        )


def _processor_lines(plan: PhysicalPlan, processor: PlannedProcessor) -> Iterator[str]:
    yield f"[{processor.number}] {text.plural(processor.parallelism, 'task')}"
    for step in processor.steps:
        yield f"    {step.name:<{_NAME_COLUMNS}}  {form_of(step)}"
        if step.order:
            yield f"        {order_text(step)}"
        if step.keeps:
            yield from _wrapped(f"        keeps {step.keeps}", "              ")
            yield f"        as {step.id}"
    for edge in plan.edges_of(processor.number):
        yield f"    -> [{edge.target}] {edge.spread}, as {edge.form}"


def order_text(step: StepSpec) -> str:
    """Return in which order a step sees its records."""
    if step.order == "event time":
        return "in order of event time"
    return f"as they come: results may differ from run to run, by {step.order}"


def form_of(step: StepSpec) -> str:
    """Return whether a step works on rows or on columns."""
    return step.takes if step.takes == step.gives else f"{step.takes} to {step.gives}"


def _path_lines(paths: Sequence[PlannedPath]) -> Iterator[str]:
    for path, count in Counter(paths).items():
        times = "" if count == 1 else f" ({count} paths)"
        yield from _wrapped(f"{path.source} to {path.sink}: {path.guarantee}{times}", "  ")
        if path.weakest_link:
            yield from _wrapped(f"  weakest link: {path.weakest_link}", "    ")


def difference_lines(moves: Iterable[StateMove]) -> Iterator[str]:
    """Yield what becomes of each step, and in the end what is lost."""
    moves = list(moves)
    for move in moves:
        yield from _wrapped(str(move), "    ")
    gone = lost(moves)
    yield ""
    if gone:
        yield f"the state of {text.plural(len(gone), 'step')} is dropped"
    else:
        yield "no state is dropped"


def _wrapped(line: str, indent: str) -> list[str]:
    return wrap(line, _COLUMNS, subsequent_indent=indent, break_on_hyphens=False)
