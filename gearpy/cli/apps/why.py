"""``gear why``: names the task that holds an application's clock back, and a stuck consumer."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from gearpy.cli.terminal import text
from gearpy.cli.terminal.options import AppRef, Given, asking
from gearpy.cli.terminal.output import print_json, table
from gearpy.core.app.consumers import stalled
from gearpy.messages.summaries import (
    ApplicationDetail,
    ClockHolderSummary,
    ConsumerSummary,
    LongTurnSummary,
)

#: What to do about each thing that a task may wait for; `core.app.clock.WaitsFor` has them all.
_ADVICE: Final = {
    "idle": "{task} has nothing to read at present and holds nothing back: the clock goes on with "
    "its next record",
    "unacknowledged output": "{task} has sent records that the tasks after it have not processed "
    "yet: if this lasts, they are too slow or stuck; see their logs, or give them more parallelism",
    "source has not advanced": "{task} has read nothing newer: that is as it should be while it "
    "keeps up; if the clock stands still, see whether its input still grows, or reads slowly",
    "open windows or state": "{task} keeps records in open windows, joins, state, or calls that "
    "are under way: that is as it should be while event time goes on, and the calls end",
    "unprocessed input": "{task} has not processed all that came to it: if this lasts, it is slow "
    "or stuck; see its log, or give it more parallelism",
}
#: A clock that shows what sources had read so long ago keeps up with them.
_KEEPS_UP_MS: Final = 1000
_OF_SOURCES: Final = ("idle", "source has not advanced")
_UPSTREAM: Final = "upstream"
_NOTHING: Final = "nothing holds the clock: no task has started yet, or all of them have finished"


@asking
def why(given: Given, ref: AppRef) -> None:
    """Tell what holds the clock of an application back: a chain of tasks, and what to do."""
    with given.client() as client:
        app_id = client.find(ref)
        summary, detail = client.application(app_id), client.describe(app_id)
    chain, now_ms = detail.why, time.time_ns() // 1_000_000
    stuck = stalled(detail.consumers, now_ms)
    culprit = culprit_of(detail)
    if given.as_json:
        print_json(
            {
                "app_id": app_id,
                "name": summary.name,
                "watermark_ms": summary.progress.watermark_ms,
                "waits_for": summary.progress.waits_for,
                "chain": [asdict(each) for each in chain],
                "lag_ms": detail.lag_ms,
                "long_turns": [asdict(each) for each in detail.long_turns],
                "culprit": culprit,
                "advice": advice_on(detail),
                "consumers": [asdict(each) for each in detail.consumers],
                "stalled_consumers": [consumer_advice(each, now_ms) for each in stuck],
            }
        )
        return
    if chain:
        columns = ("", "task", "name", "clock", "watermark", "waits for")
        name = text.printable(summary.name)
        rows = [_row(each, is_first=each is chain[0]) for each in chain]
        table(f"what holds the clock of application {app_id} ({name})", columns, rows)
        print()
    print(text.printable(advice_on(detail)))
    if summary.progress.waits_for:
        print(text.printable(f"a source waits for {summary.progress.waits_for}"))
    for each in stuck:
        print(text.printable(consumer_advice(each, now_ms)))


def consumer_advice(consumer: ConsumerSummary, now_ms: int) -> str:
    """Name a consumer that takes no results from a sink, and the remedy, as a sentence."""
    report = consumer.report
    waited = text.duration(now_ms - report.waiting_since_ms)
    taken = f"after batch {report.batch_id}" if report.batch_id else "so far"
    trouble = report.trouble or "it says nothing: see whether it still runs, and how slow it is"
    return (
        f"{report.name}, which reads {consumer.sink} (task {consumer.task}), has taken nothing for "
        f"{waited} {taken}; {report.waiting_rows:,} rows wait for it: {trouble}"
    )


def culprit_of(detail: ApplicationDetail) -> str | None:
    """Return the task that others wait for; None if the clock keeps up, or all have finished."""
    if detail.long_turns:
        return detail.long_turns[0].task
    holder = None if _keeps_up(detail) else _holder_of(detail.why)
    return holder.task if holder else None


def advice_on(detail: ApplicationDetail) -> str:
    """Name the task that holds the clock, and the remedy, as a sentence."""
    if detail.long_turns:
        return _advice_on_turn(detail.long_turns[0])
    holder = _holder_of(detail.why)
    if holder is None:
        return _NOTHING
    if _keeps_up(detail):
        return (
            "nothing holds the clock: it keeps up with the sources, "
            f"{text.duration(detail.lag_ms)} behind what they have read"
        )
    task = f"{holder.name} (task {holder.task})"
    advice = _ADVICE.get(holder.waits_for, "{task} waits for: {waits_for}")
    return advice.format(task=task, waits_for=holder.waits_for)


def _advice_on_turn(turn: LongTurnSummary) -> str:
    line = f": {turn.source_line}" if turn.source_line else ""
    at = f", at {turn.source}{line}" if turn.source else ""
    lasts = text.duration(turn.lasts_ms)
    return (
        f"{turn.step} (task {turn.task}) has been in one call for {lasts}{at}; whatever else "
        "it has to do, and the tasks behind it, wait for that"
    )


def _keeps_up(detail: ApplicationDetail) -> bool:
    """Tell whether the clock moves with the sources; where they give nothing, they hold it."""
    holder = _holder_of(detail.why)
    waits = holder is not None and holder.waits_for in _OF_SOURCES
    return not waits and detail.lag_ms < _KEEPS_UP_MS


def _holder_of(chain: Sequence[ClockHolderSummary]) -> ClockHolderSummary | None:
    """Return the link that waits for no other: the last one, or whom it waits for."""
    for link in reversed(chain):
        if link.waits_for != _UPSTREAM:
            return link
    return chain[0] if chain else None


def _row(link: ClockHolderSummary, *, is_first: bool) -> list[str]:
    return [
        "" if is_first else "->",
        link.task,
        link.name,
        text.watermark(link.clock_ms),
        text.watermark(link.watermark_ms),
        link.waits_for,
    ]
