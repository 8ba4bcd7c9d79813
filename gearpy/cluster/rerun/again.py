"""Runs one task of an application again, here, and says whether the same came of it."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec.structs import replace

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.host.task_limits import output_limits, task_limits
from gearpy.cluster.programs.artifacts import ApplicationLoader, stream_of, with_serializers
from gearpy.cluster.programs.fetch import ArtifactCache
from gearpy.cluster.rerun.stored import KeptState, StoredTask
from gearpy.config.schema import Config
from gearpy.core.coordinator.versions import ProgramVersion
from gearpy.core.epoch.recorded import RerunPath
from gearpy.errors import ConfigError, OperatorError, SnapshotDamaged
from gearpy.ids import AppId, ProcessorId, SessionId, TaskId
from gearpy.messages.client import Artifact, GetSubmission, ListQuarantined, QuarantinedRecord
from gearpy.messages.summaries import ErrorCard
from gearpy.storage.archives import ArtifactLimits
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.rejects import OnError
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.runtime.digest import OutputDigest
from gearpy.task.runtime.rerun import Rerun, RerunClock
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.transport.loop.coroutines import CoroutineThread

#: What is stored is looked at so often, where some of it is removed meanwhile.
_LOOKS_MAX: Final = 5
_TURN_MS: Final = 2
#: So long a call of user code that is asynchronous is waited for.
_PATIENCE_S: Final = 60.0
#: A source that has given nothing for so long has nothing more.
_IDLE_S: Final = 5.0
_PAUSE_S: Final = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The failure, record or epochs that a user wants to see again; see `TaskAgain`."""

    task: TaskId | None = None
    epoch: int | None = None
    until: int | None = None
    record: int | None = None


@dataclass(slots=True)
class RerunSide:
    """A program of which tasks run again, and what has come of it."""

    program: str = ""
    seconds: float = 0.0
    error: OperatorError | None = None
    rejects: int = 0
    rejected: ErrorCard | None = None

    def do(self, rerun: Rerun, work: Callable[[], object]) -> float:
        if self.error is not None:
            return 0.0
        began_s, rejects = time.perf_counter(), rerun.rejects
        try:
            work()
        except OperatorError as error:
            self.error = error
        self.rejects += rerun.rejects - rejects
        self.rejected = self.rejected or rerun.rejected
        return time.perf_counter() - began_s


@dataclass(slots=True, kw_only=True)
class RerunOutcome(RerunSide):
    """The outcome of a run of one task again.

    Attributes:
        failed_then: what it failed with then; empty if it did not, None if nobody knows.
        cut: why the recorded input ends too early; empty if it does not.
    """

    input: str
    failed_then: str | None = ""
    cut: str = ""
    rerun: Rerun = field(init=False)

    @property
    def compared(self) -> int:
        return self.rerun.compared

    @property
    def is_same(self) -> bool:
        """Tell whether it failed as then, and put out the same, as far as that is known."""
        cause = "" if self.error is None else self.error.cause
        return self.rerun.difference is None and self.failed_then in {None, cause}


