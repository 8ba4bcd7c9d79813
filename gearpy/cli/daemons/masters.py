"""``gear master list`` and the like: the masters of a cluster, and which of them leads."""

from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

import typer
from msgspec import to_builtins

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.options import Given, asking
from gearpy.cli.terminal.output import print_json, print_lines, table
from gearpy.cluster.client.client import MasterChange
from gearpy.messages.masters import GetMasters, MasterList
from gearpy.views import text

_Address: TypeAlias = Annotated[str, typer.Argument(metavar="HOST:PORT", help="Of a master.")]


_OF_STATUS: Final = ("silent_ms", "disk")
_NO_SPARE: Final = "no more may be lost: without a majority nothing new is taken"
_STATUS_COLUMNS: Final = (
    "address",
    "role",
    "#behind",
    "heard",
    "#log",
    "snapshot",
    "programs",
    "#free",
    "version",
)


def add_commands(masters: typer.Typer) -> None:
    for name, command in (
        ("list", list_masters),
        ("status", status),
        ("transfer", transfer),
        ("add", add),
        ("remove", remove),
    ):
        masters.command(name, epilog=HELP)(command)


@asking
def list_masters(given: Given) -> None:
    """List the masters of a cluster, as the one that leads sees them."""
    with given.client() as client:
        _show(given, client.ask(GetMasters()))


@asking
def status(given: Given) -> None:
    """Show how the masters are: who leads, who is behind or away, and what is on their disks."""
    with given.client() as client:
        found = client.ask(GetMasters(with_disks=True))
    if given.as_json:
        leader = next((each.address for each in found.masters if each.leads), "")
        masters = [to_builtins(each) for each in found.masters]
        print_json({"term": found.term, "leader": leader, "masters": masters})
        return
    print_lines(status_lines(found))
    rows = []
    for each in found.masters:
        heard = "" if each.leads else f"{text.duration(each.silent_ms)} ago"
        if each.away_since_ms:
            heard = f"not since {text.moment(each.away_since_ms)}"
        row, disk = [each.address, each.role, str(each.behind), heard], each.disk
        if disk is None:
            row += [""] * (len(_STATUS_COLUMNS) - len(row))
        else:
            quota = f" of {text.size(disk.quota_bytes)}" if disk.quota_bytes else ""
            programs = f"{text.count(disk.programs)}, {text.size(disk.programs_bytes)}{quota}"
            row += [text.size(disk.log_bytes), text.moment(disk.snapshot_ms), programs]
            row += [text.size(disk.free_bytes), disk.version]
        rows.append(row)
    table("masters", _STATUS_COLUMNS, rows)


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
        masters = [
            {key: value for key, value in to_builtins(each).items() if key not in _OF_STATUS}
            for each in found.masters
        ]
        print_json({"term": found.term, "masters": masters})
        return
    rows = [
        [each.address, each.role, str(each.behind), text.moment(each.away_since_ms)]
        for each in found.masters
    ]
    table("masters", ("address", "role", "#behind", "away since"), rows)


def status_lines(found: MasterList) -> Iterator[str]:
    """Yield the news about the masters that somebody should know at once."""
    masters = found.masters
    leader = next((each.address for each in masters if each.leads), "no master")
    if not found.term:
        yield f"{leader} has no others: while it is away, nothing new is taken"
        return
    away = sum(each.role == "away" for each in masters)
    yield f"{leader} leads in term {found.term}; {text.plural(len(masters), 'master')}, {away} away"
    spare = (len(masters) - 1) // 2 - away
    yield f"{text.plural(spare, 'master')} more may be lost" if spare > 0 else _NO_SPARE
    versions = sorted({each.disk.version for each in masters if each.disk is not None})
    if len(versions) > 1:
        yield f"they run gearpy {' and '.join(versions)}: an upgrade is under way"
