"""ActorAppMaster: the app master of an application of actors, around the user's `AppMaster`."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct

from gearpy.actor.api import Actor, Exited, Failed, TurnCall
from gearpy.cluster.app.connections import AppExecutors, MasterLink
from gearpy.cluster.net.limits import restart_policy
from gearpy.cluster.net.masters import several_masters
from gearpy.cluster.net.post import Post
from gearpy.config.schema import Config
from gearpy.core.app.crew import Crew, CrewCommand, Lost
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop, first_launch
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import ActorPath, ExecutorId
from gearpy.messages.actor_app import ActorLetter, AppMasterAnswer, AskAppMaster
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.client import (
    DescribeApplication,
    DrainApplication,
    GetEpochs,
    GetPlan,
    MakeSavepoint,
    Refused,
    ReplayNow,
    ReplayQuarantined,
    WorkerList,
)
from gearpy.messages.cluster import (
    ApplicationStatusChanged,
    AppMasterRegistered,
    ExecutorExited,
    ExecutorLaunchRejected,
    FindWorkers,
    LaunchExecutor,
    MastersChanged,
    ResourceAllocated,
    ValueStored,
)
from gearpy.messages.metrics import GetHistory, GetMetrics, GetSeries
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationStatus,
    ErrorCard,
    Failure,
    WorkerSummary,
)
from gearpy.task.api.actor_app import ActorApp, AppMaster, PendingAnswer
from gearpy.task.api.failure import USER_ERRORS, card_of, operator_error
from gearpy.wire.values.payload import decode_value, encode_value

_log = logging.getLogger(__name__)
_TICK_MS: Final = 100
_FIND_WORKERS_MS: Final = 1000
_OUTCOME_KEY: Final = "outcome"
_FAILURES_KEPT: Final = 20
_PENDING_MAX: Final = 1000


class _Tick(Struct, frozen=True):
    pass


_Event: TypeAlias = (
    ResourceAllocated
    | ExecutorLaunchRejected
    | ExecutorExited
    | RegisterExecutor
    | ActorLetter
    | WorkerList
    | ValueStored
)
_OfStreams: TypeAlias = (
    DrainApplication
    | GetEpochs
    | GetHistory
    | GetMetrics
    | GetPlan
    | GetSeries
    | MakeSavepoint
    | ReplayNow
    | ReplayQuarantined
)
_Message: TypeAlias = (
    AppMasterRegistered
    | MastersChanged
    | _Event
    | _OfStreams
    | AskAppMaster
    | DescribeApplication
    | _Tick
    | TurnCall
)


class ActorAppMaster(Actor[_Message]):
    """Carries out the decisions of its `Crew`; is the context of the user's `AppMaster`.

    Runs on: its own thread, in the application's executor -1. Restart: the master has another one
    launched, which begins anew with the values that were stored. Gearpump: `ApplicationMaster`.
    """

    takes = _Message

    def __init__(
        self,
        launch: LaunchExecutor,
        config: Config,
        *,
        load: Callable[[], ActorApp],
        post: Post,
        rng: Random,
        release: Callable[[], None],
    ) -> None:
        self._launch = launch
        self._cluster_config = config
        self._load = load
        self._release = release
        self._master = MasterLink(post, launch, lambda: self.context, several_masters(config))
        self._executors = AppExecutors(post, launch, lambda: self.context)
        self._crew = Crew(
            restarts=restart_policy(config),
            start_timeout_ms=config.executor.start_timeout_s * 1000,
            rng=rng,
            first_launch=first_launch(launch.launch),
        )
        self._user: AppMaster | None = None
        self.app_id: int = launch.app_id  #: This and what follows is for the user's app master.
        self.app_name = ""
        self.config: Mapping[str, Any] = {}
        self.values: Mapping[str, bytes] = {}
        self._status: ApplicationStatus = "pending"
        self._cause: ErrorCard | None = None
        self._failures: list[Failure] = []
        self._restarts = 0
        self._workers: tuple[WorkerSummary, ...] = ()
        self._find_workers_ms = 0
        self._pending: dict[int, PendingAnswer] = {}
        self._questions = 0
        #: Told, or to be told, to the master: by key, the newest value and its number.
        self._unstored: dict[str, tuple[bytes, int]] = {}
        self._stores = 0

    def on_start(self) -> None:
        self._master.register(self._status)
        self.context.schedule(_TICK_MS, _Tick())

    def receive(self, message: _Message) -> object:
        if not self._master.admits(message):
            return None
        match message:
            case AppMasterRegistered():
                self._on_registered(message)
            case MastersChanged():
                self._master.on_masters(message)
            case AskAppMaster():
                return self._answer(message)
            case DescribeApplication():
                return ApplicationDetail(
                    app_id=self._launch.app_id,
                    executors=tuple(self._crew.executors.summaries({})),
                    failures=tuple(self._failures),
                    restarts=self._restarts,
                    of_actors=True,
                )
            case _Tick():
                now_ms = self.context.now_ms()
                timeout_ms = self._cluster_config.cluster.reconnect_timeout_s * 1000
                self._master.look_for(self._status, timeout_ms)
                if self._is_alive:
                    self._do(self._crew.on_tick(now_ms))
                    if now_ms >= self._find_workers_ms:
                        self._find_workers()
                self._tell_status()
            case TurnCall():
                if self._is_alive:
                    message.call()
            case _ if isinstance(message, _OfStreams):
                return Refused(
                    reason=f"application {message.app_id} is one of actors: it has no streams"
                )
            case _:
                self._on_event(message)
        return None

    def on_exited(self, exited: Exited) -> None:
        path = exited.ref.path
        if self._master.on_exited(exited):
            return
        if (found := self._executors.take(path)) is None:
            self._lost_worker(path)
        elif isinstance(exited.reason, Failed):  # Its worker tells of other ends.
            now_ms = self.context.now_ms()
            self._do(self._crew.on_gone(*found, str(exited.reason), now_ms))

    def on_stop(self) -> None:
        self._stop_user()
        for stop in self._crew.stop_all("its app master ends"):
            self._do_one(stop)
        self._release()

    # -- the master ------------------------------------------------------------------------

    @property
    def _is_alive(self) -> bool:
        return self._user is not None and self._status == "active"

    def _on_registered(self, message: AppMasterRegistered) -> None:
        if message.launch != self._launch.launch:
            return
        if not self._master.on_registered(message, self._status):
            return
        if self._user is None and self._status == "pending":
            self._begin(message)
        else:
            self._do(self._crew.on_master_back(self.context.now_ms()))
            for key, (value, number) in self._unstored.items():
                self._master.put(key, value, number)
        self._tell_status()

    def _begin(self, message: AppMasterRegistered) -> None:
        if message.values.get(_OUTCOME_KEY):
            self._status = "succeeded"
            return
        try:
            app = self._load()
            user = app.master()
        except (GearpyError, *USER_ERRORS) as error:
            known = error if isinstance(error, GearpyError) else operator_error("app master", error)
            self._end("failed", card_of(known))
            return
        self._values = dict(message.values)
        self.app_name, self.config, self.values = app.name, app.config, self._values
        user.context = self
        self._user, self._status = user, "active"
        self._find_workers()
        user.on_start()

    def _find_workers(self) -> None:
        self._find_workers_ms = self.context.now_ms() + _FIND_WORKERS_MS
        self._master.tell(FindWorkers(app_id=self._launch.app_id, launch=self._launch.launch))

    def _tell_status(self) -> None:
        self._master.tell(
            ApplicationStatusChanged(
                app_id=self._launch.app_id,
                launch=self._launch.launch,
                status=self._status,
                progress=ApplicationProgress(restarts=self._restarts),
                cause=self._cause,
            )
        )

    def _end(self, status: ApplicationStatus, cause: ErrorCard | None = None) -> None:
        if status == "failed" and cause is not None:
            _log.warning("application %s failed: %s", self._launch.app_id, cause.cause)
            self._note("the application", cause)
        self._do(self._crew.stop_all("the application has ended"))
        self._stop_user()
        self._status, self._cause = status, cause
        self._tell_status()

    def _stop_user(self) -> None:
        user, self._user = self._user, None
        if user is not None:
            user.on_stop()

    # -- events ----------------------------------------------------------------------------

    def _on_event(self, message: _Event) -> None:
        now_ms = self.context.now_ms()
        match message:
            case ResourceAllocated():
                self._do(self._crew.on_allocated(message.allocations, now_ms))
            case ExecutorLaunchRejected() | ExecutorExited():
                launch, cause = message.launch, message.cause
                self._do(self._crew.on_gone(message.executor_id, launch, cause, now_ms))
            case RegisterExecutor():
                is_current = self._crew.on_registered(message)
                self._executors.on_registered(message, is_current=is_current)
                if is_current and self._user is not None:
                    self._user.on_executor(message.executor_id)
            case ActorLetter():
                is_current = self._crew.executors.is_current(message.executor_id, message.launch)
                if is_current and self._user is not None:
                    self._user.on_message(message.executor_id, decode_value(message.body))
            case WorkerList():
                self._workers = message.workers
                if self._is_alive:
                    there = [each.worker_id for each in message.workers]
                    self._do(self._crew.on_workers(there, now_ms))
            case ValueStored():
                _, number = self._unstored.get(message.key, (b"", 0))
                if message.version == number:  # No newer value is on its way.
                    self._unstored.pop(message.key, None)
                if message.key == _OUTCOME_KEY:
                    self._end("succeeded")
            case _:
                assert_never(message)

    def _lost_worker(self, worker: ActorPath) -> None:
        for executor_id, _ in self._crew.executors.on_worker(worker):
            self._executors.give_up(executor_id)
        self._do(self._crew.on_worker_lost(worker, self.context.now_ms()))

    # -- what was decided ------------------------------------------------------------------

    def _do(self, commands: Iterable[CrewCommand]) -> None:
        for command in commands:
            self._do_one(command)

    def _do_one(self, command: CrewCommand) -> None:
        match command:
            case RequestSlots():
                self._master.ask_for(command, self._crew.executors.slots)
            case Release():
                self._master.give_back(command)
            case Launch():
                if not self._executors.launch(command, self._launch):
                    self._lost_worker(command.allocation.worker)
            case Stop():
                self._executors.stop(command)
            case Lost():
                name = f"executor {command.executor_id}"
                _log.warning("application %s: %s: %s", self._launch.app_id, name, command.cause)
                self._note(name, ErrorCard(cause=command.cause))
                self._restarts += 1
                if self._user is None:
                    return
                if command.is_final:
                    self._user.on_given_up(command.executor_id, command.cause)
                else:
                    self._user.on_lost(command.executor_id, command.cause)
            case _:
                assert_never(command)

    def _note(self, what: str, error: ErrorCard) -> None:
        self._failures.append(Failure(at_ms=self.context.wall_ms(), what=what, error=error))
        del self._failures[:-_FAILURES_KEPT]

    # -- clients ---------------------------------------------------------------------------

    def _answer(self, message: AskAppMaster) -> AppMasterAnswer | Refused:
        if self._user is None:
            return Refused(reason=f"application {message.app_id} has not begun yet, or has ended")
        if message.number:
            return self._pending_answer(message.number)
        try:
            answer = self._user.on_question(decode_value(message.question))
            if not isinstance(answer, PendingAnswer):
                return AppMasterAnswer(app_id=message.app_id, answer=encode_value(answer))
        except USER_ERRORS as error:  # It must not end the application.
            return Refused(reason=f"{type(self._user).__name__} refused: {error}")
        if len(self._pending) >= _PENDING_MAX:
            return Refused(reason=f"more than {_PENDING_MAX} questions wait for their answers")
        self._questions += 1
        self._pending[self._questions] = answer
        return self._pending_answer(self._questions)

    def _pending_answer(self, number: int) -> AppMasterAnswer | Refused:
        app_id, pending = self._launch.app_id, self._pending.get(number)
        if pending is None:
            return Refused(reason="the app master that was asked is gone: ask again")
        if not pending.is_set:
            return AppMasterAnswer(app_id=app_id, number=number)
        del self._pending[number]
        return AppMasterAnswer(app_id=app_id, answer=encode_value(pending.value))

    # -- `AppMasterContext` ----------------------------------------------------------------

    @property
    def workers(self) -> Sequence[WorkerSummary]:
        return self._workers

    @property
    def executors(self) -> Mapping[int, int]:
        return {
            each.executor_id: each.worker_id
            for each in self._crew.executors.summaries({})
            if each.status == "running"
        }

    def request(self, count: int = 1, *, slots: int = 1) -> list[int]:
        _check(count=count, slots=slots)
        added, commands = self._crew.add(count, slots=slots, now_ms=self.context.now_ms())
        self._do(commands)
        return [*added]

    def request_on_each_worker(self, *, slots: int = 1) -> None:
        _check(slots=slots)
        self._crew.add_on_each_worker(slots)
        there = [each.worker_id for each in self._workers]
        if there:
            self._do(self._crew.on_workers(there, self.context.now_ms()))

    def tell(self, executor: int, message: Any) -> bool:
        executor_id = ExecutorId(executor)
        registered = self._crew.executors.running.get(executor_id)
        if registered is None:
            return False
        body = encode_value(message, where="a message")
        letter = ActorLetter(executor_id=executor_id, launch=registered.launch, body=body)
        self._executors.tell(executor_id, letter)
        return True

    def drop(self, executor: int) -> None:
        reason = "its app master has no more use for it"
        self._do(self._crew.drop(ExecutorId(executor), reason))

    def store(self, key: str, value: bytes) -> None:
        if key == _OUTCOME_KEY:
            raise ConfigError(f"the key {key!r} is gearpy's own: take another one")
        self._values[key] = value
        self._store(key, value)

    def _store(self, key: str, value: bytes) -> None:
        self._stores += 1
        self._unstored[key] = value, self._stores
        self._master.put(key, value, self._stores)

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.context.schedule_once(delay_ms, TurnCall(call))

    def later(self) -> PendingAnswer:
        return PendingAnswer()

    def succeed(self) -> None:
        """End when that is durable: a relaunched app master must not begin anew."""
        self._store(_OUTCOME_KEY, b"succeeded")

    def fail(self, cause: str) -> None:
        self._end("failed", ErrorCard(cause=cause))


def _check(**numbers: int) -> None:
    mistakes = [f"{name} is {number}: at least 1" for name, number in numbers.items() if number < 1]
    if mistakes:
        raise ConfigError(*mistakes)
