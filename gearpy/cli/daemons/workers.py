"""``gear worker list``, ``show``, ``drain``: the workers of a cluster, one of them, its end."""

import time
from typing import Annotated, Final, TypeAlias

import typer
from msgspec import to_builtins

from gearpy.cli.apps.applications import list_workers
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, asking
from gearpy.cli.terminal.output import print_json, table
from gearpy.cluster.client.looking import detail_of
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import ConfigError
from gearpy.ids import WorkerId
from gearpy.messages.client import ListWorkers
from gearpy.views import text

_POLL_S: Final = 0.1
_RUNNING: Final = ("#app", "name", "#executor", "status", "#pid", "#slots", "tasks")
_WorkerId: TypeAlias = Annotated[
    int, typer.Argument(metavar="ID", min=0, help="Of a worker in 'gear worker list'.")
]

#: `gear worker` starts one: that is the group's callback, beside those of the other daemons.
workers = group("Start a worker, list those of a cluster, or end one.", no_args_is_help=False)
workers.command("list", epilog=HELP)(list_workers)


@workers.command(epilog=HELP)
@asking
def show(given: Given, worker_id: _WorkerId) -> None:
    """Show a worker and the executors that run on it."""
    with given.client() as client:
        known = {each.worker_id: each for each in client.ask(ListWorkers()).workers}
        if worker_id not in known:
            ids = ", ".join(map(str, sorted(known))) or "none"
            raise ConfigError(f"there is no worker {worker_id}: there are {ids}")
        living = [app for app in client.applications() if app.status not in TERMINAL]
        details = [(app, detail_of(client, app)[0]) for app in living]
    running = [
        (app, each)
        for app, detail in details
        if detail is not None
        for each in detail.executors
        if each.worker_id == worker_id
    ]
    if given.as_json:
        executors = [
            {"app_id": app.app_id, "name": app.name, **to_builtins(each)} for app, each in running
        ]
        print_json({"worker": to_builtins(known[WorkerId(worker_id)]), "executors": executors})
        return
    print(str(known[WorkerId(worker_id)]).strip("<>"))
    rows = [
        [
            str(app.app_id),
            app.name,
            str(each.executor_id),
            each.status,
            str(each.pid or ""),
            str(each.slots),
            ", ".join(each.tasks),
        ]
        for app, each in running
    ]
    if rows:
        print()
        table("executors", _RUNNING, rows)


@workers.command(epilog=HELP)
@asking
def drain(
    given: Given,
    worker_id: _WorkerId,
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
            # The master kills what does not stop.
            while any(each.worker_id == worker_id for each in client.ask(ListWorkers()).workers):
                time.sleep(_POLL_S)
    if given.as_json:
        print_json({"worker_id": worker_id, "executors": waits_for, "has_ended": wait})
    elif wait:
        print(f"worker {worker_id} has ended")
