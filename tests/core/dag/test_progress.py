"""How far an application is, from the reports of its tasks."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.clock import progress_of
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import ProcessorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ApplicationProgress

READ, WORK, WRITE = TaskId(0, 0), TaskId(1, 0), TaskId(2, 0)


def a_dag() -> Dag:
    """Return read -> work -> write."""
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
    late: int = 0,
    skipped: int = 0,
    quarantined: int = 0,
    done: int = 0,
    total: int = 0,
) -> TaskClock:
    """Return the report of a task."""
    return TaskClock(
        task_id=task_id,
        session=SessionId(1),
        clock_ms=watermark_ms,
        watermark_ms=watermark_ms,
        idle=idle,
        records_in=records_in,
        records_out=records_out,
        late_records=late,
        skipped_records=skipped,
        quarantined_records=quarantined,
        done=done,
        total=total,
    )


def progress(*reports: TaskClock, stall: str = "") -> ApplicationProgress:
    """Sum up the reports."""
    return progress_of(a_dag(), {report.task_id: report for report in reports}, stall=stall)


def test_records_are_counted_at_both_ends() -> None:
    """In is what sources read, out is what the last tasks write; steps between do not count."""
    summed = progress(
        a_report(READ, records_in=10, records_out=10, done=3, total=4),
        a_report(WORK, records_in=10, records_out=7),
        a_report(WRITE, records_in=7, records_out=6),
        stall="waits for work",
    )

    assert (summed.records_in, summed.records_out) == (10, 6)
    assert (summed.done, summed.total) == (3, 4)
    assert summed.stall == "waits for work"


def test_progress_tells_what_a_source_waits_for() -> None:
    """The first one, as a line has room for one."""
    waiting = dataclasses.replace(a_report(READ), waits_for="a server")

    assert progress(waiting, a_report(WRITE)).waits_for == "a server"
    assert progress(a_report(READ)).waits_for == ""


def test_what_a_source_task_makes_counts_as_read() -> None:
    """A task that produces on its own reads nothing, and still something comes in."""
    assert progress(a_report(READ, records_out=5)).records_in == 5


def test_late_records_of_all_tasks_are_summed_up() -> None:
    """They are counted wherever they are dropped."""
    assert progress(a_report(WORK, late=2), a_report(WRITE, late=3)).late_records == 5


def test_records_that_were_left_out_are_summed_up() -> None:
    """Nothing is left out without being counted."""
    summed = progress(a_report(READ, skipped=1), a_report(WORK, skipped=2, quarantined=4))

    assert (summed.skipped_records, summed.quarantined_records) == (3, 4)


def test_watermark_is_unknown_until_all_have_reported() -> None:
    """A task that has told nothing may be far behind."""
    assert progress(a_report(READ, watermark_ms=5)).watermark_ms is None


def test_idle_tasks_hold_no_watermark() -> None:
    """As on the links."""
    summed = progress(
        a_report(READ, watermark_ms=9),
        a_report(WORK, watermark_ms=1, idle=True),
        a_report(WRITE, watermark_ms=8),
    )

    assert summed.watermark_ms == 8


def test_watermark_of_an_application_that_is_idle_is_unknown() -> None:
    """Nothing moves, and nothing is late."""
    idle = [a_report(task, idle=True) for task in (READ, WORK, WRITE)]

    assert progress(*idle).watermark_ms is None


@given(st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_watermark_is_the_least_of_all(watermarks: list[int]) -> None:
    """Invariant: no task is behind what is shown."""
    tasks = zip((READ, WORK, WRITE), watermarks, strict=True)

    summed = progress(*(a_report(task, watermark_ms=at_ms) for task, at_ms in tasks))

    assert summed.watermark_ms == min(watermarks)
