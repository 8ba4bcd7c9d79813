"""Runs another version of a step on the input of one that runs, here, and compares the outputs."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.rerun.again import (
    RerunPlace,
    RerunSide,
    kept_policy,
    program_of,
    programs,
    rerun_of,
)
from gearpy.cluster.rerun.stored import StoredTask
from gearpy.config.hidden import shown_args
from gearpy.config.schema import Config
from gearpy.core.dag.graph import Dag
from gearpy.core.dag.state_moves import layout_of, state_moves
from gearpy.core.epoch.compared import OutputComparison, PutOut
from gearpy.core.epoch.recorded import RecordedName
from gearpy.core.epoch.share import EVERY_MAX
from gearpy.errors import ConfigError, OperatorError, ProtocolError, SnapshotDamaged
from gearpy.ids import AppId, ProcessorId, TaskId
from gearpy.messages.client import Artifact
from gearpy.task.api.application import StreamApplication
from gearpy.task.runtime.digest import OutputDigest
from gearpy.task.runtime.recording import Recording
from gearpy.task.runtime.rerun import Rerun, RerunClock
from gearpy.wire.values.extensions import EncoderPool
from gearpy.wire.values.records import DEFAULT_REGISTRY

_POLL_S: Final = 0.3
#: An application that has stored no epoch for so long, or recorded none of so many, is not waited
#: for any more.
_PATIENCE_S: Final = 60.0
_PATIENCE_EPOCHS: Final = 2 * EVERY_MAX


class KeptOutput(OutputDigest):
    """Keeps the records that a task puts out or shows, until they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0  #: The time that this took, which is none of the task's.
        self._kept: list[PutOut] = []
        self._pack = EncoderPool(DEFAULT_REGISTRY).pack

    def add(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        began_s = time.perf_counter()
        super().add(values, timestamps)
        for value, at_ms in zip(values, timestamps, strict=True):
            try:
                mark: object = self._pack((value, int(at_ms)))
            except ConfigError:
                mark = repr(value), int(at_ms)
            self._kept.append(PutOut(mark=mark, key=_key_of(value), value=value))
        self.seconds += time.perf_counter() - began_s

    def take_records(self) -> list[PutOut]:
        taken, self._kept = self._kept, []
        return taken


@dataclass(slots=True, kw_only=True)
class ShadowReport:
    """The outcome of a shadow: how the outputs of two versions compare."""

    step: str
    tasks: int
    then: RerunSide
    now: RerunSide
    compared: OutputComparison
    records: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        is_whole = self.now.error is None and self.now.rejects == self.then.rejects
        return self.compared.is_same and is_whole

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The parts that tasks of both versions are made from, here."""

    client: ClusterClient
    rerun: RerunPlace
    artifact: Artifact
    then: StreamApplication
    now: StreamApplication


class Shadow:
    """Another version of a step beside an application that runs, in this process.

    It takes what the tasks of the step have taken, which must be recorded, with the state that
    they had; the version that runs does the same once more beside it. Nothing is shown, and the
    application does nothing for it but record.
    """

    def __init__(
        self,
        client: ClusterClient,
        app_id: AppId,
        step: str,
        artifact: Artifact,
        *,
        configured: Callable[..., Config],
        examples: int,
    ) -> None:
        self._client = client
        self._app_id = app_id
        self._step = step
        self._artifact = artifact
        self._configured = configured
        self._examples = examples

    def run(
        self,
        epochs: int,
        *,
        on_round: Callable[[int], None] = lambda _: None,
        is_called_off: Callable[[], bool] = lambda: False,
    ) -> ShadowReport:
        """Compare so many epochs of each task, as they come; fewer if no more come."""
        store, prefix = self._client.store(self._app_id)
        stored = StoredTask(store, prefix, TaskId(0, 0))
        config = self._configured(*(f"{k}={v}" for k, v in stored.config.items()))
        before = program_of(self._client, self._app_id, stored.versions.current)
        after = replace(self._artifact, scale=before.scale)  # It must have as many tasks.
        use = "gear app shadow"
        with programs(self._client, self._app_id, config, before, after, use=use) as (then, now):
            pid = _processor(then.dag, now.dag, self._step)
            rerun = RerunPlace(app_id=self._app_id, config=config, prefix=prefix)
            place = _Place(client=self._client, rerun=rerun, artifact=before, then=then, now=now)
            report = ShadowReport(
                step=then.processors[pid].name,
                tasks=then.dag.processors[pid].parallelism,
                then=RerunSide(_shown(before)),
                now=RerunSide(_shown(self._artifact)),
                compared=OutputComparison(examples=self._examples),
            )
            tasks = [_ShadowedTask(task, place, report) for task in then.dag.tasks_of(pid)]
            _follow(tasks, epochs, report, on_round, is_called_off)
        return report


def _follow(
    tasks: Sequence["_ShadowedTask"],
    epochs: int,
    report: ShadowReport,
    on_round: Callable[[int], None],
    is_called_off: Callable[[], bool],
) -> None:
    quiet_since_s = time.monotonic()
    stored = recorded = 0  # The newest epoch that is stored, and that at the newest recording.
    while report.now.error is None:
        waiting = [each for each in tasks if each.epochs < epochs and not each.is_over]
        if not waiting:
            break
        if is_called_off():
            compared = min(each.epochs for each in tasks)
            report.note(f"ended before its time: {compared} of {epochs} epochs are compared")
            break
        moved = [each.go_on() for each in waiting]
        has_moved = any(moved)
        before, stored = stored, max(each.stored for each in waiting)
        recorded = stored if has_moved else recorded
        if has_moved or before < stored <= recorded + _PATIENCE_EPOCHS:
            quiet_since_s = time.monotonic()
        elif time.monotonic() - quiet_since_s > _PATIENCE_S:
            report.note(f"nothing new was recorded for {_PATIENCE_S:.0f} s")
            break
        on_round(min(each.epochs for each in tasks))
        if not has_moved:
            time.sleep(_POLL_S)
    report.compared.epochs = min(each.epochs for each in tasks)
    for each in tasks:
        each.tell_share()
        each.close()


class _ShadowedTask:
    """One task in two versions, which follows the recordings of the one that runs."""

    def __init__(self, task: TaskId, place: _Place, report: ShadowReport) -> None:
        self.epochs = 0  #: So many were compared.
        self.is_over = False  #: There is nothing more to compare it with.
        self.stored = 0  #: The newest epoch that is stored.
        self._task = task
        self._place = place
        self._report = report
        self._at: RecordedName | None = None  # The newest that was compared.
        self._first = 0  # The first epoch of its attempt.
        self._compared = 0
        self._sides: list[tuple[RerunSide, Rerun, KeptOutput]] = []

    def go_on(self) -> bool:
        store, prefix = self._place.client.store(self._place.rerun.app_id)
        stored = StoredTask(store, prefix, self._task)
        self.stored = max(stored.epochs, default=0)
        app_id, current = self._place.rerun.app_id, stored.versions.current
        if _code(program_of(self._place.client, app_id, current)) != _code(self._place.artifact):
            self.is_over = True
            self._report.note(
                "another version of the application runs now: this is of the one before"
            )
            return False
        try:
            path = stored.following(self._at)
            if path is None:
                return False
            recordings = stored.recordings(path)
            if path.after is not None:
                self._begin(stored, path.after, path.recorded[0])
            for name, recording in zip(path.recorded, recordings, strict=True):
                self._compare(recording)
                self._at = name
        except ConfigError:
            if self._place.rerun.config.application.record_input_bytes:
                return False  # No epoch that is recorded is stored at this moment.
            raise
        except (SnapshotDamaged, ProtocolError):  # Its epoch has gone meanwhile.
            self._at = None
            self.close()
            return False
        return True

    def close(self) -> None:
        for _, rerun, _ in self._sides:
            with suppress(OperatorError):
                rerun.stop()
        self._sides.clear()

    def tell_share(self) -> None:
        if self._at is None or self._place.rerun.config.application.record_input_epochs:
            return
        passed = self._at.epoch - self._first + 1
        if passed > self._compared:
            self._report.note(
                f"{self._compared} of {passed} epochs were compared: as many are recorded as take "
                "a twentieth of the time of a task; application.record-input-epochs=1 records all"
            )

    def _begin(self, stored: StoredTask, epoch: int, head: RecordedName) -> None:
        is_chosen = not self._place.rerun.config.application.record_input_epochs
        if self._at is None or self._at.attempt != head.attempt:
            self._first, self._compared = head.first, 0
        if self._at is not None and not (is_chosen and self._at.attempt == head.attempt):
            self._report.note(
                "the tasks have begun anew from a newer state once: what came between is left out"
            )
        self.close()
        place = self._place
        for side, application in ((self._report.then, place.then), (self._report.now, place.now)):
            kept = KeptOutput()
            with stored.state(epoch) as state:
                rerun = rerun_of(
                    application,
                    self._task,
                    place.rerun,
                    epoch=head.first,
                    resume=state.resume,
                    output=kept,
                    clock=RerunClock(),
                    on_error=kept_policy(place.rerun.config.application.on_error),
                )
                self._sides.append((side, rerun, kept))
                side.do(rerun, rerun.open)

    def _compare(self, recording: Recording) -> None:
        if recording.cut:
            self._report.note(f"some input was not recorded: {recording.cut}")
        (_, first, kept), (_, _, shadowed) = self._sides
        before = first.records
        # The first one is slower, so each is it in turn.
        for side, rerun, output in reversed(self._sides) if self.epochs % 2 else self._sides:
            apart_s = output.seconds
            took_s = side.do(rerun, partial(rerun.run, [recording]))
            side.seconds += took_s - (output.seconds - apart_s)
        self._report.records += first.records - before
        self._report.compared.add(recording.epoch, kept.take_records(), shadowed.take_records())
        self.epochs += 1
        self._compared += recording.epoch - recording.first + 1
        if first.difference is not None:
            self._report.note(
                "the version that runs does not repeat what it did: its output depends on more "
                "than its input, such as the time, chance or calls; so differences tell less"
            )


def _processor(then: Dag, now: Dag, step: str) -> ProcessorId:
    found = _processors_of(then, step)
    if len(found) != 1:
        several = "several steps are" if found else "no step is"
        raise ConfigError(f"{several} called {step!r}: take one of {_ids(then)}")
    (pid,) = found
    old = then.processors[pid]
    if not then.upstream(pid):
        raise ConfigError(f"{old.name} reads a source: take a step behind it")
    if not (placed := _processors_of(now, step)):
        raise ConfigError(
            f"the new version has no step {step!r}: a shadow finds a step by its name, so give it "
            f"name={step!r} there too; there are {_ids(now)}"
        )
    inputs = [_shape(dag, pid) for dag in (then, now)]
    if pid not in placed or inputs[0] != inputs[1]:
        raise ConfigError(
            f"{step} takes other streams in the new version, or has other tasks: a shadow takes "
            "the input of the old one. 'gear app update --dry-run' tells what is different"
        )
    mine = {each.id for each in old.steps}
    moves = state_moves(layout_of(then), layout_of(now))
    lost = [each for each in moves if each.id in mine and each.is_lost]
    if lost:
        raise ConfigError(
            f"{lost[0]}: a shadow goes on from the state of the old version, and this step keeps "
            "something else in the new one"
        )
    return pid


def _ids(dag: Dag) -> str:
    return ", ".join(each.id for spec in dag.processors.values() for each in spec.steps)


def _processors_of(dag: Dag, step: str) -> set[ProcessorId]:
    by_id = {pid for pid, spec in dag.processors.items() if step in {s.id for s in spec.steps}}
    return by_id or {
        pid for pid, spec in dag.processors.items() if step in {s.name for s in spec.steps}
    }


def _shape(dag: Dag, pid: ProcessorId) -> Mapping[ProcessorId, int]:
    known = [each for each in (pid, *dag.upstream(pid)) if each in dag.processors]
    return {each: dag.processors[each].parallelism for each in known}


def _code(artifact: Artifact) -> Artifact:
    return replace(artifact, bounds=())


def _shown(artifact: Artifact) -> str:
    return " ".join((artifact.filename or artifact.location, *shown_args(artifact.args)))


def _key_of(value: Any) -> str:
    if hasattr(value, "key"):
        return repr(value.key)
    return repr(value[0]) if isinstance(value, tuple) and value else ""
