"""``gear coordinator-log ...``: its commands with their arguments and help."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AsJson, Checkpoints, Cluster, Conf, Master, Set, StoredAppId

__all__ = ["log_commands"]


class _ShowGroup(TyperGroup):
    """``gear coordinator-log 3`` is ``gear coordinator-log show 3``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if args and args[0] not in self.commands and not is_help:
            args = ["show", *args]
        return super().parse_args(ctx, args)


log_commands = typer.Typer(
    help="The coordinator log of an application: what its app masters store for each other. "
    "'gear coordinator-log ID' shows it.",
    no_args_is_help=True,
    cls=_ShowGroup,
)


@log_commands.command(epilog=HELP)
def show(
    app: StoredAppId,
    *,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="GLOB",
            help="Only messages of this type, such as epoch or 'set-*'; may be given several "
            "times.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="GLOB",
            help="Only messages with this key, such as '0/*'; may be given several times.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also what no longer counts, as far as it was not compacted away.",
        ),
    ] = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: a line of JSON for each message.")
    ] = False,
) -> None:
    """Show the last message of each type and key, the oldest first."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.coordinator_log import print_log
        from gearpy.cli.terminal.settings import configure

        print_log(
            configure(conf, set_),
            app,
            checkpoints=checkpoints,
            cluster=cluster,
            types=types or (),
            keys=keys or (),
            everything=everything,
            as_json=as_json,
        )


@log_commands.command(epilog=HELP)
def append(
    app: StoredAppId,
    type_: Annotated[
        str, typer.Argument(metavar="TYPE", help="Such as set-config.", show_default=False)
    ],
    key: Annotated[str, typer.Argument(metavar="KEY", show_default=False)],
    values: Annotated[
        str,
        typer.Argument(
            metavar="VALUES",
            help='A JSON object, in which {"base64": ...} stands for bytes; null deletes.',
            show_default=False,
        ),
    ],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if the application runs: its app master then ends, and is launched again. "
            "Whether it runs, the master tells; if none answers within seconds, it counts as "
            "running while its log is younger than a minute.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check and print it.")] = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Append a message; the next launch of the application's app master reads it."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.coordinator_log import append_message
        from gearpy.cli.terminal.settings import configure

        append_message(
            configure(conf, set_, master=master),
            app,
            (type_, key, values),
            checkpoints=checkpoints,
            cluster=cluster,
            force=force,
            dry_run=dry_run,
            as_json=as_json,
        )
