"""The application clock: monotone, not held by the idle, and able to say what holds it."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.clock import ClockHolder, ClockService, WaitsFor
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import MAX_MS, MIN_MS, ProcessorId, SessionId, TaskId

SOURCE, MIDDLE, SINK = TaskId(0, 0), TaskId(1, 0), TaskId(2, 0)


def a_dag(*parallelism: int, version: int = 0) -> Dag:
    """Return a chain of processors named s0, s1, ...."""
    last = len(parallelism) - 1
    processors = [
        ProcessorSpec(id=ProcessorId(pid), name=f"s{pid}", parallelism=tasks)
        for pid, tasks in enumerate(parallelism)
    ]
    edges = [EdgeSpec(source=ProcessorId(pid), target=ProcessorId(pid + 1)) for pid in range(last)]
    return Dag.build(processors, edges, version=version)


def sessions(dag: Dag, session: int = 1) -> dict[TaskId, SessionId]:
    return dict.fromkeys(dag.tasks(), SessionId(session))


def a_clock(dag: Dag, *, stall_after_ms: int = 1000, start_ms: int = MIN_MS) -> ClockService:
    return ClockService(
        dag, sessions(dag), stall_after_ms=stall_after_ms, now_ms=0, start_ms=start_ms
    )


def report(
    clock: ClockService,
    task_id: TaskId,
    clock_ms: int,
    *,
    watermark_ms: int | None = None,
    hold_ms: int = MAX_MS,
    idle: bool = False,
    session: int = 1,
    now_ms: int = 1,
) -> bool:
    return clock.on_report(
        task_id,
        SessionId(session),
        clock_ms=clock_ms,
        watermark_ms=clock_ms if watermark_ms is None else watermark_ms,
        hold_ms=hold_ms,
        idle=idle,
        now_ms=now_ms,
    )


def waits(chain: tuple[ClockHolder, ...]) -> list[tuple[str, WaitsFor]]:
    return [(each.name, each.waits_for) for each in chain]


def test_clock_is_the_minimum_of_all_tasks() -> None:
    clock = a_clock(a_dag(1, 2))

    moved = [
        report(clock, TaskId(0, 0), 30),
        report(clock, TaskId(1, 0), 20),
        report(clock, TaskId(1, 1), 10),
    ]

    assert moved == [False, False, True]
    assert clock.global_min_ms == 10
    assert clock.processor_min_ms(ProcessorId(0)) == 30
    assert clock.processor_min_ms(ProcessorId(1)) == 10


def test_report_of_a_former_session_counts_for_nothing() -> None:
    dag = a_dag(1)
    clock = a_clock(dag)
    clock.on_restart(sessions(dag, 2), start_ms=0, now_ms=0)

    moved = report(clock, SOURCE, 99, session=1)

    assert not moved
    assert clock.global_min_ms == 0


def test_report_of_an_unknown_task_counts_for_nothing() -> None:
    clock = a_clock(a_dag(1))

    assert not report(clock, TaskId(7, 0), 5)


def test_idle_task_holds_nothing() -> None:
    clock = a_clock(a_dag(1, 2))
    report(clock, TaskId(1, 1), MIN_MS, idle=True)

    report(clock, TaskId(0, 0), 50)
    report(clock, TaskId(1, 0), 40)

    assert clock.global_min_ms == 40


def test_all_at_the_end_of_time_is_finished() -> None:
    """The application succeeds by this. Gearpump: `EndingClock`."""
    clock = a_clock(a_dag(1, 1))

    report(clock, SOURCE, MAX_MS)
    half_way = clock.finished
    report(clock, MIDDLE, MAX_MS)

    assert not half_way
    assert clock.finished
    assert clock.global_min_ms == clock.processor_min_ms(ProcessorId(1)) == MAX_MS


def test_restart_does_not_turn_the_clock_back() -> None:
    """It waits for the tasks to catch up; Gearpump's goes back to the beginning."""
    dag = a_dag(1)
    clock = a_clock(dag)
    report(clock, SOURCE, 100)

    clock.on_restart(sessions(dag, 2), start_ms=50, now_ms=2)
    report(clock, SOURCE, 60, session=2)

    assert clock.global_min_ms == clock.processor_min_ms(ProcessorId(0)) == 100
    report(clock, SOURCE, 110, session=2)
    assert clock.global_min_ms == 110


