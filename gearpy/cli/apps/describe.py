"""Shows all there is to know of one application."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import to_builtins

from gearpy.cli.terminal.output import card_lines, error_lines, print_json, print_lines, table
from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient, error_of
from gearpy.cluster.client.looking import detail_of
from gearpy.core.master.registry import TERMINAL
from gearpy.core.scaling.bounds import bounds_text
from gearpy.errors import ApplicationFailed
from gearpy.messages.client import GetApplication
from gearpy.messages.summaries import STORE, ApplicationSummary, ProcessorSummary
from gearpy.views import text

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
