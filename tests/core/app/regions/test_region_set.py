"""All regions of an application together."""

from gearpy.core.app.deployment import Send
from gearpy.core.app.regions.region_set import RegionSet
from gearpy.core.dag.graph import place
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ActorPath, ExecutorId, TaskId
from gearpy.messages.app import LaunchTasks, RegisterExecutor, SnapshotFile, TaskOffsets
from tests.core.manager_bench import a_dag, some_limits

A, B = ExecutorId(0), ExecutorId(1)


def a_manifest(region: int, epoch: int) -> Manifest:
    file = SnapshotFile(location=f"{region}/{epoch}", sha256="", tasks=(TaskId(2 * region, 0),))
    return Manifest(region=region, epoch=epoch, attempt=1, clock_ms=10 * epoch, snapshots=(file,))


def some_regions(*manifests: Manifest, overrides: tuple[TaskOffsets, ...] = ()) -> RegionSet:
    dag = a_dag((1, 1), (1, 1))
    return RegionSet(
        dag,
        place(dag, {A: 2, B: 2}),
        some_limits(),
        manifests=manifests,
        overrides=overrides,
        owns=lambda _: True,
    )


def deploy(regions: RegionSet, number: int, attempt: int) -> list[LaunchTasks]:
    executors = {
        each: RegisterExecutor(
            executor_id=each,
            launch=1,
            executor=ActorPath("", str(each)),
            data_address=f"data:{each}",
            slots=2,
            graph_hash="",
        )
        for each in (A, B)
    }
    commands = regions[number].deploy(
        attempt=attempt, first_session=1, executors=executors, now_ms=0
    )
    sent = [each.message for each in commands if isinstance(each, Send)]
    return [each for each in sent if isinstance(each, LaunchTasks)]


def test_each_region_has_its_tasks_and_its_epochs() -> None:
    regions = some_regions(a_manifest(1, 3), a_manifest(0, 5), a_manifest(1, 4), a_manifest(7, 1))

    assert [each.number for each in regions] == [0, 1]
    assert [each.history.manifests for each in regions] == [
        (a_manifest(0, 5),),
        (a_manifest(1, 3), a_manifest(1, 4)),
    ]
    assert regions.of_task(TaskId(2, 0)) is regions[1]
    assert regions.of_task(TaskId(9, 9)) is None
    assert regions.newest_manifests == [a_manifest(0, 5), a_manifest(1, 4)]


def test_a_region_is_found_by_its_attempts() -> None:
    regions = some_regions()
    deploy(regions, 1, attempt=5)
    regions[1].stop(completed=False, now_ms=0)
    regions[1].state = "waiting"
    deploy(regions, 1, attempt=6)

    assert [regions.in_attempt(each) for each in (5, 6)] == [None, regions[1]]
    assert [regions.that_knew(each) for each in (4, 5, 6)] == [None, regions[1], regions[1]]


def test_executors_and_their_tasks() -> None:
    regions = some_regions()
    tasks = regions.tasks_of_executors
    assert sorted(task for each in tasks.values() for task in each) == [
        TaskId(number, 0) for number in range(4)
    ]
    assert regions.needed_executors == {A, B}
    assert not regions.are_done

    regions[0].state = "done"
    assert regions.needed_executors == regions[1].executors
    regions[1].state = "done"

    assert regions.needed_executors == set()
    assert (regions.are_done, regions.are_active) == (True, True)


def test_garbage_of_all_is_taken_once() -> None:
    regions = some_regions(*(a_manifest(number, epoch) for number in (0, 1) for epoch in range(4)))
    for region in regions:
        region.epochs.on_manifest_stored(3, 0)

    assert sorted(file.location for file in regions.take_garbage()) == ["0/0", "0/1", "1/0", "1/1"]
    assert regions.take_garbage() == ()
