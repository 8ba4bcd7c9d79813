"""A damaged file of the newest epoch: noticed whatever the damage, and the epoch before is used."""

from pathlib import Path

import pytest

from gearpy.cluster.executor.snapshot_writer import (
    SnapshotWriter,
    TasksLoaded,
    TasksUnloadable,
    WriterAnswer,
)
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ExecutorId, SessionId
from gearpy.messages.app import LaunchTasks, SnapshotFile, SnapshotsDamaged, TaskLaunch
from gearpy.state.open import heap_state
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.held import HeldCheckpoints
from gearpy.storage.snapshot_files import TaskPart, snapshot_chunks
from gearpy.wire.values.pieces import joined
from tests.core.region_build import ONE, SOURCE, some_epochs


class Owner:
    def __init__(self) -> None:
        self.answers: list[WriterAnswer] = []

    def tell(self, message: WriterAnswer) -> None:
        self.answers.append(message)


class Stored:
    def __init__(self, folder: Path) -> None:
        self.store = checkpoints_at(folder)
        HeldCheckpoints(self.store, "app1").begin(is_known=False)
        CoordinatorLog(self.store, "app1", launch=1, source="test", wall_ms=lambda: 0)
        self.owner = Owner()
        self.writer = SnapshotWriter(self.owner, self.store, prefix="app1")  # type: ignore[arg-type] # takes answers
        state = heap_state()
        count = state.value("count", coder="int", default=0)
        files: list[SnapshotFile] = []
        self.manifests: list[Manifest] = []
        for epoch in (1, 2):
            for key in "abc":
                state.key = key
                count.set(epoch)
            delta = state.snapshot()
            assert delta is not None
            part = TaskPart(task=SOURCE, head=b"head %d" % epoch, deltas=[delta.sections])
            stored = self.store.save(f"app1/epochs/epoch{epoch}", snapshot_chunks([part]))
            files.append(SnapshotFile(**stored._asdict(), tasks=(SOURCE,)))
            manifest = Manifest(
                region=4, epoch=epoch, attempt=1, clock_ms=0, snapshots=tuple(files)
            )
            self.manifests.append(manifest)
        self.newest = folder / files[1].location
        self.oldest = folder / files[0].location

    def load(self, manifest: Manifest) -> WriterAnswer:
        launch = LaunchTasks(
            region=4,
            version=0,
            attempt=7,
            tasks=(TaskLaunch(task_id=SOURCE, session=SessionId(1)),),
            epoch=manifest.epoch + 1,
            snapshots=manifest.snapshots,
        )
        self.writer.receive(launch)
        return self.owner.answers.pop()

    def check_fallback(self) -> None:
        """See that the newest epoch is refused, and what is used in its place."""
        epochs = some_epochs(*self.manifests)
        epochs.on_deploy(7)
        refused = self.load(self.manifests[1])
        assert isinstance(refused, TasksUnloadable)
        assert refused.location == self.manifests[1].snapshots[1].location
        fell_back = epochs.fall_back(
            SnapshotsDamaged(
                executor_id=ONE,
                version=0,
                attempt=7,
                location=refused.location,
                reason=refused.reason,
            )
        )
        assert fell_back is not None
        assert (fell_back.epochs, fell_back.to) == ((2,), 1)
        newest = epochs.history.newest
        assert newest is not None
        assert kept(self.load(newest)) == (b"head 1", {"a": 1, "b": 1, "c": 1})


def kept(answer: WriterAnswer) -> tuple[bytes, dict[str, int]]:
    assert isinstance(answer, TasksLoaded)
    resume = answer.resume[SOURCE]
    state = heap_state()
    for section in resume.sections:
        state.load(section)
    count = state.value("count", coder="int", default=0)
    found = {}
    for key in list(state.keys("count")):
        state.key = key
        found[key] = count.get()
    return joined(resume.head), found


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path / "checkpoints")


def test_undamaged_epoch_is_what_is_used(stored: Stored) -> None:
    assert kept(stored.load(stored.manifests[1])) == (b"head 2", {"a": 2, "b": 2, "c": 2})


def test_file_cut_off_at_any_byte(stored: Stored) -> None:
    whole = stored.newest.read_bytes()

    for size in range(len(whole)):
        stored.newest.write_bytes(whole[:size])
        stored.check_fallback()


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_any_byte_flipped(stored: Stored, mask: int) -> None:
    whole = stored.newest.read_bytes()

    for at in range(len(whole)):
        stored.newest.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        stored.check_fallback()


@pytest.mark.parametrize("damage", ["missing", "empty", "longer", "another file"])
def test_other_damage(stored: Stored, damage: str) -> None:
    match damage:
        case "missing":
            stored.newest.unlink()
        case "empty":
            stored.newest.write_bytes(b"")
        case "longer":
            stored.newest.write_bytes(stored.newest.read_bytes() + b"\0")
        case _:
            stored.newest.write_bytes(stored.oldest.read_bytes())

    stored.check_fallback()


def test_file_that_all_epochs_need_leaves_nothing_to_go_back_to(stored: Stored) -> None:
    stored.oldest.write_bytes(b"")
    epochs = some_epochs(*stored.manifests)
    epochs.on_deploy(7)
    refused = stored.load(stored.manifests[1])
    assert isinstance(refused, TasksUnloadable)

    fell_back = epochs.fall_back(
        SnapshotsDamaged(
            executor_id=ExecutorId(1),
            version=0,
            attempt=7,
            location=refused.location,
            reason=refused.reason,
        )
    )

    assert fell_back is None


def test_a_store_that_is_not_the_one_of_the_others_is_not_damaged(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.store.drop_all("app1")

    refused = stored.load(stored.manifests[1])

    assert isinstance(refused, TasksUnloadable)
    assert refused.location == ""
    assert refused.is_away
    assert "has nothing of app1 on" in refused.reason
