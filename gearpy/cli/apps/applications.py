"""``gear app ...``, ``gear info``, ``gear worker list``: applications and workers of a cluster."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from msgspec import to_builtins

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import add_lazy, group
from gearpy.cli.terminal.options import AppRef, Given, MaybeRef, argument, asking, option
from gearpy.cli.terminal.output import (
    card_lines,
    error_lines,
    hint_if_cut_off,
    print_hints,
    print_json,
    print_lines,
    table,
)
from gearpy.cli.terminal.runs import left_report
from gearpy.clocks import monotonic_ms, wall_ms
from gearpy.cluster.client.client import ClusterClient, error_of
from gearpy.cluster.client.looking import detail_of
from gearpy.cluster.client.report import Report
from gearpy.cluster.client.runs import RunClient, RunEntry, last_report
from gearpy.core.master.registry import TERMINAL
from gearpy.core.scaling.bounds import bounds_text
from gearpy.errors import ApplicationFailed, ConfigError, ConnectionLost
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId
from gearpy.messages.client import GetApplication, GetCluster, ListWorkers, LogText, ReadLog
from gearpy.messages.summaries import STORE, ApplicationSummary, ProcessorSummary, WorkerSummary
from gearpy.views import text
from gearpy.views.draining import DrainNotice
from gearpy.wire.values.records import DEFAULT_REGISTRY

_POLL_S: Final = 0.5
_SOON_S: Final = 0.05
_LEFT_WITHIN_S: Final = 10.0

commands = group("Submit, list, describe and stop applications on a cluster.")
for _name, _place, _about in (
    ("submit", "submit:submit", "Start an application on a cluster."),
    (
        "update",
        "versions:update",
        "Replace a running program by another one, which goes on from its state.",
    ),
    (
        "call-off",
        "versions:call_off",
        "Give up a change that waits for its event time, or is being prepared.",
    ),
    ("scale", "versions:scale", "Give steps of a running application another number of tasks."),
    (
        "shadow",
        "shadow:shadow",
        "Run another version of a step beside the one that runs, and compare.",
    ),
    ("history", "versions:history", "List the versions of an application's program."),
    ("rollback", "versions:rollback", "Put an earlier program in place of the one that runs."),
):
    add_lazy(commands, _name, f"apps.{_place}", help=_about)


@asking
def info(
    given: Given,
    ref: Annotated[str | None, argument(metavar="[ID]", help="Only this application.")] = None,
) -> None:
    """List the applications and workers of a cluster, or describe one application or run."""
    if (left := left_report(given.config(), given.master, ref)) is not None:
        _print_left(left, as_json=given.as_json)
        return
    with given.client(ref) as client:
        if ref is not None or isinstance(client, RunClient):
            describe_application(client, ref, as_json=given.as_json, verbose=given.verbose)
            return
        cluster, applications, workers = (
            client.ask(GetCluster()),
            client.applications(),
            client.ask(ListWorkers()).workers,
        )
    if given.as_json:
        lists = {**_as_values(applications=applications), **_as_values(workers=workers)}
        print_json({"cluster_id": cluster.cluster_id, **lists})
    else:
        print(f"cluster {text.printable(cluster.cluster_id)}\n")
        _table_of_applications(applications)
        print()
        _table_of_workers(workers)


def _print_left(report: Report, *, as_json: bool) -> None:
    """Print what a run that has ended has left."""
    view = report.answers[f"appmaster/{report.app_id}/view"]
    if as_json:
        print_json(view)
        return
    totals, headline = view["totals"], view["headline"]
    print(f"run {text.printable(report.name)} {view['status']}")
    print(f"  ended    {text.moment(report.at_ms)}")
    counts = [text.count(totals[each]) for each in ("records_in", "records_out")]
    print(f"  records  {counts[0]} in, {counts[1]} out")
    if headline["text"]:
        print(text.printable(f"  {headline['text']}"))
    print(f"'gear report {text.printable(report.name)}' writes all that is known of it")


@commands.command("list", epilog=HELP)
@asking
def list_(
    given: Given,
    *,
    everything: Annotated[
        bool, typer.Option("--all/--living", help="Also those that have ended.")
    ] = True,
) -> None:
    """List the applications of a cluster, the oldest first; without one, the runs that go on."""
    applications: list[ApplicationSummary] = []
    for each in given.clients():
        with each as client:
            applications += client.applications()
    if not everything:
        applications = [each for each in applications if each.status not in TERMINAL]
    if given.as_json:
        print_json(_as_values(applications=applications))
    else:
        _table_of_applications(applications)


@asking
def list_workers(given: Given) -> None:
    """List the workers of a cluster with their slots."""
    with given.client() as client:
        workers = client.ask(ListWorkers()).workers
    if given.as_json:
        print_json(_as_values(workers=workers))
    else:
        _table_of_workers(workers)


@commands.command(epilog=HELP)
@asking
def describe(given: Given, ref: MaybeRef = None) -> None:
    """Show all there is to know of an application: executors, processors, failures."""
    with given.client(ref) as client:
        describe_application(client, ref, as_json=given.as_json, verbose=given.verbose)


@commands.command(epilog=HELP)
@asking
def kill(given: Given, ref: AppRef) -> None:
    """Stop an application; it becomes 'terminated'."""
    with given.client(ref) as client:
        app_id = client.find(ref)
        client.shutdown(app_id)
        summary = client.ask(GetApplication(app_id=app_id))
    given.answer(
        to_builtins(summary),
        f"application {app_id} ({text.printable(summary.name)}) {summary.status}",
    )


@commands.command(epilog=HELP)
@asking
def ask(
    given: Given,
    ref: AppRef,
    question: Annotated[str, argument(help="JSON, or else a text.", metavar="QUESTION")],
    *,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="S", help="Wait so many seconds.")
    ] = 60.0,
) -> None:
    """Ask the app master of an application of actors, and print its answer."""
    from gearpy.cluster.checkpoints.reading import plain
    from gearpy.cluster.states.columns import ShownClasses

    known, asked = ShownClasses(DEFAULT_REGISTRY), question
    with suppress(ValueError):
        asked = json.loads(question)
    with given.client(ref) as client:
        app_id = client.find(ref)
        answer = client.ask_application(app_id, asked, timeout, classes=known)
    if isinstance(answer, str) and not given.as_json:
        print(text.printable(answer))
    else:
        print_json(plain(answer))


@commands.command(epilog=HELP)
@asking
def stop(
    given: Given,
    ref: AppRef,
    *,
    drain: Annotated[
        bool, typer.Option("--drain", help="Show all that its sources have read, then end.")
    ] = False,
    savepoint: Annotated[
        str,
        option(
            "--savepoint",
            metavar="NAME",
            help="The same, and its last epoch is kept under this name until it is dropped.",
        ),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="For its end.")] = True,
) -> None:
    """Stop an application gracefully: its sources stop, and all that they read is committed.

    It becomes 'terminated'. Open windows stay open in its last epoch, from which another
    application can go on.
    """
    if not (drain or savepoint):
        raise ConfigError("choose --drain or --savepoint NAME; 'gear kill' ends it at once")
    with given.client(ref) as client:
        running = client.running(ref)
        running.drain(savepoint=savepoint)
        if wait:
            kill = f"'gear kill {running.app_id}' ends it at once"
            notice = DrainNotice(
                began_ms=monotonic_ms(),
                timeout_ms=None,
                way_out=f"{kill}; Ctrl-C ends this command alone",
            )

            def tell(summary: ApplicationSummary) -> None:
                if line := notice.line(summary, monotonic_ms()):
                    print_hints([line])

            run = client.entry if isinstance(client, RunClient) else None
            with hint_if_cut_off("the drain goes on without this command"):
                try:
                    summary = running.wait(on_progress=tell)
                except ConnectionLost:
                    if run is None:
                        raise
                    _print_what_is_left(run, as_json=given.as_json)
                    return
        else:
            summary = running.summary()
    if given.as_json:
        print_json(to_builtins(summary))
        return
    progress, name = summary.progress, text.printable(summary.name)
    state = summary.outcome if wait else "is being drained"
    print(f"application {summary.app_id} ({name}) {state}")
    if progress.savepoint:
        print(f"savepoint {progress.savepoint} is epoch {progress.epoch}")
    elif savepoint and wait:
        print_hints([f"there is no savepoint: it has {summary.status} before it could be made"])


@commands.command(epilog=HELP)
@asking
def savepoint(
    given: Given,
    ref: AppRef,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the savepoint.")],
) -> None:
    """Give the next epoch of an application a name, under which it is kept. Nothing stops.

    'gear app submit --from-checkpoint NAME' begins with it; 'gear savepoint' lists and drops them.
    """
    with given.client(ref) as client:
        app_id = client.find(ref)
        epochs = client.savepoint(app_id, name)
    by_region = {str(region): epoch for region, epoch in epochs.items()}
    numbers = ", ".join(dict.fromkeys(map(str, epochs.values())))
    given.answer(
        {"app_id": app_id, "savepoint": name, "epochs": by_region},
        f"savepoint {name} of application {app_id} is epoch {numbers}",
    )


def _print_what_is_left(run: RunEntry, *, as_json: bool) -> None:
    """Print what a run leaves that has just ended, once its process has written it."""
    until_s, is_last = time.monotonic() + _LEFT_WITHIN_S, False
    while not is_last:
        is_last = not run.goes_on or time.monotonic() > until_s
        report = last_report(run.name)
        if report is not None and report.at_ms >= run.began_ms:
            _print_left(report, as_json=as_json)
            return
        time.sleep(_SOON_S)
    print(f"run {text.printable(str(run))} has ended")


@commands.command(epilog=HELP)
@asking
def restart(
    given: Given,
    ref: AppRef,
    *,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning", help="As it was submitted, without what it has stored since."
        ),
    ] = False,
    checkpoint_folder: Annotated[
        str,
        option(
            "--checkpoint-folder",
            metavar="PLACE",
            help="The folder or URL that its checkpoints were moved to, on all machines.",
        ),
    ] = "",
) -> None:
    """Stop an application if it runs, and start it again, under a new ID.

    It goes on from its newest epoch, with the configuration that its coordinator log has. One that
    has succeeded begins from the beginning.
    """
    place = checkpoint_folder
    if place and "://" not in place:
        place = str(Path(place).expanduser().absolute())
    with given.client(ref) as client:
        app_id = client.find(ref)
        running = client.restart(app_id, from_beginning=from_beginning, checkpoint_folder=place)
    name = text.printable(running.name)
    given.answer(
        {"app_id": running.app_id, "name": running.name, "restarted": app_id},
        f"application {app_id} ({name}) starts again as application {running.app_id}",
    )


@commands.command("replay", epilog=HELP, hidden=True)  # Its earlier name.
@commands.command("restart-tasks", epilog=HELP)
@asking
def restart_tasks(given: Given, ref: AppRef) -> None:
    """Restart the tasks of an application from its newest epoch; it keeps its ID."""
    with given.client(ref) as client:
        app_id = client.find(ref)
        epoch = client.replay(app_id)
    start = f"after epoch {epoch}" if epoch else "from the beginning"
    given.answer(
        {"app_id": app_id, "epoch": epoch}, f"application {app_id}: its tasks start again {start}"
    )


@commands.command(epilog=HELP)
@asking
def logs(
    given: Given,
    ref: MaybeRef = None,
    *,
    executor: Annotated[
        int | None, option("--executor", min=0, metavar="N", help="Of this one.")
    ] = None,
    appmaster: Annotated[
        bool, typer.Option("--appmaster", help="Of its app master; that is the default.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, metavar="N", help="So many.")
    ] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
) -> None:
    """Print the last lines of an application's log, also of one that has ended."""
    if appmaster and executor is not None:
        raise typer.BadParameter("choose one of --executor and --appmaster")
    executor_id = MASTER_EXECUTOR if executor is None else ExecutorId(executor)
    with given.client(ref) as client:
        app_id = client.find(ref)
        shown = client.ask(ReadLog(app_id=app_id, executor_id=executor_id, lines=lines))
        if given.as_json:
            print_json(to_builtins(shown))
        else:
            _print(shown.text, ends_line=not follow)
        if follow:
            _follow(client, app_id, executor_id, shown, as_json=given.as_json)