class TaskAgain:
    """One task with its program, its state and its input, ready to run in this process.

    Sinks show nothing. Other things that user code does, it does again.
    """

    def __init__(
        self,
        client: ClusterClient,
        app_id: AppId,
        wanted: Wanted,
        *,
        configured: Callable[..., Config],
    ) -> None:
        self._client = client
        self._app_id = app_id
        self._wanted = wanted

        self._record: QuarantinedRecord | None = None
        task = wanted.task
        if (number := wanted.record) is not None:
            asked = ListQuarantined(app_id=app_id, numbers=(number,))
            self._record = client.ask(asked).records[0]
            task = task_of(self._record.error.task)
            if task is None:
                raise ConfigError(f"record {number} does not say which task it is of")
        assert task is not None, "a task, or a record"
        self.task = task
        self._store, self._prefix = client.store(app_id)
        self.after = 0  #: The epoch whose state it has, when it has run.
        self._stored = StoredTask(self._store, self._prefix, self.task)
        self._config = configured(*(f"{k}={v}" for k, v in self._stored.config.items()))
        self._path = self._recorded()
        self.notes: list[str] = []

    @contextmanager
    def program(self) -> Iterator[StreamApplication]:
        artifact = program_of(self._client, self._app_id, self._version())
        with programs(  # Under their own names, for a debugger.
            self._client, self._app_id, self._config, artifact, own_process=True, use="gear debug"
        ) as (application,):
            if self.task not in application.dag.tasks():
                there = ", ".join(
                    f"{pid}.0 ({application.processors[pid].name})" for pid in application.dag.order
                )
                raise ConfigError(
                    f"application {self._app_id} has no task {self.task}; there are: {there}"
                )
            yield application

    def run(self, application: StreamApplication) -> RerunOutcome:
        noted = [*self.notes]
        for _ in range(_LOOKS_MAX - 1):
            try:
                return self._run(application)
            except SnapshotDamaged:
                before = self._stored.versions.current
                self._stored = StoredTask(self._store, self._prefix, self.task)
                self._path = self._recorded()
                if self._stored.versions.current != before:
                    raise
            self.notes = [*noted]
        return self._run(application)

    def _run(self, application: StreamApplication) -> RerunOutcome:
        processor = application.processors[ProcessorId(self.task.processor)]
        if self._record is not None:
            record = self._record
            epoch = self._epoch_of(record)
            before = record.error.epoch - 1
            if before < 0:
                self.notes.append("it is not known in which epoch the record was put aside")
            elif epoch > before:
                self.notes.append(
                    f"the record came in epoch {before + 1}, and of the epochs before none is "
                    "stored any more: the state is newer than the record"
                )
            elif epoch < before:
                self.notes.append(
                    f"the record came in epoch {before + 1}: the state is older, and lacks what "
                    "came between"
                )
            outcome = RerunOutcome(
                input=f"record {record.number} of the quarantine", failed_then=record.error.cause
            )
            with self._again(outcome, application, epoch, "fail") as (rerun, _):
                outcome.do(rerun, lambda: rerun.inject(record.value, record.event_time_ms))
            return outcome
        if application.dag.upstream_tasks(self.task):
            path = self._path or self._find_path()
            recordings = self._stored.recordings(path)
            policy = kept_policy(self._config.application.on_error)
            begin, end = recordings[0].first, recordings[-1].epoch
            name = f"epoch {end}" if begin == end else f"epochs {begin} to {end}"
            outcome = RerunOutcome(
                input=f"recorded input of {name}",
                failed_then=recordings[-1].failed,
                cut=next((each.cut for each in recordings if each.cut), ""),
            )
            after = path.after or 0
            with self._again(outcome, application, after, policy, first=begin) as (rerun, _):
                outcome.do(rerun, lambda: rerun.run(recordings))
            return outcome
        if processor.source is None or not processor.source.replayable:
            raise ConfigError(
                f"task {self.task} ({processor.name}) reads a source that cannot be read again "
                "from where it was"
            )
        return self._run_source(application)

    def operator(self, application: StreamApplication) -> str:
        return application.processors[ProcessorId(self.task.processor)].name

    # -- three kinds of input --------------------------------------------------------------

    def _run_source(self, application: StreamApplication) -> RerunOutcome:
        epoch, until = self._source_epoch(), self._wanted.until
        if self._wanted.epoch is not None and epoch > self._wanted.epoch:
            there = ", ".join(map(str, self._stored.epochs))
            raise ConfigError(
                f"epoch {self._wanted.epoch} is not stored any more, nor one before it; there "
                f"are: {there}"
            )
        later = [each for each in self._stored.epochs if each > epoch]
        end = max(later, default=None) if until is None else until if until in later else None
        outcome = RerunOutcome(input="its source, read again", failed_then=None)
        policy = self._config.application.on_error
        with self._again(outcome, application, epoch, policy) as (rerun, kept):
            records = None
            if end is not None:
                outcome.input += f" up to where epoch {end} ended"
                with self._stored.state(end) as at_end:
                    records = at_end.records_in - kept.records_in
            outcome.do(rerun, lambda: rerun.read(_Enough(records)))
        return outcome

    # -- the task --------------------------------------------------------------------------

    @contextmanager
    def _again(
        self,
        outcome: RerunOutcome,
        application: StreamApplication,
        epoch: int,
        policy: OnError,
        *,
        first: int = 0,
    ) -> Iterator[tuple[Rerun, KeptState]]:
        """Begin the task with its state at the end of an epoch; it is stopped at the end."""
        self.after = epoch
        is_source = not application.dag.upstream_tasks(self.task)
        clock = RerunClock(wall_ms) if is_source or self._record else RerunClock()
        with self._stored.state(epoch) as kept:
            rerun = rerun_of(
                application,
                self.task,
                RerunPlace(app_id=self._app_id, config=self._config, prefix=self._prefix),
                epoch=first or epoch + 1,
                resume=kept.resume,
                output=OutputDigest(),
                clock=clock,
                on_error=policy,
            )
            outcome.rerun = rerun
            try:
                outcome.do(rerun, rerun.open)
                yield rerun, kept
            finally:
                with suppress(OperatorError):
                    rerun.stop()

    # -- the version of the program --------------------------------------------------------

    def _version(self) -> ProgramVersion | None:
        versions = self._stored.versions
        if self._record is not None:
            version = versions.on_state(self._epoch_of(self._record))
            self._note_version(version, versions.of_epoch(self._record.error.epoch))
            return version
        if self._path is None:
            version = versions.on_state(self._source_epoch())
        else:
            version = versions.of_epoch(self._path.recorded[0].first)
            if version is not None and version.epoch and not self._path.after:
                self.notes.append(
                    f"version {version.number} began with the state of epoch {version.epoch}, "
                    "which is not stored any more: the task begins without it, and may do "
                    "something else than then"
                )
        self._note_version(version, versions.current)
        return version

    def _note_version(self, version: ProgramVersion | None, other: ProgramVersion | None) -> None:
        if version is None or other is None or _code(version) == _code(other):
            return
        name = f"version {version.number} of the program"
        if self._record is None:
            self.notes.append(f"{name} is what ran then; version {other.number} runs now")
        else:
            self.notes.append(
                f"{name} is what gets the record; version {other.number} put it aside"
            )

    # -- what is wanted --------------------------------------------------------------------

    def _recorded(self) -> RerunPath | None:
        if self._record is not None:
            return None
        try:
            return self._find_path()
        except ConfigError:
            return None  # A task that reads a source needs none.

    def _find_path(self) -> RerunPath:
        return self._stored.path(after=self._wanted.epoch, until=self._wanted.until)

    def _epoch_of(self, record: QuarantinedRecord) -> int:
        before = record.error.epoch - 1
        return self._stored.nearest(before if before >= 0 else None)

    def _source_epoch(self) -> int:
        if self._wanted.epoch is None and len(self._stored.epochs) > 1:
            return self._stored.epochs[-2]
        return self._stored.nearest(self._wanted.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunPlace:
    """The application of a task that runs again, with its settings and the name of its files."""

    app_id: AppId
    config: Config
    prefix: str


def kept_policy(on_error: OnError) -> OnError:
    return "quarantine" if on_error == "skip" else on_error


def program_of(client: ClusterClient, app_id: AppId, version: ProgramVersion | None) -> Artifact:
    artifact = (
        client.ask(GetSubmission(app_id=app_id)).artifact if version is None else version.artifact
    )
    if artifact is None or artifact.kind == "memory":
        raise ConfigError(
            f"application {app_id} is an object of the process that runs it: submit its file with "
            "'gear app submit', then it can be run again elsewhere"
        )
    return artifact


@contextmanager
def programs(
    client: ClusterClient,
    app_id: AppId,
    config: Config,
    *artifacts: Artifact,
    use: str,
    own_process: bool = False,
) -> Iterator[tuple[StreamApplication, ...]]:
    loader, limits = ApplicationLoader(own_process=own_process), ArtifactLimits.of(config.artifact)
    with (
        TemporaryDirectory(prefix="gearpy-rerun-") as folder,
        closing(ArtifactCache(Path(folder).resolve(), client.send, limits)) as cache,
    ):
        try:
            yield tuple(
                stream_of(loader.load(app_id, each, number, cache.path_of(each)), use)
                for number, each in enumerate(artifacts)
            )
        finally:
            for number in range(len(artifacts)):
                loader.release(app_id, number)


def rerun_of(
    application: StreamApplication,
    task: TaskId,
    place: RerunPlace,
    *,
    epoch: int,
    resume: TaskResume | None,
    output: OutputDigest,
    clock: RerunClock,
    on_error: OnError,
) -> Rerun:
    woken = threading.Event()
    factory = RunnerFactory(
        application=with_serializers(application, place.config),
        output=output_limits(place.config),
        limits=task_limits(place.config),
        turn_ms=_TURN_MS,
        clock_ms=clock.read,
        wall_ms=clock.read,
        rng=random.Random(),
        app_id=place.app_id,
        on_error=on_error,
        run=place.prefix,
        coroutines=CoroutineThread(),
        is_rerun=True,
    )
    runner = factory.make(task, SessionId(1), epoch=epoch, resume=resume)
    runner.context.wake = woken.set
    return Rerun(runner, output=output, clock=clock, wait=lambda: _wait(woken))


def _code(version: ProgramVersion) -> Artifact:
    return replace(version.artifact, scale=(), bounds=())


class _Enough:
    """Ends the reading of a source: after so many records, or when it has nothing more."""

    def __init__(self, records: int | None) -> None:
        self._wanted = records
        self._seen = -1
        self._since_s = self._began_s = time.monotonic()

    def __call__(self, records: int) -> bool:
        now_s = time.monotonic()
        if records != self._seen:
            self._seen, self._since_s = records, now_s
        elif now_s - self._since_s < _IDLE_S:
            time.sleep(_PAUSE_S)
        else:
            return True
        if self._wanted is not None:
            return records >= self._wanted
        return now_s - self._began_s >= _PATIENCE_S


def task_of(text: str) -> TaskId | None:
    processor, _, index = text.partition(".")
    if processor.isdecimal() and index.isdecimal():
        return TaskId(int(processor), int(index))
    return None


def _wait(woken: threading.Event) -> bool:
    is_woken = woken.wait(_PATIENCE_S)
    woken.clear()
    return is_woken
