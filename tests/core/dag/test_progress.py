"""How far an application is, from the reports of its tasks."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.clock import progress_of
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import ProcessorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ApplicationProgress

READ, WORK, WRITE = TaskId(0, 0), TaskId(1, 0), TaskId(2, 0)


def a_dag() -> Dag:
    processors = [
        ProcessorSpec(id=ProcessorId(pid), name=name)
        for pid, name in enumerate(("read", "work", "write"))
    ]
    edges = [EdgeSpec(source=ProcessorId(pid), target=ProcessorId(pid + 1)) for pid in (0, 1)]
    return Dag.build(processors, edges)


def a_report(
    task_id: TaskId,
    *,
    watermark_ms: int = 0,
    idle: bool = False,
    records_in: int = 0,
    records_out: int = 0,
    written: int = 0,
    late: int = 0,
    skipped: int = 0,
    quarantined: int = 0,
    done: int = 0,
    total: int = 0,
) -> TaskClock:
    return TaskClock(
        task_id=task_id,
        session=SessionId(1),
        clock_ms=watermark_ms,
        watermark_ms=watermark_ms,
        idle=idle,
        records_in=records_in,
        records_out=records_out,
        written_records=written,
        late_records=late,
        skipped_records=skipped,
        quarantined_records=quarantined,
        done=done,
        total=total,
    )


def progress(*reports: TaskClock, stall: str = "") -> ApplicationProgress:
    return progress_of(a_dag(), {report.task_id: report for report in reports}, stall=stall)


def test_records_are_counted_at_both_ends() -> None:
    summed = progress(
        a_report(READ, records_in=10, records_out=10, done=3, total=4),
        a_report(WORK, records_in=10, records_out=7),
        a_report(WRITE, records_in=7, records_out=6, written=6),
        stall="waits for work",
    )

    assert (summed.records_in, summed.records_out) == (10, 6)
    assert (summed.done, summed.total) == (3, 4)
    assert summed.stall == "waits for work"


@given(st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_watermark_is_the_least_of_all(watermarks: list[int]) -> None:
    """Invariant: no task is behind what is shown."""
    tasks = zip((READ, WORK, WRITE), watermarks, strict=True)

    summed = progress(*(a_report(task, watermark_ms=at_ms) for task, at_ms in tasks))

    assert summed.watermark_ms == min(watermarks)