def _follow(
    client: ClusterClient, app_id: AppId, executor_id: ExecutorId, shown: LogText, *, as_json: bool
) -> None:
    """Ask again and again for new text; a new launch has a log of its own."""
    pause, has_ended = threading.Event(), False
    while True:
        more = client.ask(
            ReadLog(app_id=app_id, executor_id=executor_id, after=shown.position, lines=100)
        )
        if as_json and more.text:
            print_json(to_builtins(more))
        elif more.text:
            if more.source != shown.source:
                print(f"\n==> {text.printable(more.source)} <==")
            _print(more.text, ends_line=False)
        shown = more
        if more.text:
            continue
        if has_ended:
            return
        has_ended = client.ask(GetApplication(app_id=app_id)).status in TERMINAL
        pause.wait(_POLL_S)  # Also at the end: its processes may have something left to say.


def _print(log: str, *, ends_line: bool) -> None:
    missing = "\n" if ends_line and log and not log.endswith("\n") else ""
    print(text.printable(log), end=missing, flush=True)


def _as_values(
    **lists: Sequence[ApplicationSummary] | Sequence[WorkerSummary],
) -> dict[str, object]:
    return {name: [to_builtins(each) for each in items] for name, items in lists.items()}


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
    now_ms, rows = wall_ms(), []
    for each in applications:
        progress = each.progress
        waits = f"waits for {progress.waits_for}" if progress.waits_for else ""
        failed = ""
        if progress.last_failure:
            times = text.plural(progress.restarts, "time")
            failed = f"started again {times}: {progress.last_failure}"
        note = each.cause.cause if each.cause else failed or progress.stall or waits
        note = note or (each.outcome if each.outcome != each.status else "")
        rows.append(
            [
                str(each.app_id),
                each.name,
                each.status,
                text.moment(each.submitted_ms),
                text.duration(text.duration_ms_of(each, now_ms)),
                text.count(progress.records_in),
                text.count(progress.records_out),
                text.watermark(progress.watermark_ms),
                note.partition("\n")[0],
            ]
        )
    table("applications", columns, rows)


