"""What an app master finds of its epochs in the coordinator log."""

import pytest

from gearpy.cluster.app.checkpoints import AppCheckpoints, FoundEpochs
from gearpy.core.coordinator.views import EpochManifests, SourcePlaces
from gearpy.core.dag.graph import Dag
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import SessionId, TaskId
from gearpy.messages.app import LaunchTasks, SnapshotFile, TaskLaunch, TaskOffsets
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.savepoints import remove_savepoint
from tests.core.manager_bench import a_dag

PREFIX = "k/app1"
FIRST, SECOND = TaskId(0, 0), TaskId(2, 0)


def found(checkpoints: Checkpoints, dag: Dag, *, launch: int) -> FoundEpochs:
    app = AppCheckpoints(
        checkpoints, prefix=PREFIX, launch=launch, segments_max=8, wall_ms=lambda: 0
    )
    return app.open(dag, {}, resume_from="")


def test_places_that_were_set_by_hand_are_found_in_every_region() -> None:
    checkpoints, dag = MemoryCheckpoints(), a_dag((1, 1), (1, 1))
    log = CoordinatorLog(checkpoints, PREFIX, launch=1, source="test", wall_ms=lambda: 0)
    file = SnapshotFile(location=f"{PREFIX}/x", sha256="", tasks=(FIRST, TaskId(1, 0)))
    manifest = Manifest(region=0, epoch=7, attempt=1, clock_ms=0, snapshots=(file,))
    log.append(EpochManifests(log.state).messages_for(manifest, ()))
    places = SourcePlaces(log.state)
    first = TaskOffsets(task_id=FIRST, offsets={"0": b"\x07"})
    second = TaskOffsets(task_id=SECOND, offsets={"0": b"\x05"})

    log.append([places.override(first, epoch=7), places.override(second)])
    assert found(checkpoints, dag, launch=2).overrides == (first, second)

    log = CoordinatorLog(checkpoints, PREFIX, launch=3, source="test", wall_ms=lambda: 0)
    log.append([SourcePlaces(log.state).override(first, epoch=6)])
    assert found(checkpoints, dag, launch=4).overrides == (second,)


def opened(checkpoints: Checkpoints, launch: int, *, known: int = 0) -> AppCheckpoints:
    app = AppCheckpoints(
        checkpoints, prefix=PREFIX, launch=launch, segments_max=8, wall_ms=lambda: 0
    )
    app.open(a_dag((1, 1)), {}, known_launch=known)
    return app


def test_a_drain_is_known_to_the_next_launch_of_the_app_master() -> None:
    checkpoints = MemoryCheckpoints()
    opened(checkpoints, 1).ask_drain("before")

    relaunched = opened(checkpoints, 2, known=1)
    assert (relaunched.drain.is_asked, relaunched.drain.savepoint) == (True, "before")
    assert not opened(checkpoints, 3).drain.is_asked


def test_the_last_epochs_of_a_drain_get_the_name_that_was_asked_for() -> None:
    checkpoints = MemoryCheckpoints()
    app = opened(checkpoints, 1)
    app.ask_drain("before")

    app.store(a_manifest(0, 7))

    assert app.end_drain({}) == ""
    assert app.end_drain({0: 7}) == "before"
    with pytest.raises(ConfigError, match="savepoint 'before' is there already"):
        app.ask_drain("before")
    with pytest.raises(ConfigError, match="no name of a savepoint"):
        app.ask_drain("a/b")


def test_a_version_replaces_the_epochs_of_what_it_touches() -> None:
    checkpoints, dag = MemoryCheckpoints(), a_dag((1, 1), (1, 1))
    app = AppCheckpoints(checkpoints, prefix=PREFIX, launch=1, segments_max=8, wall_ms=lambda: 0)
    app.open(dag, {})
    kept, old, moved = (a_manifest(region, epoch) for region, epoch in ((0, 7), (1, 8), (1, 9)))
    app.store(kept)
    app.store(old)

    app.begin_version([], dag, [moved], kept={0})

    assert app.manifests() == [kept, moved]


