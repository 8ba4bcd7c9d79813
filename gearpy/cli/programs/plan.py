"""``gear plan``: the plan of a program, and the moves of its state into another program."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Final

import typer
from msgspec import to_builtins

from gearpy.cli.programs.program import load_program
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import (
    AppArgs,
    Given,
    ProcessesOption,
    Target,
    option,
    processes_of,
    takes,
)
from gearpy.cli.terminal.output import print_lines
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import layout_of, lost, state_moves
from gearpy.errors import ConfigError
from gearpy.task.stages.plan import PhysicalPlan, PlannedEdge, PlannedProcessor, physical_plan
from gearpy.views import text

_COLUMNS: Final = 100
_NAME_COLUMNS: Final = 44


@takes("verbose")
def plan(
    given: Given,  # noqa: ARG001 - `takes` has used it
    target: Target,
    args: AppArgs = None,
    *,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="[text|mermaid|dot|json]",
            help="What to print; with --diff it is text or json.",
        ),
    ] = "text",
    diff: Annotated[
        str | None,
        option(
            "--diff",
            metavar="OTHER[:ATTR]",
            help="The program that is to replace it: say what happens to the state of each step. "
            "The exit code is 1 if something is dropped.",
        ),
    ] = None,
    processes: ProcessesOption = None,
    output: Annotated[
        Path | None, option("--output", metavar="FILE", help="Write it there.")
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", hidden=True)] = False,
) -> None:
    """Print how a program will run: steps, edges, rows or columns, state, guarantees."""
    form = "svg" if svg else form
    if form not in _FORMATS:
        raise ConfigError(
            f"--format {form}: a plan is printed as {', '.join(_FORMATS)}; for a picture write "
            "--format mermaid, which code hosts and editors draw"
        )
    if diff is not None and form not in {"text", "json"}:
        raise ConfigError(f"--format {form}: a difference is printed as text or json")
    if diff is not None and processes is not None:
        raise ConfigError("--processes is for a plan: what is kept is the same with any number")
    _, application = load_program(target, args or ())
    if diff is None:
        spread = application.spread(processes_of(processes))
        _put(_FORMATS[form](physical_plan(spread)), output)
        return
    _, other = load_program(diff, args or ())
    moves = state_moves(layout_of(application.dag), layout_of(other.dag))
    gone = lost(moves)
    if form == "json":
        found = [
            {"id": each.id, "name": each.name, "fate": each.fate, "lost": each.is_lost}
            for each in moves
        ]
        _put(json.dumps(found) + "\n", output)
    else:
        lines = [line for move in moves for line in _wrapped(str(move), "    ")]
        dropped = f"the state of {text.plural(len(gone), 'step')} is dropped"
        _put(_text([*lines, "", dropped if gone else "no state is dropped"]), output)
    if gone:
        raise typer.Exit(FAILED)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _put(text: str, output: Path | None) -> None:
    if output is None and sys.stdout.isatty():
        print_lines(text.splitlines())
    elif output is None:
        print(text, end="")
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--output {output}: {error}") from error


# -- text --------------------------------------------------------------------------------------


def plan_lines(plan: PhysicalPlan) -> Iterator[str]:
    yield (
        f"{plan.name}: {text.plural(len(plan.processors), 'processor')}, "
        f"{text.plural(plan.tasks, 'task')}, {text.plural(plan.regions, 'region')}"
    )
    for processor in plan.processors:
        yield ""
        yield f"[{processor.number}] {text.plural(processor.parallelism, 'task')}"
        for step in processor.steps:
            yield f"    {step.name:<{_NAME_COLUMNS}}  {_form_of(step)}"
            if step.note:
                yield from _wrapped(f"        {step.note}", "            ")
            if step.order:
                yield f"        {_order_text(step)}"
            if step.keeps:
                yield from _wrapped(f"        keeps {step.keeps}", "              ")
                yield f"        as {step.id}"
        for edge in plan.edges_of(processor.number):
            yield f"    -> [{edge.target}] {edge.spread}, as {edge.form}"
    if plan.paths:
        yield ""
        paths = plan.paths
        for path, count in Counter(paths).items():
            times = "" if count == 1 else f" ({count} paths)"
            yield from _wrapped(f"{path.source} to {path.sink}: {path.guarantee}{times}", "  ")
            if path.weakest_link:
                yield from _wrapped(f"  weakest link: {path.weakest_link}", "    ")
    for same in plan.alike:
        yield ""
        yield from _wrapped(
            f"hint: {' and '.join(same)} are alike, so that what they keep is told apart by their "
            "order in the program alone: give each a name",
            "  ",
        )


def _order_text(step: StepSpec) -> str:
    if step.order == "event time":
        return "in order of event time"
    return f"as they come: results may differ from run to run, by {step.order}"


def _form_of(step: StepSpec) -> str:
    return step.takes if step.takes == step.gives else f"{step.takes} to {step.gives}"


def _wrapped(line: str, indent: str) -> list[str]:
    return wrap(line, _COLUMNS, subsequent_indent=indent, break_on_hyphens=False)


# -- drawings ----------------------------------------------------------------------------------


def _mermaid(plan: PhysicalPlan) -> str:
    lines = ["flowchart TD"]
    for each in plan.processors:
        label = "<br>".join(map(_for_mermaid, _box_lines(each)))
        lines.append(f'    p{each.number}["{label}"]')
    for edge in plan.edges:
        label = _for_mermaid(_edge_label(edge))
        lines.append(f'    p{edge.source} -->|"{label}"| p{edge.target}')
    return "\n".join(lines) + "\n"


def _dot(plan: PhysicalPlan) -> str:
    lines = [
        f"digraph {_for_dot(plan.name)} {{",
        '    node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];',
        '    edge [fontname="sans-serif", fontsize=10];',
    ]
    for each in plan.processors:
        label = "".join(f"{_escaped(line)}\\l" for line in _box_lines(each))
        lines.append(f'    p{each.number} [label="{label}"];')
    lines += [
        f"    p{edge.source} -> p{edge.target} [label={_for_dot(_edge_label(edge))}];"
        for edge in plan.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _box_lines(processor: PlannedProcessor) -> Iterator[str]:
    yield f"[{processor.number}] {text.plural(processor.parallelism, 'task')}"
    for step in processor.steps:
        yield f"{text.printable(step.name)}: {_form_of(step)}"
        if step.note:
            yield f"  {step.note}"
        if step.order:
            yield f"  {_order_text(step)}"
        if step.keeps:
            yield f"  keeps {step.keeps}"


def _edge_label(edge: PlannedEdge) -> str:
    return f"{edge.spread}, as {edge.form}"


def _for_mermaid(line: str) -> str:
    coded = line.replace("&", "&amp;").replace('"', "&quot;")
    return coded.replace("<", "&lt;").replace(">", "&gt;").replace("`", "&#96;")


def _for_dot(line: str) -> str:
    return f'"{_escaped(line)}"'


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


_FORMATS: Final[Mapping[str, Callable[[PhysicalPlan], str]]] = {
    "text": lambda plan: _text(plan_lines(plan)),
    "mermaid": _mermaid,
    "dot": _dot,
    "json": lambda plan: json.dumps(to_builtins(plan)) + "\n",
}
