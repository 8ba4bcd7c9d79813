"""Lists the applications and workers of a cluster."""

import time
from collections.abc import Sequence
from dataclasses import asdict

from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import print_json, table
from gearpy.cluster.client.client import ClusterClient
from gearpy.core.master.registry import TERMINAL
from gearpy.messages.summaries import ApplicationSummary, WorkerSummary

__all__ = ["print_applications", "print_cluster", "print_workers"]


def print_cluster(client: ClusterClient, *, as_json: bool) -> None:
    """Print the cluster's id, the applications, oldest first, and the workers.

    Raises:
        GearpyError: there is no cluster, or it does not answer.
    """
    cluster, applications, workers = client.cluster(), client.applications(), client.workers()
    if as_json:
        lists = {**_as_values(applications=applications), **_as_values(workers=workers)}
        print_json({**asdict(cluster), **lists})
    else:
        print(f"cluster {text.printable(cluster.cluster_id)}\n")
        _table_of_applications(applications)
        print()
        _table_of_workers(workers)


def print_applications(client: ClusterClient, *, only_living: bool, as_json: bool) -> None:
    """Print the applications, oldest first; see `print_cluster`."""
    applications = [
        each for each in client.applications() if not (only_living and each.status in TERMINAL)
    ]
    if as_json:
        print_json(_as_values(applications=applications))
    else:
        _table_of_applications(applications)


def print_workers(client: ClusterClient, *, as_json: bool) -> None:
    """Print the workers; see `print_cluster`."""
    workers = client.workers()
    if as_json:
        print_json(_as_values(workers=workers))
    else:
        _table_of_workers(workers)


def _as_values(
    **lists: Sequence[ApplicationSummary] | Sequence[WorkerSummary],
) -> dict[str, object]:
    return {name: [asdict(each) for each in items] for name, items in lists.items()}


def _table_of_applications(applications: Sequence[ApplicationSummary]) -> None:
    if not applications:
        print("no applications")
        return
    columns = (
        "#id",
        "name",
        "status",
        "submitted",
        "#duration",
        "#in",
        "#out",
        "watermark",
        "note",
    )
    now_ms = time.time_ns() // 1_000_000
    table("applications", columns, [_application_row(each, now_ms) for each in applications])


def _application_row(summary: ApplicationSummary, now_ms: int) -> list[str]:
    progress = summary.progress
    waits = f"waits for {progress.waits_for}" if progress.waits_for else ""
    note = summary.cause.cause if summary.cause else progress.stall or waits
    return [
        str(summary.app_id),
        summary.name,
        summary.status,
        text.moment(summary.submitted_ms),
        text.duration(text.duration_ms_of(summary, now_ms)),
        text.count(progress.records_in),
        text.count(progress.records_out),
        text.watermark(progress.watermark_ms),
        note.partition("\n")[0],
    ]


def _table_of_workers(workers: Sequence[WorkerSummary]) -> None:
    if not workers:
        print("no workers")
        return
    columns = ("#id", "address", "#slots", "#free", "#executors")
    rows = [
        [
            str(each.worker_id),
            each.address or "in the master",
            str(each.slots),
            str(each.free_slots),
            str(each.executors),
        ]
        for each in workers
    ]
    table("workers", columns, rows)
