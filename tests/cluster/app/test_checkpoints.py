"""What an app master finds of its epochs in the coordinator log."""

from gearpy.cluster.app.checkpoints import AppCheckpoints, FoundEpochs
from gearpy.core.coordinator.views import EpochManifests, SourcePlaces
from gearpy.core.dag.graph import Dag
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TaskOffsets
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from tests.core.manager_bench import a_dag

PREFIX = "k/app1"
FIRST, SECOND = TaskId(0, 0), TaskId(2, 0)


def found(checkpoints: Checkpoints, dag: Dag, *, launch: int) -> FoundEpochs:
    """Return what a launch of the app master goes on from."""
    app = AppCheckpoints(
        checkpoints,
        prefix=PREFIX,
        launch=launch,
        segments_max=8,
        wall_ms=lambda: 0,
    )
    return app.open(dag, {}, resume_from="")


def test_places_that_were_set_by_hand_are_found_in_every_region() -> None:
    """Also in one that has no epoch yet; not those that an epoch has used up."""
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
