"""``gear worker drain``: has a worker leave its cluster."""

import time
from typing import Annotated, Final

import typer

from gearpy.cli.terminal.options import Given, asking
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.client.client import ClusterClient
from gearpy.ids import WorkerId
from gearpy.messages.client import ListWorkers
from gearpy.views import text

_POLL_S: Final = 0.1


@asking
def drain(
    given: Given,
    worker_id: Annotated[
        int, typer.Argument(metavar="ID", min=0, help="Of a worker in 'gear worker list'.")
    ],
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Until the worker has ended.")
    ] = True,
) -> None:
    """Have a worker take nothing new, stop what runs there, which goes on elsewhere, and end.

    It is what SIGTERM does to a worker: no application spends a restart. Who starts workers anew,
    such as Spark or Kubernetes, may start another one. For admins.
    """
    with given.client() as client:
        waits_for = client.drain_worker(WorkerId(worker_id))
        if not given.as_json:
            runs = text.plural(waits_for, "executor")
            when = f"when {runs} there have stopped" if waits_for else "nothing runs there"
            print(f"worker {worker_id} leaves, {when}", flush=True)
        if wait:
            _wait_for_the_end(client, worker_id)
    if given.as_json:
        print_json({"worker_id": worker_id, "executors": waits_for, "has_ended": wait})
    elif wait:
        print(f"worker {worker_id} has ended")


def _wait_for_the_end(client: ClusterClient, worker_id: int) -> None:
    """Wait until the master does not know a worker any more; that kills what does not stop."""
    while any(each.worker_id == worker_id for each in client.ask(ListWorkers()).workers):
        time.sleep(_POLL_S)
