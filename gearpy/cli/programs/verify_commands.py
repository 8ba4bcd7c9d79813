"""The arguments of ``gear verify``."""

from typing import Annotated, Literal

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AppArgs, AsJson, Conf, Set, Target, Verbose

__all__ = ["add_verify"]


def add_verify(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=HELP)(verify)


def verify(
    target: Target,
    args: AppArgs = None,
    *,
    against: Annotated[
        Literal["spark"], typer.Option("--against", help="What computes the same once more.")
    ] = "spark",
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            min=1,
            metavar="N",
            help="Take so many records of each source; sources without an end need it.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        int, typer.Option("--show", min=0, metavar="N", help="Differences to print, of each kind.")
    ] = 5,
    allow_late: Annotated[
        bool,
        typer.Option("--allow-late", help="Records that the stream leaves out as late are right."),
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            metavar="URL",
            help="Which Spark: local[2], spark://HOST:PORT, or sc://HOST:PORT; default: one here.",
            show_default=False,
        ),
    ] = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a program and the same as a Spark query, on the same records; print what differs.

    Files are read as they are; what other sources give is recorded first. The exit code is 1 if
    the answers differ, or if the stream leaves records out as late.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.programs.verify import verify_program
        from gearpy.cli.terminal.settings import configure

        assert against == "spark", "there is no other yet"
        verify_program(
            target,
            args or (),
            config=configure(conf, set_),
            records=records,
            show=show,
            allows_late=allow_late,
            spark=spark,
            as_json=as_json,
        )
