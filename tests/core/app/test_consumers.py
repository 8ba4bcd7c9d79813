"""Who takes what sinks have shown, and who is stuck."""

from gearpy.core.app.consumers import STALLED_MS, consumers_of, stalled
from gearpy.core.dag.graph import Dag, ProcessorSpec
from gearpy.ids import ProcessorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ConsumerReport, ConsumerSummary


def a_clock(task: TaskId, *names: str) -> TaskClock:
    return TaskClock(
        task_id=task,
        session=SessionId(1),
        clock_ms=0,
        watermark_ms=0,
        consumers=tuple(ConsumerReport(name=name) for name in names),
    )


def a_summary(name: str, *, since_ms: int) -> ConsumerSummary:
    report = ConsumerReport(name=name, waiting_since_ms=since_ms)
    return ConsumerSummary(sink="sink", task="1.0", report=report)


def test_consumers_are_told_with_their_sink() -> None:
    dag = Dag.build([ProcessorSpec(id=ProcessorId(0), name="write", parallelism=2)], [])
    sink, other, gone = TaskId(0, 0), TaskId(0, 1), TaskId(9, 0)
    reports = {gone: a_clock(gone, "d"), other: a_clock(other, "c"), sink: a_clock(sink, "a", "b")}

    found = consumers_of(dag, reports)

    assert [(each.sink, each.task, each.report.name) for each in found] == [
        ("write", "0.0", "a"),
        ("write", "0.0", "b"),
        ("write", "0.1", "c"),
    ]


def test_who_has_waited_for_long_is_stuck() -> None:
    """The longest first; who waits for nothing never is."""
    consumers = [
        a_summary("idle", since_ms=0),
        a_summary("long", since_ms=2_000),
        a_summary("longer", since_ms=1_000),
        a_summary("short", since_ms=2_001),
    ]

    found = stalled(consumers, 2_000 + STALLED_MS)

    assert [each.report.name for each in found] == ["longer", "long"]
