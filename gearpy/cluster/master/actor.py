"""MasterActor: applications, workers and the slots of all; durable facts are in its log."""

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import asdict, replace

from gearpy.actor.api import Cancellable, CommittingActor, Exited, Failed
from gearpy.cluster.master.app_configs import ApplicationConfigs, app_master_times
from gearpy.cluster.master.last_answers import LastAnswers
from gearpy.cluster.master.outbox import MasterOutbox
from gearpy.cluster.master.policies import policy_named
from gearpy.cluster.master.queries import MasterLookup, MasterQueries
from gearpy.cluster.master.store import SNAPSHOT_RECORDS, MasterStore
from gearpy.cluster.master.workers import MasterWorkers
from gearpy.cluster.net.limits import restart_policy
from gearpy.cluster.net.post import Post
from gearpy.config.schema import ApplicationConfig, Config
from gearpy.core.base.restart import RestartPolicy
from gearpy.core.master.app_masters import (
    AppMasters,
    EndApplication,
    KeeperAction,
    Kill,
    LaunchTimes,
    RecordLoss,
    RequestSlot,
)
from gearpy.core.master.checkpoint_names import prefix_of
from gearpy.core.master.commands import (
    AddQuarantined,
    ChangeStatus,
    ForgetEnded,
    LaunchAppMaster,
    LoseAppMaster,
    MasterCommand,
    RemoveQuarantined,
    StoreValue,
    Submit,
)
from gearpy.core.master.quotas import Quotas, quotas_in
from gearpy.core.master.registry import TERMINAL
from gearpy.core.master.requests import Priority, Relaxation, ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import Grant, SlotLedger
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, address_of
from gearpy.messages.client import (
    Accepted,
    ListWorkers,
    QuarantinedList,
    Refused,
    ReplayQuarantined,
    RestartApplication,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.cluster import (
    Allocation,
    ApplicationStatusChanged,
    AppMasterRegistered,
    ExecutorExited,
    ExecutorLaunchRejected,
    FindWorkers,
    LastAnswer,
    LaunchExecutor,
    MasterMessage,
    MastersChanged,
    PutValue,
    Quarantine,
    QuarantineStored,
    RegisterAppMaster,
    RegisterWorker,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    ReturnResource,
    RunningExecutor,
    SlotWishes,
    ValueStored,
    WithdrawRequests,
)
from gearpy.messages.metrics import GetHistory, GetProcessMetrics
from gearpy.messages.summaries import ApplicationStatus, ApplicationSummary, ErrorCard
from gearpy.metrics.history import RECENT_MS, ProcessHistory
from gearpy.metrics.process import process_meter
from gearpy.storage.log import Log

if TYPE_CHECKING:
    from random import Random

_log = logging.getLogger(__name__)
_APP_MASTER_SLOTS: Final = 1
_NO_WISHES: Final = SlotWishes()
#: So many applications that have ended are remembered; the oldest are forgotten first.
_ENDED_MAX: Final = 1000


class _Tick(Struct, frozen=True):
    pass


class _Measure(Struct, frozen=True):
    pass


_Request: TypeAlias = (
    SubmitApplication | ShutdownApplication | RestartApplication | ReplayQuarantined
)
_SlotNews: TypeAlias = RequestResource | ReturnResource | WithdrawRequests
_AppMasterNews: TypeAlias = (
    RegisterAppMaster
    | _SlotNews
    | FindWorkers
    | ApplicationStatusChanged
    | LastAnswer
    | PutValue
    | Quarantine
)
#: What a master is told and asked.
MasterMailbox: TypeAlias = (
    MasterMessage
    | RestartApplication
    | ReplayQuarantined
    | MasterLookup
    | GetProcessMetrics
    | GetHistory
    | _Tick
    | _Measure
)


class MasterActor(CommittingActor[MasterMailbox]):
    """Answers clients, places app masters and executors on workers.

    The log has everything that was answered or acted on: what messages that wait together have led
    to is one write, and what they have to tell waits for it. A log that cannot be written ends
    the actor: its owner ends the process then.

    Runs on: its own thread. Restart: by a new one over the same log; workers and app masters
    register with it again, and it counts slots and launches from what they say.
    Gearpump: `Master`, `AppManager`.
    """

    takes = MasterMailbox

    def __init__(
        self,
        post: Post,
        *,
        log: Log,
        config: Config,
        rng: "Random",
        term: int = 0,
        can_return: bool = True,
        snapshot_records: int = SNAPSHOT_RECORDS,
        ended_max: int = _ENDED_MAX,
    ) -> None:
        self._configs = ApplicationConfigs(config)
        self._ended_max = ended_max
        self._store = MasterStore(log, snapshot_records=snapshot_records, rng=rng)
        self._state = self._store.state
        self._slots = SlotLedger(grant_timeout_ms=config.executor.start_timeout_s * 1000)
        self._scheduler = SlotScheduler(
            self._slots,
            reserve_ms=config.resource_allocation_timeout_s * 1000,
            policy=policy_named(config.master.scheduler),
            quotas=Quotas(quotas_in(config.master.quotas), self._user_of),
        )
        times = app_master_times(config, can_return=can_return)
        self._app_masters = AppMasters(self._state, self._policy_of, times, rng)
        self._outbox = MasterOutbox(post, lambda: self.context, term=term)
        self._workers = MasterWorkers(
            store=self._store,
            app_masters=self._app_masters,
            slots=self._slots,
            outbox=self._outbox,
            scheduler=self._scheduler,
            do=self._do,
        )
        self._process = ProcessHistory("master", process_meter().sample)
        self._last_answers = LastAnswers()
        self._queries = MasterQueries(
            self._state,
            self._app_masters,
            self._scheduler,
            self._workers.paths,
            aside_until_ms=self._workers.aside_until_ms,
            versions=self._workers.versions,
            process=self._process,
            last_answers=self._last_answers,
            wall_ms=self._wall_ms,
        )
        self._timer: tuple[int, Cancellable] | None = None

    def _user_of(self, app_id: AppId) -> str:
        known = self._state.get(app_id)
        return known.user if known is not None else ""

    def _wall_ms(self) -> int:
        return self.context.wall_ms()

    def on_start(self) -> None:
        _log.info("the id of the cluster is %s", self._state.cluster_id)
        for each in self._state.summaries():
            if each.status not in TERMINAL and self._has_run(each.app_id):
                self._scheduler.expect(each.app_id)
        self._do(self._app_masters.on_start(self._now()))
        self.context.schedule(RECENT_MS, _Measure())

    def receive(self, message: MasterMailbox) -> object:
        match message:
            case _Measure():
                self._process.on_tick(self.context.wall_ms())
            case _Tick():
                self._timer = None
                now = self._now()
                for grant in self._slots.on_tick(now.now_ms):
                    _log.warning(
                        "application %s did not use %s slots of worker %s",
                        grant.app_id,
                        grant.slots,
                        grant.worker_id,
                    )
                self._scheduler.on_tick(now.now_ms)
                self._workers.on_tick(now)
                self._do(self._app_masters.on_tick(now))
            case (
                RegisterAppMaster()
                | RequestResource()
                | ReturnResource()
                | WithdrawRequests()
                | FindWorkers()
                | ApplicationStatusChanged()
                | LastAnswer()
                | PutValue()
                | Quarantine()
            ):
                self._on_app_master_news(message)
            case RegisterWorker() | ResourceUpdate() | ExecutorLaunchRejected() | ExecutorExited():
                match message:
                    case RegisterWorker():
                        master, now = self._own_path(), self._now()
                        self._do(self._workers.register(message, master=master, now=now))
                    case ResourceUpdate():
                        self._workers.on_update(message, self._now())
                    case ExecutorLaunchRejected():
                        self._on_gone(message.app_id, message.launch, message.cause)
                    case ExecutorExited() if message.cluster_id in {"", self._state.cluster_id}:
                        self._on_gone(message.app_id, message.launch, message.cause)
                    case ExecutorExited():
                        pass  # It had one of our numbers in another cluster.
                    case _:
                        assert_never(message)
                self._allocate()
            case (
                SubmitApplication()
                | ShutdownApplication()
                | RestartApplication()
                | ReplayQuarantined()
            ):
                return self._serve(message)
            case GetProcessMetrics() | GetHistory():
                return self._queries.measured(message)
            case MastersChanged():
                self._outbox.on_masters(message)
            case _:
                return self._queries.answer(message)
        return None

    def commit(self) -> None:
        while self._store.has_changes or self._outbox.has_waiting:
            self._store.commit()
            self._outbox.send_all()

    def on_exited(self, exited: Exited) -> None:
        path = exited.ref.path
        self._outbox.on_exited(path)
        cause = str(exited.reason) if isinstance(exited.reason, Failed) else ""
        if (app_id := self._app_masters.of_path(path)) is not None:
            self._on_unreachable(app_id, cause)
        for worker_id in self._workers.at(path):
            self._do(self._workers.on_lost(worker_id, self._now()))

    # -- clients ---------------------------------------------------------------------------

    def _serve(self, message: _Request) -> object:
        match message:
            case SubmitApplication():
                if (before := self._state.submitted_as(message.key)) is not None:
                    return Submitted(app_id=before)
                refusal = self._state.refusal_of(message) or self._configs.mistakes_in(message)
                if refusal:
                    return Refused(reason=refusal)
                (app_id,) = self._change(Submit(request=message, at_ms=self.context.wall_ms()))
                self._do(self._app_masters.on_submitted(app_id))
                return Submitted(app_id=app_id)
            case ShutdownApplication():
                known = self._state.get(message.app_id)
                if known is not None and known.status not in TERMINAL:
                    self._end(known, "terminated")
                    return Accepted(app_id=message.app_id)
                return (
                    self._queries.unknown(message.app_id)
                    if known is None
                    else Refused(reason=f"application {message.app_id} is already {known.status}")
                )
            case RestartApplication():
                return self._restart(message)
            case ReplayQuarantined():
                if self._state.get(message.app_id) is None:
                    return self._queries.unknown(message.app_id)
                records = tuple(
                    each
                    for each in self._state.quarantined(message.app_id)
                    if not message.numbers or each.number in message.numbers
                )
                if numbers := tuple(each.number for each in records):
                    self._change(RemoveQuarantined(app_id=message.app_id, numbers=numbers))
                return QuarantinedList(app_id=message.app_id, records=records)
            case _:
                assert_never(message)

    def _restart(self, message: RestartApplication) -> Submitted | Refused:
        app_id = message.app_id
        known = self._state.get(app_id)
        request = self._state.request_again(app_id, from_beginning=message.from_beginning)
        if known is None or request is None:
            return self._queries.unknown(app_id)
        if place := message.checkpoint_folder:
            request = replace(request, config={**request.config, "checkpoint.folder": place})
        if refusal := self._state.refusal_of(request, instead_of=app_id):
            return Refused(reason=refusal)
        submit = Submit(request=request, at_ms=self.context.wall_ms())
        if known.status in TERMINAL:
            (new_id,) = self._change(submit)
        else:
            new_id = self._end(known, "terminated", and_then=submit)
        self._do(self._app_masters.on_submitted(new_id))
        return Submitted(app_id=new_id)

    # -- workers and slots -----------------------------------------------------------------

    def _allocate(self) -> None:
        granted: dict[AppId, list[Grant]] = {}
        to_launch: list[Grant] = []
        for grant in self._scheduler.allocate(self.context.now_ms()):
            if grant.is_for_app_master:
                to_launch.append(grant)
            else:
                granted.setdefault(grant.app_id, []).append(grant)
        self._launch_app_masters(to_launch)
        for app_id, grants in granted.items():
            path = self._app_masters.path(app_id)
            if path is None:
                self._take_back(app_id, grants)
                continue
            allocations = tuple(
                Allocation(
                    worker_id=each.worker_id,
                    worker=_at_address(self._workers.paths[each.worker_id]),
                    slots=each.slots,
                    hosts=each.named,
                )
                for each in grants
            )
            message = ResourceAllocated(app_id=app_id, allocations=allocations)
            self._outbox.tell(path, message, partial(self._take_back, app_id, grants))
        self._set_timer()

    def _take_back(self, app_id: AppId, grants: list[Grant]) -> None:
        if ended := [each for each in grants if self._slots.give_back(each)]:
            self._workers.reserve(ended, self._now())
            self._scheduler.cancel(app_id)  # It asks anew when it is back.
            self._set_timer()

    def _own_path(self) -> ActorPath:
        return _at_address(self.context.self_ref.path)

    def _launch_app_masters(self, grants: list[Grant]) -> None:
        if not grants:
            return
        now = self._now()
        launches = self._change(
            *(
                LaunchAppMaster(app_id=each.app_id, worker_id=each.worker_id, at_ms=now.wall_ms)
                for each in grants
            )
        )
        for grant, launch in zip(grants, launches, strict=True):
            assert launch == grant.launch, grant
            self._app_masters.on_launched(grant.app_id, now)
        for grant in grants:
            self._launch_app_master(grant)

    def _launch_app_master(self, grant: Grant) -> None:
        app_id, worker_id, launch = grant.app_id, grant.worker_id, grant.launch
        request = self._state.request_of(app_id)
        assert request is not None
        message = LaunchExecutor(
            app_id=app_id,
            executor_id=MASTER_EXECUTOR,
            launch=launch,
            app_master=launch,
            slots=_APP_MASTER_SLOTS,
            name=request.name,
            artifact=request.artifact,
            executors=request.executors,
            config=request.config,
            reply_to=self._own_path(),
            cluster_id=self._state.cluster_id,
            checkpoints=request.checkpoints or prefix_of(self._state.cluster_id, app_id),
            resume_from=request.resume_from,
        )

        def or_else() -> None:
            self._slots.give_back(grant)
            self._on_gone(app_id, launch, f"worker {worker_id} cannot be reached")

        self._outbox.tell(self._workers.paths[worker_id], message, or_else)

    # -- app masters -----------------------------------------------------------------------

    def _on_app_master_news(self, message: _AppMasterNews) -> None:
        match message:
            case RegisterAppMaster():
                self._register_app_master(message)
            case RequestResource() | ReturnResource() | WithdrawRequests():
                self._on_slot_news(message)
            case FindWorkers():
                path = self._app_masters.path(message.app_id)
                if path is not None and self._app_masters.is_current(
                    message.app_id, message.launch
                ):
                    self._outbox.tell(path, self._queries.answer(ListWorkers()))
            case ApplicationStatusChanged():
                self._on_status(message)
            case LastAnswer():
                known = self._state.get(message.app_id)
                has_ended = known is not None and known.status in TERMINAL
                at_ms = self.context.wall_ms()
                self._last_answers.keep(message, at_ms=at_ms, has_ended=has_ended)
            case PutValue():
                path = self._writer(message)
                if path is None:
                    return  # A current one has registered, and stores again what was not answered.
                command = StoreValue(app_id=message.app_id, key=message.key, value=message.value)
                (is_stored,) = self._change(command)
                if is_stored:
                    answer = ValueStored(
                        app_id=message.app_id, key=message.key, version=message.version
                    )
                    self._outbox.tell(path, answer)
                else:
                    _log.warning("application %s stores too many values", message.app_id)
            case Quarantine():
                self._quarantine(message)
            case _:
                assert_never(message)

    def _register_app_master(self, message: RegisterAppMaster) -> None:
        app_id, path = message.app_id, message.app_master
        if message.cluster_id not in {"", self._state.cluster_id}:
            _log.warning("an app master of cluster %s was refused", message.cluster_id)
            return
        is_again = self._app_masters.path(app_id) is not None
        if not self._app_masters.on_registered(app_id, message.launch, path):
            self._send_away(app_id, message.launch)
            return
        if is_again:  # It was cut off: grants of that time did not reach it.
            self._workers.reserve(self._slots.on_app_master_over(app_id), self._now())
            self._allocate()
        self._set_timer()
        self._outbox.watch(path)
        answer = AppMasterRegistered(
            app_id=app_id,
            launch=message.launch,
            has_run=self._has_run(app_id),
            values=self._state.values(app_id),
            master=self._own_path(),
        )

        def or_else() -> None:
            if self._app_masters.path(app_id) == path:
                self._on_unreachable(app_id, "")

        self._outbox.tell(path, answer, or_else)
        self._outbox.tell_masters(path)

    def _on_slot_news(self, message: _SlotNews) -> None:
        app_id, launch = message.app_id, message.launch
        if not self._app_masters.is_current(app_id, launch):
            self._send_away(app_id, launch)
            return
        if isinstance(message, ReturnResource):
            grant = Grant(app_id, launch, message.worker_id, message.slots)
            if self._slots.give_back(grant) and self._has_run(app_id):
                self._workers.reserve([grant], self._now())  # It may ask for others in a moment.
        elif isinstance(message, WithdrawRequests):
            self._scheduler.cancel(app_id)
        elif self._app_masters.path(app_id) is not None:  # A new one asks when it has registered.
            if not message.adds:
                self._scheduler.cancel(app_id)
            if message.total:
                self._scheduler.on_total(app_id, message.total)
            self._request(app_id, launch, message)
        self._allocate()

    def _request(self, app_id: AppId, launch: int, message: RequestResource) -> None:
        wishes = self._wishes_of(app_id, message.wishes)
        relaxation = Relaxation(wishes.relaxation)
        if message.worker_id is not None:
            relaxation = Relaxation.SPECIFIC_WORKER
        self._scheduler.request(
            ResourceRequest(
                app_id=app_id,
                launch=launch,
                slots=message.slots,
                executors=message.executors,
                sizes=message.sizes,
                priority=Priority[wishes.priority.upper()],
                relaxation=relaxation,
                worker_id=message.worker_id,
                hosts=message.hosts or wishes.hosts,
                named=message.hosts,
                near=message.near,
                is_restart=self._has_run(app_id),
            )
        )

    def _wishes_of(self, app_id: AppId, program: SlotWishes = _NO_WISHES) -> ApplicationConfig:
        """Return the settings of an application that say where and when it gets its slots."""
        request = self._state.request_of(app_id)
        assert request is not None, app_id
        settings = self._configs.wishes(request.config)
        wished = {
            name: value
            for name, value in asdict(program).items()
            if value and f"application.{name}" not in request.config
        }
        return replace(settings, **wished)

    def _has_run(self, app_id: AppId) -> bool:
        """Whether an application was active once: then it is not started, but started again."""
        known = self._state.get(app_id)
        return known is not None and known.started_ms > 0

    def _on_status(self, message: ApplicationStatusChanged) -> None:
        known = self._state.get(message.app_id)
        progress = self._state.whole(message.app_id, message.progress)
        if known is None or not self._app_masters.is_current(message.app_id, message.launch):
            self._send_away(message.app_id, message.launch)
        elif message.status in TERMINAL:
            self._end(replace(known, progress=progress), message.status, cause=message.cause)
        elif message.status != known.status:
            command = ChangeStatus(
                app_id=message.app_id,
                status=message.status,
                at_ms=self.context.wall_ms(),
                progress=progress,
            )
            self._change(command)
        else:
            self._state.on_progress(message.app_id, progress)
        # It has asked for the rest before.
        if self._scheduler.on_heard(message.app_id):
            self._allocate()

    def _writer(self, message: PutValue | Quarantine) -> ActorPath | None:
        if self._app_masters.is_current(message.app_id, message.launch):
            return self._app_masters.path(message.app_id)
        self._send_away(message.app_id, message.launch)
        return None

    def _quarantine(self, message: Quarantine) -> None:
        app_id, path = message.app_id, self._writer(message)
        known, request = self._state.get(app_id), self._state.request_of(app_id)
        if path is None or known is None or request is None or known.status in TERMINAL:
            return
        limit = self._configs.of(request.config).application.quarantine_max_records
        if len(self._state.quarantined(app_id)) >= limit:
            cause = f"more than {limit} records in quarantine (application.quarantine-max-records)"
            self._end(known, "failed", cause=replace(message.error, cause=cause))
            return
        self._change(
            AddQuarantined(
                app_id=app_id,
                processor_id=message.processor_id,
                value=message.value,
                event_time_ms=message.event_time_ms,
                error=message.error,
                at_ms=message.at_ms or self.context.wall_ms(),
                number=message.number if message.at_ms else 0,
            )
        )
        self._outbox.tell(path, QuarantineStored(app_id=app_id, number=message.number))

    def _on_gone(self, app_id: AppId, launch: int, cause: str) -> None:
        self._do(self._app_masters.on_gone(app_id, launch, cause, self._now()))

    def _on_unreachable(self, app_id: AppId, cause: str) -> None:
        cause = cause or "it has ended, or cannot be reached"
        self._do(self._app_masters.on_unreachable(app_id, cause, self._now()))

    def _send_away(self, app_id: AppId, launch: int) -> None:
        """Have an app master ended that was given up, if it is known where it runs."""
        known, newest = self._state.get(app_id), self._state.newest_launch(app_id)
        has_ended = known is not None and known.status in TERMINAL
        for each in self._state.launches(app_id):
            if each.number == launch:
                may_finish = has_ended and each is newest and not each.is_lost
                kill = Kill(app_id, each.worker_id, launch, "it was replaced, or has ended")
                self._kill(kill, at_once=not may_finish)

    def _do(self, actions: Iterable[KeeperAction]) -> None:
        actions = list(actions)
        if losses := [self._loss(each) for each in actions if isinstance(each, RecordLoss)]:
            self._change(*losses)
        for action in actions:
            match action:
                case RequestSlot():
                    self._request_slot(action)
                case Kill():
                    self._kill(action)
                case RecordLoss():
                    app_id = action.app_id
                    level = logging.INFO if action.is_planned else logging.WARNING
                    _log.log(
                        level, "app master of application %s is lost: %s", app_id, action.cause
                    )
                    self._scheduler.cancel(app_id)  # The next one asks anew.
                    self._workers.reserve(self._slots.on_app_master_over(app_id), self._now())
                case EndApplication():
                    if known := self._state.get(action.app_id):
                        self._end(known, "failed", cause=ErrorCard(cause=action.cause))
                case _:
                    assert_never(action)
        self._allocate()

    def _request_slot(self, action: RequestSlot) -> None:
        wishes = self._wishes_of(action.app_id)
        self._scheduler.request(
            ResourceRequest(
                app_id=action.app_id,
                launch=self._state.next_launch(action.app_id),
                slots=_APP_MASTER_SLOTS,
                is_restart=self._has_run(action.app_id),
                is_for_app_master=True,
                priority=Priority[wishes.priority.upper()],
                hosts=wishes.hosts,
                avoid=action.avoid,
            )
        )

    def _loss(self, action: RecordLoss) -> LoseAppMaster:
        known = self._state.get(action.app_id)
        return LoseAppMaster(
            app_id=action.app_id,
            launch=action.launch,
            at_ms=self.context.wall_ms(),
            restarts=known.progress.restarts if known else 0,
            is_planned=action.is_planned,
        )

    def _kill(self, action: Kill, *, at_once: bool = True) -> None:
        """Have a worker kill an app master; not ``at_once``, it has some time to end by itself."""
        gone = RunningExecutor(
            app_id=action.app_id,
            executor_id=MASTER_EXECUTOR,
            launch=action.launch,
            app_master=action.launch,
            slots=_APP_MASTER_SLOTS,
        )
        self._workers.stop_executor(action.worker_id, gone, reason=action.reason, kill=at_once)

    # -- the end ---------------------------------------------------------------------------

    def _end(
        self,
        known: ApplicationSummary,
        status: ApplicationStatus,
        *,
        cause: ErrorCard | None = None,
        and_then: Submit | None = None,
    ) -> Any:
        app_id, path = known.app_id, self._app_masters.path(known.app_id)
        commands: list[MasterCommand] = [
            ChangeStatus(
                app_id=known.app_id,
                status=status,
                at_ms=self.context.wall_ms(),
                progress=replace(known.progress, stall=""),
                cause=cause,
            )
        ]
        keep = self._ended_max
        if self._state.ended_count >= keep:
            commands.append(ForgetEnded(keep=keep))
        newest = self._state.newest_launch(app_id)
        result = self._change(*commands, *([and_then] if and_then else []))[-1]
        self._app_masters.on_ended(app_id)
        self._last_answers.on_ended(app_id)
        self._scheduler.on_application_over(app_id)
        self._slots.on_app_master_over(app_id)
        if path is not None:
            self._outbox.unwatch(path)
        if newest is not None and not newest.is_lost:
            self._kill(Kill(app_id, newest.worker_id, newest.number, status), at_once=False)
        self._allocate()
        return result

    # -- the rest --------------------------------------------------------------------------

    def _change(self, *commands: MasterCommand) -> list[Any]:
        return self._store.change(*commands)

    def _policy_of(self, app_id: AppId) -> RestartPolicy:
        request = self._state.request_of(app_id)
        assert request is not None
        return restart_policy(self._configs.of(request.config))

    def _now(self) -> LaunchTimes:
        return LaunchTimes(self.context.now_ms(), self.context.wall_ms())

    def _set_timer(self) -> None:
        dues = (
            self._app_masters.next_due_ms,
            self._slots.next_due_ms,
            self._scheduler.next_due_ms,
            self._workers.next_due_ms,
        )
        due_ms = min((each for each in dues if each is not None), default=None)
        if self._timer is not None:
            if self._timer[0] == due_ms:
                return
            self._timer[1].cancel()
            self._timer = None
        if due_ms is not None:
            delay_ms = max(0, due_ms - self.context.now_ms())
            self._timer = (due_ms, self.context.schedule_once(delay_ms, _Tick()))


def _at_address(path: ActorPath) -> ActorPath:
    return ActorPath(address_of(path.node), path.name)
