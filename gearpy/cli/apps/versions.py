"""``gear app update``, ``scale``, ``history``, ``rollback``, ``call-off``: other versions."""

import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Final

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import (
    AppRef,
    Given,
    NextArgs,
    NoArgs,
    Program,
    argument,
    asking,
    next_args,
    option,
    takes,
)
from gearpy.cli.terminal.output import hint_if_cut_off, print_json, print_lines, table
from gearpy.cluster.client.client import ClusterClient
from gearpy.config.hidden import shown_args
from gearpy.core.base.times import event_time_in
from gearpy.core.master.registry import TERMINAL
from gearpy.core.scaling.bounds import bounds_in, bounds_text
from gearpy.errors import ConfigError
from gearpy.messages.client import (
    GetApplication,
    GetVersions,
    UpdateApplication,
    UpdatePlanned,
    VersionSummary,
)
from gearpy.views import text
from gearpy.views.changes import STATES, plan_lines

_SCALE: Final = re.compile(r"(.+)=([0-9]{1,6})")
_GOES_ON: Final = (
    "the change goes on without this command: 'gear app history {0}' says how it ends, and "
    "'gear app call-off {0}' gives it up while it is prepared"
)
_MAY_GO_ON: Final = "the change may have begun: 'gear app history {0}' tells"
_Executors = Annotated[
    int,
    option(
        "--executors",
        min=0,
        metavar="N",
        help="Executors that share the tasks; without it none gets more tasks than one has now.",
    ),
]
_AllowDrop = Annotated[
    bool, typer.Option("--allow-drop", help="Leave behind what the new version has no place for.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")]
_Wait = Annotated[
    bool | None,
    option(
        "--wait/--no-wait",
        help="Until it is known whether it stays; at an event time only if asked for.",
    ),
]
_At = Annotated[
    str,
    option(
        "--at",
        metavar="TIME",
        help="Records from this event time on are of the new version, older ones of the old one.",
    ),
]


@takes("conf", "set_", "master", "as_json", "verbose")
def update(
    given: Given,
    ref: AppRef,
    target: Program,
    args: NextArgs = None,
    *,
    no_args: NoArgs = False,
    executors: _Executors = 0,
    allow_drop: _AllowDrop = False,
    at: _At = "",
    dry_run: _DryRun = False,
    wait: _Wait = None,
) -> None:
    """Replace a running program by another one, which goes on from its state.

    What steps keep is found by their ids, as with --from-checkpoint. The new program is on trial
    at first: if it fails, the old one takes its place again, and no record is lost or
    committed twice.
    With --at it waits for an event time; 'gear app call-off' gives it up.
    """
    at_event_ms = _event_time(at)
    with connected(given.config()) as client:
        app_id = client.find(ref)
        artifact, application = client.upload_next(app_id, target, next_args(args, no_args=no_args))
        application.check_stream("gear app update")
        message = UpdateApplication(
            app_id=app_id,
            artifact=artifact,
            executors=executors,
            allows_drop=allow_drop,
            is_trial_run=dry_run,
            at_event_ms=at_event_ms,
        )
        _change(client, message, wait=wait, as_json=given.as_json)


@asking
def call_off(given: Given, ref: AppRef) -> None:
    """Give up a change that waits for its event time, or is being prepared; what runs goes on."""
    with given.client(ref) as client:
        app_id = client.find(ref)
        number = client.call_off(app_id)
    given.answer(
        {"app_id": app_id, "version": number},
        f"application {app_id}: version {number} is called off",
    )


@asking
def scale(
    given: Given,
    ref: AppRef,
    steps: Annotated[
        list[str],
        argument(
            metavar="STEP=N...",
            help="Steps, by id or name, and their tasks; with 1..8 autoscale chooses.",
        ),
    ],
    *,
    executors: _Executors = 0,
    at: _At = "",
    dry_run: _DryRun = False,
    wait: _Wait = None,
) -> None:
    """Give steps of a running application another number of tasks; keys move with their state.

    With bounds in place of a number, the cluster chooses it from now on, by how busy tasks are.
    With --at it waits for an event time; 'gear app call-off' gives it up.
    """
    wanted = list[tuple[str, int]]()
    for each in steps:
        if ".." in each:
            continue  # Autoscale chooses.
        found = _SCALE.fullmatch(each)
        if found is None:
            raise ConfigError(f"{each}: write a step and its tasks, as in count=8")
        wanted.append((found[1], int(found[2])))
    bounds = tuple(bounds_in(each) for each in steps if ".." in each)
    named = [step for step, _ in (*wanted, *bounds)]
    if twice := sorted({step for step in named if named.count(step) > 1}):
        raise ConfigError(*(f"step {step!r} is given twice: say it once" for step in twice))
    with given.client(ref) as client:
        message = UpdateApplication(
            app_id=client.find(ref),
            scale=tuple(wanted),
            bounds=bounds,
            executors=executors,
            is_trial_run=dry_run,
            at_event_ms=_event_time(at),
        )
        _change(client, message, wait=wait, as_json=given.as_json)


