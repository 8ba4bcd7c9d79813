"""``gear quarantine ...``: lists, shows and replays records that were put aside."""

import base64
from typing import Annotated, TypeAlias

from msgspec import to_builtins

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import AppRef, Given, argument, asking
from gearpy.cli.terminal.output import card_lines, print_json, print_lines, table
from gearpy.ids import AppId
from gearpy.messages.client import ListQuarantined
from gearpy.views import text

commands = group(
    "Records that an operator raised on, put aside (application.on-error = quarantine)."
)

_Numbers: TypeAlias = Annotated[
    list[int] | None, argument(metavar="[NUMBER]...", help="Of the list; default: all.")
]


@commands.command("list", epilog=HELP)
@asking
def list_(given: Given, ref: AppRef) -> None:
    """List the records of an application that were put aside, the oldest first."""
    with given.client() as client:
        app_id = client.find(ref)
        listed = client.ask(ListQuarantined(app_id=app_id))
    if given.as_json:
        records = [to_builtins(each) for each in listed.records]
        for each in records:
            del each["value"]
            del each["error"]["traceback"]
        print_json({"app_id": app_id, "total": listed.total or len(records), "records": records})
        return
    if not listed.records:
        print(_none(app_id))
        return
    columns = ("#number", "put aside", "operator", "event time", "record", "error")
    title = f"records of application {app_id} in quarantine"
    table(
        title,
        columns,
        [
            [
                str(each.number),
                text.moment(each.at_ms),
                each.error.operator or f"processor {each.processor_id}",
                text.watermark(each.event_time_ms),
                each.error.record,
                each.error.cause.partition("\n")[0],
            ]
            for each in listed.records
        ],
    )
    if listed.total:
        print(f"\nthese are {len(listed.records)} of {text.count(listed.total)}, the oldest")


@commands.command(epilog=HELP)
@asking
def show(given: Given, ref: AppRef, numbers: _Numbers = None) -> None:
    """Show records with why they were put aside, and the traceback."""
    with given.client() as client:
        app_id = client.find(ref)
        wanted = numbers or [
            each.number for each in client.ask(ListQuarantined(app_id=app_id)).records
        ]
        # One at a time: one answer need not hold them all.
        found = [
            each
            for number in wanted
            for each in client.ask(ListQuarantined(app_id=app_id, numbers=(number,))).records
        ]
    if given.as_json:
        print_json(
            {
                "app_id": app_id,
                "records": [
                    {**to_builtins(each), "value": base64.b64encode(each.value).decode()}
                    for each in found
                ],
            }
        )
        return
    if not found:
        print(_none(app_id))
    for number, record in enumerate(found):
        if number:
            print()
        again = text.run_again(app_id, record.error, record=record.number)
        print_lines([f"record {record.number}, put aside {text.moment(record.at_ms)}"])
        card = card_lines(record.error, verbose=True, again=again)
        print_lines(f"  {line}" for line in card)
        size = text.plural(len(record.value), "byte")
        print_lines([f"  value: {size}; with --json in base64"])


@commands.command(epilog=HELP)
@asking
def replay(given: Given, ref: AppRef, numbers: _Numbers = None) -> None:
    """Give records back to their operators; one that fails again is put aside again."""
    with given.client() as client:
        app_id = client.find(ref)
        replayed = client.replay_quarantined(app_id, numbers or ())
    if given.as_json:
        print_json({"app_id": app_id, "replayed": [each.number for each in replayed]})
        return
    listed = ", ".join(str(each.number) for each in replayed)
    number = text.plural(len(replayed), "record")
    print(f"application {app_id}: {number} given back to the operators: {listed or 'none'}")


def _none(app_id: AppId) -> str:
    return f"application {app_id} has no record in quarantine"
