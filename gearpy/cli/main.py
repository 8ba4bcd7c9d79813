"""Every command with its arguments and its help; what they do is in the other modules."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from gearpy import __version__
from gearpy.cli.apps.asking import asking
from gearpy.cli.apps.commands import app_commands, kill
from gearpy.cli.daemons.certs_commands import certs_commands
from gearpy.cli.daemons.commands import add_daemons
from gearpy.cli.programs.plan_commands import add_plan
from gearpy.cli.programs.verify_commands import add_verify
from gearpy.cli.stored.checkpoint_commands import checkpoint_commands
from gearpy.cli.stored.coordinator_log_commands import log_commands
from gearpy.cli.stored.quarantine_commands import quarantine_commands
from gearpy.cli.stored.window_log_commands import windows_commands
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import (
    AppArgs,
    AppRef,
    AsJson,
    Conf,
    ConfFiles,
    Executors,
    Master,
    Override,
    Program,
    Set,
    Target,
    Verbose,
)
from gearpy.cli.terminal.signals import end_at_signals
from gearpy.distribution import other_project

__all__ = ["THEMES", "app", "main"]

#: The commands by what they are about, in the order of ``gear --help``.
THEMES: Final[Mapping[str, Sequence[str]]] = {
    "Programs": ("run", "plan", "verify"),
    "Applications on a cluster": ("app", "info", "why", "kill", "quarantine"),
    "Clusters": ("local", "master", "worker", "certs", "config"),
    "What is stored": ("checkpoint", "window-log", "coordinator-log", "log", "windows"),
}


class _Themed(TyperGroup):
    """Lists the commands by theme, those that a newcomer needs first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands in the order of the themes."""
        return [name for names in THEMES.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command, and tell it the panel of the help that it stands in."""
        command = super().get_command(ctx, cmd_name)
        for theme, names in THEMES.items():
            if isinstance(command, TyperCommand | TyperGroup) and cmd_name in names:
                command.rich_help_panel = theme
        return command


app = typer.Typer(
    cls=_Themed,
    help="gearpy: an actor-based streaming runtime.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_config_commands = typer.Typer(help="Show the configuration, or check it.", no_args_is_help=True)
#: `gear worker` starts one: that is the group's callback. `gear worker list` lists them.
_worker_commands = typer.Typer(help="Start a worker, or list those of a cluster.")
app.add_typer(app_commands, name="app")
app.add_typer(_worker_commands, name="worker")
app.add_typer(quarantine_commands, name="quarantine")
app.add_typer(checkpoint_commands, name="checkpoint")
app.add_typer(log_commands, name="coordinator-log")
app.add_typer(log_commands, name="log", hidden=True)  # Short for those who use it often.
app.add_typer(windows_commands, name="window-log")
app.add_typer(windows_commands, name="windows", hidden=True)  # Its earlier name.
app.add_typer(_config_commands, name="config")
add_daemons(app, _worker_commands)
app.add_typer(certs_commands, name="certs")


def main() -> None:
    """Run the command line of this process."""
    end_at_signals()
    if warning := other_project():
        print(f"warning: {warning}", file=sys.stderr)
    app(prog_name="gear")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if not wanted:
        return
    typer.echo(f"gearpy {__version__}")
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
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="NAME",
            help="Go on where the run of this name has ended, however it did, or begin it; a name, "
            "or the path of a folder for the run.",
            show_default=False,
        ),
    ] = None,
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
    Ctrl-C and SIGTERM stop its sources and let it show what they have read; the second one ends it
    at once.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.programs.run import run_application
        from gearpy.cli.terminal.settings import configure
        from gearpy.cluster.embedded.run import EMBEDDED

        run_application(
            target,
            args or (),
            config=configure(conf, set_, defaults=EMBEDDED),
            executors=executors,
            resume=resume,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
        )


