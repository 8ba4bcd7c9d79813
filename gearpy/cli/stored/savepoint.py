"""``gear savepoint ...``: epochs under names, which are kept until they are dropped."""

from typing import Annotated, Any

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, argument, storing
from gearpy.cli.terminal.output import print_json, table
from gearpy.cluster.checkpoints.reading import open_store
from gearpy.cluster.checkpoints.stored_savepoints import (
    StoredSavepoint,
    drop_savepoint,
    find_savepoint,
    stored_savepoints,
)
from gearpy.errors import ConfigError
from gearpy.storage.checkpoints import Checkpoints
from gearpy.views import text

commands = group("Savepoints: named epochs, kept until they are dropped.")


@commands.command("list", epilog=HELP)
@storing
def list_(given: Given) -> None:
    """List the savepoints in the checkpoint store, the oldest first."""
    store = _store(given)
    try:
        found = stored_savepoints(store, given.cluster)
    except OSError as error:
        raise ConfigError(f"checkpoint store {store.place} cannot be read: {error}") from error
    if given.as_json:
        print_json({"savepoints": [_values(each) for each in found]})
    elif found:
        columns = ["name", "application", "stored as", "epoch", "made"]
        rows = [
            [
                each.savepoint.name,
                each.savepoint.application,
                each.prefix,
                ", ".join(dict.fromkeys(map(str, each.savepoint.epochs.values()))),
                text.moment(each.savepoint.stored_ms),
            ]
            for each in found
        ]
        table("savepoints", columns, rows)
    else:
        print(f"no savepoint is in checkpoint store {store.place}")


@commands.command(epilog=HELP)
@storing
def drop(
    given: Given,
    name: Annotated[
        str, argument(metavar="NAME", help="Or CLUSTER/appN@NAME, if several have it.")
    ],
) -> None:
    """Drop a savepoint, and the files that only it needs. Its application may run."""
    store = _store(given)
    try:
        found = find_savepoint(store, name, given.cluster)
        drop_savepoint(store, found)
    except OSError as error:
        raise ConfigError(f"checkpoint store {store.place} cannot be read: {error}") from error
    given.answer(_values(found), f"savepoint {found.savepoint.name} of {found.prefix} is dropped")


def _store(given: Given) -> Checkpoints:
    return open_store(given.checkpoints or given.config().checkpoint.folder)


def _values(found: StoredSavepoint) -> dict[str, Any]:
    return {
        "name": found.savepoint.name,
        "application": found.savepoint.application,
        "prefix": found.prefix,
        "epochs": {str(region): epoch for region, epoch in found.savepoint.epochs.items()},
        "stored_ms": found.savepoint.stored_ms,
    }
