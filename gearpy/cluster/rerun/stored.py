"""Reads the stored state and input of one task, with which it can run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gearpy.cluster.checkpoints.reading import StoredEpochs
from gearpy.core.coordinator.versions import Versions
from gearpy.core.coordinator.views import ConfigView
from gearpy.core.epoch.recorded import RECORDED, RecordedName, RerunPath, following, rerun_path
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.state.stores.store import Section
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import SnapshotChain
from gearpy.task.api.snapshots import TaskResume, TaskState
from gearpy.task.runtime.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """The state of a task at the end of an epoch; 0 and None: that of its beginning."""

    epoch: int
    resume: TaskResume | None

    @property
    def records_in(self) -> int:
        return (
            0 if self.resume is None else TaskState.decode(self.resume.head).counters["records_in"]
        )


class StoredTask:
    """Finds the states and recordings of a task in a checkpoint store."""

    def __init__(self, checkpoints: Checkpoints, prefix: str, task: TaskId) -> None:
        self._checkpoints = checkpoints
        self._prefix = prefix
        self.task = task
        self._stored = StoredEpochs(checkpoints, prefix)
        self.versions = Versions(self._stored.state)
        self._manifests = [
            each for each in self._stored if any(task in file.tasks for file in each.chain)
        ]

    @property
    def epochs(self) -> list[int]:
        return sorted(each.epoch for each in self._manifests)

    @property
    def config(self) -> dict[str, str]:
        return ConfigView(self._stored.state).read()

    def nearest(self, epoch: int | None) -> int:
        wanted = [each for each in self.epochs if epoch is None or each <= epoch]
        return wanted[-1] if wanted else next(iter(self.epochs), 0)

    @contextmanager
    def state(self, epoch: int) -> Iterator[KeptState]:
        if not epoch:
            yield KeptState(epoch=0, resume=None)
            return
        manifest = next((each for each in self._manifests if each.epoch == epoch), None)
        if manifest is None:
            there = ", ".join(map(str, self.epochs)) or "none"
            raise ConfigError(
                f"epoch {epoch} of task {self.task} is not stored; there are: {there}"
            )
        with SnapshotChain(self._checkpoints, manifest.chain) as chain:
            sections = [Section(group, body) for group, body in chain.sections(self.task)]
            head = chain.head(self.task)
            yield KeptState(epoch=epoch, resume=TaskResume(head=head, sections=sections))

    def path(self, *, after: int | None, until: int | None) -> RerunPath:
        return rerun_path(self._recorded(), self.epochs, after=after, until=until)

    def following(self, at: RecordedName | None) -> RerunPath | None:
        return following(self._recorded(), self.epochs, at)

    def _recorded(self) -> list[RecordedName]:
        found = [each for each in map(RecordedName.parse, self._names()) if each is not None]
        return [each for each in found if each.task == self.task]

    def recordings(self, path: RerunPath) -> list[Recording]:
        by_name = {name.rpartition("/")[2]: name for name in self._names()}
        recordings = []
        for each in map(str, path.recorded):
            if each not in by_name:
                raise SnapshotDamaged(location=each, reason="it is not stored any more")
            recordings.append(Recording.decode(self._checkpoints.load(by_name[each])))
        return recordings

    def _names(self) -> list[str]:
        return self._checkpoints.names(f"{self._prefix}/{RECORDED}")