@asking
def rollback(
    given: Given,
    ref: AppRef,
    version: Annotated[
        int, typer.Argument(metavar="VERSION", min=0, help="One of 'gear app history'.")
    ],
    *,
    allow_drop: _AllowDrop = False,
    at: _At = "",
    dry_run: _DryRun = False,
    wait: _Wait = None,
) -> None:
    """Put an earlier program in place of the one that runs, with what is kept now.

    With --at it waits for an event time; 'gear app call-off' gives it up.
    """
    with given.client(ref) as client:
        message = UpdateApplication(
            app_id=client.find(ref),
            version=version,
            allows_drop=allow_drop,
            is_trial_run=dry_run,
            at_event_ms=_event_time(at),
        )
        _change(client, message, wait=wait, as_json=given.as_json)


@asking
def history(given: Given, ref: AppRef) -> None:
    """List the versions of an application's program, the oldest first."""
    with given.client(ref) as client:
        app_id = client.find(ref)
        versions = [
            replace(each, args=shown_args(each.args))
            for each in client.ask(GetVersions(app_id=app_id)).versions
        ]
        has_ended = client.ask(GetApplication(app_id=app_id)).status in TERMINAL
    if given.as_json:
        print_json({"versions": [to_builtins(each) for each in versions]})
        return
    table(
        "versions",
        ("#version", "change", "asked", "by", "program", "#epoch", "state", "reason"),
        [_row(each, has_ended=has_ended) for each in versions],
    )


def _row(version: VersionSummary, *, has_ended: bool) -> list[str]:
    is_last = has_ended and version.state == "running"
    return [
        str(version.number),
        version.change,
        text.moment(version.at_ms) if version.at_ms else "",
        version.by,
        " ".join((version.filename, *version.args)),
        str(version.epoch) if version.epoch else "",
        "ran last" if is_last else STATES[version.state],
        version.reason.partition("\n")[0],
    ]


def _event_time(given: str) -> int | None:
    return event_time_in(given) if given else None


def _change(
    client: ClusterClient, message: UpdateApplication, *, wait: bool | None, as_json: bool
) -> None:
    is_asked = not message.is_trial_run
    with hint_if_cut_off(_MAY_GO_ON.format(message.app_id)) if is_asked else nullcontext():
        planned = client.change(message)
    waits = wait if wait is not None else planned.at_event_ms is None
    if not as_json and planned.moves:
        print_lines(plan_lines(planned))
    if planned.refusal:
        raise ConfigError(planned.refusal)
    outcome = None
    if is_asked and waits:
        with hint_if_cut_off(_GOES_ON.format(message.app_id)):
            outcome = client.wait_for_version(message.app_id, planned.version)
    versions: Sequence[VersionSummary] = (
        client.ask(GetVersions(app_id=message.app_id)).versions if outcome else ()
    )
    if as_json:
        print_json({**to_builtins(planned), "outcome": to_builtins(outcome) if outcome else None})
    elif not is_asked:
        print("nothing is changed")
    elif not planned.moves:
        said = "nothing to change, it has so many tasks already"
        if message.bounds:
            chosen = " ".join(f"{step}={bounds_text(each)}" for step, each in message.bounds)
            said = f"autoscale chooses {text.printable(chosen)}"
        print(f"application {message.app_id}: {said}")
    else:
        _print_outcome(planned, outcome, versions)
    if outcome is not None and outcome.state == "failed":
        raise typer.Exit(FAILED)


def _print_outcome(
    planned: UpdatePlanned, outcome: VersionSummary | None, versions: Sequence[VersionSummary]
) -> None:
    app_id, number, at_ms = planned.app_id, planned.version, planned.at_event_ms
    if outcome is None and at_ms is not None:
        print(f"application {app_id}: version {number} waits for event time {text.time(at_ms)}")
    elif outcome is None:
        print(f"application {app_id}: version {number} is being prepared")
    elif outcome.state == "failed":
        running = [each for each in versions if each.state in {"running", "trial"}]
        goes_on = f"; version {running[-1].number} runs" if running else ""
        reason = text.printable(outcome.reason)
        print(
            f"application {app_id}: version {number} has failed{goes_on}\n{reason}", file=sys.stderr
        )
    else:
        after = f" from epoch {outcome.epoch}" if outcome.epoch else ""
        print(f"application {app_id}: version {number} runs{after}")
        if outcome.reason:
            print(text.printable(outcome.reason))
