"""Tells what holds the clock of an application back, and who does not take what it has shown."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from gearpy.cli import text
from gearpy.cli.output import print_json, table
from gearpy.cluster.client import ClusterClient
from gearpy.core.consumers import stalled
from gearpy.messages.cluster import ClockHolderSummary
from gearpy.messages.consumers import ConsumerSummary

__all__ = ["advice_on", "consumer_advice", "culprit_of", "explain_clock"]

#: What to do about each thing that a task may wait for; `core.clock.WaitsFor` has them all.
_ADVICE: Final = {
    "idle": "{task} has nothing to read at present and holds nothing back: the clock goes on with "
    "its next record",
    "unacknowledged output": "{task} has sent records that the tasks after it have not processed "
    "yet: if this lasts, they are too slow or stuck; see their logs, or give them more parallelism",
    "source has not advanced": "{task} has read nothing newer: that is as it should be while it "
    "keeps up; if the clock stands still, see whether its input still grows, or reads slowly",
    "open windows, state or buffered input": "{task} works on older records, or keeps them in open "
    "windows or state: if this lasts, its operator is slow or stuck; see its log, or give it more "
    "parallelism",
}
_UPSTREAM: Final = "upstream"
_NOTHING: Final = "nothing holds the clock: no task has started yet, or all of them have finished"


def explain_clock(client: ClusterClient, ref: str, *, as_json: bool) -> None:
    """Print the chain of tasks from a source to what holds the clock, and what to do.

    Raises:
        GearpyError: there is no such application that runs.
    """
    app_id = client.find(ref)
    summary, detail = client.application(app_id), client.describe(app_id)
    chain, now_ms = detail.why, time.time_ns() // 1_000_000
    stuck = stalled(detail.consumers, now_ms)
    culprit = culprit_of(chain)
    if as_json:
        print_json(
            {
                "app_id": app_id,
                "name": summary.name,
                "watermark_ms": summary.progress.watermark_ms,
                "chain": [asdict(each) for each in chain],
                "culprit": culprit.task if culprit else None,
                "advice": advice_on(chain),
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
    print(text.printable(advice_on(chain)))
    for each in stuck:
        print(text.printable(consumer_advice(each, now_ms)))


def consumer_advice(consumer: ConsumerSummary, now_ms: int) -> str:
    """Return who does not take what a sink has shown, and what to do about it, as a sentence."""
    report = consumer.report
    waited = text.duration(now_ms - report.waiting_since_ms)
    taken = f"after batch {report.batch_id}" if report.batch_id else "so far"
    why = report.trouble or "it says nothing: see whether it still runs, and how slow it is"
    return (
        f"{report.name}, which reads {consumer.sink} (task {consumer.task}), has taken nothing for "
        f"{waited} {taken}; {report.waiting_rows:,} rows wait for it: {why}"
    )


def culprit_of(chain: Sequence[ClockHolderSummary]) -> ClockHolderSummary | None:
    """Return the link that waits for no other: the last one, or whom it waits for."""
    for link in reversed(chain):
        if link.waits_for != _UPSTREAM:
            return link
    return chain[0] if chain else None


def advice_on(chain: Sequence[ClockHolderSummary]) -> str:
    """Return what holds the clock, and what to do about it, as a sentence."""
    culprit = culprit_of(chain)
    if culprit is None:
        return _NOTHING
    task = f"{culprit.name} (task {culprit.task})"
    advice = _ADVICE.get(culprit.waits_for, "{task} waits for: {waits_for}")
    return advice.format(task=task, waits_for=culprit.waits_for)


def _row(link: ClockHolderSummary, *, is_first: bool) -> list[str]:
    return [
        "" if is_first else "->",
        link.task,
        link.name,
        text.watermark(link.clock_ms),
        text.watermark(link.watermark_ms),
        link.waits_for,
    ]
