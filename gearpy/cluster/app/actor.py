"""AppMasterActor: one application from its slots to its end."""

import logging
from collections.abc import Callable, Iterable, Mapping
from math import inf
from random import Random
from typing import Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from gearpy.actor.api import Actor, Exited, Failed, TurnCall
from gearpy.cluster.app.changes.asked import AskedChanges, Loaded
from gearpy.cluster.app.changes.autoscaling import AppAutoscale
from gearpy.cluster.app.checkpoints import AppCheckpoints, FoundEpochs
from gearpy.cluster.app.config import recovery_limits
from gearpy.cluster.app.connections import AppExecutors, MasterLink
from gearpy.cluster.app.events import CoreEvent, decide
from gearpy.cluster.app.metrics import AppMetrics
from gearpy.cluster.app.named_epochs import IN_MEMORY, NamedEpochs
from gearpy.cluster.app.opening import OPEN_AGAIN_MS, LogOpening
from gearpy.cluster.app.quarantine import AppQuarantine, AppReplays, task_of
from gearpy.cluster.app.queries import AppQueries, Shown
from gearpy.cluster.app.status import AppStatus
from gearpy.cluster.app.versions import AppVersions, LoadedVersion, no_way_back
from gearpy.cluster.net.limits import REPORT_INTERVAL_MS
from gearpy.cluster.net.masters import several_masters
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.outline import LoadProgram
from gearpy.config.schema import Config
from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.decisions import (
    Activated,
    ChangeGivenUp,
    Command,
    DamageFound,
    DropSnapshots,
    Ended,
    EpochAborted,
    EpochsRetired,
    FellBack,
    GoBack,
    HeldUp,
    PutInPlace,
    StoreManifest,
    Survived,
    TrialPassed,
)
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop
from gearpy.core.dag.graph import Dag
from gearpy.core.master.checkpoint_names import OPENED_KEY, PROGRAM_KEY
from gearpy.errors import ConfigError, GearpyError, LogAbsent, LogBroken, LogSuperseded, StoreAway
from gearpy.ids import ActorPath
from gearpy.messages.app import (
    EpochStored,
    EpochUnstored,
    LaunchTasks,
    RecordInjected,
    RecordQuarantined,
    RegisterExecutor,
    StartAllTasks,
)
from gearpy.messages.client import (
    Accepted,
    DescribeApplication,
    DrainApplication,
    MakeSavepoint,
    ProgramLoading,
    QuarantinedList,
    Refused,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
    UpdateApplication,
    UpdatePlanned,
    WorkerList,
)
from gearpy.messages.cluster import (
    AppMasterRegistered,
    FindWorkers,
    LaunchExecutor,
    MastersChanged,
    QuarantineStored,
    ResourceAllocated,
    ValueStored,
)
from gearpy.messages.metrics import EventKind, GetHistory, GetMetrics, GetSeries, ReportMetrics
from gearpy.messages.summaries import ApplicationStatus, ErrorCard
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import SEGMENTS_MAX
from gearpy.task.api.failure import card_of
from gearpy.task.sources.place_text import stored_place_text

_log = logging.getLogger(__name__)
#: Stored before the snapshots are deleted: a relaunched app master must not look for them.
_OUTCOME_KEY: Final = "outcome"
_HOUR_MS: Final = 3_600_000
_STATUS_TEXTS: Final = {"active": "all tasks run", "pending": "executors are being started"}


class _Tick(Struct, frozen=True):
    pass


class _Switch(Struct, frozen=True):
    """Act on a decision about versions, when all that was decided with it is done."""

    decided: PutInPlace | GoBack


_Measures: TypeAlias = GetMetrics | GetSeries | GetHistory
_Request: TypeAlias = (
    DrainApplication
    | MakeSavepoint
    | Shown
    | ReplayNow
    | ReplayQuarantined
    | UpdateApplication
    | _Measures
)
_Question: TypeAlias = DescribeApplication | _Request
_Event: TypeAlias = (
    CoreEvent | RegisterExecutor | ReportMetrics | ValueStored | WorkerList | _Switch
)
_Message: TypeAlias = (
    _Event
    | RecordQuarantined
    | RecordInjected
    | EpochUnstored
    | AppMasterRegistered
    | MastersChanged
    | QuarantineStored
    | _Question
    | TurnCall
    | _Tick
)


