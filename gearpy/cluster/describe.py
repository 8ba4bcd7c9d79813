"""What an app master tells about its application to whoever asks."""

from collections.abc import Sequence

from gearpy.core.clock import ClockHolder
from gearpy.core.task_manager import TaskManager
from gearpy.ids import MAX_MS, MIN_MS, AppId, ProcessorId
from gearpy.messages.cluster import (
    ApplicationDetail,
    ClockHolderSummary,
    Failure,
    ProcessorSummary,
)

__all__ = ["detail_of"]


def detail_of(
    app_id: AppId, manager: TaskManager | None, failures: Sequence[Failure]
) -> ApplicationDetail:
    """Describe an application; with what is known already while it begins."""
    if manager is None:
        return ApplicationDetail(app_id=app_id, failures=tuple(failures))
    return ApplicationDetail(
        app_id=app_id,
        executors=tuple(manager.executors.summaries(manager.tasks_of_executors)),
        processors=tuple(_processor(manager, pid) for pid in manager.dag.order),
        failures=tuple(failures),
        restarts=manager.restarts,
        epoch=manager.epoch,
        why=tuple(map(_holder, manager.clock.why())),
    )


def _processor(manager: TaskManager, pid: ProcessorId) -> ProcessorSummary:
    spec = manager.dag.processors[pid]
    reports = [manager.reports[task] for task in spec.tasks() if task in manager.reports]
    return ProcessorSummary(
        processor_id=pid,
        name=spec.name,
        parallelism=spec.parallelism,
        clock_ms=_known(manager.clock.processor_min_ms(pid)),
        records_in=sum(each.records_in for each in reports),
        records_out=sum(each.records_out for each in reports),
        late_records=sum(each.late_records for each in reports),
        skipped_records=sum(each.skipped_records for each in reports),
        quarantined_records=sum(each.quarantined_records for each in reports),
    )


def _holder(holder: ClockHolder) -> ClockHolderSummary:
    return ClockHolderSummary(
        task=str(holder.task_id),
        name=holder.name,
        clock_ms=_known(holder.clock_ms),
        watermark_ms=_known(holder.watermark_ms),
        waits_for=holder.waits_for,
    )


def _known(time_ms: int) -> int | None:
    """Return an event time that means something: neither nothing yet nor the end."""
    return None if time_ms in {MIN_MS, MAX_MS} else time_ms
