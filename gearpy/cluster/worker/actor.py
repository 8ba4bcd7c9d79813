"""WorkerActor: offers slots, starts executors in them, and stays with its master."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias, assert_never

from msgspec import Struct

from gearpy import __version__
from gearpy.actor.api import Actor, Cancellable, Exited
from gearpy.cluster.net.post import Post
from gearpy.cluster.net.watched import MasterWatch
from gearpy.errors import ConnectionLost, GearpyError
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, WorkerId, address_of
from gearpy.messages.client import (
    DescribeWorker,
    DrainWorker,
    HostedExecutor,
    LogText,
    ProcessDetail,
    ReadLog,
    Refused,
    WorkerDetail,
    WorkerDrains,
)
from gearpy.messages.cluster import (
    ExecutorExited,
    ExecutorLaunchRejected,
    LaunchExecutor,
    MastersChanged,
    OtherCluster,
    RegisterWorker,
    ResourceUpdate,
    RunningExecutor,
    ShutdownExecutor,
    WorkerMessage,
    WorkerRegistered,
)
from gearpy.messages.metrics import GetHistory, GetProcessMetrics
from gearpy.metrics.history import RECENT_MS, ProcessHistory
from gearpy.metrics.process import process_meter

_log = logging.getLogger(__name__)

_RETRY_MS: Final = 1000
_UNREPORTED_MAX: Final = 1000  # Ends of app masters, or refusals, that no master knows of yet.

_Key: TypeAlias = tuple[AppId, ExecutorId]


class Launched(Protocol):
    """An executor, or app master, that was started."""

    def stop(self, *, kill: bool) -> None: ...


class ExecutorLauncher(Protocol):
    """Starts executors: as threads of this process, or as processes."""

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> Launched: ...


def _ignore(_: object) -> None:
    pass


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """The settings of a worker beside its slots.

    Args:
        reconnect_timeout_ms: it looks so long for a master that it had; then it ends.
        stop_timeout_ms: what an app master's end leaves behind is killed after so long.
        on_ready: is told, in a line for people, that a master has the worker; once.
    """

    other_masters: Sequence[ActorPath] = ()
    reconnect_timeout_ms: int = 60_000
    stop_timeout_ms: int = 10_000
    read_log: Callable[[ReadLog], LogText | Refused] | None = None
    on_ready: Callable[[str], None] = _ignore
    on_waiting: Callable[[str], None] = _ignore
    on_masters: Callable[[tuple[str, ...]], None] = _ignore
    about: ProcessDetail | None = None
    hosts: tuple[str, ...] = ()
    rack: str = ""
    home: str = ""


class _Ended(Struct, frozen=True):
    key: _Key
    launch: int
    cause: str


class _LookForMaster(Struct, frozen=True):
    pass


class _KillOrphans(Struct, frozen=True):
    app_id: AppId


class _Measure(Struct, frozen=True):
    pass


_Question: TypeAlias = DescribeWorker | ReadLog | GetProcessMetrics | GetHistory
_Message: TypeAlias = (
    WorkerMessage | _Question | DrainWorker | _Ended | _LookForMaster | _KillOrphans | _Measure
)


class _Running(Struct):
    """One executor, and a newer launch of it that waits for its end."""

    message: LaunchExecutor
    launched: Launched
    successor: LaunchExecutor | None = None

    @property
    def slots(self) -> int:
        return max(self.message.slots, self.successor.slots if self.successor else 0)

    @property
    def newest(self) -> LaunchExecutor:
        return self.successor or self.message


class _Search(Struct):
    """Looking for a master; ``until_ms`` is None for a worker that never had any.

    ``has_changed``: since it began something was started or refused, or has ended. The master
    that answers may not know of it.
    """

    timer: Cancellable
    until_ms: int | None
    tries: int = 0
    has_changed: bool = False


class WorkerActor(Actor[_Message]):
    """Keeps account of its slots and of the executors in them.

    Without a master everything that runs goes on. The worker registers again, with what runs,
    and ends when it has found none for too long.

    Invariant: executors take no more slots than there are, and no executor runs twice.

    Runs on: its own thread. Restart: none. Gearpump: `Worker`.
    """

    takes = _Message

    def __init__(
        self,
        master: ActorPath,
        slots: int,
        launcher: ExecutorLauncher,
        post: Post,
        settings: WorkerSettings | None = None,
    ) -> None:
        self._slots = slots
        self._launcher = launcher
        self._post = post
        self._settings = settings or WorkerSettings()
        self._addresses = (master, *self._settings.other_masters)
        self._master = MasterWatch(post, lambda: self.context, master)
        self._search: _Search | None = None
        self._worker_id: WorkerId | None = None
        self._cluster_id = ""  # The first master's; it stays while this process lives.
        self._other_cluster = ""  # A master of it was found meanwhile.
        self._running: dict[_Key, _Running] = {}
        self._unreported: deque[ExecutorExited] = deque(maxlen=_UNREPORTED_MAX)
        self._refused: deque[RunningExecutor] = deque(maxlen=_UNREPORTED_MAX)
        self._lost_app_masters: set[ActorPath] = set()
        self._ended_app_masters: set[AppId] = set()
        self._is_draining = False
        self._failure: GearpyError | None = None
        self._process = ProcessHistory("worker", process_meter().sample)

    def on_start(self) -> None:
        self.context.schedule(RECENT_MS, _Measure())
        self._look_for_master(until_ms=None)

    def receive(self, message: _Message) -> object:
        if not self._master.admits(message):
            return None
        match message:
            case WorkerRegistered():
                self._on_registered(message)
            case MastersChanged():
                name = self._addresses[0].name
                self._addresses = tuple(ActorPath(each, name) for each in message.masters)
                self._settings.on_masters(message.masters)
            case OtherCluster():
                self._on_other_cluster(message)
            case LaunchExecutor():
                self._on_launch(message)
            case ShutdownExecutor():
                self._on_shutdown(message)
            case ReadLog():
                return self._read_log(message)
            case GetProcessMetrics() | GetHistory():
                return self._measurements(message)
            case _Measure():
                self._process.on_tick(self.context.wall_ms())
            case DescribeWorker():
                return self._described()
            case DrainWorker():
                return self._on_drain(message)
            case _Ended():
                self._on_ended(message)
            case _LookForMaster():
                self._try_next_master()
            case _KillOrphans():
                self._kill_orphans(message.app_id)
            case _:
                assert_never(message)
        return None

    def _measurements(self, message: GetProcessMetrics | GetHistory) -> object:
        at_ms = self.context.wall_ms()
        if isinstance(message, GetHistory):
            return self._process.answer(message, at_ms)
        refused = {"gearpy_refused_orders_total": float(self._master.refused_orders)}
        return self._process.latest(at_ms, refused)

    def on_exited(self, exited: Exited) -> None:
        path = exited.ref.path
        ended = self._master.on_exited(exited)
        if ended == "own":
            _log.warning("master %s is lost; what runs goes on", self._master.path)
            until_ms = self.context.now_ms() + self._settings.reconnect_timeout_ms
            self._look_for_master(until_ms=until_ms)
        elif ended is None and any(
            each.message.reply_to == path for each in self._running.values()
        ):
            self._lost_app_masters.add(path)
            for app_id in dict.fromkeys(app_id for app_id, _ in self._running):
                self._expect_orphans(app_id)

    def on_stop(self) -> None:
        for running in self._running.values():
            running.launched.stop(kill=True)

    # -- the master ------------------------------------------------------------------------

    def _look_for_master(self, until_ms: int | None) -> None:
        timer = self.context.schedule(_RETRY_MS, _LookForMaster())
        self._search = _Search(timer, until_ms)
        self._try_next_master()

    def _try_next_master(self) -> None:
        search = self._search
        if search is None or self._is_draining:
            return
        if search.until_ms is not None and self.context.now_ms() >= search.until_ms:
            seconds = self._settings.reconnect_timeout_ms // 1000
            text = f"no master at {self._places()} for {seconds} s: the worker ends"
            if self._other_cluster:
                text = f"{self._text_of_other()}; it ends after {seconds} s"
            _log.error("%s", text)
            self._failure = ConnectionLost(text)
            self._drain()
            return
        if search.tries == 1:
            text = f"no master at {self._places()} yet; trying again every second"
            _log.warning("%s", text)
            if search.until_ms is None:
                self._settings.on_waiting(text)
        search.tries += 1
        self._master.begin(self._addresses)
        for address in self._addresses:  # The one that leads answers.
            self._register(address)

    def _register(self, master: ActorPath) -> None:
        for exited in self._unreported:
            self._post.tell(master, exited)
        self._post.tell(
            master,
            RegisterWorker(
                worker=self.context.self_ref.path,
                slots=self._slots,
                cluster_id=self._cluster_id,
                worker_id=self._worker_id,
                running=self._what_runs(),
                hosts=self._settings.hosts,
                rack=self._settings.rack,
                home=self._settings.home,
                version=__version__,
            ),
        )

    def _what_runs(self) -> tuple[RunningExecutor, ...]:
        return tuple(_brief(each.message) for each in self._running.values())

    def _tell_change(self) -> None:
        """Tell the master which launches run now; a lost master hears it when it is found."""
        if self._search is not None:
            self._search.has_changed = True
            return
        assert self._worker_id is not None, "a master has this worker"
        update = ResourceUpdate(
            worker_id=self._worker_id,
            running=self._what_runs(),
            refused=tuple(self._refused),
            is_leaving=self._is_draining,
        )
        self._refused.clear()
        self._post.tell(self._master.path, update)

    def _on_registered(self, message: WorkerRegistered) -> None:
        search = self._search
        answer = self._master.on_answer(message.master, message.term)
        if answer == "unsure":
            self._register(message.master)
        if answer != "new":
            return
        self._cluster_id = self._cluster_id or message.cluster_id
        self._other_cluster = ""
        has_changed = search is None or search.has_changed  # Another may have been told of it.
        if search is not None:
            search.timer.cancel()
        is_first, self._search = self._worker_id is None, None
        self._worker_id = message.worker_id
        self._process.name = f"worker{self._worker_id}"
        self._unreported.clear()
        if has_changed:
            self._tell_change()
        slots = f"{self._slots} slot{'' if self._slots == 1 else 's'}"
        master = address_of(self._master.path.node) or self._master.path.name
        text = f"worker {self._worker_id} ready: {slots}, master {master}"
        _log.info("%s", text)
        if is_first:
            self._settings.on_ready(text)

    def _on_other_cluster(self, message: OtherCluster) -> None:
        if self._search is not None and message.cluster_id != self._other_cluster:
            self._other_cluster = message.cluster_id
            _log.error("%s; what runs goes on", self._text_of_other())

    def _text_of_other(self) -> str:
        return (
            f"the master at {self._places()} is of cluster {self._other_cluster}, this worker "
            f"belongs to cluster {self._cluster_id}: start the master over its own master.folder, "
            "or this worker anew if it shall change"
        )

    def _places(self) -> str:
        return " or ".join(address_of(each.node) or each.name for each in self._addresses)

    # -- launches --------------------------------------------------------------------------

    def _on_launch(self, message: LaunchExecutor) -> None:
        running = self._running.get((message.app_id, message.executor_id))
        others = sum(each.slots for each in self._running.values() if each is not running)
        free = self._slots - others
        if running is not None and message.launch == running.newest.launch:
            return  # A repeated message.
        if self._is_draining:
            self._reject(message, "the worker is being drained")
        elif running is not None and message.launch < running.newest.launch:
            self._reject(message, f"launch {running.newest.launch} of it is here already")
        elif message.slots > free:
            self._reject(message, f"{message.slots} slots asked, {free} free")
        elif running is not None:
            if running.successor is not None:
                self._reject(running.successor, f"launch {message.launch} of it came meanwhile")
            running.successor = message
            running.launched.stop(kill=True)
        else:
            self._start(message)
        self._tell_change()

    def _start(self, message: LaunchExecutor) -> None:
        key = (message.app_id, message.executor_id)
        me = self.context.self_ref
        try:
            launched = self._launcher.launch(
                message, lambda cause: me.tell(_Ended(key, message.launch, cause))
            )
        except (GearpyError, OSError, RuntimeError) as error:  # The latter: no thread to be had.
            self._reject(message, str(error))
            return
        self._running[key] = _Running(message, launched)
        _log.info("started launch %d of executor %d of application %d", message.launch, *key[::-1])
        if message.executor_id != MASTER_EXECUTOR:
            path = message.reply_to
            self._lost_app_masters.discard(path)  # It has just spoken.
            ref = self._post.find(path)
            if ref is not None:
                self.context.watch(ref)

    def _reject(self, message: LaunchExecutor, reason: str) -> None:
        self._refused.append(_brief(message))
        self._post.tell(
            message.reply_to,
            ExecutorLaunchRejected(
                app_id=message.app_id,
                executor_id=message.executor_id,
                launch=message.launch,
                reason=reason,
            ),
        )

    def _on_shutdown(self, message: ShutdownExecutor) -> None:
        running = self._running.get((message.app_id, message.executor_id))
        if running is None:
            return
        if running.message.launch == message.launch:
            running.launched.stop(kill=message.kill)
        elif running.successor is not None and running.successor.launch == message.launch:
            successor, running.successor = running.successor, None
            self._report(successor, "")
            self._refused.append(_brief(successor))
            self._tell_change()

    # -- ends ------------------------------------------------------------------------------

    def _on_ended(self, message: _Ended) -> None:
        running = self._running.get(message.key)
        if running is None or running.message.launch != message.launch:
            return
        del self._running[message.key]
        _log.log(
            logging.WARNING if message.cause else logging.INFO,
            "launch %d of executor %d of application %d ended: %s",
            message.launch,
            *message.key[::-1],
            message.cause or "as asked",
        )
        self._report(running.message, message.cause)
        launch = running.message
        app_id = launch.app_id
        if launch.executor_id == MASTER_EXECUTOR:
            self._ended_app_masters.add(app_id)
            self._expect_orphans(app_id)
        if all(other != app_id for other, _ in self._running):
            self._ended_app_masters.discard(app_id)
        self._lost_app_masters &= {each.message.reply_to for each in self._running.values()}
        if running.successor is not None:
            self._start(running.successor)
        self._tell_change()
        self._end_if_drained()

    def _report(self, launch: LaunchExecutor, cause: str) -> None:
        exited = ExecutorExited(
            app_id=launch.app_id,
            executor_id=launch.executor_id,
            launch=launch.launch,
            cause=cause,
            cluster_id=launch.cluster_id,
        )
        if launch.executor_id != MASTER_EXECUTOR:
            self._post.tell(launch.reply_to, exited)
        elif self._search is None:  # The master of now may be another than the one that asked.
            self._post.tell(self._master.path, exited)
        else:
            self._unreported.append(exited)

    def _expect_orphans(self, app_id: AppId) -> None:
        if any(self._orphans(app_id)):
            self.context.schedule_once(self._settings.stop_timeout_ms, _KillOrphans(app_id))

    def _kill_orphans(self, app_id: AppId) -> None:
        for running in self._orphans(app_id):
            _log.warning("application %d: an executor outlived its app master, killed", app_id)
            running.launched.stop(kill=True)

    def _orphans(self, app_id: AppId) -> Iterator[_Running]:
        if app_id in self._ended_app_masters:
            for (other, executor_id), running in self._running.items():
                is_child = other == app_id and executor_id != MASTER_EXECUTOR
                if is_child and running.message.reply_to in self._lost_app_masters:
                    yield running

    # -- the end ---------------------------------------------------------------------------

    def _on_drain(self, message: DrainWorker) -> WorkerDrains | Refused:
        if message.if_idle and self._running:
            return Refused(reason=f"worker {self._worker_id} is not idle")
        self._drain()
        return WorkerDrains(executors=len(self._running))

    def _drain(self) -> None:
        self._is_draining = True
        for running in self._running.values():
            if running.successor is not None:
                self._reject(running.successor, "the worker is being drained")
                running.successor = None
            running.launched.stop(kill=False)
        if self._worker_id is not None:
            self._tell_change()  # Before executors end: their slots are wanted elsewhere.
        self._end_if_drained()

    def _end_if_drained(self) -> None:
        if not self._is_draining or self._running:
            return
        if self._failure is not None:
            raise self._failure
        self.context.stop_self()

    def _described(self) -> WorkerDetail | Refused:
        about = self._settings.about
        if about is None or self._worker_id is None:
            return Refused(reason="this worker has no master yet, or tells nothing about itself")
        hosted = tuple(
            HostedExecutor(
                app_id=app_id, executor_id=executor_id, slots=each.slots, launch=each.newest.launch
            )
            for (app_id, executor_id), each in sorted(self._running.items())
        )
        return WorkerDetail(
            worker_id=self._worker_id, slots=self._slots, executors=hosted, process=about
        )

    def _read_log(self, question: ReadLog) -> LogText | Refused:
        if self._settings.read_log is None:
            return Refused(reason="this worker keeps no logs")
        return self._settings.read_log(question)


def _brief(launch: LaunchExecutor) -> RunningExecutor:
    return RunningExecutor(
        app_id=launch.app_id,
        executor_id=launch.executor_id,
        launch=launch.launch,
        app_master=launch.app_master,
        slots=launch.slots,
    )