class AppMasterActor(Actor[_Message]):
    """Carries out the decisions of its `ApplicationCore`, and reports events to it.

    Runs on: its own thread, in the application's executor -1. Restart: the master has another
    one launched, which goes on from the epochs that are stored; executors end with the old one.
    While the master is away everything goes on but what needs new slots.
    Gearpump: `AppMaster`.
    """

    takes = _Message

    def __init__(
        self,
        launch: LaunchExecutor,
        config_of: Callable[[Mapping[str, str]], Config],
        *,
        load: LoadProgram,
        post: Post,
        checkpoints: Checkpoints,
        rng: Random,
        loads_in_turns: bool = False,
        segments_max: int = SEGMENTS_MAX,
    ) -> None:
        self._launch = launch
        self._config = config = config_of(launch.config)
        self._master = MasterLink(post, launch, lambda: self.context, several_masters(config))
        self._executors = AppExecutors(post, launch, lambda: self.context)
        self._checkpoints = AppCheckpoints(
            checkpoints,
            prefix=launch.store_prefix,
            launch=launch.launch,
            segments_max=segments_max,
            wall_ms=self._wall_ms,
        )
        self._versions = AppVersions(
            self._checkpoints, launch.artifact, load=load, wall_ms=self._wall_ms
        )
        self._changes = AskedChanges(
            launch.app_id,
            load,
            self._now_ms,
            None if loads_in_turns else lambda call: self.context.schedule_self(TurnCall(call)),
        )
        self._opening = LogOpening(launch, self._checkpoints, self._versions, config_of)
        self._named_epochs = NamedEpochs(launch.app_id, self._checkpoints)
        self._status = AppStatus(
            launch,
            self._master,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            stored_ms=self._checkpoints.stored_ms,
            has_savepoints=not self._checkpoints.are_in_memory,
            under_way=self._versions.under_way,
        )
        self._queries = AppQueries(
            launch,
            self._master,
            status=self._status,
            versions=self._versions,
            checkpoints=self._checkpoints,
        )
        self._autoscale = AppAutoscale(launch.app_id, wall_ms=self._wall_ms)
        self._rng = rng
        self._app_id = launch.app_id
        self._core: ApplicationCore | None = None
        self._has_succeeded = False
        self._metrics: AppMetrics | None = None
        self._replays = AppReplays(launch.app_id, self._executors.tell, self._master.tell)
        self._quarantine = AppQuarantine(
            launch.app_id,
            launch.launch,
            config.application.quarantine_max_records,
            wall_ms=self._wall_ms if self._checkpoints.keep_quarantine else None,
        )
        self._has_run = False  # The application was active before.
        self._has_news = True  # Something has happened since the last tick.
        self._found: FoundEpochs | None = None  # Waits until the master knows that there is a log.

    def _wall_ms(self) -> int:
        return self.context.wall_ms()

    def _now_ms(self) -> int:
        return self.context.now_ms()

    # -- the master ------------------------------------------------------------------------

    def on_start(self) -> None:
        self._master.register(self._status.status)
        self.context.schedule(REPORT_INTERVAL_MS, _Tick())

    def _on_registered(self, message: AppMasterRegistered) -> None:
        if message.launch != self._launch.launch:
            return
        if not self._master.on_registered(message, self._status.status):
            return
        if self._core is None and self._status.status == "pending":
            self._begin(message)
        elif self._core is not None:
            core = self._core
            self._do(core.on_master(is_there=True, now_ms=self.context.now_ms()))
            if self._has_succeeded and self._status.status != "succeeded":
                self._store_outcome()
            for quarantined in self._quarantine.unstored:
                self._master.tell(quarantined)
            self._replays.repeat()
        self._status.tell(self._core)

    def _begin(self, message: AppMasterRegistered) -> None:
        launch = b"%d" % self._launch.launch
        if _OUTCOME_KEY in message.values:
            self._on_outcome_stored()
        elif self._found is None and not self._try_open(message):
            return
        elif message.values.get(OPENED_KEY) == launch:
            self._start()
        else:
            self._master.put(OPENED_KEY, launch)  # Nothing is stored before the master knows of it.

    def _try_open(self, message: AppMasterRegistered) -> bool:
        """Open the log; not again for a master that is back, as the store may be away by then."""
        try:
            opened = self._opening.open(message)
        except LogSuperseded as error:
            self._on_superseded(error)
        except (LogAbsent, LogBroken) as error:
            if self._opening.waits(message, self._now_ms()):
                self._status.on_store(error)
            else:
                self._end("failed", card_of(error))
        except GearpyError as error:
            self._end("failed", card_of(error))
        else:
            self._status.on_store(None)
            self._found, self._config = opened.found, opened.config
            self._has_run = message.has_run
            self._take(opened.loaded)
            if PROGRAM_KEY in message.values:
                self._master.note_programs(opened.loaded.artifact, self._versions.all)
        return self._found is not None

    def _take(self, loaded: LoadedVersion) -> None:
        self._versions.running = loaded
        self._dag, self._master.wishes = loaded.dag, loaded.outline.wishes
        self._master.near = loaded.outline.near
        self._launch = replace(self._launch, artifact=loaded.artifact)
        self._status.on_program(loaded.outline)

    def _start(self) -> None:
        found, self._found = self._found, None
        if found is None:
            return
        self._launch = replace(self._launch, config=dict(found.config))
        kept = self._checkpoints.quarantine.read()
        for each in self._quarantine.begin(kept):
            self._master.tell(each)
        self._replays.want(kept)
        self._run(found)

    def _run(self, found: FoundEpochs, *, after: ApplicationCore | None = None) -> None:
        now_ms, is_trial = self.context.now_ms(), self._versions.is_trial(found.manifests)
        self._core = ApplicationCore(
            self._dag,
            executors=self._launch.executors,
            limits=recovery_limits(self._config),
            launch=self._launch.launch,
            rng=self._rng,
            now_ms=now_ms,
            has_run=self._has_run if after is None else not is_trial,
            manifests=found.manifests,
            overrides=found.overrides,
            owns=self._checkpoints.owns,
            after=after,
            is_trial=is_trial,
            untried=self._versions.current.kept if is_trial and after is None else (),
            place_text=stored_place_text,
        )
        self._begin_autoscale(self._dag)
        self._do(self._core.on_start(now_ms))
        if after is None:
            if not is_trial:  # That its trial is over may be in no log yet.
                self._note_version(TrialPassed())
            self._do(self._versions.resume(self._core, self._app_id, now_ms))
        if self._checkpoints.drain.is_asked:
            self._begin_drain(self._core)

    # -- messages --------------------------------------------------------------------------

    def receive(self, message: _Message) -> object:
        if not self._master.admits(message):
            return None
        self._has_news = self._has_news or not isinstance(message, _Tick)
        if isinstance(message, _Tick):
            self._on_tick(self.context.now_ms())
        elif isinstance(message, AppMasterRegistered):
            self._on_registered(message)
        elif isinstance(message, MastersChanged):
            self._master.on_masters(message)
        elif isinstance(message, TurnCall):
            message.call()
        elif isinstance(message, DescribeApplication):
            return self._status.detail(self._core)
        elif self._core is None:
            return self._before_begin(message)
        elif isinstance(message, _Request):
            return self._serve(self._core, message)
        elif isinstance(message, QuarantineStored):
            self._quarantine.on_stored(message.number)
        elif isinstance(message, RecordQuarantined):
            self._on_quarantined(self._core, message)
        elif isinstance(message, RecordInjected):
            self._replays.on_taken(self._core, message)
        else:
            self._do(self._decide(self._core, message))
        return None

    def _on_tick(self, now_ms: int) -> None:
        self._master.look_for(self._status.status, self._config.cluster.reconnect_timeout_s * 1000)
        unopened = self._opening.due(now_ms)
        if unopened is not None and self._status.status == "pending":
            self._begin(unopened)
        if self._core is not None:
            if self._has_news:
                self._core.store = self._status.waits_for(self._core)
            commands = self._core.on_tick(now_ms)
            self._has_news = self._has_news or bool(commands)
            self._do(commands)
            self._metrics_of(self._core).on_tick(self._core)
            self._rescale(self._core)
            self._replays.on_tick(self._core)
            if self._status.status == "active" and self._queries.is_due(now_ms):
                self._leave_answers(is_last=False)
        if self._has_news or self._core is None or self._status.is_due:
            self._status.tell(self._core)
        self._has_news = False

    def _serve(self, core: ApplicationCore, message: _Request) -> object:
        if isinstance(message, DrainApplication):
            return self._drain(core, message)
        if isinstance(message, MakeSavepoint):
            return self._named_epochs.make(core, message)
        if isinstance(message, UpdateApplication):
            return (self._call_off if message.calls_off else self._update)(core, message)
        if isinstance(message, _Measures):
            return self._metrics_of(core).answer(core, message)
        if isinstance(message, Shown):
            return self._queries.shown(core, message)

        if isinstance(message, ReplayNow):
            epoch = core.epoch
            self._do(core.replay(self.context.now_ms()))
            return ReplayAccepted(app_id=self._app_id, epoch=epoch)
        given = self._replays.give(core, message.records)
        return QuarantinedList(app_id=self._app_id, records=given)

    def _metrics_of(self, core: ApplicationCore) -> AppMetrics:
        if self._metrics is None:
            launch, master = self._launch.launch, self._master
            self._metrics = AppMetrics(
                self._app_id, core.dag, launch, self._wall_ms, lambda: master.refused_orders
            )
        return self._metrics

    def _before_begin(self, message: _Message) -> object:
        if isinstance(message, ResourceAllocated):
            for each in message.allocations:
                self._do([Release(worker_id=each.worker_id, slots=each.slots)])
        if isinstance(message, ValueStored) and message.key == OPENED_KEY:
            self._start()
        if isinstance(message, _Request):
            return Refused(reason=f"application {self._app_id} has not begun yet")
        return None

    def _decide(self, core: ApplicationCore, message: _Event) -> Iterable[Command]:
        if isinstance(message, _Switch):
            self._switch(core, message)
            return []
        if isinstance(message, ValueStored):
            if message.key == _OUTCOME_KEY:
                self._on_outcome_stored()
            return []
        if isinstance(message, ReportMetrics):
            self._metrics_of(core).on_report(core, message)
            return []
        if isinstance(message, WorkerList):
            free = {each.worker_id: each.free_slots for each in message.workers}
            self._autoscale.on_free_slots(inf if message.grows else sum(free.values()))
            core.on_free_slots(None if message.grows else free)
            return []
        if isinstance(message, RegisterExecutor):
            now_ms = self.context.now_ms()
            is_current = core.executors.is_current(message.executor_id, message.launch)
            self._executors.on_registered(message, is_current=is_current)
            if is_current:
                self._event(
                    "executor-started", f"executor {message.executor_id}, pid {message.pid}"
                )
            return core.on_executor_registered(message, now_ms)
        if isinstance(message, EpochStored | EpochUnstored):
            self._status.on_epoch(message)
        return decide(core, message, self.context.now_ms())

    def on_exited(self, exited: Exited) -> None:
        self._has_news = True
        path, core = exited.ref.path, self._core
        if self._master.on_exited(exited):
            if core is not None and not self._master.is_there:
                core.on_master(is_there=False, now_ms=self.context.now_ms())
        elif core is None:
            return
        elif (found := self._executors.take(path)) is None:
            self._do(self._lost_worker(path))
        else:
            if not core.is_ended and found[0] not in core.succession.before:
                self._event("executor-lost", f"executor {found[0]}: {exited.reason}")
            if isinstance(exited.reason, Failed):
                now_ms = self.context.now_ms()
                self._do(core.on_executor_gone(*found, str(exited.reason), now_ms))
            else:
                core.on_executor_silent(*found, self.context.now_ms())

    def on_stop(self) -> None:
        self._leave_answers(is_last=True)
        if self._core is not None:
            self._do(self._core.executors.stop_all("the application was stopped"))

    # -- what was decided ------------------------------------------------------------------

    def _do(self, commands: Iterable[Command]) -> None:
        try:
            for command in commands:
                self._do_one(command)
        except LogSuperseded as error:
            self._on_superseded(error)

    def _do_one(self, command: Command) -> None:
        match command:
            case Send():
                self._send(command)
            case RequestSlots():
                assert self._core is not None
                self._master.ask_for(command, self._core.executors.slots)
            case Release():
                self._master.give_back(command)
            case Launch():
                self._launch_executor(command)
            case Stop():
                self._executors.stop(command)
            case Activated() | HeldUp():
                self._status.status = "active" if isinstance(command, Activated) else "pending"
                self._event(self._status.status, _STATUS_TEXTS[self._status.status])
                if isinstance(command, Activated) and command.pause:
                    self._event("version", f"version {self._dag.version}: {command.pause}")
                    _log.info("application %s: %s", self._app_id, command.pause)
                self._status.tell(self._core)
            case StoreManifest():
                self._store(command)
            case EpochsRetired() | DropSnapshots() | FellBack() | EpochAborted() | DamageFound():
                self._on_epochs(command)
            case Survived():
                self._on_survived(command)
            case Ended():
                self._end(command.status, command.cause)
            case PutInPlace() | GoBack():
                if isinstance(command, GoBack) and self._core is not None:
                    self._named_epochs.keep_before(self._core, command.cause)
                self.context.self_ref.tell(_Switch(command))
            case ChangeGivenUp() | TrialPassed():
                self._note_version(command)
            case _:
                assert_never(command)

    def _send(self, command: Send) -> None:
        message = command.message
        if isinstance(message, LaunchTasks):
            assert self._core is not None, "it has decided so"
            newest = self._core.regions[message.region].history.newest
            epoch = 0 if newest is None else newest.epoch
            self._quarantine.on_begin(message.region, message.attempt, epoch)
            message = self._checkpoints.with_partitions(message)
        elif isinstance(message, StartAllTasks):
            assert self._core is not None, "it has decided so"
            self._replays.on_start(self._core, command.executor_id, message.attempt)
        self._executors.tell(command.executor_id, message)

    def _on_superseded(self, error: LogSuperseded) -> None:
        _log.warning("application %s: %s", self._app_id, error)
        self.context.stop_self()

    def _launch_executor(self, command: Launch) -> None:
        like = self._versions.launch_like(self._launch, self._core, command.executor_id)
        if not self._executors.launch(command, like):
            self._do(self._lost_worker(command.allocation.worker))

    def _lost_worker(self, worker: ActorPath) -> Iterable[Command]:
        assert self._core is not None
        for executor_id, _ in self._core.executors.on_worker(worker):
            self._executors.give_up(executor_id)
        return self._core.on_worker_lost(worker, self.context.now_ms())

    def _store(self, command: StoreManifest) -> None:
        """Add epochs to the coordinator log in one go; if that fails, it is decided again."""
        manifests = (command.manifest, *command.also)
        quarantined = self._quarantine.of_epochs(manifests)
        keeps = self._checkpoints.keep_quarantine
        try:
            self._checkpoints.store(
                *manifests,
                versions=self._versions.tried(command.untried) if command.ends_trial else (),
                quarantined=quarantined,
                given_back=self._replays.in_epochs(manifests) if keeps else (),
            )
        except LogBroken as error:
            self._status.on_store(error)
            return
        self._status.on_store(None)
        self._quarantine.on_kept(quarantined)
        for each in manifests:
            assert self._core is not None
            region = self._core.regions[each.region]
            self._named_epochs.on_stored(region, each.epoch)
            now_ms = self.context.now_ms()
            lasted_ms = region.epochs.last_took_ms
            self._metrics_of(self._core).on_epoch(lasted_ms)
            self._do(self._core.on_manifest_stored(each.region, each.epoch, now_ms))

    def _on_epochs(
        self, command: EpochsRetired | DropSnapshots | FellBack | EpochAborted | DamageFound
    ) -> None:
        match command:
            case EpochsRetired():
                self._checkpoints.retire(command.region, command.epochs)
            case DropSnapshots():
                self._checkpoints.drop(command.files)
            case FellBack():
                _log.error("application %s: %s", self._app_id, command.text)
                self._status.note(f"region {command.region}", ErrorCard(cause=command.text))
                self._event("fell-back", command.text)
                self._status.fallbacks[command.region] += 1
                self._checkpoints.forget(command.region, command.epochs)
            case DamageFound():
                _log.error("application %s: %s", self._app_id, command.text)
                self._status.note(f"region {command.region}", ErrorCard(cause=command.text))
                self._event("epoch-failed", command.text)
            case EpochAborted():
                _log.warning("epoch %d given up: %s", command.epoch, command.reason)
                self._event("epoch-failed", f"epoch {command.epoch}: {command.reason}")

    def _on_survived(self, command: Survived) -> None:
        _log.warning(
            "application %s: %s failed, starts again in %d ms: %s",
            self._app_id,
            command.what,
            command.delay_ms,
            command.error.cause,
        )
        if self._core is not None:
            self._named_epochs.keep_before(self._core, command.error)
        self._status.note(command.what, command.error)
        self._event("restart", f"{command.what} failed: {command.error.cause}")

    def _event(self, kind: EventKind, text: str) -> None:
        if self._core is not None:
            self._metrics_of(self._core).note(kind, text.partition("\n")[0])

    def _end(self, status: ApplicationStatus, cause: ErrorCard | None) -> None:
        self._replays.on_end(self._core)
        if status == "succeeded" and not (self._core is not None and self._core.has_caught_up):
            if self._config.checkpoint.keep_succeeded:
                self._checkpoints.end()
            self._store_outcome()
            return
        if cause is not None:
            _log.warning("application %s failed: %s", self._app_id, cause.cause)
            self._status.note("the application", cause)
            self._event("failed", cause.cause)
        elif isinstance(name := self._named_epochs.of_drain(self._core), ErrorCard):
            self._end("failed", name)
            return
        else:
            self._status.savepoint = name
        self._leave_answers(is_last=True)
        self._status.status, self._status.cause = status, cause
        self._status.tell(self._core)

    # -- versions --------------------------------------------------------------------------

    def _update(
        self, core: ApplicationCore, message: UpdateApplication
    ) -> UpdatePlanned | Refused | ProgramLoading:
        is_change = message.artifact or message.scale or message.version is not None
        if message.bounds and not is_change:
            if refusal := core.why_unchangeable():
                reason = f"application {self._app_id} cannot be changed now: {refusal}"
                return Refused(reason=reason)
            try:
                bound = self._versions.bind(message, core.dag)
            except GearpyError as error:
                return self._refused(error)
            if not message.is_trial_run:
                self._launch = replace(self._launch, artifact=bound.artifact)
                self._master.note_programs(bound.artifact, self._versions.all)
                self._begin_autoscale(bound.dag)
            return self._unchanged(core)
        if (answer := self._changes.answer_to(message)) is not None:
            return answer
        try:
            if not core.why_unchangeable() and self._versions.is_in_place(message, core.dag):
                return self._unchanged(core)
            wanted = self._versions.wanted(core, message)
        except GearpyError as error:
            return Refused(reason=str(error))
        return self._changes.load(message, *wanted, lambda loaded: self._begun(message, loaded))

    def _begun(self, message: UpdateApplication, loaded: Loaded) -> UpdatePlanned | Refused:
        core = self._core
        assert core is not None, "it was asked for a change"
        try:
            if isinstance(loaded, GearpyError):
                raise loaded
            planned = self._versions.begin(core, message, loaded)
        except GearpyError as error:
            return self._refused(error)
        if self._versions.planned is planned:
            self._master.note_programs(self._launch.artifact, self._versions.all)
            self._event("version", f"version {planned.version.number}: {planned.version.change}")
            self._do(self._versions.start(core, self._now_ms()))
        return planned.answer

    def _refused(self, error: GearpyError) -> Refused:
        if isinstance(error, LogSuperseded):
            self._on_superseded(error)
        return Refused(reason=str(error))

    def _call_off(self, core: ApplicationCore, message: UpdateApplication) -> object:
        planned = self._versions.planned
        if planned is None or not core.succession.may_be_called_off:
            known = "no change is under way" if planned is None else core.succession.doing
            return Refused(
                reason=f"no change of application {self._app_id} can be called off now: "
                f"{known or 'it is over'}; see 'gear app history {self._app_id}', "
                f"and 'gear app rollback {self._app_id} VERSION' for an earlier version"
            )
        by = f" by {message.by.user}" if message.by.user else ""
        self._do(core.keep(f"called off{by}", self._now_ms()))
        return planned.answer

    def _unchanged(self, core: ApplicationCore) -> UpdatePlanned:
        return UpdatePlanned(app_id=self._app_id, version=core.dag.version, moves=(), is_same=True)

    def _begin_autoscale(self, dag: Dag) -> None:
        self._autoscale.begin(
            dag,
            executors=self._launch.executors,
            cooldown_ms=self._config.application.autoscale_cooldown_s * 1000,
            now_ms=self.context.now_ms(),
        )

    def _rescale(self, core: ApplicationCore) -> None:
        now_ms = self.context.now_ms()
        message = self._autoscale.on_tick(core, self._metrics_of(core), now_ms)
        if message is not None:
            self._autoscale.on_answer(self._update(core, message), now_ms)
        if self._autoscale.asks_for_slots or core.asks_for_slots(now_ms):
            self._master.tell(FindWorkers(app_id=self._app_id, launch=self._launch.launch))
        self._status.scaled = self._autoscale.shown()

    def _switch(self, core: ApplicationCore, message: _Switch) -> None:
        try:
            followed = self._versions.follow(core, message.decided)
        except LogSuperseded as error:
            self._on_superseded(error)
        except (GearpyError, OSError) as error:
            is_change = isinstance(message.decided, PutInPlace)
            waits = LogBroken | StoreAway if is_change else LogBroken | OSError
            if isinstance(error, waits):
                self._status.on_store(error)
                self.context.schedule_once(OPEN_AGAIN_MS, message)
            elif isinstance(message.decided, PutInPlace):
                self._do(core.keep(str(error), self.context.now_ms()))
            else:
                cause, before = message.decided.cause, self._versions.current.base_of
                told = no_way_back(cause.cause, before, error)
                self._end("failed", replace(cause, cause=told))
        else:
            if isinstance(message.decided, GoBack):
                cause = message.decided.cause
                self._status.note(f"version {core.dag.version}", cause)
                self._autoscale.on_trouble(cause.cause, self.context.now_ms())
            if followed is not None:
                loaded, found = followed
                self._take(loaded)
                self._metrics_of(core).on_version(loaded.dag)
                self._master.note_programs(loaded.artifact, self._versions.all)
                self._run(found, after=core)

    def _note_version(self, command: ChangeGivenUp | TrialPassed) -> None:
        try:
            if isinstance(command, ChangeGivenUp):
                _log.warning("application %s is not changed: %s", self._app_id, command.reason)
                self._event("version", f"the change was given up: {command.reason}")
                self._autoscale.on_trouble(command.reason, self.context.now_ms())
                self._versions.give_up(command.reason)
            else:
                self._autoscale.on_stays()
                self._versions.passed()
        except LogBroken as error:  # The next append brings it along.
            _log.warning("application %s: %s", self._app_id, error)

    def _store_outcome(self) -> None:
        self._has_succeeded = True
        self._master.put(_OUTCOME_KEY, b"succeeded")

    def _on_outcome_stored(self) -> None:
        if keep_hours := self._config.checkpoint.keep_succeeded:
            self._checkpoints.drop_expired(keep_hours * _HOUR_MS)
        else:
            self._checkpoints.drop_all()
        self._leave_answers(is_last=True)
        self._status.status = "succeeded"
        self._status.tell(self._core)

    def _drain(self, core: ApplicationCore, message: DrainApplication) -> Accepted | Refused:
        if message.savepoint and self._checkpoints.are_in_memory:
            return Refused(reason=IN_MEMORY)
        if message.savepoint or not self._checkpoints.drain.is_asked:
            try:
                self._checkpoints.ask_drain(message.savepoint)
            except LogSuperseded as error:
                self._on_superseded(error)
                return Refused(reason=str(error))
            except LogBroken as error:  # The next append notes it; what reads is to halt now.
                if message.savepoint:
                    return Refused(reason=str(error))
                self._status.on_store(error)
            except ConfigError as error:
                return Refused(reason=str(error))
        if not self._versions.is_switching:  # The core that follows is drained.
            self._begin_drain(core)
        return Accepted(app_id=self._app_id)

    def _begin_drain(self, core: ApplicationCore) -> None:
        timeout_ms = self._config.application.drain_timeout_s * 1000
        self._do(core.drain(self.context.now_ms(), timeout_ms=timeout_ms))
        self._event("drain", "sources end")

    # -- quarantine ------------------------------------------------------------------------

    def _on_quarantined(self, core: ApplicationCore, message: RecordQuarantined) -> None:
        self._named_epochs.keep_before(core, message.error)
        region = core.regions.of_task(task_of(message.error.task))
        taken = self._quarantine.add(message, -1 if region is None else region.number)
        if isinstance(taken, ErrorCard):
            self._do(core.fail(taken, self.context.now_ms()))
        elif taken is not None:
            self._master.tell(taken)

    def _leave_answers(self, *, is_last: bool) -> None:
        core, now_ms = self._core, self.context.now_ms()
        if core is not None:
            measured = self._metrics_of(core).left_behind(core)
            self._queries.leave(core, measured, now_ms, is_last=is_last)
