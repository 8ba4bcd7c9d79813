"""``gear app ...``: its commands with their arguments and help."""

from typing import Annotated

import typer

from gearpy.cli.apps.asking import asking
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.options import AppRef, AsJson, Conf, Master, Set, Verbose

__all__ = ["app_commands", "kill"]

#: `main` adds ``submit``.
app_commands = typer.Typer(
    help="Submit, list, describe and stop applications on a cluster.", no_args_is_help=True
)


@app_commands.command("list", epilog=HELP)
def list_(
    *,
    everything: Annotated[
        bool, typer.Option("--all/--living", help="Also those that have ended.")
    ] = True,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """List the applications of a cluster, the oldest first."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.info import print_applications

        print_applications(client, only_living=not everything, as_json=as_json)


@app_commands.command(epilog=HELP)
def describe(
    ref: AppRef,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show all there is to know of an application: executors, processors, failures."""
    with asking(conf, set_, master, as_json=as_json, verbose=verbose) as client:
        from gearpy.cli.apps.describe import describe_application

        describe_application(client, ref, as_json=as_json, verbose=verbose)


@app_commands.command(epilog=HELP)
def kill(
    ref: AppRef,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Stop an application; it becomes 'terminated'."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.lifecycle import kill_application

        kill_application(client, ref, as_json=as_json)


@app_commands.command(epilog=HELP)
def restart(
    ref: AppRef,
    *,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            help="As it was submitted, without what it has stored since.",
        ),
    ] = False,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Stop an application if it runs, and start it again, under a new ID.

    It goes on from its newest epoch, with the configuration that its coordinator log has. One that
    has succeeded begins from the beginning.
    """
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.lifecycle import restart_application

        restart_application(client, ref, from_beginning=from_beginning, as_json=as_json)


@app_commands.command("replay", epilog=HELP, hidden=True)  # Its earlier name.
@app_commands.command("restart-tasks", epilog=HELP)
def replay(
    ref: AppRef,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Restart the tasks of an application from its newest epoch; it keeps its ID."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.lifecycle import replay_application

        replay_application(client, ref, as_json=as_json)


@app_commands.command(epilog=HELP)
def logs(
    ref: AppRef,
    *,
    executor: Annotated[
        int | None,
        typer.Option("--executor", min=0, metavar="N", help="Of this one.", show_default=False),
    ] = None,
    appmaster: Annotated[
        bool, typer.Option("--appmaster", help="Of its app master; that is the default.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, metavar="N", help="So many.")
    ] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Print the last lines of an application's log, also of one that has ended."""
    if appmaster and executor is not None:
        raise typer.BadParameter("choose one of --executor and --appmaster")
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.apps.logs import print_log

        print_log(client, ref, executor, lines=lines, follow=follow, as_json=as_json)