@app_commands.command(epilog=HELP)
def submit(
    target: Program,
    args: AppArgs = None,
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Instead of the application's own.", show_default=False),
    ] = None,
    name_prefix: Annotated[
        str,
        typer.Option("--namePrefix", "--name-prefix", help="Before the name.", show_default=False),
    ] = "",
    executors: Executors = None,
    requirements_check: Annotated[
        bool,
        typer.Option(
            "--requirements-check/--no-requirements-check",
            help="Whether requirements.txt of the program, or Requires-Dist of the wheel, must "
            "be met where it runs.",
        ),
    ] = True,
    from_checkpoint: Annotated[
        str | None,
        typer.Option(
            "--from-checkpoint",
            metavar="ID[@EPOCH]",
            help="Begin with what another application had stored, such as its earlier version: "
            "its number, or CLUSTER/appN of another cluster; without an epoch the newest.",
            show_default=False,
        ),
    ] = None,
    drop_state: Annotated[
        bool,
        typer.Option(
            "--drop-state",
            help="With --from-checkpoint: leave behind what the program has no place for.",
        ),
    ] = False,
    conf: Conf = None,
    set_: Override = None,
    master: Master = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Start an application on a cluster.

    The program is packed and loaded here first, to find mistakes at once, and then uploaded. With
    a file go the modules beside it that it imports; a folder goes as a whole.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.apps.submit import submit_application
        from gearpy.cli.terminal.settings import configure

        submit_application(
            target,
            args or (),
            name=name,
            name_prefix=name_prefix,
            config=configure(conf, set_, master=master),
            executors=executors,
            check_requirements=requirements_check,
            from_checkpoint=from_checkpoint,
            drops_state=drop_state,
            as_json=as_json,
        )


@app.command(epilog=HELP)
def info(
    ref: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Only this application.", show_default=False),
    ] = None,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the applications and workers of a cluster, or describe one application."""
    with asking(conf, set_, master, as_json=as_json, verbose=verbose) as client:
        if ref is None:
            from gearpy.cli.apps.info import print_cluster

            print_cluster(client, as_json=as_json)
        else:
            from gearpy.cli.apps.describe import describe_application

            describe_application(client, ref, as_json=as_json, verbose=verbose)


app.command(epilog=HELP, help="Stop an application of a cluster.")(kill)
add_plan(app)
add_verify(app)


@app.command(epilog=HELP)
def why(
    ref: AppRef,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Tell what holds the clock of an application back: a chain of tasks, and what to do."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.why import explain_clock

        explain_clock(client, ref, as_json=as_json)


@_worker_commands.command("list", epilog=HELP)
def list_workers(
    *, conf: Conf = None, set_: Set = None, master: Master = None, as_json: AsJson = False
) -> None:
    """List the workers of a cluster with their slots."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.info import print_workers

        print_workers(client, as_json=as_json)


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
    executors: Annotated[
        Literal["thread", "process"],
        typer.Option("--executors", help="As threads of this process, or as processes."),
    ] = "thread",
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole cluster in this process, until Ctrl-C or SIGTERM.

    It listens at the address in cluster.masters. A second Ctrl-C ends it at once.
    """
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.daemons.local import run_cluster
        from gearpy.cli.terminal.settings import configure

        run_cluster(
            configure(conf, set_),
            workers=workers,
            slots=slots,
            executors=executors,
            as_json=as_json,
            verbose=verbose,
        )


@_config_commands.command()
def show(*, files: ConfFiles = None, set_: Set = None, as_json: AsJson = False) -> None:
    """Print every key with its value, after defaults, files, environment and --set."""
    with guarded(as_json=as_json):
        from gearpy.cli.terminal import settings

        settings.show(settings.configure(files, set_), as_json=as_json)


@_config_commands.command()
def check(*, files: ConfFiles = None, set_: Set = None, as_json: AsJson = False) -> None:
    """Find all mistakes in files, environment and --set; print what differs from the defaults."""
    with guarded(as_json=as_json):
        from gearpy.cli.terminal import settings

        settings.check(settings.configure(files, set_), as_json=as_json)
