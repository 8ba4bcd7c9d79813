"""One region: its attempts, what they go on from, and what it needs."""

from collections.abc import Sequence

from gearpy.core.app.deployment import AttemptFailed, AttemptStopped, Ready, Send
from gearpy.core.app.region import Region
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ActorPath, ExecutorId, TaskId
from gearpy.messages.app import (
    EpochStored,
    LaunchTasks,
    RegisterExecutor,
    SnapshotFile,
    SnapshotsDamaged,
    StartAllTasks,
    TaskLocationsReceived,
    TaskOffsets,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard
from tests.core.manager_bench import some_limits

ONE, TWO = ExecutorId(1), ExecutorId(2)
SOURCE, SINK = TaskId(0, 0), TaskId(1, 0)
OVERRIDES = tuple(TaskOffsets(task_id=task, offsets={"p": b"3"}) for task in (SOURCE, TaskId(9, 9)))


def a_region(*manifests: Manifest, overrides: Sequence[TaskOffsets] = ()) -> Region:
    """Return a region of a task on each of two executors."""
    return Region(
        number=4,
        tasks=[SOURCE, SINK],
        placement={SOURCE: ONE, SINK: TWO, TaskId(9, 9): ExecutorId(9)},
        version=0,
        limits=some_limits(),
        manifests=manifests,
        overrides=overrides,
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


def a_running(*manifests: Manifest, overrides: Sequence[TaskOffsets] = ()) -> Region:
    """Return a region whose attempt 7 runs since 0."""
    region = a_region(*manifests, overrides=overrides)
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
    region.epochs.on_ready(0)


def stopped(executor: ExecutorId, *errors: ErrorCard) -> TasksStopped:
    """Return an executor's answer to a stop of attempt 7."""
    return TasksStopped(executor_id=executor, version=0, attempt=7, errors=errors)


def complete_epoch(region: Region, now_ms: int) -> Manifest:
    """End an epoch; return its manifest, which is stored."""
    region.epochs.advance(now_ms)
    epoch = region.epochs.next_epoch
    for executor, task in ((ONE, SOURCE), (TWO, SINK)):
        file = SnapshotFile(location=f"new{epoch}-{executor}", sha256="", tasks=(task,))
        region.epochs.on_stored(
            EpochStored(
                executor_id=executor, attempt=region.attempt or 0, epoch=epoch, snapshots=(file,)
            ),
            now_ms,
        )
    manifest = region.history.newest
    assert manifest is not None
    assert manifest.epoch == epoch
    region.epochs.on_manifest_stored(epoch, now_ms)
    return manifest


def begin_again(region: Region, attempt: int) -> list[LaunchTasks]:
    """Let a failure end attempt 7; return what executors are told then."""
    region.restart(500, 450)
    for each in (ONE, TWO):
        region.on_answer(stopped(each), 460)
    region.state = "waiting"
    return deploy(region, attempt=attempt)


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
    manifest = complete_epoch(region, 300)
    region.epochs.advance(600)

    launches = begin_again(region, attempt=8)

    assert [each.epoch for each in launches] == [3, 3]
    assert [each.snapshots for each in launches] == [(file,) for file in manifest.snapshots]
    assert region.history.newest == manifest


def test_overrides_count_more_than_the_epoch_they_were_made_for() -> None:
    """For every attempt, until another epoch is complete; each executor hears of its own tasks."""
    region = a_running(a_manifest(6), overrides=OVERRIDES)

    assert [each.overrides for each in begin_again(region, attempt=8)] == [OVERRIDES[:1], ()]
    start(region)
    complete_epoch(region, 800)
    assert [each.overrides for each in begin_again(region, attempt=9)] == [(), ()]


def test_overrides_count_from_the_beginning_too() -> None:
    """Where no epoch was ever complete."""
    region = a_region(overrides=OVERRIDES)

    assert [each.overrides for each in deploy(region)] == [OVERRIDES[:1], ()]


def test_the_next_attempt_waits_for_its_executors_its_pause_and_its_epoch() -> None:
    """An epoch that is complete but not stored could be lost with the app master."""
    region, both = a_region(), {ONE, TWO}
    assert [region.is_due(each, 0) for each in ({ONE}, both, {ONE, TWO, ExecutorId(9)})] == [
        False,
        True,
        True,
    ]
    deploy(region)
    assert not region.is_due(both, 0)

    region.state, region.resume_at_ms = "waiting", 10
    assert [region.is_due(both, now_ms) for now_ms in (9, 10)] == [False, True]
    region.history.on_complete(a_manifest(1))
    assert not region.is_due(both, 10)
    region.history.on_stored(1)
    assert region.is_due(both, 10)


def test_damaged_snapshots_fail_a_start() -> None:
    """With what is damaged; the executor is not silent."""
    region = a_region(a_manifest(6))
    deploy(region)
    damaged = SnapshotsDamaged(
        executor_id=ONE, version=0, attempt=7, location="old6", reason="bad checksum"
    )

    [failed] = region.on_answer(damaged, 10)

    assert failed == AttemptFailed(
        cause="executor 1 could not read old6: bad checksum", damaged=damaged, silent=()
    )


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
    assert region.on_answer(stopped(TWO), 20) == [AttemptStopped(errors=())]
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
