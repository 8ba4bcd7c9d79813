"""Epochs of a region of two tasks in two executors, and what is told of them."""

from collections.abc import Callable

from gearpy.core.app.decisions import Command, RecoveryLimits, StoreManifest
from gearpy.core.app.deployment import Send
from gearpy.core.app.regions.region_epochs import RegionEpochs
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    CommitEpoch,
    EpochCommitted,
    EpochStored,
    SnapshotFile,
    TaskClock,
)
from tests.core.manager_bench import some_limits

ONE, TWO = ExecutorId(1), ExecutorId(2)
SOURCE, SINK = TaskId(0, 0), TaskId(1, 0)
INTERVAL_MS, TIMEOUT_MS = 300, 10_000
LIMITS = some_limits(retained=1, epoch_timeout_ms=TIMEOUT_MS)


def some_epochs(
    *manifests: Manifest,
    limits: RecoveryLimits = LIMITS,
    owns: Callable[[str], bool] = lambda _: True,
) -> RegionEpochs:
    return RegionEpochs(
        region=4,
        version=0,
        placement={SOURCE: ONE, SINK: TWO},
        limits=limits,
        manifests=manifests,
        owns=owns,
    )


def some_running(
    *manifests: Manifest,
    limits: RecoveryLimits = LIMITS,
    owns: Callable[[str], bool] = lambda _: True,
) -> RegionEpochs:
    epochs = some_epochs(*manifests, limits=limits, owns=owns)
    epochs.on_deploy(7)
    epochs.on_ready(0)
    return epochs


def a_file(name: str, *tasks: TaskId) -> SnapshotFile:
    return SnapshotFile(location=name, sha256="", tasks=tasks or (SOURCE, SINK))


def a_manifest(
    epoch: int, *more: str, attempt: int = 1, cut_time_ms: int | None = None
) -> Manifest:
    return Manifest(
        region=4,
        epoch=epoch,
        attempt=attempt,
        clock_ms=50,
        snapshots=tuple(map(a_file, (*more, f"old{epoch}"))),
        cut_time_ms=cut_time_ms,
    )


def file_of(executor: ExecutorId, epoch: int) -> SnapshotFile:
    return a_file(f"new{epoch}-{executor}", SOURCE if executor == ONE else SINK)


def stored(
    executor: ExecutorId,
    epoch: int = 1,
    *before: SnapshotFile,
    attempt: int = 7,
    has_missed_cut: bool = False,
) -> EpochStored:
    return EpochStored(
        executor_id=executor,
        attempt=attempt,
        epoch=epoch,
        snapshots=(*before, file_of(executor, epoch)),
        has_missed_cut=has_missed_cut,
    )


def committed(executor: ExecutorId, epoch: int, attempt: int = 7) -> EpochCommitted:
    return EpochCommitted(executor_id=executor, attempt=attempt, epoch=epoch)


def clock(
    epochs: RegionEpochs,
    task: TaskId,
    clock_ms: int,
    *,
    idle: bool = False,
    newest_ms: int = MIN_MS,
    caught_up: bool = False,
) -> None:
    epochs.on_clock(
        TaskClock(
            task_id=task,
            session=SessionId(1),
            clock_ms=clock_ms,
            watermark_ms=clock_ms,
            idle=idle,
            newest_ms=newest_ms,
            caught_up=caught_up,
        )
    )


def finish(epochs: RegionEpochs) -> None:
    clock(epochs, SOURCE, MAX_MS)
    clock(epochs, SINK, MAX_MS)


def store_epoch(epochs: RegionEpochs, now_ms: int) -> Manifest:
    """Let both executors store the epoch that was announced; return its manifest."""
    begun = epochs.history.newest
    number = begun.epoch + 1 if begun else 1
    commands = [*epochs.on_stored(stored(ONE, number), now_ms)]
    commands += epochs.on_stored(stored(TWO, number), now_ms)
    [store] = commands
    assert isinstance(store, StoreManifest)
    return store.manifest


def complete_epoch(epochs: RegionEpochs, now_ms: int) -> Manifest:
    """End an epoch that is stored and committed; return its manifest."""
    epochs.advance(now_ms)
    manifest = store_epoch(epochs, now_ms)
    epochs.on_manifest_stored(manifest.epoch, now_ms)
    for each in (ONE, TWO):
        epochs.on_committed(committed(each, manifest.epoch))
    return manifest


def begins(epoch: int, cut_time_ms: int | None = None) -> list[Command]:
    begin = BeginEpoch(version=0, attempt=7, epoch=epoch, cut_time_ms=cut_time_ms)
    return [Send(executor_id=each, message=begin) for each in (ONE, TWO)]


def commits(epoch: int, *executors: ExecutorId) -> list[Command]:
    commit = CommitEpoch(version=0, attempt=7, epoch=epoch)
    return [Send(executor_id=each, message=commit) for each in executors or (ONE, TWO)]
