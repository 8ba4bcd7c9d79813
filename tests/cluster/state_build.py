"""An application in a checkpoint store with keyed state, an epoch for each change of it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from gearpy.core.coordinator.views import ApplicationView, DagVersion, DagVersions, EpochManifests
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import StepPlace
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.state.keyed import KeyedState
from gearpy.state.open import heap_state
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.snapshot_files import TaskPart, save_snapshot, snapshot_chunks

PREFIX: Final = "k3f9a1c2/app3"
STORED_MS: Final = 1_767_268_800_000
CLOCK_MS: Final = 5000
_TASK: Final = TaskId(1, 0)
_STEPS: Final = (
    StepPlace(ProcessorId(0), 1, 0, StepSpec(id="read-1", name="files", keeps="places")),
    StepPlace(
        ProcessorId(1), 1, 0, StepSpec(id="visits-1", name="Visits", keeps="all", is_whole=True)
    ),
)
_CHAIN: Final = StepPlace(ProcessorId(1), 1, 1, StepSpec(id="sum-1", name="sum", keeps="sums"))


def a_kept_application(
    store: Checkpoints,
    changes: Sequence[Callable[[KeyedState], None]],
    *,
    is_whole: bool = True,
    has_changelog: bool = False,
) -> list[SnapshotFile]:
    """Store an application called 'shop' after these changes of the state of its task 1.0.

    The task is the user's own, 'Visits', or a chain with the step 'sum'. Returns the files.
    """
    log = CoordinatorLog(
        store, PREFIX, launch=1, source="app master", wall_ms=lambda: STORED_MS, host="h"
    )
    steps = _STEPS if is_whole else (_STEPS[0], _CHAIN)
    dag = DagVersion(0, "hash", ("0 files x1", "1 x x1"), {each.step.id: each for each in steps})
    log.append([*ApplicationView(log.state).write("shop"), *DagVersions(log.state).write(dag)])
    state, files = heap_state(), list[SnapshotFile]()
    for epoch, change in enumerate(changes, 1):
        change(state)
        sections = list(delta.sections()) if (delta := state.snapshot()) else []
        part = TaskPart(task=_TASK, head=b"head", deltas=[partial(iter, sections)])
        for partition in (None, 0) if has_changelog else (None,):
            name = f"{PREFIX}/epochs/region0/epoch{epoch}-{partition}"
            files.append(
                save_snapshot(store, name, (_TASK,), snapshot_chunks([part]), partition=partition)
            )
        manifest = Manifest(
            region=0,
            epoch=epoch,
            attempt=1,
            clock_ms=CLOCK_MS * epoch,
            snapshots=tuple(files),
            offsets=(),
        )
        log.append(EpochManifests(log.state).messages_for(manifest))
    return files
