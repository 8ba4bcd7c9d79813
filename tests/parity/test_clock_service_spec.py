"""Promises of Gearpump's `ClockServiceSpec`; checkpoint times are elsewhere (epochs)."""

from gearpy.core.app.clock import ClockService
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import MIN_MS, ProcessorId, SessionId, TaskId


def a_dag(*edges: tuple[int, int], version: int = 0) -> Dag:
    """Return a dag of one task for each processor."""
    pids = list(dict.fromkeys(pid for edge in edges for pid in edge))
    processors = [ProcessorSpec(id=ProcessorId(pid), name=str(pid)) for pid in pids]
    return Dag.build(
        processors,
        [
            EdgeSpec(source=ProcessorId(source), target=ProcessorId(target))
            for source, target in edges
        ],
        version=version,
    )


def sessions(dag: Dag) -> dict[TaskId, SessionId]:
    """Return session 1 for every task."""
    return dict.fromkeys(dag.tasks(), SessionId(1))


def report(clock: ClockService, pid: int, clock_ms: int) -> None:
    """Report the clock of a processor's only task."""
    clock.on_report(
        TaskId(pid, 0),
        SessionId(1),
        clock_ms=clock_ms,
        watermark_ms=clock_ms,
        idle=False,
        now_ms=0,
    )


def test_global_clock_is_the_least_of_all_tasks() -> None:
    """`ClockServiceSpec`: maintain a global view of message timestamp in the application."""
    dag = a_dag((0, 1))
    clock = ClockService(dag, sessions(dag), stall_after_ms=1, now_ms=0)
    assert clock.global_min_ms == MIN_MS

    report(clock, 0, 200)
    assert clock.global_min_ms == MIN_MS
    report(clock, 1, 100)

    assert clock.global_min_ms == 100


def test_dag_change_keeps_downstream_behind_upstream() -> None:
    """`ClockServiceSpec`: act on ChangeToNewDAG and make sure downstream clock <= upstream."""
    dag = a_dag((0, 1))
    clock = ClockService(dag, sessions(dag), stall_after_ms=1, now_ms=0)
    report(clock, 0, 200)
    report(clock, 1, 100)

    longer = a_dag((0, 1), (1, 2), (0, 3), version=1)
    clock.on_new_dag(longer, sessions(longer), 0)

    for edge in longer.edges:
        assert clock.processor_min_ms(edge.target) <= clock.processor_min_ms(edge.source)
    assert clock.global_min_ms == 100


def test_processor_clock_is_the_least_of_its_tasks() -> None:
    """`ClockServiceSpec` (ProcessorClock): the minimum over the tasks of one processor."""
    processor = ProcessorSpec(id=ProcessorId(0), name="p", parallelism=3)
    dag = Dag.build([processor], [])
    clock = ClockService(dag, sessions(dag), stall_after_ms=1, now_ms=0)

    for index, clock_ms in enumerate((5, 3, 4)):
        clock.on_report(
            TaskId(0, index),
            SessionId(1),
            clock_ms=clock_ms,
            watermark_ms=clock_ms,
            idle=False,
            now_ms=0,
        )

    assert clock.processor_min_ms(ProcessorId(0)) == 3


def test_stalling_tasks_are_reported() -> None:
    """`ClockServiceSpec` (HealthChecker): the first processor that holds the clock, its tasks."""
    dag = a_dag((0, 1), (1, 2))
    clock = ClockService(dag, sessions(dag), stall_after_ms=1000, now_ms=0, start_ms=0)
    report(clock, 0, 100)
    report(clock, 1, 50)
    report(clock, 2, 50)

    stall = clock.check_stall(1000)

    assert clock.check_stall(999) is None
    assert stall is not None
    assert stall.tasks == (TaskId(1, 0),)
