"""Every command with its arguments and its help; what they do is in the other modules."""

from typing import Annotated

import typer

from gearpy.cli.exits import HELP
from gearpy.cli.guard import guarded
from gearpy.cli.options import (
    AppArgs,
    AsJson,
    Conf,
    ConfFiles,
    Executors,
    Master,
    Set,
    Target,
    Verbose,
)

__all__ = ["app", "main"]

app = typer.Typer(
    help="gearpy: an actor-based streaming runtime.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_app_commands = typer.Typer(help="Applications on a cluster.", no_args_is_help=True)
_config_commands = typer.Typer(help="The configuration.", no_args_is_help=True)
app.add_typer(_app_commands, name="app")
app.add_typer(_config_commands, name="config")


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="gear")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("gearpy")
    except PackageNotFoundError:
        number = "(not installed)"
    typer.echo(f"gearpy {number}")
    raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command(epilog=HELP)
def run(
    target: Target,
    args: AppArgs = None,
    *,
    executors: Executors = None,
    conf: Conf = None,
    set_: Set = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="No progress; the summary as one line of JSON."),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Run an application in this process until its input ends.

    What it prints goes to standard output. Progress, summary and errors go to standard error.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.run import run_application
        from gearpy.cli.settings import configure

        run_application(
            target,
            args or (),
            config=configure(conf, set_),
            executors=executors,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
        )


@_app_commands.command(epilog=HELP)
def submit(
    target: Target,
    args: AppArgs = None,
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Instead of the application's own.", show_default=False),
    ] = None,
    executors: Executors = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Start an application on a cluster.

    The file is loaded here first, to find mistakes at once; the cluster reads it again from the
    same path.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.app import submit_application
        from gearpy.cli.settings import configure

        config = configure(conf, set_, master=master)
        submit_application(
            target, args or (), name=name, config=config, executors=executors, as_json=as_json
        )


@app.command(epilog=HELP)
def info(
    *, conf: Conf = None, set_: Set = None, master: Master = None, as_json: AsJson = False
) -> None:
    """List the applications and workers of a cluster."""
    with guarded(as_json=as_json):
        from gearpy.cli.info import print_cluster
        from gearpy.cli.settings import configure

        print_cluster(configure(conf, set_, master=master), as_json=as_json)


@app.command(epilog=HELP)
def kill(
    app_id: Annotated[int, typer.Argument(metavar="ID", help="Its number in 'gear info'.")],
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Stop an application of a cluster."""
    with guarded(as_json=as_json):
        from gearpy.cli.info import kill_application
        from gearpy.cli.settings import configure

        kill_application(app_id, configure(conf, set_, master=master), as_json=as_json)


@app.command(epilog=HELP)
def local(
    *,
    workers: Annotated[int, typer.Option("--workers", min=1, max=1000, metavar="N")] = 2,
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots",
            min=1,
            metavar="N",
            help="Slots of each worker; default: worker.slots.",
            show_default=False,
        ),
    ] = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole cluster in this process, until Ctrl-C or SIGTERM.

    It listens at the address in cluster.masters. A second Ctrl-C ends it at once.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.local import run_cluster
        from gearpy.cli.settings import configure

        run_cluster(
            configure(conf, set_), workers=workers, slots=slots, as_json=as_json, verbose=verbose
        )


@_config_commands.command()
def show(*, files: ConfFiles = None, set_: Set = None, as_json: AsJson = False) -> None:
    """Print every key with its value, after defaults, files, environment and --set."""
    with guarded(as_json=as_json):
        from gearpy.cli import settings

        settings.show(settings.configure(files, set_), as_json=as_json)


@_config_commands.command()
def check(*, files: ConfFiles = None, set_: Set = None, as_json: AsJson = False) -> None:
    """Find all mistakes in files, environment and --set; print what differs from the defaults."""
    with guarded(as_json=as_json):
        from gearpy.cli import settings

        settings.check(settings.configure(files, set_), as_json=as_json)
