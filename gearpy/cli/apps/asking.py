"""What every command that asks a cluster does: configuration, connection, errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gearpy.cli.terminal.guard import guarded

if TYPE_CHECKING:
    from gearpy.cluster.client.client import ClusterClient

__all__ = ["asking"]


@contextmanager
def asking(
    conf: Sequence[Path] | None,
    assignments: Sequence[str] | None,
    master: str | None,
    *,
    as_json: bool,
    verbose: bool = False,
) -> Iterator["ClusterClient"]:
    """Give a client of the cluster that the options name; end the command as `guarded` does."""
    with guarded(as_json=as_json, verbose=verbose):
        from gearpy.cli.apps.connect import connected
        from gearpy.cli.terminal.settings import configure

        with connected(configure(conf, assignments, master=master)) as client:
            yield client
