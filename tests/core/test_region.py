"""One region: its attempts, what it needs, and the epochs and files of its attempts."""

import pytest

from gearpy.core.deployment import Ready, Send, Stopped
from gearpy.core.epochs import Manifest
from gearpy.core.region import Region
from gearpy.ids import MAX_MS, MIN_MS, ActorPath, ExecutorId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    EpochStored,
    LaunchTasks,
    RegisterExecutor,
    SnapshotFile,
    StartAllTasks,
    TaskClock,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.cluster import ErrorCard

ONE, TWO = ExecutorId(1), ExecutorId(2)
SOURCE, SINK = TaskId(0, 0), TaskId(1, 0)
INTERVAL_MS = 100


def a_region(newest: Manifest | None = None) -> Region:
    """Return a region of a task on each of two executors."""
    return Region(
        number=4,
        tasks=[SOURCE, SINK],
        placement={SOURCE: ONE, SINK: TWO, TaskId(9, 9): ExecutorId(9)},
        version=0,
        newest=newest,
        retained=1,
        interval_ms=INTERVAL_MS,
        step_timeout_ms=1000,
    )


def a_manifest(epoch: int) -> Manifest:
    """Return a manifest of one file."""
    file = SnapshotFile(location=f"old{epoch}", sha256="", tasks=(SOURCE, SINK))
    return Manifest(region=4, epoch=epoch, attempt=1, clock_ms=50, snapshots=(file,))


def deploy(region: Region, attempt: int = 7) -> list[LaunchTasks]:
    """Begin an attempt at 0; return what executors are told."""
    executors = {
        each: RegisterExecutor(
            executor_id=each,
            launch=10 * each,
            executor=ActorPath("", str(each)),
            data_address=f"data:{each}",
            slots=1,
            graph_hash="",
        )
        for each in (ONE, TWO)
    }
    commands = region.deploy(
        attempt=attempt, first_session=attempt * 10, executors=executors, now_ms=0
    )
    return [
        each.message
        for each in commands
        if isinstance(each, Send) and isinstance(each.message, LaunchTasks)
    ]


def a_running(newest: Manifest | None = None) -> Region:
    """Return a region whose attempt 7 runs since 0."""
    region = a_region(newest)
    deploy(region)
    start(region)
    return region


def start(region: Region) -> None:
    """Let the executors answer until all runs."""
    attempt = region.attempt or 0
    commands = []
    for kind in (TasksLaunched, TaskLocationsReceived, TasksStarted):
        for each in (ONE, TWO):
            commands = region.on_answer(kind(executor_id=each, version=0, attempt=attempt), 0)
    assert commands == [Ready()]
    region.on_ready(0)


def stopped(executor: ExecutorId, *errors: ErrorCard) -> TasksStopped:
    """Return an executor's answer to a stop of attempt 7."""
    return TasksStopped(executor_id=executor, version=0, attempt=7, errors=errors)


def stored(executor: ExecutorId, epoch: int = 1, attempt: int = 7) -> EpochStored:
    """Return that an executor has stored an epoch."""
    return EpochStored(
        executor_id=executor, attempt=attempt, epoch=epoch, snapshot=a_file(executor, epoch)
    )


def a_file(executor: ExecutorId, epoch: int = 1) -> SnapshotFile:
    """Return the file of an executor for an epoch."""
    task = SOURCE if executor == ONE else SINK
    return SnapshotFile(location=f"new{epoch}-{executor}", sha256="", tasks=(task,))


def clock(region: Region, task: TaskId, clock_ms: int, *, idle: bool = False) -> None:
    """Let a task report."""
    region.on_clock(
        TaskClock(
            task_id=task,
            session=region.sessions[task],
            clock_ms=clock_ms,
            watermark_ms=clock_ms,
            idle=idle,
        )
    )


def complete_epoch(region: Region, epoch: int, now_ms: int) -> Manifest:
    """End an epoch; return its manifest."""
    begin = region.epoch_due(now_ms)
    assert begin is not None
    assert begin.epoch == epoch
    region.on_epoch_stored(stored(ONE, epoch), now_ms)
    manifest = region.on_epoch_stored(stored(TWO, epoch), now_ms)
    assert manifest is not None
    return manifest