def _table_of_workers(workers: Sequence[WorkerSummary]) -> None:
    if not workers:
        print("no workers")
        return
    columns = ("#id", "address", "machine", "#slots", "#free", "#executors", "version", "note")
    rows = []
    for each in workers:
        machine = each.hosts[0] if each.hosts else ""
        note = "leaving" if each.is_leaving else ""
        if each.aside_until_ms and not note:
            note = f"came and went: gets nothing until {text.moment(each.aside_until_ms)}"
        rows.append(
            [
                str(each.worker_id),
                each.address or "in the master",
                f"{machine} in {each.rack}" if each.rack else machine,
                str(each.slots),
                str(each.free_slots),
                str(each.executors),
                each.version or "older",
                note,
            ]
        )
    table("workers", columns, rows)


_UNKNOWN: Final = "unknown: its store is away"


def _clock(processor: ProcessorSummary) -> str:
    clock, idle = text.watermark(processor.clock_ms), processor.idle_tasks
    if not idle:
        return clock
    return f"{clock} idle" if idle == processor.parallelism else f"{clock} ({idle} idle)"


_Columns: TypeAlias = Mapping[str, Callable[[Any], str]]
_EXECUTOR: Final[_Columns] = {
    "#id": lambda each: str(each.executor_id),
    "#launch": lambda each: str(each.launch),
    "status": lambda each: each.status,
    "#worker": lambda each: str(each.worker_id),
    "#pid": lambda each: str(each.pid or ""),
    "#slots": lambda each: str(each.slots),
    "#tasks": lambda each: str(len(each.tasks)),
    "address": lambda each: each.data_address,
}
_PROCESSOR: Final[_Columns] = {
    "#id": lambda each: str(each.processor_id),
    "#tasks": lambda each: str(each.parallelism),
    "clock": _clock,
    "#in": lambda each: text.count(each.records_in),
    "#out": lambda each: text.count(each.records_out),
    "#late": lambda each: text.count(each.late_records),
    "#skipped": lambda each: text.count(each.skipped_records),
    "#quar.": lambda each: text.count(each.quarantined_records),
    "name": lambda each: each.name,  # Last, as the names of all steps of a chain may be long.
}
_EPOCHS: Final[_Columns] = {
    "#region": lambda each: str(each.region),
    "#epoch": lambda each: str(each.epoch or ""),
    "stored": lambda each: text.moment(each.stored_ms),
    "#bytes": lambda each: text.count(each.size_bytes),
    "#kept": lambda each: text.count(each.kept),
    "#given up": lambda each: text.count(each.aborted),
    "#fell back": lambda each: text.count(each.fallbacks),
}
_SCALED: Final[_Columns] = {
    "step": lambda each: text.printable(each.step) or "(executors)",
    "#tasks": lambda each: str(each.tasks),
    "bounds": lambda each: bounds_text(each.bounds),
    "#work": lambda each: "" if each.work is None else f"{each.work:.1f}",
    "decided": lambda each: text.moment(each.at_ms) if each.at_ms else "",
    "why": lambda each: text.printable(each.text),
}
_CONSUMER: Final[_Columns] = {
    "sink": lambda each: text.printable(each.sink),
    "consumer": lambda each: text.printable(each.report.name),
    "#batch": lambda each: text.count(each.report.batch_id),
    "#rows": lambda each: text.count(each.report.rows),
    "#rows/s": lambda each: text.count(round(each.report.rows_per_s)),
    "#waiting": lambda each: text.count(each.report.waiting_rows),
    "since": lambda each: text.moment(each.report.waiting_since_ms),
}


