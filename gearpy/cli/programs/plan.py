"""Prints the physical plan of a program, and what becomes of its state in another one."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import typer

from gearpy.cli.programs.plan_graph import dot, mermaid
from gearpy.cli.programs.plan_svg import svg
from gearpy.cli.programs.plan_text import difference_lines, plan_lines
from gearpy.cli.programs.program import load_program
from gearpy.cli.terminal.output import print_lines
from gearpy.core.dag.state_moves import StateMove, layout_of, lost, state_moves
from gearpy.dsl.plan.describe import PhysicalPlan, physical_plan
from gearpy.errors import ConfigError

__all__ = ["FORMATS", "compare_plans", "show_plan"]

#: The forms in which a plan is printed.
FORMATS: Final[Mapping[str, Callable[[PhysicalPlan], str]]] = {
    "text": lambda plan: _text(plan_lines(plan)),
    "mermaid": mermaid,
    "dot": dot,
    "svg": svg,
    "json": lambda plan: json.dumps(asdict(plan)) + "\n",
}


def show_plan(target: str, args: Sequence[str], *, form: str, output: Path | None) -> None:
    """Print the plan of a program, or write it to a file.

    Raises:
        GearpyError: the program cannot be loaded, or the file not be written.
    """
    _, application = load_program(target, args)
    _put(FORMATS[form](physical_plan(application)), output)


def compare_plans(
    target: str, args: Sequence[str], *, other: str, as_json: bool, output: Path | None
) -> None:
    """Print what becomes of the state of a program when another one takes its place.

    Raises:
        GearpyError: a program cannot be loaded, or the file not be written.
        typer.Exit: state is dropped.
    """
    _, before = load_program(target, args)
    _, after = load_program(other, args)
    moves = state_moves(layout_of(before.dag), layout_of(after.dag))
    _put(_json(moves) if as_json else _text(difference_lines(moves)), output)
    if lost(moves):
        raise typer.Exit(1)


def _json(moves: Iterable[StateMove]) -> str:
    found = [
        {"id": each.id, "name": each.name, "fate": each.fate, "lost": each.is_lost}
        for each in moves
    ]
    return json.dumps(found) + "\n"


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
