"""Lists and stops the applications of a cluster."""

import time
from collections.abc import Sequence
from dataclasses import asdict

from gearpy.cli import text
from gearpy.cli.connect import connected
from gearpy.cli.output import print_json, table
from gearpy.config.schema import Config
from gearpy.ids import AppId
from gearpy.messages.cluster import ApplicationSummary, WorkerSummary

__all__ = ["kill_application", "print_cluster"]


def print_cluster(config: Config, *, as_json: bool) -> None:
    """Print the applications, oldest first, and the workers.

    Raises:
        GearpyError: there is no cluster, or it does not answer.
    """
    with connected(config) as client:
        applications, workers = client.applications(), client.workers()
    if as_json:
        print_json(
            {
                "applications": [asdict(each) for each in applications],
                "workers": [asdict(each) for each in workers],
            }
        )
    else:
        _print_applications(applications)
        print()
        _print_workers(workers)


def kill_application(app_id: int, config: Config, *, as_json: bool) -> None:
    """Stop an application.

    Raises:
        GearpyError: there is no cluster, or no such application that runs.
    """
    with connected(config) as client:
        client.shutdown(AppId(app_id))
        summary = client.application(AppId(app_id))
    if as_json:
        print_json(asdict(summary))
    else:
        print(f"application {app_id} ({text.printable(summary.name)}) {summary.status}")


def _print_applications(applications: Sequence[ApplicationSummary]) -> None:
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
    note = summary.cause.cause if summary.cause else progress.stall
    return [
        str(summary.app_id),
        summary.name,
        summary.status,
        text.time(summary.submitted_ms // 1000 * 1000),
        text.duration(text.duration_ms_of(summary, now_ms)),
        text.count(progress.records_in),
        text.count(progress.records_out),
        text.watermark(progress.watermark_ms),
        note.partition("\n")[0],
    ]


def _print_workers(workers: Sequence[WorkerSummary]) -> None:
    if not workers:
        print("no workers")
        return
    rows = [[str(each.worker_id), str(each.slots), str(each.free_slots)] for each in workers]
    table("workers", ("#id", "#slots", "#free"), rows)