def describe_application(
    client: ClusterClient, ref: str | None, *, as_json: bool, verbose: bool
) -> None:
    summary = client.ask(GetApplication(app_id=client.find(ref)))
    detail, note = detail_of(client, summary)
    if as_json:
        values = to_builtins(detail) if detail else None
        print_json({"application": to_builtins(summary), "detail": values, "note": note})
        return
    of_actors = detail is not None and detail.of_actors
    print_lines(_head(summary, wall_ms(), of_actors=of_actors))
    if summary.status == "failed":
        print()
        error = error_of(summary)
        print_lines(error_lines(error, verbose=verbose))
        if summary.cause and (again := text.run_again(summary.app_id, summary.cause)):
            print_lines([f"  again   {again}"])
        if isinstance(error, ApplicationFailed):
            note = (
                f"gear app logs {summary.app_id} tells more; --executor N: of one of its executors"
            )
    if detail is not None:
        _section("executors", _EXECUTOR, detail.executors)
        _section("processors", _PROCESSOR, detail.processors)
        _section("epochs", _EPOCHS, detail.epochs)
        print_lines(f"  given up: {each.last_abort}" for each in detail.epochs if each.last_abort)
        if detail.change is not None:
            print()
            change = detail.change
            by = f", asked by {text.printable(change.by)}" if change.by else ""
            asked = f" {text.moment(change.at_ms)}" if change.at_ms else ""
            what = f"{text.printable(change.change)}: {change.doing}{by}{asked}"
            print_lines(["change", f"  version {change.version}: {what}"])
            if change.may_be_called_off:
                print_lines([f"  gear app call-off {detail.app_id} gives it up"])
        _section("autoscale", _SCALED, detail.scaled)
        _section("consumers", _CONSUMER, detail.consumers)
        troubles = [each.report for each in detail.consumers if each.report.trouble]
        print_lines(f"  {each.name}: {text.printable(each.trouble)}" for each in troubles)
        if detail.guarantees:
            print()
            print("guarantees")
            print_lines(f"  {each}" for each in detail.guarantees)
        if detail.failures:
            print()
            print("failures, the latest last")
            for failure in detail.failures:
                again = text.run_again(detail.app_id, failure.error)
                card = card_lines(failure.error, verbose=verbose, again=again)
                print_lines([f"  {text.moment(failure.at_ms)}  {failure.what}"])
                print_lines(f"    {line}" for line in card)
    if note:
        print()
        print_lines([f"note: {note}"])


