"""The arguments of ``gear plan``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AppArgs, Target, Verbose

__all__ = ["add_plan"]


def add_plan(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=HELP)(plan)


def plan(
    target: Target,
    args: AppArgs = None,
    *,
    form: Annotated[
        Literal["text", "mermaid", "dot", "svg", "json"],
        typer.Option("--format", help="What to print; with --diff it is text or json."),
    ] = "text",
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff",
            metavar="OTHER[:ATTR]",
            help="The program that is to take its place: tell what becomes of all that is kept. "
            "The exit code is 1 if something is dropped.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write it there.", show_default=False),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Print how a program will run: chains of steps, edges, rows or columns, state, guarantees."""
    with guarded(verbose=verbose):
        from gearpy.cli.programs.plan import compare_plans, show_plan
        from gearpy.errors import ConfigError

        if diff is None:
            show_plan(target, args or (), form=form, output=output)
            return
        if form not in {"text", "json"}:
            raise ConfigError(f"--format {form}: a difference is printed as text or json")
        compare_plans(target, args or (), other=diff, as_json=form == "json", output=output)
