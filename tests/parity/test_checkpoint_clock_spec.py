"""Promises of Gearpump's `ClockServiceSpec` about checkpoint times, which are epochs here."""

from gearpy.core.app.decisions import StoreManifest
from gearpy.core.app.region_epochs import RegionEpochs
from gearpy.ids import MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile, TaskClock
from tests.core.world_parts import some_limits

THREE, FOUR = TaskId(3, 0), TaskId(4, 0)
PLACEMENT = {THREE: ExecutorId(3), FOUR: ExecutorId(4)}
TIMEOUT_MS = 1000


def some_running() -> RegionEpochs:
    """Return epochs of two tasks in two executors, which run since 0."""
    epochs = RegionEpochs(
        region=0,
        version=0,
        placement=PLACEMENT,
        limits=some_limits(epoch_timeout_ms=TIMEOUT_MS),
        manifests=(),
        owns=lambda _: True,
    )
    epochs.on_deploy(1)
    epochs.on_ready(0)
    return epochs


def report(epochs: RegionEpochs, clock_ms: int) -> None:
    """Let both tasks come to this time."""
    for task in PLACEMENT:
        clock = TaskClock(
            task_id=task, session=SessionId(1), clock_ms=clock_ms, watermark_ms=clock_ms
        )
        epochs.on_clock(clock)


def store(epochs: RegionEpochs, task: TaskId, epoch: int, now_ms: int) -> None:
    """Let a task's state at the end of an epoch be stored, and what the coordinator makes of it."""
    file = SnapshotFile(location=f"{epoch}/{task}", sha256="", tasks=(task,))
    message = EpochStored(executor_id=PLACEMENT[task], attempt=1, epoch=epoch, snapshots=(file,))
    for command in epochs.on_stored(message, now_ms):
        assert isinstance(command, StoreManifest)
        epochs.on_manifest_stored(command.manifest.epoch, now_ms)


def start_clock(epochs: RegionEpochs) -> int:
    """Return where a restart would begin. Gearpump: `GetStartClock`."""
    return epochs.history.clock_ms


def test_a_restart_begins_where_all_have_stored_their_state() -> None:
    """`ClockServiceSpec`: of the times that all stateful tasks have reported, the newest counts.

    There one task reports 200, the other 300, and only when the first reports 300, too, that is the
    start clock. Here epoch 1 is stored for one of them, epoch 2 for both.
    """
    epochs = some_running()
    report(epochs, 200)
    epochs.advance(300)
    store(epochs, THREE, 1, 310)
    assert start_clock(epochs) == MIN_MS

    report(epochs, 300)
    epochs.advance(300 + TIMEOUT_MS)
    store(epochs, FOUR, 2, 1400)
    assert start_clock(epochs) == MIN_MS
    store(epochs, THREE, 2, 1410)

    assert start_clock(epochs) == 300


def test_tasks_that_choose_different_times_cannot_happen() -> None:
    """Gearpump waits for a time that all report, which may never come: each chooses by itself.

    An epoch has a number that the coordinator gives; a task without records stores it, too.
    """
    epochs = some_running()
    for epoch in range(1, 6):
        report(epochs, 100 * epoch)
        epochs.advance(300 * epoch)
        for task in PLACEMENT:
            store(epochs, task, epoch, 300 * epoch)
        assert start_clock(epochs) == 100 * epoch
