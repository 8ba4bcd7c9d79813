"""Stops, restarts and replays an application of a cluster."""

from dataclasses import asdict

from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.client.client import ClusterClient

__all__ = ["kill_application", "replay_application", "restart_application"]


def kill_application(client: ClusterClient, ref: str, *, as_json: bool) -> None:
    """Stop an application.

    Raises:
        GearpyError: there is no such application that runs.
    """
    app_id = client.find(ref)
    client.shutdown(app_id)
    summary = client.application(app_id)
    if as_json:
        print_json(asdict(summary))
    else:
        print(f"application {app_id} ({text.printable(summary.name)}) {summary.status}")


def restart_application(
    client: ClusterClient, ref: str, *, from_beginning: bool, as_json: bool
) -> None:
    """Stop an application if it runs, and start the same once more, from where it was.

    Raises:
        GearpyError: there is no such application, or it cannot be started.
    """
    app_id = client.find(ref)
    running = client.restart(app_id, from_beginning=from_beginning)
    if as_json:
        print_json({"app_id": running.app_id, "name": running.name, "restarted": app_id})
    else:
        name = text.printable(running.name)
        print(f"application {app_id} ({name}) starts again as application {running.app_id}")


def replay_application(client: ClusterClient, ref: str, *, as_json: bool) -> None:
    """Restart all tasks of an application from its newest epoch.

    Raises:
        GearpyError: there is no such application that runs.
    """
    app_id = client.find(ref)
    epoch = client.replay(app_id)
    if as_json:
        print_json({"app_id": app_id, "epoch": epoch})
    else:
        start = f"after epoch {epoch}" if epoch else "from the beginning"
        print(f"application {app_id}: its tasks start again {start}")
