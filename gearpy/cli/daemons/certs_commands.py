"""``gear certs ...``: its commands with their arguments and help."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AsJson, Conf, Set

__all__ = ["certs_commands"]

certs_commands = typer.Typer(
    help="Certificates of a cluster's own authority, for transport.tls = on.",
    no_args_is_help=True,
)

_Folder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="FOLDER",
        help="Where to put them; default: transport.tls-folder.",
        show_default=False,
    ),
]
_Hosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help="Name or address of the machine as the others see it; may be given several times. "
        "localhost, 127.0.0.1 and ::1 are always in.",
        show_default=False,
    ),
]
_Days: TypeAlias = Annotated[
    int, typer.Option("--days", min=1, max=3650, help="How long the machine's is good.")
]
_Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@certs_commands.command(epilog=HELP)
def init(
    *,
    folder: _Folder = None,
    host: _Hosts = None,
    days: _Days = 730,
    force: _Force = False,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Make an authority, once for a cluster, and a certificate of this machine."""
    with guarded(as_json=as_json):
        from gearpy.cli.daemons import certs
        from gearpy.cli.terminal.settings import configure

        config = configure(conf, set_)
        certs.init(config, host or (), folder=folder, days=days, force=force, as_json=as_json)


@certs_commands.command(epilog=HELP)
def node(
    *,
    authority: Annotated[
        Path | None,
        typer.Option(
            "--authority",
            metavar="FOLDER",
            help="Where 'gear certs init' made the authority; default: transport.tls-folder.",
            show_default=False,
        ),
    ] = None,
    folder: _Folder = None,
    host: _Hosts = None,
    days: _Days = 730,
    force: _Force = False,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Make a certificate of one more machine, or a new one before the old expires."""
    with guarded(as_json=as_json):
        from gearpy.cli.daemons import certs
        from gearpy.cli.terminal.settings import configure

        certs.node(
            configure(conf, set_),
            host or (),
            folder=folder,
            authority=authority,
            days=days,
            force=force,
            as_json=as_json,
        )