def test_epochs_are_stored_together_or_not_at_all() -> None:
    checkpoints, dag = MemoryCheckpoints(), a_dag((1, 1), (1, 1))
    app = AppCheckpoints(checkpoints, prefix=PREFIX, launch=1, segments_max=8, wall_ms=lambda: 0)
    app.open(dag, {})
    epochs, names = [a_manifest(0, 7), a_manifest(1, 7)], [*checkpoints.names("")]

    app.store(*epochs)

    assert app.manifests() == epochs
    assert len([each for each in checkpoints.names("") if each not in names]) == 1


def test_a_savepoint_outlives_all_that_its_application_does() -> None:
    """A change, what is deleted behind it, another launch, and the end; until it is dropped."""
    checkpoints, dag = MemoryCheckpoints(), a_dag((1, 1))
    app = opened(checkpoints, 1)
    manifest = a_manifest(0, 7)
    location = manifest.snapshots[0].location
    checkpoints.save(location, [b"state"])
    app.store(manifest)
    app.name_epochs({"before": {0: 7}})
    assert app.made("before") == {0: 7}

    app.begin_version([], dag, [a_manifest(0, 8)], kept=())
    app.drop(manifest.snapshots)
    later = opened(checkpoints, 2, known=1)
    later.drop(manifest.snapshots)
    later.drop_all()
    assert checkpoints.load(location) == b"state"
    assert later.made("before") == {0: 7}

    remove_savepoint(checkpoints, PREFIX, "before")
    later.drop(manifest.snapshots)
    with pytest.raises(SnapshotDamaged):
        checkpoints.load(location)
    later.check_free("before")


def test_an_epoch_that_a_change_has_replaced_gets_no_name() -> None:
    """What would begin with it had lost its files."""
    app = opened(MemoryCheckpoints(), 1)
    app.store(a_manifest(0, 7))
    app.begin_version([], a_dag((1, 1)), [a_manifest(0, 8)], kept=())

    app.name_epochs({"before": {0: 7}})

    assert not app.made("before")
    app.check_free("before")


def test_epochs_that_are_retired_leave_the_log_with_the_next_one() -> None:
    """One step to the store for both. What the log names is there: files go after it."""
    checkpoints = MemoryCheckpoints()
    app = opened(checkpoints, 1)
    manifests = [a_manifest(0, epoch) for epoch in (7, 8, 9)]
    for manifest in manifests:
        checkpoints.save(manifest.snapshots[0].location, [b"state"])
    app.store(manifests[0])
    app.store(manifests[1])

    app.retire(0, [7])
    app.drop(manifests[0].snapshots)
    assert app.manifests() == manifests[:2]
    assert checkpoints.load(manifests[0].snapshots[0].location) == b"state"

    app.store(manifests[2])
    assert app.manifests() == manifests[1:]
    with pytest.raises(SnapshotDamaged):
        checkpoints.load(manifests[0].snapshots[0].location)


def test_an_epoch_that_is_stored_again_retires_what_the_first_attempt_may_have() -> None:
    app = opened(MemoryCheckpoints(), 1)
    app.store(a_manifest(0, 7))
    app.store(a_manifest(0, 8))
    app.retire(0, [7])

    app.store(a_manifest(0, 8))

    assert [each.epoch for each in app.manifests()] == [8]
    app.retire(0, [7])
    app.store(a_manifest(0, 9))
    assert [each.epoch for each in app.manifests()] == [8, 9]


def a_manifest(region: int, epoch: int) -> Manifest:
    file = SnapshotFile(location=f"{PREFIX}/{region}/{epoch}", sha256="", tasks=(FIRST,))
    return Manifest(region=region, epoch=epoch, attempt=1, clock_ms=0, snapshots=(file,))


def test_tasks_of_another_graph_get_partitions_of_the_changelog() -> None:
    app = opened(MemoryCheckpoints(), 1)
    app.give_partitions(a_dag((1, 1)))
    wider = a_dag((1, 3))

    app.begin_version([], wider, [], kept=())
    app.found(wider)

    launches = tuple(TaskLaunch(task_id=each, session=SessionId(1)) for each in wider.tasks())
    launch = LaunchTasks(region=0, version=1, attempt=1, tasks=launches, epoch=1)
    partitions = [each.partition for each in app.with_partitions(launch).tasks]
    assert partitions == [0, 1, 2, 3]