def test_the_first_attempt_begins_at_the_beginning() -> None:
    """With epoch 1 and no state."""
    launches = deploy(a_region())

    assert [(each.epoch, each.snapshots, each.attempt, each.region) for each in launches] == [
        (1, (), 7, 4)
    ] * 2


def test_an_attempt_goes_on_from_the_newest_epoch() -> None:
    """Its files, its clock, and the epoch behind it."""
    region = a_region(a_manifest(6))

    launches = deploy(region)

    assert {(each.epoch, each.snapshots) for each in launches} == {(7, a_manifest(6).snapshots)}
    for each in (ONE, TWO):
        region.on_answer(TasksLaunched(executor_id=each, version=0, attempt=7), 0)
    commands = [
        command
        for each in (ONE, TWO)
        for command in region.on_answer(
            TaskLocationsReceived(executor_id=each, version=0, attempt=7), 0
        )
    ]
    starts = [
        each.message
        for each in commands
        if isinstance(each, Send) and isinstance(each.message, StartAllTasks)
    ]
    assert {each.start_time_ms for each in starts} == {50}


def test_a_restart_goes_on_from_an_epoch_that_was_completed_meanwhile() -> None:
    """And does not use the number of one that was announced."""
    region = a_running()
    manifest = complete_epoch(region, 1, INTERVAL_MS)
    assert region.epoch_due(2 * INTERVAL_MS) == BeginEpoch(version=0, attempt=7, epoch=2)
    region.restart(500, 250)
    for each in (ONE, TWO):
        region.on_answer(stopped(each), 260)
    region.state = "waiting"

    launches = deploy(region, attempt=8)

    assert launches[0].epoch == 3
    assert launches[0].snapshots == (a_file(ONE),)
    assert launches[1].snapshots == (a_file(TWO),)
    assert region.history.newest == manifest


def test_it_is_finished_when_all_tasks_are_and_only_while_it_runs() -> None:
    """A task may end before others have even started."""
    region = a_region()
    deploy(region)
    clock(region, SOURCE, MAX_MS)
    clock(region, SINK, MAX_MS)
    verdicts = [region.is_finished]

    start(region)
    verdicts.append(region.is_finished)
    region.stop(completed=True, now_ms=0)
    verdicts.append(region.is_finished)

    assert verdicts == [False, True, False]


def test_tasks_that_had_finished_have_not_after_a_restart() -> None:
    """They run again, so that what they told does not count."""
    region = a_running()
    clock(region, SOURCE, MAX_MS)
    clock(region, SINK, MAX_MS)
    region.restart(0, 0)
    region.state = "waiting"
    deploy(region, attempt=8)
    start(region)

    assert not region.is_finished


def test_the_clock_of_an_epoch_is_that_of_the_slowest_task_that_is_busy() -> None:
    """As it was when the epoch began to end; idle and finished tasks hold nothing back."""
    region = a_running()
    clock(region, SOURCE, 30)
    clock(region, SINK, 20)
    assert complete_epoch(region, 1, INTERVAL_MS).clock_ms == 20

    clock(region, SINK, 25, idle=True)
    assert complete_epoch(region, 2, 2 * INTERVAL_MS).clock_ms == 30

    clock(region, SINK, 40)
    clock(region, SOURCE, MAX_MS)
    assert complete_epoch(region, 3, 3 * INTERVAL_MS).clock_ms == 40


@pytest.mark.parametrize("newest", [None, a_manifest(1)])
def test_the_clock_of_an_epoch_is_the_start_where_nothing_is_known(
    newest: Manifest | None,
) -> None:
    """A source must never open behind records that it has not read."""
    region = a_running(newest)
    clock(region, SOURCE, 70)

    assert complete_epoch(region, 2 if newest else 1, INTERVAL_MS).clock_ms == (
        50 if newest else MIN_MS
    )


