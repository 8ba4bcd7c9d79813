"""``gear master`` and ``gear worker``: their arguments and help."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AsJson, Conf, Set

__all__ = ["add_daemons"]

_Host: TypeAlias = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Where to listen.", show_default=False),
]
_LogFormat: TypeAlias = Annotated[
    Literal["text", "json"] | None,
    typer.Option("--log-format", help="Of the log files; default: log.format.", show_default=False),
]
_LogLevel: TypeAlias = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    typer.Option("--log-level", help="Default: log.level.", show_default=False),
]
_Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", help="The log here, too.")]


def add_daemons(program: typer.Typer, workers: typer.Typer) -> None:
    """Add both to the program; a worker is what the group of its commands does by itself."""
    program.command(epilog=HELP)(master)
    workers.callback(invoke_without_command=True, epilog=HELP)(worker)


def master(
    *,
    host: _Host = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65_535, help="0 lets the system choose.", metavar="N"),
    ] = None,
    masters: Annotated[
        str | None,
        typer.Option(
            "--masters", metavar="HOST:PORT", help="As others find it; default: cluster.masters."
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Its log; default: master.folder."),
    ] = None,
    conf: Conf = None,
    set_: Set = None,
    log_format: _LogFormat = None,
    log_level: _LogLevel = None,
    as_json: AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Run a master of a cluster, until Ctrl-C or SIGTERM; a second signal ends it at once.

    It says on standard output when it is ready, and all else in its log file.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.daemons.master import run_master
        from gearpy.cli.terminal.settings import configure

        flags = {"master.folder": folder, "log.format": log_format, "log.level": log_level}
        config = configure(conf, [*(set_ or ()), *_assignments(flags)], master=masters)
        run_master(config, host=host, port=port, as_json=as_json, verbose=verbose)


def worker(
    context: typer.Context,
    *,
    slots: Annotated[
        int | None,
        typer.Option("--slots", min=1, metavar="N", help="Default: worker.slots."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="HOST:PORT",
            help="Where the master is; default: cluster.masters.",
        ),
    ] = None,
    host: _Host = None,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Where it works; default: worker.folder."),
    ] = None,
    conf: Conf = None,
    set_: Set = None,
    log_format: _LogFormat = None,
    log_level: _LogLevel = None,
    as_json: AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Run a worker, until Ctrl-C or SIGTERM; a second signal ends it at once.

    It offers slots and starts a process for each executor in them. When it is told to end, what
    it runs is asked to stop first. It waits for a master that is not there yet.
    """
    if context.invoked_subcommand is not None:
        return
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.daemons.worker import run_worker
        from gearpy.cli.terminal.settings import configure

        flags = {
            "worker.slots": slots,
            "worker.folder": folder,
            "hostname": host,
            "log.format": log_format,
            "log.level": log_level,
        }
        config = configure(conf, [*(set_ or ()), *_assignments(flags)], master=master)
        run_worker(config, as_json=as_json, verbose=verbose)


def _assignments(flags: Mapping[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in flags.items() if value is not None]