def test_still_clock_is_a_stall_only_after_the_threshold() -> None:
    clock = a_clock(a_dag(1, 2), stall_after_ms=100)
    report(clock, SOURCE, 50, now_ms=10)
    report(clock, TaskId(1, 0), 40, now_ms=10)
    report(clock, TaskId(1, 1), 30, now_ms=10)

    early, late = clock.check_stall(109), clock.check_stall(110)

    assert early is None
    assert late is not None
    assert (late.clock_ms, late.stalled_for_ms, late.tasks) == (30, 100, (TaskId(1, 1),))


def test_what_is_finished_or_idle_is_no_stall() -> None:
    clock = a_clock(a_dag(2), stall_after_ms=100)

    report(clock, TaskId(0, 0), MAX_MS)
    report(clock, TaskId(0, 1), 7, idle=True)

    assert clock.check_stall(10_000) is None


def test_restart_gives_the_clock_time_to_move_again() -> None:
    dag = a_dag(1)
    clock = a_clock(dag, stall_after_ms=100)

    clock.on_restart(sessions(dag, 2), start_ms=0, now_ms=5000)

    assert clock.check_stall(5099) is None
    assert clock.check_stall(5100) is not None


def test_why_names_unprocessed_input() -> None:
    clock = a_clock(a_dag(1, 1, 1))
    report(clock, SOURCE, 100)
    report(clock, MIDDLE, 40)
    report(clock, SINK, 40)

    chain = clock.why()

    assert waits(chain) == [("s0", "source has not advanced"), ("s1", "unprocessed input")]
    assert chain[-1].clock_ms == 40


@given(steps=st.lists(st.integers(0, 400), min_size=1, max_size=1500), done=st.floats(0, 1))
def test_lag_is_known_to_a_point_however_long_the_clock_stands(
    steps: list[int], done: float
) -> None:
    """Points are few; the one that counts stays, or one close behind it."""
    clock = a_clock(a_dag(1, 1))
    now_ms, read = 1000, []
    for step in steps:
        now_ms += step
        report(clock, SOURCE, now_ms, now_ms=now_ms)
        read.append(now_ms)
    clock_ms = read[int(done * (len(read) - 1))]
    report(clock, TaskId(1, 0), clock_ms, now_ms=now_ms)

    lag_ms = clock.lag_ms(now_ms)

    later = [at for at in read if at > clock_ms]
    assert 0 <= lag_ms <= (now_ms - later[0] if later else 0)
    if len(steps) <= 500:  # Nothing was forgotten; points are 50 ms apart at least.
        assert lag_ms >= (now_ms - later[0] if later else 0) - 450


def test_open_windows_are_no_lag() -> None:
    """The clock waits for them; a task is as far as its watermark."""
    clock = a_clock(a_dag(1, 1))
    report(clock, SOURCE, 10, now_ms=1_000)
    report(clock, MIDDLE, 10, now_ms=1_000)
    report(clock, SOURCE, 90, now_ms=2_000)
    before_ms = clock.lag_ms(2_500)
    report(clock, MIDDLE, 10, watermark_ms=90, hold_ms=10, now_ms=2_500)

    assert (before_ms, clock.lag_ms(2_500), clock.global_min_ms) == (500, 0, 10)


def test_why_names_output_that_nobody_has_acknowledged() -> None:
    clock = a_clock(a_dag(1, 1))
    report(clock, SOURCE, 20, watermark_ms=90)
    report(clock, MIDDLE, 20)

    assert waits(clock.why()) == [("s0", "unacknowledged output")]


def test_why_takes_the_slowest_upstream_and_not_the_idle() -> None:
    clock = a_clock(a_dag(3, 1))
    report(clock, TaskId(0, 0), 5, idle=True)
    report(clock, TaskId(0, 1), 70)
    report(clock, TaskId(0, 2), 60)
    report(clock, MIDDLE, 30)

    assert [each.task_id for each in clock.why()] == [TaskId(0, 2), MIDDLE]


