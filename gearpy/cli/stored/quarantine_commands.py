"""``gear quarantine ...``: its commands with their arguments and help."""

from typing import Annotated, TypeAlias

import typer

from gearpy.cli.apps.asking import asking
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.options import AppRef, AsJson, Conf, Master, Set

__all__ = ["quarantine_commands"]

quarantine_commands = typer.Typer(
    help="Records that an operator raised on, put aside (application.on-error = quarantine).",
    no_args_is_help=True,
)

_Numbers: TypeAlias = Annotated[
    list[int] | None,
    typer.Argument(metavar="[NUMBER]...", help="Of the list; default: all.", show_default=False),
]


@quarantine_commands.command("list", epilog=HELP)
def list_(
    ref: AppRef,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """List the records of an application that were put aside, the oldest first."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.stored.quarantine import list_records

        list_records(client, ref, as_json=as_json)


@quarantine_commands.command(epilog=HELP)
def show(
    ref: AppRef,
    numbers: _Numbers = None,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Show records with why they were put aside, and the traceback."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.stored.quarantine import show_records

        show_records(client, ref, numbers or (), as_json=as_json)


@quarantine_commands.command(epilog=HELP)
def replay(
    ref: AppRef,
    numbers: _Numbers = None,
    *,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Give records back to their operators; one that fails again is put aside again."""
    with asking(conf, set_, master, as_json=as_json) as client:
        from gearpy.cli.stored.quarantine import replay_records

        replay_records(client, ref, numbers or (), as_json=as_json)
