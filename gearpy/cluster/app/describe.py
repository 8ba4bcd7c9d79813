"""The description of an application for people."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.consumers import consumers_of
from gearpy.core.app.regions.region import Region
from gearpy.ids import AppId, ProcessorId
from gearpy.messages.client import StoredEpoch
from gearpy.messages.summaries import (
    ApplicationDetail,
    ClockHolderSummary,
    DeploymentState,
    EdgeSummary,
    EpochsSummary,
    Failure,
    LongTurnSummary,
    ProcessorSummary,
    RegionSummary,
    ScaledStep,
)
from gearpy.metrics.samples import known_ms
from gearpy.task.stages.guarantees import PathGuarantee

_PATHS_MAX: Final = 50


def path_lines(paths: Sequence[PathGuarantee]) -> tuple[str, ...]:
    lines = [
        f"{path.source} -> {path.sink}: {path.guarantee.value}"
        f"{f': {path.weakest}' if path.weakest else ''}"
        for path in paths[:_PATHS_MAX]
    ]
    more = len(paths) - len(lines)
    return (*lines, *([f"and {more} more paths"] if more else []))


def detail_of(
    app_id: AppId,
    core: ApplicationCore | None,
    failures: Sequence[Failure],
    *,
    now_ms: int,
    guarantees: tuple[str, ...],
    fallbacks: Mapping[int, int],
    scaled: tuple[ScaledStep, ...],
    stored_ms: Callable[[int, int], int],
) -> ApplicationDetail:
    if core is None:
        return ApplicationDetail(app_id=app_id, failures=tuple(failures), guarantees=guarantees)
    return ApplicationDetail(
        app_id=app_id,
        executors=tuple(core.executors.summaries(core.regions.tasks_of_executors)),
        processors=tuple(_processor(core, pid, now_ms) for pid in core.dag.order),
        failures=tuple(failures),
        restarts=core.restarts,
        epoch=core.epoch,
        why=tuple(
            ClockHolderSummary(
                task=str(each.task_id),
                name=each.name,
                clock_ms=known_ms(each.clock_ms),
                watermark_ms=known_ms(each.watermark_ms),
                waits_for=each.waits_for,
            )
            for each in core.clock.why()
        ),
        lag_ms=core.clock.lag_ms(now_ms),
        long_turns=long_turns_of(core),
        guarantees=guarantees,
        epochs=tuple(_epochs(core.regions, fallbacks, stored_ms)),
        consumers=tuple(consumers_of(core.dag, core.reports)),
        edges=tuple(
            EdgeSummary(source=each.source, target=each.target, partitioner=each.partitioner)
            for each in core.dag.edges
        ),
        regions=tuple(_region(core, each, now_ms) for each in core.regions),
        scaled=scaled,
    )


def long_turns_of(core: ApplicationCore) -> tuple[LongTurnSummary, ...]:
    turns = [turn for turns in core.long_turns.values() for turn in turns]
    turns.sort(key=lambda turn: (-turn.lasts_ms, turn.task_id))
    return tuple(
        LongTurnSummary(
            task=str(turn.task_id),
            step=turn.step,
            lasts_ms=turn.lasts_ms,
            source=turn.source,
            source_line=turn.source_line,
        )
        for turn in turns
    )


def epochs_of(
    regions: Iterable[Region], stored_ms: Callable[[int, int], int]
) -> tuple[StoredEpoch, ...]:
    found = [
        StoredEpoch(
            region=region.number,
            epoch=each.epoch,
            stored_ms=stored_ms(region.number, each.epoch),
            size_bytes=each.total_bytes,
            files=len(each.snapshots),
            clock_ms=known_ms(each.clock_ms),
            cut_time_ms=each.cut_time_ms,
        )
        for region in regions
        for each in region.epochs.history.manifests
    ]
    return tuple(sorted(found, key=lambda each: (each.epoch, each.region)))


def _epochs(
    regions: Iterable[Region], fallbacks: Mapping[int, int], stored_ms: Callable[[int, int], int]
) -> Iterator[EpochsSummary]:
    for region in regions:
        epochs, manifests = region.epochs, region.epochs.history.manifests
        newest = manifests[-1] if manifests else None
        yield EpochsSummary(
            region=region.number,
            epoch=newest.epoch if newest else 0,
            stored_ms=stored_ms(region.number, newest.epoch) if newest else 0,
            size_bytes=newest.total_bytes if newest else 0,
            kept=len(manifests),
            aborted=epochs.aborted,
            last_abort=epochs.last_abort,
            fallbacks=fallbacks.get(region.number, 0),
        )


def _processor(core: ApplicationCore, pid: ProcessorId, now_ms: int) -> ProcessorSummary:
    spec = core.dag.processors[pid]
    reports = [core.reports[task] for task in spec.tasks() if task in core.reports]
    return ProcessorSummary(
        processor_id=pid,
        name=spec.name,
        parallelism=spec.parallelism,
        clock_ms=known_ms(core.clock.processor_min_ms(pid)),
        records_in=sum(each.records_in for each in reports),
        records_out=sum(each.records_out for each in reports),
        late_records=sum(each.late_records for each in reports),
        skipped_records=sum(each.skipped_records for each in reports),
        quarantined_records=sum(each.quarantined_records for each in reports),
        steps=tuple(step.name or step.kind for step in spec.steps),
        birth_ms=known_ms(spec.life.birth_ms),
        idle_tasks=sum(each.idle for each in reports),
        idle_ms=core.clock.idle_ms(pid, now_ms),
    )


def _region(core: ApplicationCore, region: Region, now_ms: int) -> RegionSummary:
    state: DeploymentState = "running" if region.is_running else "starting"
    if region.state != "deployed":
        state = region.state
    newest = region.history.newest
    missing = region.executors.difference(core.executors.running)
    return RegionSummary(
        region=region.number,
        state=state,
        from_epoch=newest.epoch if newest else 0,
        tasks=len(region.placement),
        executors_missing=len(missing) if region.state == "waiting" else 0,
        pause_ms=max(0, region.resume_at_ms - now_ms) if region.state == "waiting" else 0,
    )
