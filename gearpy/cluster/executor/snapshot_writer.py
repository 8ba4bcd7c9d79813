"""SnapshotWriter: stores epochs and loads them again, beside the tasks that go on meanwhile."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from gearpy.actor.api import Actor, Ref
from gearpy.clocks import monotonic_ms
from gearpy.cluster.executor.ahead import StateAhead
from gearpy.errors import ConfigError, GearpyError, OperatorError, SnapshotDamaged, trouble_of
from gearpy.ids import TaskId
from gearpy.messages.app import LaunchTasks, ReadAhead, SnapshotFile
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.store import Section
from gearpy.storage.changelog import NextSegment, RecordedDelta, chain_of, rebuilt, store_segment
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.held import HeldCheckpoints
from gearpy.storage.snapshot_files import (
    SnapshotChain,
    TaskPart,
    rebased_chunks,
    save_snapshot,
    snapshot_chunks,
)
from gearpy.task.api.snapshots import NO_STATE, TaskResume, TaskSnapshot, decode_state
from gearpy.task.runtime.recording import Recording

_log = logging.getLogger(__name__)


class StoreEpoch(Struct, frozen=True, kw_only=True):
    """Store an epoch under a name.

    Attributes:
        snapshots: of each task all that are not stored yet, oldest first; the last one is of the
            epoch, and its head is what counts.
        changelog: its segments so far, if the keyed state of all tasks is in them.
    """

    attempt: int
    epoch: int
    name: str
    snapshots: Mapping[TaskId, Sequence[TaskSnapshot]]
    kept: tuple[SnapshotFile, ...] = ()
    rebased: tuple[SnapshotFile, ...] = ()
    segments: tuple[NextSegment, ...] = ()
    changelog: tuple[SnapshotFile, ...] = ()

    def parts(self) -> list[TaskPart]:
        return [
            TaskPart(
                task=task, head=snapshots[-1].head, deltas=[each.sections for each in snapshots]
            )
            for task, snapshots in sorted(self.snapshots.items())
        ]


class TasksLoaded(Struct, frozen=True, kw_only=True):
    """The snapshots that the tasks of a launch go on from. ``chain``: files with keyed state.

    With ``is_rebuilt`` a file was damaged, and they are the changelog.
    """

    launch: LaunchTasks
    resume: dict[TaskId, TaskResume]
    chain: tuple[SnapshotFile, ...]
    is_rebuilt: bool = False


class DoneAhead(Struct, frozen=True):
    """An epoch was read for tasks that are to come, as far as it can be; see `StateReadAhead`."""

    request: ReadAhead
    damaged: str = ""
    reason: str = ""


class TasksUnloadable(Struct, frozen=True, kw_only=True):
    """A file is damaged or missing, and the changelog does not help; or the store is away."""

    launch: LaunchTasks
    location: str
    reason: str
    is_away: bool = False


class EpochSaved(Struct, frozen=True, kw_only=True):
    """The epoch is durable in ``file``.

    ``segments`` are those that tasks with another one in the changelog have now. With
    ``stands_alone`` a file before was damaged, and nothing of the chain is needed any more.
    Encoding and storing took ``took_ms``.
    """

    job: StoreEpoch
    file: SnapshotFile
    segments: dict[TaskId, tuple[SnapshotFile, ...]] = field(default_factory=dict)
    stands_alone: bool = False
    took_ms: int = 0


class EpochFailed(Struct, frozen=True, kw_only=True):
    """The epoch could not be stored; ``operator_error`` if the state of a task is the cause.

    ``damaged``: the file before it that is not what was stored, and cannot be had elsewhere.
    """

    job: StoreEpoch
    reason: str
    operator_error: OperatorError | None = None
    damaged: str = ""


class NamedRecording(NamedTuple):
    """The recorded input of a task, and the name that it is to have in the store."""

    task: TaskId
    name: str
    recording: Recording


class StoreRecording(Struct, frozen=True):
    """Store the first of the recordings that wait; no answer."""


#: The writer loads what the tasks of a launch go on from, and stores epochs.
WriterMessage: TypeAlias = LaunchTasks | ReadAhead | StoreEpoch | StoreRecording
WriterAnswer: TypeAlias = TasksLoaded | TasksUnloadable | DoneAhead | EpochSaved | EpochFailed


class SnapshotWriter(Actor[WriterMessage]):
    """Encodes and stores snapshots of tasks; verifies and reads the snapshots of a restart.

    Args:
        recordings: wait to be stored. Those of failures, and those that lead to them, are not lost
            with the mailbox: a version that fails on trial is ended at once.

    Runs on: a thread of its own, so that neither tasks nor the executor wait for a disk.
    Restart: none; its executor ends with it.
    """

    def __init__(
        self,
        owner: Ref[WriterAnswer],
        checkpoints: Checkpoints,
        open_state: Callable[[TaskId], KeyedState | None] = lambda _: None,
        *,
        prefix: str,
        recordings: deque[NamedRecording] | None = None,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._now_ms = now_ms
        self._owner = owner
        checkpoints.hold(prefix)
        self._checkpoints = HeldCheckpoints(checkpoints, prefix)
        self._ahead = StateAhead(self._checkpoints, open_state)
        self._recordings = deque[NamedRecording]() if recordings is None else recordings

    def on_stop(self) -> None:
        failed = {each.task for each in self._recordings if each.recording.failed}
        for each in self._recordings:
            if each.task in failed:
                self._store_recording(each)

    def receive(self, message: WriterMessage) -> None:
        if isinstance(message, StoreRecording):
            self._store_recording(self._recordings.popleft())
            return
        if isinstance(message, ReadAhead):
            damage = self._ahead.read(message)
            told = {} if damage is None else {"damaged": damage.location, "reason": damage.reason}
            self._owner.tell(DoneAhead(message, **told))
            return
        answer = self._load(message) if isinstance(message, LaunchTasks) else self._store(message)
        self._owner.tell(answer)

    def _store_recording(self, waiting: NamedRecording) -> None:
        try:
            self._checkpoints.save(waiting.name, [waiting.recording.encode()])
        except (OSError, GearpyError) as error:  # Nothing depends on it.
            _log.warning("what a task took is not kept: %s", error)

    def _store(self, job: StoreEpoch) -> WriterAnswer:
        began_ms = self._now_ms()
        try:
            with ExitStack() as stack:
                parts = {part.task: part for part in job.parts()}
                for each in job.segments:
                    part = parts[each.task]
                    parts[each.task] = replace(
                        part,
                        deltas=[
                            stack.enter_context(closing(RecordedDelta(delta)))
                            for delta in part.deltas
                        ],
                    )
                file, stands_alone = self._save_file(job, [*parts.values()])
                chain = [*job.kept, *job.rebased]
                segments = {
                    each.task: store_segment(self._checkpoints, each, parts[each.task], chain=chain)
                    for each in job.segments
                }
            return EpochSaved(
                job=job,
                file=file,
                segments=segments,
                stands_alone=stands_alone,
                took_ms=self._now_ms() - began_ms,
            )
        except OperatorError as error:
            return EpochFailed(job=job, reason=str(error), operator_error=error)
        except ConfigError as error:  # It would be refused again, whenever it is tried.
            return EpochFailed(
                job=job,
                reason=str(error),
                operator_error=OperatorError(operator="epoch", cause=str(error), is_final=True),
            )
        except SnapshotDamaged as damage:
            return EpochFailed(job=job, reason=str(damage), damaged=damage.location)
        except (OSError, GearpyError) as error:
            return EpochFailed(job=job, reason=trouble_of(error))

    def _save_file(self, job: StoreEpoch, parts: Sequence[TaskPart]) -> tuple[SnapshotFile, bool]:
        """Store the file of an epoch; say whether it stands for all that were before it, too."""
        tasks = tuple(part.task for part in parts)
        if not job.rebased:
            return save_snapshot(self._checkpoints, job.name, tasks, snapshot_chunks(parts)), False
        try:
            chunks = rebased_chunks(
                self._checkpoints, job.rebased, parts, keeps_deleted=bool(job.kept)
            )
            return save_snapshot(self._checkpoints, job.name, tasks, chunks), False
        except SnapshotDamaged as damage:
            if not job.changelog:
                raise
            _log.warning("epoch %d is written from the changelog: %s", job.epoch, damage)
            chunks = rebased_chunks(self._checkpoints, job.changelog, parts)
            return save_snapshot(self._checkpoints, job.name, tasks, chunks), True

    def _load(self, launch: LaunchTasks) -> WriterAnswer:
        try:
            return self._loaded(launch)
        except SnapshotDamaged as damage:
            return TasksUnloadable(launch=launch, location=damage.location, reason=damage.reason)
        except (OSError, GearpyError) as error:
            is_away = isinstance(error, OSError)
            why = trouble_of(error)
            return TasksUnloadable(launch=launch, location="", reason=why, is_away=is_away)

    def _loaded(self, launch: LaunchTasks) -> TasksLoaded:
        if (resume := self._ahead.resume(launch)) is not None:
            has_state = any(each.state is not None for each in resume.values())
            files = chain_of(launch.snapshots) if has_state else ()
            return TasksLoaded(launch=launch, resume=resume, chain=files)
        try:
            chain = SnapshotChain(self._checkpoints, chain_of(launch.snapshots))
        except SnapshotDamaged as damage:
            tasks = [each.task_id for each in launch.tasks]
            heads, state = rebuilt(self._checkpoints, launch.snapshots, tasks, damage)
            _log.warning(
                "keyed state is rebuilt from %d segments of the changelog: %s",
                len(state.files),
                damage,
            )
            return _tasks_loaded(launch, heads=heads, state=state)
        return _tasks_loaded(launch, heads=chain, state=chain)


def _tasks_loaded(
    launch: LaunchTasks, *, heads: SnapshotChain, state: SnapshotChain
) -> TasksLoaded:
    overrides = {each.task_id: each.offsets for each in launch.overrides}
    resume = {
        task: TaskResume(
            head=heads.head(task) if task in heads.tasks else NO_STATE,
            sections=_Sections(state, task),
            offsets={name: decode_state(place) for name, place in overrides.get(task, {}).items()},
        )
        for task in (each.task_id for each in launch.tasks)
        if task in heads.tasks or task in overrides
    }
    has_state = any(any(True for _ in each.sections) for each in resume.values())
    return TasksLoaded(
        launch=launch,
        resume=resume,
        chain=state.files if has_state else (),
        is_rebuilt=has_state and state is not heads,
    )


class _Sections(Struct, frozen=True):
    """The keyed state of a task, read when it is asked for."""

    chain: SnapshotChain
    task: TaskId

    def __iter__(self) -> Iterator[Section]:
        return (Section(group, body) for group, body in self.chain.sections(self.task))