def test_an_epoch_is_not_due_unless_all_tasks_run() -> None:
    """Neither in a start nor in a stop."""
    region = a_region()
    assert region.epoch_due(10**6) is None
    deploy(region)
    assert region.epoch_due(10**6) is None
    start(region)
    region.stop(completed=False, now_ms=0)
    assert region.epoch_due(10**6) is None


def test_files_of_an_epoch_that_will_not_be_complete_are_given_out() -> None:
    """When the attempt ends; once."""
    region = a_running()
    region.epoch_due(INTERVAL_MS)
    region.on_epoch_stored(stored(ONE), 110)
    assert region.take_garbage() == ()

    region.restart(0, 120)

    assert region.take_garbage() == (a_file(ONE),)
    assert region.take_garbage() == ()


def test_files_that_come_too_late_are_given_out() -> None:
    """Their attempt has been stopped."""
    region = a_running()
    region.epoch_due(INTERVAL_MS)
    region.restart(0, 120)

    assert region.on_epoch_stored(stored(ONE), 130) is None
    assert region.take_garbage() == (a_file(ONE),)


def test_a_file_that_is_needed_is_never_given_out() -> None:
    """Not when it is told again, either."""
    region = a_running()
    complete_epoch(region, 1, INTERVAL_MS)

    region.on_epoch_stored(stored(ONE), 130)

    assert region.take_garbage() == ()


def test_files_of_epochs_before_the_stored_one_are_given_out() -> None:
    """Only when a newer one is stored."""
    region = a_running(a_manifest(1))
    complete_epoch(region, 2, INTERVAL_MS)
    assert region.take_garbage() == ()

    region.on_manifest_stored(2)

    assert region.take_garbage() == a_manifest(1).snapshots


def test_what_a_region_needs_and_what_can_hurt_it() -> None:
    """In each state; ``ending`` is the good end, in which executor 1 has answered."""
    region = a_region()
    assert (region.needs(ONE), region.may_fail, region.is_linked) == (True, False, False)
    deploy(region)
    assert (region.needs(ONE), region.may_fail, region.is_linked) == (True, True, False)
    start(region)
    assert (region.needs(ONE), region.may_fail, region.is_linked) == (True, True, True)
    region.stop(completed=True, now_ms=0)
    region.on_answer(stopped(ONE), 0)
    assert (region.needs(ONE), region.needs(TWO), region.may_fail) == (False, True, True)
    assert not region.is_linked
    region.state = "done"
    assert (region.needs(ONE), region.needs(TWO), region.may_fail) == (False, False, False)


def test_a_region_that_stops_to_start_again_needs_all_and_cannot_be_hurt_more() -> None:
    """It is stopped already."""
    region = a_running()
    region.restart(0, 0)
    region.on_answer(stopped(ONE), 0)

    assert (region.needs(ONE), region.needs(TWO), region.may_fail) == (True, True, False)
    assert not region.needs(ExecutorId(9))


def test_a_failure_spoils_the_good_end() -> None:
    """It will start again when all have stopped."""
    region = a_running()
    region.stop(completed=True, now_ms=0)

    assert region.restart(500, 10) == []
    assert not region.is_completed
    assert region.on_answer(stopped(ONE), 20) == []
    assert region.on_answer(stopped(TWO), 20) == [Stopped(errors=())]
    assert region.resume_at_ms == 500


def test_who_was_part_of_an_attempt_that_a_failure_stopped() -> None:
    """Until the next one begins; a stop for another reason is no failure."""
    region = a_running()
    assert not region.was_hurt_with(ONE, 10)
    region.stop(completed=False, now_ms=0)
    assert not region.was_hurt_with(ONE, 10)

    region = a_running()
    region.restart(0, 0)
    assert region.was_hurt_with(ONE, 10)
    assert not region.was_hurt_with(ONE, 11)
    assert not region.was_hurt_with(ExecutorId(9), 10)

    region.state = "waiting"
    deploy(region, attempt=8)
    assert not region.was_hurt_with(ONE, 10)
