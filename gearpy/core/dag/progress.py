"""How far an application is, from the reports of its tasks."""

from collections.abc import Mapping

from gearpy.core.dag.graph import Dag
from gearpy.ids import TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ApplicationProgress


def progress_of(
    dag: Dag, reports: Mapping[TaskId, TaskClock], *, stall: str = ""
) -> ApplicationProgress:
    """Sum up the records read by sources, the records put out by the last tasks, the watermark.

    The watermark is the least one of all tasks; None until every task has reported one.
    """
    read = [reports[task] for task in dag.tasks_of(*dag.sources()) if task in reports]
    written = [reports[task] for task in dag.tasks_of(*dag.sinks()) if task in reports]
    is_complete = len(reports) == dag.task_count
    active = [report.watermark_ms for report in reports.values() if not report.idle]
    return ApplicationProgress(
        records_in=sum(report.records_in or report.records_out for report in read),
        records_out=sum(report.records_out for report in written),
        late_records=sum(report.late_records for report in reports.values()),
        skipped_records=sum(report.skipped_records for report in reports.values()),
        quarantined_records=sum(report.quarantined_records for report in reports.values()),
        watermark_ms=min(active) if is_complete and active else None,
        done=sum(report.done for report in read),
        total=sum(report.total for report in read),
        stall=stall,
        waits_for=next((each for each in (report.waits_for for report in read) if each), ""),
    )
