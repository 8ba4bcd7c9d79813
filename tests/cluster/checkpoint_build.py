"""An application that has stopped, in a checkpoint store: its log, its epochs, its files."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from gearpy.core.coordinator.views import DagVersion, DagVersions, EpochManifests, SourcePlaces
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TaskOffsets
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.snapshot_files import TaskPart, snapshot_chunks
from gearpy.task.api.snapshots import encode_state

PREFIX: Final = "k3f9a1c2/app3"
NOON_MS: Final = 1_767_268_800_000  # 2026-01-01T12:00:00Z
FILES: Final = TaskId(0, 0)
COUNT: Final = TaskId(1, 0)
_GRAPH: Final = ("0 files x1 reads a,b", "1 count(word) x1 (keyed)", "0 -> 1 hash")

#: What has changed in keyed state, and where files are read, at the end of each epoch.
_CELLS: Final[Mapping[int, dict[bytes, bytes | None]]] = {
    17: {b"to": b"1", b"be": b"1", b"or": b"1"},
    18: {b"to": b"2", b"or": None, b"not": b"1"},
    19: {b"be": b"2"},
}
_PLACES: Final[Mapping[int, dict[str, Any]]] = {
    17: {"a.txt": 40, "b=c.txt": ("line", 3)},
    18: {"a.txt": 70, "b=c.txt": ("line", 5)},
    19: {"a.txt": 95, "b=c.txt": None},
}


def a_snapshot(store: Checkpoints, prefix: str, epoch: int) -> SnapshotFile:
    body = msgspec.msgpack.encode(_CELLS[epoch])
    parts = [
        TaskPart(task=FILES, head=b"files"),
        TaskPart(task=COUNT, head=b"x" * epoch, deltas=[lambda: [(4, body)]]),
    ]
    name = f"{prefix}/epochs/region0/epoch{epoch}-attempt2-executor0"
    location, sha256, size = store.save(name, snapshot_chunks(parts))
    return SnapshotFile(location=location, sha256=sha256, tasks=(FILES, COUNT), size_bytes=size)


def segments_of(store: Checkpoints, prefix: str, epoch: int) -> list[SnapshotFile]:
    """Store the same in the changelog: both tasks have a partition."""
    made = []
    for partition, (task, cells) in enumerate([(FILES, None), (COUNT, _CELLS[epoch])]):
        sections = [] if cells is None else [(4, msgspec.msgpack.encode(cells))]
        part = TaskPart(task=task, head=b"", deltas=[partial(iter, sections)])
        name = f"{prefix}/changelog/partition-{partition}/epoch{epoch}"
        location, sha256, size = store.save(name, snapshot_chunks([part]))
        made.append(
            SnapshotFile(
                location=location,
                sha256=sha256,
                tasks=(task,),
                size_bytes=size,
                partition=partition,
            )
        )
    return made


def a_manifest(epoch: int, files: list[SnapshotFile]) -> Manifest:
    encoded = {name: encode_state("files", place) for name, place in _PLACES[epoch].items()}
    return Manifest(
        region=0,
        epoch=epoch,
        attempt=2,
        clock_ms=NOON_MS + epoch * 1000,
        snapshots=tuple(files),
        offsets=(TaskOffsets(task_id=FILES, offsets=encoded),),
    )


def an_application(
    store: Checkpoints,
    prefix: str = PREFIX,
    *,
    epochs: tuple[int, ...] = (17, 18, 19),
    has_changelog: bool = False,
) -> None:
    """Store an application that has stopped after some epochs, each with a file of its own."""
    now_ms = NOON_MS
    log = CoordinatorLog(
        store, prefix, launch=1, source="app master", wall_ms=lambda: now_ms, host="h", username="u"
    )
    log.append(DagVersions(log.state).write(DagVersion(0, "hash", _GRAPH, {})))
    files = list[SnapshotFile]()
    for epoch in epochs:
        now_ms += 10_000
        files.append(a_snapshot(store, prefix, epoch))
        if has_changelog:
            files += segments_of(store, prefix, epoch)
        manifest = a_manifest(epoch, files)
        log.append(EpochManifests(log.state).messages_for(manifest, manifest.offsets))


def overrides_of(store: Checkpoints, prefix: str, epoch: int) -> dict[str, Any]:
    """Return what a launch that goes back to an epoch would read instead."""
    log = CoordinatorLog(store, prefix, launch=None, source="", wall_ms=lambda: 0)
    found = SourcePlaces(log.state).overrides([FILES], epoch=epoch)
    return {name: place for each in found for name, place in each.offsets.items()}
