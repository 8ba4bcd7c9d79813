"""One region: its attempts, what they go on from, and what it needs."""

from collections.abc import Sequence
from typing import get_args

from msgspec.structs import replace

from gearpy.core.app.deployment import Ready, Send
from gearpy.core.app.regions.region import Region
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ActorPath, ExecutorId, TaskId
from gearpy.messages.app import (
    LaunchTasks,
    RegisterExecutor,
    SnapshotFile,
    StartAllTasks,
    StartStep,
    StepDone,
    TaskOffsets,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard
from tests.core.manager_bench import some_limits

ONE, TWO = ExecutorId(1), ExecutorId(2)
SOURCE, SINK = TaskId(0, 0), TaskId(1, 0)


def a_region(*manifests: Manifest, overrides: Sequence[TaskOffsets] = ()) -> Region:
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
    file = SnapshotFile(location=f"old{epoch}", sha256="", tasks=(SOURCE, SINK))
    return Manifest(region=4, epoch=epoch, attempt=1, clock_ms=50, snapshots=(file,))


def deploy(region: Region, attempt: int = 7) -> list[LaunchTasks]:
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


def start(region: Region) -> None:
    attempt = region.attempt or 0
    commands = []
    for step in get_args(StartStep):
        for each in (ONE, TWO):
            commands = region.on_answer(
                StepDone(executor_id=each, version=0, attempt=attempt, step=step), 0
            )
    assert commands == [Ready()]
    region.epochs.on_ready(0)


def stopped(executor: ExecutorId, *errors: ErrorCard) -> TasksStopped:
    return TasksStopped(executor_id=executor, version=0, attempt=7, errors=errors)


def test_an_attempt_goes_on_from_the_newest_epoch() -> None:
    """Its files, each executor those of its tasks; its clock, and the epoch behind it."""
    region = a_region(a_manifest(6))
    (file,) = a_manifest(6).snapshots

    launches = deploy(region)

    assert {each.epoch for each in launches} == {7}
    for launch in launches:
        tasks = tuple(task.task_id for task in launch.tasks)
        assert launch.snapshots == (replace(file, tasks=tasks),)
    for each in (ONE, TWO):
        region.on_answer(StepDone(executor_id=each, version=0, attempt=7, step="launching"), 0)
    commands = [
        command
        for each in (ONE, TWO)
        for command in region.on_answer(
            StepDone(executor_id=each, version=0, attempt=7, step="locating"), 0
        )
    ]
    starts = [
        each.message
        for each in commands
        if isinstance(each, Send) and isinstance(each.message, StartAllTasks)
    ]
    assert {each.start_time_ms for each in starts} == {50}


def test_what_a_region_needs_and_what_can_hurt_it() -> None:
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
