"""``gear window-log ...``: its commands with their arguments and help."""

from typing import Annotated, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AsJson

__all__ = ["windows_commands"]

windows_commands = typer.Typer(
    help="Window logs: what finished windows are handed on in.", no_args_is_help=True
)

_Path: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="Folder of the log, or its URL.")
]


@windows_commands.command("list", epilog=HELP)
def list_(path: _Path, *, as_json: AsJson = False) -> None:
    """List the files of a log with their batches, lane by lane, and how far readers are."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.window_log import list_files

        list_files(path, as_json=as_json)


@windows_commands.command(epilog=HELP)
def show(
    path: _Path,
    lane: Annotated[
        str | None,
        typer.Argument(metavar="[LANE]", help="Default: the first one.", show_default=False),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Argument(metavar="[BATCH]", help="Its number; default: the last.", min=1),
    ] = None,
    *,
    rows: Annotated[int, typer.Option("--rows", min=0, help="So many at most; 0 for all.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the rows of a batch."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.window_log import show_rows

        show_rows(path, lane, batch, rows_max=rows, as_json=as_json)


@windows_commands.command(epilog=HELP)
def verify(path: _Path, *, as_json: AsJson = False) -> None:
    """Read everything: are batches missing, files damaged, windows twice? Exit code 1 if so."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.window_log import verify_log

        verify_log(path, as_json=as_json)


@windows_commands.command(epilog=HELP)
def compact(
    path: _Path,
    *,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="So many has a file at most.")
    ] = 1_000_000,
    as_json: AsJson = False,
) -> None:
    """Make few large files of many small ones; readers and writers may go on meanwhile."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.window_log import compact_log

        compact_log(path, rows_max=rows, as_json=as_json)


@windows_commands.command(epilog=HELP)
def purge(
    path: _Path,
    *,
    reader: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            help="Remove what this reader has done with; may be given again: then what all have "
            "done with. Default: all readers.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            help="Remove what was shown longer ago, such as 7d, whoever has read it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove the oldest files; the last one of each lane stays."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.window_log import purge_log

        purge_log(path, readers=reader or (), older_than=older_than, as_json=as_json)
