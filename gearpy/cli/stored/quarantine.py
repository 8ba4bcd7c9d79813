"""Lists, shows and replays records that were put aside."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import card_lines, print_json, print_lines, table
from gearpy.cluster.client.client import ClusterClient
from gearpy.ids import AppId
from gearpy.messages.client import QuarantinedList, QuarantinedRecord

__all__ = ["list_records", "replay_records", "show_records"]


def list_records(client: ClusterClient, ref: str, *, as_json: bool) -> None:
    """Print the records of an application that were put aside, oldest first.

    Raises:
        GearpyError: there is no such application.
    """
    app_id = client.find(ref)
    listed = client.quarantined(app_id)
    if as_json:
        print_json(
            {
                "app_id": app_id,
                "total": listed.total or len(listed.records),
                "records": [_brief_values(each) for each in listed.records],
            }
        )
        return
    _print_list(app_id, listed)


def show_records(client: ClusterClient, ref: str, numbers: Sequence[int], *, as_json: bool) -> None:
    """Print records with their values and tracebacks.

    Raises:
        GearpyError: there is no such application or record.
    """
    app_id = client.find(ref)
    wanted = numbers or [each.number for each in client.quarantined(app_id).records]
    # One at a time: one answer need not hold them all.
    found = [each for number in wanted for each in client.quarantined(app_id, [number]).records]
    if as_json:
        print_json({"app_id": app_id, "records": [_values(each) for each in found]})
        return
    if not found:
        print(_none(app_id))
    for number, record in enumerate(found):
        if number:
            print()
        print_lines(_lines(record))


def replay_records(
    client: ClusterClient, ref: str, numbers: Sequence[int], *, as_json: bool
) -> None:
    """Give records back to their operators.

    Raises:
        GearpyError: there is no such record, or the application does not run.
    """
    app_id = client.find(ref)
    given = client.replay_quarantined(app_id, numbers)
    if as_json:
        print_json({"app_id": app_id, "replayed": [each.number for each in given]})
        return
    listed = ", ".join(str(each.number) for each in given)
    number = text.plural(len(given), "record")
    print(f"application {app_id}: {number} given back to the operators: {listed or 'none'}")


def _print_list(app_id: AppId, listed: QuarantinedList) -> None:
    if not listed.records:
        print(_none(app_id))
        return
    columns = ("#number", "put aside", "operator", "event time", "record", "error")
    title = f"records of application {app_id} in quarantine"
    table(title, columns, [_row(each) for each in listed.records])
    if listed.total:
        print(f"\nthese are {len(listed.records)} of {text.count(listed.total)}, the oldest")


def _none(app_id: AppId) -> str:
    return f"application {app_id} has no record in quarantine"


def _row(record: QuarantinedRecord) -> list[str]:
    return [
        str(record.number),
        text.moment(record.at_ms),
        record.error.operator or f"processor {record.processor_id}",
        text.watermark(record.event_time_ms),
        record.error.record,
        record.error.cause.partition("\n")[0],
    ]


def _lines(record: QuarantinedRecord) -> Iterator[str]:
    yield f"record {record.number}, put aside {text.moment(record.at_ms)}"
    yield from (f"  {line}" for line in card_lines(record.error, verbose=True))
    yield f"  value: {text.plural(len(record.value), 'byte')}; with --json in base64"


def _brief_values(record: QuarantinedRecord) -> dict[str, Any]:
    """Return what a list has: neither the value nor the traceback."""
    values = asdict(record)
    del values["value"]
    del values["error"]["traceback"]
    return values


def _values(record: QuarantinedRecord) -> dict[str, Any]:
    return {**asdict(record), "value": base64.b64encode(record.value).decode()}
