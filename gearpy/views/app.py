"""Makes the view of an application, and of one of its processors."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import asdict

from gearpy.messages.client import FiringAlert
from gearpy.messages.summaries import STORE, ApplicationDetail, LongTurnSummary
from gearpy.metrics.samples import known_ms
from gearpy.views import text
from gearpy.views.findings import HELD_BACK, SLOTS, findings_of, keeps_up, processor_of
from gearpy.views.look import Look
from gearpy.views.measured import SPAN_MIN_MS, Measurements
from gearpy.views.model import (
    AppView,
    EdgeView,
    ExecutorView,
    Headline,
    ProcessorFigures,
    ProcessorView,
    Role,
    TaskFigures,
    TotalsView,
)

_UPSTREAM: Final = "upstream"  # A task that only waits for others needs no word.
#: These go by in a moment as long as tasks keep up.
_PASSING: Final = frozenset({_UPSTREAM, "unacknowledged output", "unprocessed input"})


def app_view(
    look: Look, before: Look | None = None, *, alerts: Sequence[FiringAlert] = ()
) -> AppView:
    summary, detail, metrics = look.summary, look.detail, look.metrics
    measured = _measured(look, before)
    processors = _processors(look, before, measured)
    findings = _findings(look, processors, measured)
    stall, outside = summary.progress.stall, summary.progress.waits_for
    values = {
        name: getattr(part, name)
        for part in (detail, summary)
        if part is not None
        for name in part.__struct_fields__
        if name in AppView.__struct_fields__
    }
    values |= {
        "at_ms": look.at_ms,
        "headline": findings[0],
        "totals": _totals(look, before, measured),
        "processors": processors,
        "events": metrics.events if metrics else (),
        "alerts": tuple(alerts),
        "waits": next((e for e in (stall, outside) if e.startswith((SLOTS, STORE))), None),
    }
    if detail is not None:
        figures = {each.id: each for each in processors}
        path = [processor_of(each.task) for each in detail.why]
        held, slow = set(pairwise(path)), _slow_edges(detail, figures)
        values["edges"] = tuple(
            EdgeView(
                **asdict(each),
                rate=figures[each.source].records_out_rate if each.source in figures else None,
                backpressured=(each.source, each.target) in slow,
                holds_clock=(each.source, each.target) in held,
            )
            for each in detail.edges
        )
        values["executors"] = tuple(
            ExecutorView(
                id=each.executor_id,
                launch=each.launch,
                worker_id=each.worker_id,
                status=each.status,
                pid=each.pid,
                tasks=each.tasks,
                address=each.data_address,
                **measured.executor(each.executor_id),
            )
            for each in detail.executors
        )
        values["guarantees"] = tuple(dict.fromkeys(detail.guarantees))
    return AppView(**values)


def findings_in(look: Look) -> tuple[Headline, ...]:
    measured = _measured(look, None)
    return _findings(look, _processors(look, None, measured), measured)


def processor_view(
    look: Look, processor_id: int, before: Look | None = None
) -> ProcessorView | None:
    """Return one processor with its tasks; None if the application has none of this number."""
    measured = _measured(look, before)
    found = [each for each in _processors(look, before, measured) if each.id == processor_id]
    if not found or look.detail is None:
        return None
    values = {name: getattr(found[0], name) for name in ProcessorFigures.__struct_fields__}
    detail, processor = look.detail, found[0]
    figures = measured.tasks(processor_id)
    executor_of = {task: each.executor_id for each in detail.executors for task in each.tasks}
    waits = {each.task: each.waits_for for each in detail.why}
    turns = {each.task: each for each in detail.long_turns}
    unsaid = _PASSING if keeps_up(detail) else {_UPSTREAM}
    names = [f"{processor.id}.{index}" for index in range(processor.parallelism)]
    tasks = tuple(
        TaskFigures(
            task=name,
            executor_id=executor_of.get(name),
            holds_clock=bool(detail.why) and detail.why[-1].task == name,
            why=_why(turns.get(name), waits.get(name, ""), unsaid),
            **figures.get(name, {}),
        )
        for name in names
    )
    rates = [each.records_in_rate for each in tasks if each.records_in_rate is not None]
    mean = sum(rates) / len(rates) if rates else 0.0
    return ProcessorView(**values, tasks=tasks, skew=max(rates) / mean if mean else None)


def _measured(look: Look, before: Look | None) -> Measurements:
    return Measurements(look.metrics, before.metrics if before else None, look.series)


def _findings(
    look: Look, processors: Sequence[ProcessorFigures], measured: Measurements
) -> tuple[Headline, ...]:
    hot = {each.id: measured.hot_task(each.id) for each in processors}
    detail = None if look.known_ms else look.detail  # A clock that is gone needs no holder.
    return findings_of(look.summary, detail, look.at_ms, processors=processors, hot=hot)


def _totals(look: Look, before: Look | None, measured: Measurements) -> TotalsView:
    progress, detail = look.summary.progress, look.detail
    was = before.summary.progress if before else None
    span_ms = look.at_ms - before.at_ms if before else 0
    sizes = [each.size_bytes for each in detail.epochs if each.epoch] if detail else []
    in_rate, out_rate = measured.rates()
    known: dict[str, Any] = {
        "records_in_rate": in_rate,
        "records_out_rate": out_rate,
        "epoch_bytes": sum(sizes) if sizes else None,
        "epochs_failed": sum(each.aborted for each in detail.epochs) if detail else 0,
        "clock_ms": known_ms(progress.watermark_ms),
        **measured.totals(),
    }
    if in_rate is None and was is not None:
        known["records_in_rate"] = _rate(progress.records_in, was.records_in, span_ms)
        known["records_out_rate"] = _rate(progress.records_out, was.records_out, span_ms)
    return TotalsView(
        records_in=progress.records_in,
        records_out=progress.records_out,
        late=progress.late_records,
        skipped=progress.skipped_records,
        quarantined=progress.quarantined_records,
        restarts=progress.restarts,
        watermark_ms=known_ms(progress.watermark_ms),
        lag_ms=detail.lag_ms if detail and detail.why else None,
        epoch=progress.epoch,
        **known,
    )


# -- processors --------------------------------------------------------------------------------


def _processors(
    look: Look, before: Look | None, measured: Measurements
) -> tuple[ProcessorFigures, ...]:
    if look.detail is None:
        return ()
    had = before.detail.processors if before and before.detail else ()
    earlier = {each.processor_id: each for each in had}
    span_ms = look.at_ms - before.at_ms if before else 0
    holder = look.detail.why[-1].task if look.detail.why else ""
    targets = {each.target for each in look.detail.edges}
    sources = {each.source for each in look.detail.edges}
    found = []
    for now in look.detail.processors:
        number = now.processor_id
        role: Role = "step" if number in sources else "sink"
        if number not in targets:
            role = "source"
        # The counts of an app master are there also where nothing is measured.
        was = earlier.get(number)
        counted: dict[str, Any] = {
            "records_in": now.records_in,
            "records_out": now.records_out,
            "records_in_rate": _rate(now.records_in, was.records_in if was else None, span_ms),
            "records_out_rate": _rate(now.records_out, was.records_out if was else None, span_ms),
            "watermark_ms": now.clock_ms,
            "late": now.late_records,
            "skipped": now.skipped_records,
            "quarantined": now.quarantined_records,
        }
        figures = measured.processor(number)
        counted |= {name: value for name, value in figures.items() if value is not None}
        found.append(
            ProcessorFigures(
                id=number,
                name=now.name,
                role=role,
                parallelism=now.parallelism,
                steps=now.steps,
                holds_clock=processor_of(holder) == number,
                **counted,
            )
        )
    return tuple(found)


def _why(turn: LongTurnSummary | None, waits_for: str, unsaid: AbstractSet[str]) -> str | None:
    if turn is not None:
        at = f", at {turn.source}" if turn.source else ""
        return f"in one call of {turn.step} for {text.duration(turn.lasts_ms)}{at}"
    return None if waits_for in unsaid else waits_for or None


# -- edges and executors -----------------------------------------------------------------------


def _slow_edges(
    detail: ApplicationDetail, figures: Mapping[int, ProcessorFigures]
) -> set[tuple[int, int]]:
    slow = set()
    for each in figures.values():
        targets = [edge.target for edge in detail.edges if edge.source == each.id]
        if (each.backpressured or 0.0) >= HELD_BACK and targets:
            fullness = {
                target: (figures[target].busy or 0.0) + (figures[target].backpressured or 0.0)
                for target in targets
            }
            slow.add((each.id, max(targets, key=fullness.__getitem__)))
    return slow


def _rate(now: int, was: int | None, span_ms: int) -> float | None:
    """Return the rate per second between two counts; None after a restart has set them back."""
    if was is None or span_ms < SPAN_MIN_MS or now < was:
        return None
    return (now - was) * 1000 / span_ms
