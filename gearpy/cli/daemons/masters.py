"""``gear master list`` and the like: the masters of a cluster, and which of them leads."""

from dataclasses import asdict
from typing import Annotated, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.options import Given, asking
from gearpy.cli.terminal.output import print_json, table
from gearpy.cluster.client.client import MasterChange
from gearpy.messages.client import MasterList
from gearpy.views import text

_Address: TypeAlias = Annotated[str, typer.Argument(metavar="HOST:PORT", help="Of a master.")]


def add_commands(masters: typer.Typer) -> None:
    """Add the commands about all masters of a cluster to a group."""
    for name, command in (
        ("list", list_masters),
        ("transfer", transfer),
        ("add", add),
        ("remove", remove),
    ):
        masters.command(name, epilog=HELP)(command)


@asking
def list_masters(given: Given) -> None:
    """List the masters of a cluster, as the one that leads sees them."""
    with given.client() as client:
        _show(given, client.masters())


@asking
def transfer(given: Given, address: _Address) -> None:
    """Have another master lead, as before the machine of the leader is shut down."""
    _change(given, "transfer", address)


@asking
def add(given: Given, address: _Address) -> None:
    """Add a master, which was started with --join, to the others."""
    _change(given, "add", address)


@asking
def remove(given: Given, address: _Address) -> None:
    """Remove a master, dead or alive; stop it then. It must not come back with its old folder."""
    _change(given, "remove", address)


def _change(given: Given, change: MasterChange, address: str) -> None:
    with given.client() as client:
        _show(given, client.change_masters(change, address))


def _show(given: Given, found: MasterList) -> None:
    if given.as_json:
        masters = [asdict(each) for each in found.masters]
        print_json({"term": found.term, "masters": masters})
        return
    rows = [
        [each.address, each.role, str(each.behind), text.moment(each.away_since_ms)]
        for each in found.masters
    ]
    table("masters", ("address", "role", "#behind", "away since"), rows)
