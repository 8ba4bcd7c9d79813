"""``gear quarantine ...``: lists, shows and replays records that were put aside."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias

from msgspec import Struct, to_builtins

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, MaybeRef, argument, asking, option
from gearpy.cli.terminal.output import card_lines, print_json, print_lines, table
from gearpy.cli.terminal.runs import run_called
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.runs import RUN_APP, RunClient, live_runs
from gearpy.cluster.embedded.run_folder import run_folder_of
from gearpy.cluster.embedded.run_quarantine import StoredQuarantine
from gearpy.errors import ConfigError
from gearpy.ids import AppId
from gearpy.messages.client import ListQuarantined, QuarantinedList, QuarantinedRecord
from gearpy.views import text

commands = group(
    "Records that an operator raised on, put aside (application.on-error = quarantine)."
)

_Run: TypeAlias = Annotated[
    str | None,
    option(
        "--run",
        metavar="NAME",
        help="In place of ID: a run of 'gear run --resume NAME', or the folder that a run without "
        "a name has left.",
    ),
]
_Words: TypeAlias = Annotated[
    list[str] | None,
    argument(
        metavar="[ID] [NUMBER]...",
        help="Number or name of the application, and numbers of the list; default: all. With "
        "--run numbers alone.",
    ),
]


class _Asked(Struct, frozen=True):
    """An application of a cluster, or a run that does not run."""

    app_id: AppId
    whose: str
    source: ClusterClient | StoredQuarantine

    def listed(self) -> QuarantinedList:
        if isinstance(self.source, ClusterClient):
            return self.source.ask(ListQuarantined(app_id=self.app_id))
        records = tuple(each.record for each in self.source.records())
        return QuarantinedList(app_id=self.app_id, records=records)

    def chosen(self, numbers: Sequence[int]) -> list[QuarantinedRecord]:
        """Return records with their values, and why they were put aside."""
        source = self.source
        if not isinstance(source, ClusterClient):
            return [each.record for each in source.chosen(numbers)]
        wanted = numbers or [each.number for each in self.listed().records]
        # One at a time: one answer need not hold them all.
        return [
            each
            for number in wanted
            for each in source.ask(ListQuarantined(app_id=self.app_id, numbers=(number,))).records
        ]


@contextmanager
def _asked(given: Given, ref: str | None, run: str | None) -> Iterator[_Asked]:
    entry = None if run is None else run_called(run, live_runs())
    if entry is not None:
        yield _Asked(RUN_APP, f"run {run}", RunClient(entry))
        return
    if run is not None:
        path = run_folder_of(run, given.config().checkpoint.runs_folder)
        yield _Asked(RUN_APP, f"run {run}", StoredQuarantine(path, run))
        return
    with given.client(ref) as client:
        app_id = client.find(ref)
        whose = f"application {app_id}"
        if isinstance(client, RunClient):
            whose = f"run {client.entry}"
        yield _Asked(app_id, whose, client)


def _split(words: list[str] | None, run: str | None) -> tuple[str | None, list[int]]:
    """Return the application, if it is to be one, and the numbers behind it."""
    found = [*(words or ())]
    ref = found.pop(0) if found and run is None else None
    if wrong := [each for each in found if not (each.isascii() and each.isdigit())]:
        raise ConfigError(f"{wrong[0]!r} is no number of a record: see 'gear quarantine list'")
    return ref, [int(each) for each in found]


@commands.command("list", epilog=HELP)
@asking
def list_(given: Given, ref: MaybeRef = None, *, run: _Run = None) -> None:
    """List the records that were put aside, the oldest first."""
    with _asked(given, ref, run) as asked:
        listed = asked.listed()
    if given.as_json:
        records = [to_builtins(each) for each in listed.records]
        for each in records:
            del each["value"]
            del each["error"]["traceback"]
        total = listed.total or len(records)
        print_json({"app_id": asked.app_id, "total": total, "records": records})
        return
    if not listed.records:
        print(f"{asked.whose} has no record in quarantine")
        return
    columns = ("#number", "put aside", "operator", "event time", "record", "error")
    table(
        f"records of {asked.whose} in quarantine",
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
def show(given: Given, words: _Words = None, *, run: _Run = None) -> None:
    """Show records with why they were put aside, and the traceback."""
    ref, numbers = _split(words, run)
    with _asked(given, ref, run) as asked:
        found = asked.chosen(numbers)
    if given.as_json:
        print_json(
            {
                "app_id": asked.app_id,
                "records": [
                    {**to_builtins(each), "value": base64.b64encode(each.value).decode()}
                    for each in found
                ],
            }
        )
        return
    if not found:
        print(f"{asked.whose} has no record in quarantine")
    for number, record in enumerate(found):
        if number:
            print()
        is_of_cluster = isinstance(asked.source, ClusterClient)
        again = text.run_again(asked.app_id, record.error, record=record.number)
        print_lines([f"record {record.number}, put aside {text.moment(record.at_ms)}"])
        card = card_lines(record.error, verbose=True, again=again if is_of_cluster else "")
        print_lines(f"  {line}" for line in card)
        size = text.plural(len(record.value), "byte")
        print_lines([f"  value: {size}; with --json in base64"])


@commands.command(epilog=HELP)
@asking
def replay(given: Given, words: _Words = None, *, run: _Run = None) -> None:
    """Give records back to their operators; one that fails again is put aside again.

    Those of a run that has ended are given back when it is resumed, once.
    """
    ref, numbers = _split(words, run)
    with _asked(given, ref, run) as asked:
        source = asked.source
        if isinstance(source, ClusterClient):
            replayed = [*source.replay_quarantined(asked.app_id, numbers)]
            told = "given back to the operators"
        else:
            replayed = source.want(numbers)
            told = f"given back by the next 'gear run --resume {run}'"
    listed = ", ".join(str(each.number) for each in replayed)
    number = text.plural(len(replayed), "record")
    given.answer(
        {"app_id": asked.app_id, "replayed": [each.number for each in replayed]},
        f"{asked.whose}: {number} {told}: {listed or 'none'}",
    )
