"""Shows all there is to know of one application."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import to_builtins

from gearpy.cli.terminal.output import card_lines, error_lines, print_json, print_lines, table
from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient, error_of
from gearpy.cluster.client.looking import detail_of
from gearpy.core.master.registry import TERMINAL
from gearpy.core.scaling.bounds import bounds_text
from gearpy.errors import ApplicationFailed
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from gearpy.messages.summaries import (
    STORE,
    ApplicationProgress,
    ApplicationSummary,
    ChangeSummary,
    ConsumerSummary,
    EpochsSummary,
    ExecutorSummary,
    Failure,
    ProcessorSummary,
    ScaledStep,
)
from gearpy.views import text

_EXECUTOR: Final = ("#id", "#launch", "status", "#worker", "#pid", "#slots", "#tasks", "address")
_PROCESSOR: Final = (
    "#id",
    "#tasks",
    "clock",
    "#in",
    "#out",
    "#late",
    "#skipped",
    "#quar.",
    "name",
)
_CONSUMER: Final = ("sink", "consumer", "#batch", "#rows", "#rows/s", "#waiting", "since")
_SCALED: Final = ("step", "#tasks", "bounds", "#work", "decided", "why")
_UNKNOWN: Final = "unknown: its store is away"
_EPOCHS: Final = ("#region", "#epoch", "stored", "#bytes", "#kept", "#given up", "#fell back")


def describe_application(client: ClusterClient, ref: str, *, as_json: bool, verbose: bool) -> None:
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
        _section("executors", _EXECUTOR, map(_executor_row, detail.executors))
        _section("processors", _PROCESSOR, map(_processor_row, detail.processors))
        _section("epochs", _EPOCHS, map(_epochs_row, detail.epochs))
        print_lines(f"  given up: {each.last_abort}" for each in detail.epochs if each.last_abort)
        if detail.change is not None:
            print()
            print_lines(_change_lines(detail.app_id, detail.change))
        _section("autoscale", _SCALED, map(_scaled_row, detail.scaled))
        _section("consumers", _CONSUMER, map(_consumer_row, detail.consumers))
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
                print_lines(_failure_lines(detail.app_id, failure, verbose=verbose))
    if note:
        print()
        print_lines([f"note: {note}"])


def _head(summary: ApplicationSummary, now_ms: int, *, of_actors: bool) -> Iterator[str]:
    yield f"application {summary.app_id} ({summary.name}) {summary.status}"
    facts = {
        "user": summary.user,
        "submitted": text.moment(summary.submitted_ms),
        "started": text.moment(summary.started_ms),
        "finished": text.moment(summary.finished_ms),
        "duration": text.duration(text.duration_ms_of(summary, now_ms)),
    }
    if of_actors:
        facts["restarts"] = str(summary.progress.restarts)
    else:
        facts |= _facts(summary.progress, has_ended=summary.status in TERMINAL)
    yield from (f"  {name:<11}  {fact}" for name, fact in facts.items() if fact)


def _facts(progress: ApplicationProgress, *, has_ended: bool) -> dict[str, str]:
    counts = {
        "late": progress.late_records,
        "skipped": progress.skipped_records,
        "quarantined": progress.quarantined_records,
    }
    done, total = text.count(progress.done), text.count(progress.total)
    records = f"{text.count(progress.records_in)} in, {text.count(progress.records_out)} out"
    is_known = bool(progress.records_in or progress.epoch)
    if not is_known and progress.waits_for.startswith(STORE):
        return {"records": _UNKNOWN, "epoch": _UNKNOWN, "waits for": progress.waits_for}
    none_stored = "none was stored" if has_ended else "none is stored yet"
    return {
        "records": records,
        **{name: text.plural(number, "record") for name, number in counts.items() if number},
        "read": f"{done} of {total}" if progress.total else "",
        "watermark": text.watermark(progress.watermark_ms),
        "epoch": str(progress.epoch) if progress.epoch else none_stored,
        "restarts": str(progress.restarts),
        "stall": progress.stall,
        "waits for": progress.waits_for,
    }


def _section(name: str, columns: Sequence[str], rows: Iterable[list[str]]) -> None:
    if listed := [*rows]:
        print()
        table(name, columns, listed)


def _executor_row(executor: ExecutorSummary) -> list[str]:
    return [
        str(executor.executor_id),
        str(executor.launch),
        executor.status,
        str(executor.worker_id),
        str(executor.pid or ""),
        str(executor.slots),
        str(len(executor.tasks)),
        executor.data_address,
    ]


def _processor_row(processor: ProcessorSummary) -> list[str]:
    return [
        str(processor.processor_id),
        str(processor.parallelism),
        _clock(processor),
        text.count(processor.records_in),
        text.count(processor.records_out),
        text.count(processor.late_records),
        text.count(processor.skipped_records),
        text.count(processor.quarantined_records),
        processor.name,  # Last, as the names of all steps of a chain may be long.
    ]


def _clock(processor: ProcessorSummary) -> str:
    clock, idle = text.watermark(processor.clock_ms), processor.idle_tasks
    if not idle:
        return clock
    return f"{clock} idle" if idle == processor.parallelism else f"{clock} ({idle} idle)"


def _consumer_row(consumer: ConsumerSummary) -> list[str]:
    report = consumer.report
    return [
        text.printable(consumer.sink),
        text.printable(report.name),
        text.count(report.batch_id),
        text.count(report.rows),
        text.count(round(report.rows_per_s)),
        text.count(report.waiting_rows),
        text.moment(report.waiting_since_ms),
    ]


def _scaled_row(scaled: ScaledStep) -> list[str]:
    return [
        text.printable(scaled.step) or "(executors)",
        str(scaled.tasks),
        bounds_text(scaled.bounds),
        "" if scaled.work is None else f"{scaled.work:.1f}",
        text.moment(scaled.at_ms) if scaled.at_ms else "",
        text.printable(scaled.text),
    ]


def _epochs_row(epochs: EpochsSummary) -> list[str]:
    return [
        str(epochs.region),
        str(epochs.epoch or ""),
        text.moment(epochs.stored_ms),
        text.count(epochs.size_bytes),
        text.count(epochs.kept),
        text.count(epochs.aborted),
        text.count(epochs.fallbacks),
    ]


def _change_lines(app_id: AppId, change: ChangeSummary) -> Iterator[str]:
    by = f", asked by {text.printable(change.by)}" if change.by else ""
    asked = f" {text.moment(change.at_ms)}" if change.at_ms else ""
    yield "change"
    yield f"  version {change.version}: {text.printable(change.change)}: {change.doing}{by}{asked}"
    if change.may_be_called_off:
        yield f"  gear app call-off {app_id} gives it up"


def _failure_lines(app_id: AppId, failure: Failure, *, verbose: bool) -> Iterator[str]:
    yield f"  {text.moment(failure.at_ms)}  {failure.what}"
    again = text.run_again(app_id, failure.error)
    card = card_lines(failure.error, verbose=verbose, again=again)
    yield from (f"    {line}" for line in card)
