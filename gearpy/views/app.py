"""Makes the view of an application, and of one of its processors."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.summaries import (
    ApplicationDetail,
    ExecutorSummary,
    ProcessorSummary,
)
from gearpy.views.findings import SLOTS, findings_of, processor_of
from gearpy.views.look import Look
from gearpy.views.model import (
    AppView,
    EdgeView,
    ExecutorView,
    ProcessorFigures,
    ProcessorView,
    Role,
    TaskFigures,
    TotalsView,
)

#: Two looks that are nearer to each other tell no rate.
_SPAN_MIN_MS: Final = 250


def app_view(look: Look, before: Look | None = None) -> AppView:
    """Return an application as it is; rates follow from a look of a moment ago."""
    summary, detail = look.summary, look.detail
    processors = _processors(look, before)
    findings = findings_of(summary, detail, look.at_ms, processors=processors)
    stall = summary.progress.stall
    return AppView(
        at_ms=look.at_ms,
        app_id=summary.app_id,
        name=summary.name,
        status=summary.status,
        user=summary.user,
        submitted_ms=summary.submitted_ms,
        started_ms=summary.started_ms,
        finished_ms=summary.finished_ms,
        headline=findings[0],
        totals=_totals(look, before),
        processors=processors,
        edges=_edges(detail, processors) if detail else (),
        executors=tuple(map(_executor, detail.executors)) if detail else (),
        epochs=detail.epochs if detail else (),
        consumers=detail.consumers if detail else (),
        failures=detail.failures if detail else (),
        cause=summary.cause,
        guarantees=detail.guarantees if detail else (),
        waits=stall if stall.startswith(SLOTS) else None,
    )


def processor_view(
    look: Look, processor_id: int, before: Look | None = None
) -> ProcessorView | None:
    """Return one processor with its tasks; None if the application has none of this number."""
    found = [each for each in _processors(look, before) if each.id == processor_id]
    if not found or look.detail is None:
        return None
    figures = found[0]
    values = {name: getattr(figures, name) for name in ProcessorFigures.__dataclass_fields__}
    return ProcessorView(**values, tasks=tuple(_tasks(look.detail, figures)))


def _totals(look: Look, before: Look | None) -> TotalsView:
    progress, detail = look.summary.progress, look.detail
    was = before.summary.progress if before else None
    span_ms = look.at_ms - before.at_ms if before else 0
    sizes = [each.size_bytes for each in detail.epochs if each.epoch] if detail else []
    holder = detail.why[-1] if detail and detail.why else None
    return TotalsView(
        records_in=progress.records_in,
        records_out=progress.records_out,
        records_in_rate=_rate(progress.records_in, was.records_in if was else None, span_ms),
        records_out_rate=_rate(progress.records_out, was.records_out if was else None, span_ms),
        late=progress.late_records,
        skipped=progress.skipped_records,
        quarantined=progress.quarantined_records,
        restarts=progress.restarts,
        watermark_lag_ms=detail.lag_ms if detail and detail.why else None,
        clock_ms=holder.clock_ms if holder else _known(progress.watermark_ms),
        epoch=progress.epoch,
        epoch_bytes=sum(sizes) if sizes else None,
    )


# -- processors --------------------------------------------------------------------------------


def _processors(look: Look, before: Look | None) -> tuple[ProcessorFigures, ...]:
    if look.detail is None:
        return ()
    had = before.detail.processors if before and before.detail else ()
    earlier = {each.processor_id: each for each in had}
    span_ms = look.at_ms - before.at_ms if before else 0
    holder = look.detail.why[-1].task if look.detail.why else ""
    return tuple(
        _processor(
            each,
            earlier.get(each.processor_id),
            span_ms,
            role=_role(each.processor_id, look.detail),
            holds_clock=processor_of(holder) == each.processor_id,
        )
        for each in look.detail.processors
    )


def _role(processor_id: int, detail: ApplicationDetail) -> Role:
    if all(each.target != processor_id for each in detail.edges):
        return "source"
    return "step" if any(each.source == processor_id for each in detail.edges) else "sink"


def _processor(
    now: ProcessorSummary,
    was: ProcessorSummary | None,
    span_ms: int,
    *,
    role: Role,
    holds_clock: bool,
) -> ProcessorFigures:
    return ProcessorFigures(
        id=now.processor_id,
        name=now.name,
        role=role,
        parallelism=now.parallelism,
        steps=now.steps,
        records_in=now.records_in,
        records_out=now.records_out,
        records_in_rate=_rate(now.records_in, was.records_in if was else None, span_ms),
        records_out_rate=_rate(now.records_out, was.records_out if was else None, span_ms),
        watermark_ms=now.clock_ms,
        late=now.late_records,
        skipped=now.skipped_records,
        quarantined=now.quarantined_records,
        holds_clock=holds_clock,
    )


def _tasks(detail: ApplicationDetail, figures: ProcessorFigures) -> list[TaskFigures]:
    executor_of = {task: each.executor_id for each in detail.executors for task in each.tasks}
    links = {each.task: each for each in detail.why}
    names = [f"{figures.id}.{index}" for index in range(figures.parallelism)]
    return [
        TaskFigures(
            task=name,
            executor_id=executor_of.get(name),
            holds_clock=bool(detail.why) and detail.why[-1].task == name,
            why=links[name].waits_for if name in links else None,
        )
        for name in names
    ]


# -- edges and executors -----------------------------------------------------------------------


def _edges(
    detail: ApplicationDetail, processors: Sequence[ProcessorFigures]
) -> tuple[EdgeView, ...]:
    rates = {each.id: each.records_out_rate for each in processors}
    path = [processor_of(each.task) for each in detail.why]
    held = set(pairwise(path))
    return tuple(
        EdgeView(
            source=each.source,
            target=each.target,
            partitioner=each.partitioner,
            rate=rates.get(each.source),
            holds_clock=(each.source, each.target) in held,
        )
        for each in detail.edges
    )


def _executor(executor: ExecutorSummary) -> ExecutorView:
    return ExecutorView(
        id=executor.executor_id,
        launch=executor.launch,
        worker_id=executor.worker_id,
        status=executor.status,
        pid=executor.pid,
        tasks=executor.tasks,
        address=executor.data_address,
    )


def _rate(now: int, was: int | None, span_ms: int) -> float | None:
    """Return the rate per second between two counts; None after a restart has set them back."""
    if was is None or span_ms < _SPAN_MIN_MS or now < was:
        return None
    return (now - was) * 1000 / span_ms


def _known(time_ms: int | None) -> int | None:
    """Return an event time, or None at the beginning and the end of time."""
    return None if time_ms in {MIN_MS, MAX_MS} else time_ms
