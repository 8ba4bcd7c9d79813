"""Checkpoint stores with applications in them that others can go on from."""

from pathlib import Path

from gearpy.core.coordinator.views import EpochManifests
from gearpy.core.epoch.epochs import Manifest
from gearpy.storage.checkpoints import Checkpoints, FolderCheckpoints, checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog


def a_store(folder: Path, *prefixes: str) -> FolderCheckpoints:
    store = checkpoints_at(folder)
    for prefix in prefixes:
        add_application(store, prefix, 6, 7)
    return store


def add_application(checkpoints: Checkpoints, prefix: str, *epochs: int) -> None:
    log = CoordinatorLog(checkpoints, prefix, launch=1, source="test", wall_ms=lambda: 0)
    for epoch in epochs:
        manifest = Manifest(region=0, epoch=epoch, attempt=1, clock_ms=0, snapshots=())
        log.append(EpochManifests(log.state).messages_for(manifest, ()))
