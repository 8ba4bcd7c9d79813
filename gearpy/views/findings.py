"""Findings about an application: what is wrong, where, why, and what would help.

`findings_of` gives all of them, the worst first; the first is the headline of the application
wherever it is shown, and `gear why` prints them all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

from gearpy.core.app.consumers import stalled
from gearpy.ids import MIN_MS
from gearpy.messages.summaries import (
    STORE,
    ApplicationDetail,
    ApplicationProgress,
    ApplicationSummary,
    ClockHolderSummary,
    ConsumerSummary,
    ErrorCard,
    RegionSummary,
)
from gearpy.views import text
from gearpy.views.measured import HotTask
from gearpy.views.model import Headline, Level, ProcessorFigures

_LOUDNESS: Final[Sequence[Level]] = ("bad", "warn", "info", "ok")
#: What to do about each thing that a task may wait for; `core.app.clock.WaitsFor` has them all.
_ADVICE: Final = {
    "idle": ("{task} {idle} and holds nothing back", "the clock goes on with its next record"),
    "unacknowledged output": (
        "{task} has sent records that the tasks after it have not processed yet",
        "if this lasts, they are too slow or stuck; see their logs, or give them more parallelism",
    ),
    "source has not advanced": (
        "{task} has read nothing newer",
        "that is as it should be while it keeps up; if the clock rests, see if its input grows",
    ),
    "open windows or state": (
        "{task} keeps records in open windows, joins, state, or calls that are under way",
        "that is as it should be while event time goes on, and the calls end",
    ),
    "unprocessed input": (
        "{task} has not processed all that came to it",
        "if this lasts, it is slow or stuck; see its log, or give it more parallelism",
    ),
}
#: Who has processed what sources had read so long ago keeps up with them.
_KEEPS_UP_MS: Final = 1000
#: Less than that is not worth a word.
_BEHIND_MIN_MS: Final = 50
#: One that is so far behind them is worth a look.
_FAR_BEHIND_MS: Final = 10_000
#: A source that is idle for less may have read all that there was a moment ago.
_IDLE_MIN_MS: Final = 1000
_IDLE: Final = "idle"
_NOT_ADVANCED: Final = "source has not advanced"
_OF_SOURCES: Final = (_IDLE, _NOT_ADVANCED)
_WINDOWS: Final = "open windows or state"
_AS_IT_SHOULD_BE: Final = (*_OF_SOURCES, _WINDOWS)
#: Also said of a task while one behind it, or itself, waits for something outside.
_HELD_UP: Final = ("unacknowledged output", "unprocessed input", _NOT_ADVANCED)
_UPSTREAM: Final = "upstream"
#: What a summary says first of an application that waits for slots; `cluster.master.queries`.
SLOTS: Final = "waits for slots: "
#: A processor that waits for those behind it for such a share of its time is held back.
HELD_BACK: Final = 0.5
_NO_HOT: Final[Mapping[int, HotTask | None]] = MappingProxyType({})
_ENDED: Final = {
    "succeeded": "it has come to its end",
    "caught up": "it has caught up with its input",
    "drained": "it was drained",
    "terminated": "it was stopped",
    "failed": "it has failed",
}


def findings_of(
    summary: ApplicationSummary,
    detail: ApplicationDetail | None,
    now_ms: int,
    *,
    processors: Sequence[ProcessorFigures] = (),
    hot: Mapping[int, HotTask | None] = _NO_HOT,
) -> tuple[Headline, ...]:
    """Return the findings about an application, the worst first; at least one."""
    if summary.status in _ENDED:
        return (_ending(summary, now_ms),)
    found = [*_starting(summary, detail)]
    if not found and (detail is None or not (detail.processors or detail.why)):
        found.append(_beginning(summary, detail))
    elif not found and detail is not None:
        waiting = _waiting_in(detail, summary.progress.waits_for)
        found += _held_back(processors, hot, waiting)
        found.append(clock_finding(detail, summary.progress))
        found += _idle_sources(detail, said=waiting)
    if detail is not None:
        found += [stuck_finding(each, now_ms) for each in stalled(detail.consumers, now_ms)]
        store = summary.progress.waits_for
        found += [
            Headline(
                level="warn",
                text=f"the present epoch is not stored by {each}",
                advice="records still flow, but transactional sinks commit nothing new; the write "
                "is tried again",
            )
            for each in detail.unstored
            if f"{STORE}{each}" != store
        ]
    found += [each for each in _counted(summary) if each.text not in {one.text for one in found}]
    return tuple(sorted(found, key=lambda each: _LOUDNESS.index(each.level)))


def sentence(finding: Headline) -> str:
    return f"{finding.text}: {finding.advice}" if finding.advice else finding.text


def processor_of(task: str) -> int | None:
    processor, _, _ = task.partition(".")
    return int(processor) if processor.isdecimal() else None


# -- the beginning and the end -----------------------------------------------------------------


def _ending(summary: ApplicationSummary, now_ms: int) -> Headline:
    if summary.status == "failed":
        card = summary.cause or ErrorCard(cause="no cause is known")
        line = f": {card.source_line}" if card.source_line else ""
        cause, at = _first_line(card.cause), (f", at {card.source}{line}" if card.source else "")
        task = card.task or None
        where = f"{card.operator}{f' (task {task})' if task else ''}: " if card.operator else ""
        return Headline(
            level="bad",
            text=f"it has failed: {where}{cause}{at}",
            advice=_resuming(summary),
            task=task,
            processor=processor_of(task) if task else None,
        )
    progress = summary.progress
    what = _ENDED[summary.outcome]
    lasted = text.duration(text.duration_ms_of(summary, now_ms))
    counts = (
        f"{text.plural(progress.records_in, 'record')} in, {text.count(progress.records_out)} out"
    )
    return Headline(
        level="ok" if summary.status == "succeeded" else "info",
        text=f"{what} after {lasted}: {counts}",
        advice=_resuming(summary) if summary.can_go_on else "",
    )


def _first_line(cause: str) -> str:
    return cause.partition("\n")[0]


def _resuming(summary: ApplicationSummary) -> str:
    if summary.app_master.startswith("/"):  # In a process whose end is that of its cluster.
        return ""
    epoch, begins = summary.progress.epoch, "starts it again from the beginning"
    if epoch:
        begins = f"goes on from epoch {epoch}"
    elif summary.started_ms and summary.status == "failed":
        begins = "goes on from its newest epoch, if one was stored"
    return f"'gear app restart {summary.app_id}' {begins}"


def _starting(summary: ApplicationSummary, detail: ApplicationDetail | None) -> Iterator[Headline]:
    stall = summary.progress.stall
    if stall.startswith(SLOTS):
        missing, _, advice = stall.removeprefix(SLOTS).partition(": ")
        yield Headline(level="warn", text=f"it waits for slots: {missing}", advice=advice)
    if detail is None:
        return
    late = [each for each in detail.regions if each.state in {"waiting", "starting", "stopping"}]
    if late:
        yield (
            _recovery(detail, late)
            if detail.restarts or summary.progress.restarts or detail.epoch or detail.failures
            else Headline(level="info", text=f"it is being started: {_how_far(detail, late)}")
        )


def _recovery(detail: ApplicationDetail, late: Sequence[RegionSummary]) -> Headline:
    epoch = min(each.from_epoch for each in late)
    begins = f"from epoch {epoch}" if epoch else "from the beginning"
    last = detail.failures[-1] if detail.failures else None
    after = f", after {last.what}: {_first_line(last.error.cause)}" if last else ""
    task = last.error.task or None if last else None
    return Headline(
        level="warn",
        text=f"it goes on {begins}: {_how_far(detail, late)}{after}",
        task=task,
        processor=processor_of(task) if task else None,
    )


def _how_far(detail: ApplicationDetail, late: Sequence[RegionSummary]) -> str:
    tasks, down = sum(each.tasks for each in detail.regions), sum(each.tasks for each in late)
    missing = max(each.executors_missing for each in late)
    pause_ms = max(each.pause_ms for each in late)
    waits = ""
    if missing:
        waits = f", {text.plural(missing, 'executor')} {'is' if missing == 1 else 'are'} awaited"
    elif pause_ms:
        waits = f", the next attempt begins in {text.duration(pause_ms)}"
    return f"{tasks - down} of {text.plural(tasks, 'task')} run{waits}"


def _beginning(summary: ApplicationSummary, detail: ApplicationDetail | None) -> Headline:
    if summary.status == "active" and detail is not None and detail.of_actors:
        up = sum(each.status == "running" for each in detail.executors)
        if up < len(detail.executors):
            all_of_them = text.plural(len(detail.executors), "executor")
            return Headline(
                level="info", text=f"{up} of {all_of_them} run, the others are being started"
            )
        return Headline(level="ok", text=f"it runs, with {text.plural(up, 'executor')}")
    if summary.status == "pending" or detail is not None:
        return Headline(level="info", text="it is being started")
    if stall := summary.progress.stall:
        return Headline(level="warn", text=stall)
    return Headline(level="ok", text="it runs")


# -- while it runs -----------------------------------------------------------------------------


def clock_finding(
    detail: ApplicationDetail,
    progress: ApplicationProgress = ApplicationProgress(),  # noqa: B008 - frozen
) -> Headline:
    """Name the task that holds the clock, and the remedy; ``task`` is None if none does."""
    stall, outside = progress.stall, progress.waits_for
    if detail.long_turns:
        turn = detail.long_turns[0]
        line = f": {turn.source_line}" if turn.source_line else ""
        at = f", at {turn.source}{line}" if turn.source else ""
        lasts = text.duration(turn.lasts_ms)
        return Headline(
            level="bad" if stall else "warn",
            text=f"{turn.step} (task {turn.task}) has been in one call for {lasts}{at}",
            advice="whatever else it has to do, and the tasks behind it, wait for that",
            task=turn.task,
            processor=processor_of(turn.task),
        )
    holder = _holder_of(detail.why)
    if holder is None:
        return Headline(
            level="ok",
            text="nothing holds the clock: no task has started yet, or all of them have finished",
        )
    if (nobody := _nobody_to_blame(detail, holder, stall)) is not None:
        return nobody
    if waiting := _waiting_behind(detail, holder, outside):
        is_stalled = bool(stall)
        here = processor_of(holder.task)
        return Headline(
            level="bad" if is_stalled else "warn",
            text=_outside(outside),
            task=holder.task if here in waiting else None,
            processor=here if here in waiting else min(waiting),
        )
    task = f"{holder.name} (task {holder.task})"
    if holder.waits_for == _NOT_ADVANCED and holder.watermark_ms == MIN_MS:
        return Headline(level="warn" if stall else "ok", text=f"{task} has given no event time yet")
    waits, advice = _ADVICE.get(holder.waits_for, ("{task} waits for: {waits_for}", ""))
    return Headline(
        level=_clock_level(detail, holder, stall),
        text=waits.format(
            task=task, waits_for=holder.waits_for, idle=_idle(detail, processor_of(holder.task))
        ),
        advice=advice,
        task=holder.task,
        processor=processor_of(holder.task),
    )


def _outside(waits_for: str) -> str:
    return f"a source or sink waits for {waits_for}"


def _waiting_in(detail: ApplicationDetail, outside: str) -> set[int]:
    return {
        each.processor_id for each in detail.processors if outside.endswith(f"(step {each.name})")
    }


def _waiting_behind(
    detail: ApplicationDetail, holder: ClockHolderSummary, outside: str
) -> set[int]:
    start = processor_of(holder.task)
    if start is None or holder.waits_for not in _HELD_UP:
        return set()
    reached, new = set[int](), {start}
    while new:
        reached |= new
        new = {each.target for each in detail.edges if each.source in new} - reached
    return _waiting_in(detail, outside) & reached


def _clock_level(detail: ApplicationDetail, holder: ClockHolderSummary, stall: str) -> Level:
    if stall:
        return "warn" if holder.waits_for in _AS_IT_SHOULD_BE else "bad"
    if holder.waits_for in _AS_IT_SHOULD_BE:
        return "ok"
    return "warn" if detail.lag_ms >= _FAR_BEHIND_MS else "info"


def keeps_up(detail: ApplicationDetail) -> bool:
    holder = _holder_of(detail.why)
    waits_for = None if holder is None else holder.waits_for
    return waits_for not in _OF_SOURCES and detail.lag_ms < _KEEPS_UP_MS


def _nobody_to_blame(
    detail: ApplicationDetail, holder: ClockHolderSummary, stall: str
) -> Headline | None:
    if holder.waits_for == _WINDOWS and detail.why[0].waits_for == _IDLE:
        source, at = detail.why[0], f"{holder.name} (task {holder.task})"
        idle = _idle(detail, processor_of(source.task))
        return Headline(
            level="warn" if stall else "ok",
            text=f"{source.name} (task {source.task}) {idle}, and the clock waits for the open "
            f"windows or state of {at}",
            advice="it goes on with the next record",
            task=source.task,
            processor=processor_of(source.task),
        )
    if stall or not keeps_up(detail):
        return None
    lag = "it keeps up with the sources"
    if detail.lag_ms >= _BEHIND_MIN_MS:
        lag += f", {text.duration(detail.lag_ms)} behind what they have read"
    if holder.waits_for != _WINDOWS:
        return Headline(level="ok", text=f"nothing holds the clock: {lag}")
    at = f"{holder.name} (task {holder.task})"
    return Headline(
        level="ok", text=f"{lag}; the clock waits for the open windows or state of {at}"
    )


def _idle(detail: ApplicationDetail, processor: int | None) -> str:
    idle_ms = max((e.idle_ms for e in detail.processors if e.processor_id == processor), default=0)
    if idle_ms < _IDLE_MIN_MS:
        return "has nothing to read at present"
    return f"has had nothing to read for {text.duration(idle_ms)}"


def _idle_sources(detail: ApplicationDetail, *, said: AbstractSet[int]) -> Iterator[Headline]:
    """Name the sources that are idle, but for that of the chain and those of which more is said."""
    first = detail.why[0] if detail.why else None
    known = {processor_of(first.task)} if first is not None and first.waits_for == _IDLE else set()
    targets = {each.target for each in detail.edges}
    for each in detail.processors:
        number = each.processor_id
        if each.idle_ms >= _IDLE_MIN_MS and number not in {*targets, *known, *said}:
            yield Headline(
                level="ok", text=f"{each.name} {_idle(detail, number)}", processor=number
            )


def _holder_of(chain: Sequence[ClockHolderSummary]) -> ClockHolderSummary | None:
    """Return the link that waits for no other: the last one, or whom it waits for."""
    for link in reversed(chain):
        if link.waits_for != _UPSTREAM:
            return link
    return chain[0] if chain else None


def _held_back(
    processors: Iterable[ProcessorFigures],
    hot: Mapping[int, HotTask | None],
    waiting: AbstractSet[int],
) -> Iterator[Headline]:
    """Name the processor that others wait for: the busiest, where some are held back.

    None is named if it is among those ``waiting`` for something outside.
    """
    known = [each for each in processors if each.backpressured is not None]
    held = max(known, key=lambda each: each.backpressured or 0, default=None)
    share = held.backpressured if held is not None else None
    if held is None or share is None or share < HELD_BACK:
        return
    free = [each for each in known if (each.backpressured or 0) < HELD_BACK]
    slow = max(free, key=lambda each: each.busy or 0, default=None)
    if slow is None or slow.id in waiting:
        return
    busy = f"is busy {text.share(slow.busy)} of its time" if slow.busy else "is slower"
    much, advice = "", f"give {slow.name} more parallelism, or make it cheaper"
    task = hot.get(slow.id)
    if task is not None:
        much = f", and task {task.task} gets {text.share(task.share)} of its records"
        advice = "more tasks do not help a few keys that are so frequent: aggregate before, or "
        advice += "make their work cheaper"
    yield Headline(
        level="warn",
        text=f"{held.name} is held back {text.share(share)} of its time: {slow.name} {busy}{much}",
        advice=advice,
        task=task.task if task else None,
        processor=slow.id,
    )


def stuck_finding(consumer: ConsumerSummary, now_ms: int) -> Headline:
    report = consumer.report
    waited = text.duration(now_ms - report.waiting_since_ms)
    taken = f"after batch {report.batch_id}" if report.batch_id else "so far"
    return Headline(
        level="warn",
        text=f"{report.name}, which reads {consumer.sink} (task {consumer.task}), has taken "
        f"nothing for {waited} {taken}; {report.waiting_rows:,} rows wait for it",
        advice=report.trouble or "it says nothing: see whether it still runs, and how slow it is",
        task=consumer.task,
        processor=processor_of(consumer.task),
    )


def _counted(summary: ApplicationSummary) -> Iterator[Headline]:
    progress = summary.progress
    if progress.waits_for.startswith(STORE):
        yield Headline(
            level="bad",
            text=f"it waits for {progress.waits_for}",
            advice="nothing is lost: it goes on by itself when its store can be used again",
        )
    elif progress.waits_for:
        yield Headline(level="warn", text=_outside(progress.waits_for))
    if records := progress.quarantined_records:
        yield Headline(
            level="info",
            text=f"{text.plural(records, 'record')} in quarantine",
            advice=f"'gear quarantine list {summary.name}' shows why",
        )