def _head(summary: ApplicationSummary, now_ms: int, *, of_actors: bool) -> Iterator[str]:
    yield f"application {summary.app_id} ({summary.name}) {summary.outcome}"
    progress = summary.progress
    facts = {
        "user": summary.user,
        "submitted": text.moment(summary.submitted_ms),
        "started": text.moment(summary.started_ms),
        "finished": text.moment(summary.finished_ms),
        "duration": text.duration(text.duration_ms_of(summary, now_ms)),
    }
    is_known = bool(progress.records_in or progress.epoch)
    if of_actors:
        facts["restarts"] = str(progress.restarts)
    elif not is_known and progress.waits_for.startswith(STORE):
        facts |= {"records": _UNKNOWN, "epoch": _UNKNOWN, "waits for": progress.waits_for}
    else:
        counts = {"late": progress.late_records, **progress.left_out}
        done, total = text.count(progress.done), text.count(progress.total)
        records = f"{text.count(progress.records_in)} in, {text.count(progress.records_out)} out"
        none_stored = "none was stored" if summary.status in TERMINAL else "none is stored yet"
        facts |= {
            "records": records,
            **{name: text.plural(number, "record") for name, number in counts.items() if number},
            "read": f"{done} of {total}" if progress.total else "",
            "watermark": text.watermark(progress.watermark_ms),
            "epoch": str(progress.epoch) if progress.epoch else none_stored,
            "restarts": str(progress.restarts),
            "stall": progress.stall,
            "waits for": progress.waits_for,
        }
    yield from (f"  {name:<11}  {fact}" for name, fact in facts.items() if fact)


def _section(name: str, columns: _Columns, items: Sequence[object]) -> None:
    if items:
        print()
        table(name, [*columns], [[cell(each) for cell in columns.values()] for each in items])