def test_why_of_an_idle_application_is_idle() -> None:
    clock = a_clock(a_dag(1))
    report(clock, SOURCE, 5, idle=True)
    assert waits(clock.why()) == [("s0", "idle")]

    report(clock, SOURCE, MAX_MS)

    assert clock.why() == ()


def test_how_long_a_processor_is_idle_counts_from_when_the_last_of_its_tasks_became_so() -> None:
    """A report that repeats it is no beginning; tasks that have finished do not count."""
    clock, pid = a_clock(a_dag(3)), ProcessorId(0)
    report(clock, TaskId(0, 2), MAX_MS, now_ms=5)
    report(clock, TaskId(0, 0), 1, idle=True, now_ms=10)
    assert clock.idle_ms(pid, 100) == 0
    report(clock, TaskId(0, 1), 1, idle=True, now_ms=40)
    report(clock, TaskId(0, 1), 2, idle=True, now_ms=60)
    assert clock.idle_ms(pid, 100) == 60

    report(clock, TaskId(0, 0), 3, now_ms=110)
    assert clock.idle_ms(pid, 120) == 0
    report(clock, TaskId(0, 0), 3, idle=True, now_ms=130)

    assert clock.idle_ms(pid, 150) == 20
    report(clock, TaskId(0, 0), MAX_MS, now_ms=160)
    report(clock, TaskId(0, 1), MAX_MS, now_ms=160)
    assert clock.idle_ms(pid, 170) == 0


def test_a_task_that_waits_for_upstream_says_so() -> None:
    clock = a_clock(a_dag(1, 1))
    report(clock, SOURCE, 10, watermark_ms=10)
    report(clock, MIDDLE, 9, watermark_ms=9)
    report(clock, SOURCE, 10, idle=True)
    report(clock, MIDDLE, MAX_MS, idle=False)

    assert waits(clock.why()) == [("s0", "idle")]


@dataclass
class Known:
    clock_ms: int
    idle: bool = False


clock_values = st.integers(0, 20) | st.just(MAX_MS)
events = st.lists(
    st.tuples(
        st.sampled_from(["report", "report", "report", "restart"]),
        st.integers(0, 4),
        clock_values,
        st.booleans(),
    ),
    max_size=60,
)


@given(events)
def test_clocks_never_go_back_and_pass_no_living_task(
    events: list[tuple[str, int, int, bool]],
) -> None:
    """The invariant, against a list of what every task last said."""
    dag = a_dag(2, 2, 1)
    tasks = dag.tasks()
    clock, session = a_clock(dag, start_ms=0), 1
    known = {task: Known(0) for task in tasks}

    for now_ms, (kind, which, value_ms, idle) in enumerate(events):
        before_ms = clock.global_min_ms
        processors = {pid: clock.processor_min_ms(pid) for pid in dag.processors}
        if kind == "report":
            task = known[tasks[which]]
            known[tasks[which]] = Known(max(task.clock_ms, value_ms), idle)
            report(clock, tasks[which], value_ms, idle=idle, session=session, now_ms=now_ms)
        else:
            session += 1
            start_ms = min(value_ms, before_ms)
            known = {task: Known(start_ms) for task in tasks}
            clock.on_restart(sessions(dag, session), start_ms=start_ms, now_ms=now_ms)

        living = [each.clock_ms for each in known.values() if each.clock_ms < MAX_MS]
        awake = [
            each.clock_ms for each in known.values() if each.clock_ms < MAX_MS and not each.idle
        ]
        assert clock.global_min_ms >= before_ms
        assert all(clock.processor_min_ms(pid) >= was for pid, was in processors.items())
        assert clock.global_min_ms == before_ms or all(
            clock.global_min_ms <= each for each in awake
        )
        assert clock.global_min_ms >= min(awake, default=0)
        assert clock.finished == (not living)
        assert (clock.global_min_ms == MAX_MS) == (not living) or before_ms == MAX_MS
