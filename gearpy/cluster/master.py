"""MasterActor: registry of applications and workers, and the slots of all."""

import logging
from dataclasses import replace
from typing import Final, assert_never

from gearpy.actor.api import Actor, Exited
from gearpy.cluster.post import Post
from gearpy.core.registry import TERMINAL, Registry
from gearpy.core.scheduling import ResourceRequest, SlotScheduler
from gearpy.errors import SubmitRefused
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, WorkerId
from gearpy.messages.cluster import (
    Allocation,
    ApplicationList,
    ApplicationStatusChanged,
    ApplicationSummary,
    AppMasterRegistered,
    ErrorCard,
    ExecutorExited,
    ExecutorLaunchRejected,
    GetApplication,
    LaunchExecutor,
    ListApplications,
    ListWorkers,
    MasterMessage,
    Refused,
    RegisterAppMaster,
    RegisterWorker,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    ShutdownAccepted,
    ShutdownApplication,
    ShutdownExecutor,
    SubmitApplication,
    Submitted,
    WorkerList,
    WorkerRegistered,
    WorkerSummary,
)

__all__ = ["MasterActor"]

_log = logging.getLogger(__name__)
_APP_MASTER_SLOTS: Final = 1


class MasterActor(Actor[MasterMessage]):
    """Answers clients, places app masters and executors on workers.

    Runs on: its own thread. Restart: none yet; all it knows is in memory.
    Gearpump: `Master`, `AppManager`.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._registry = Registry()
        self._scheduler = SlotScheduler()
        self._workers: dict[WorkerId, ActorPath] = {}
        self._submitted: dict[AppId, SubmitApplication] = {}
        self._app_masters: dict[AppId, ActorPath] = {}
        self._app_master_workers: dict[AppId, WorkerId] = {}
        self._next_worker = 0

    def receive(self, message: MasterMessage) -> object:  # noqa: C901 - an arm for each message
        """Answer a client, or take the news of a worker or an app master."""
        match message:
            case SubmitApplication():
                return self._submit(message)
            case ListApplications():
                return ApplicationList(applications=tuple(map(_brief, self._registry.summaries())))
            case GetApplication():
                return self._registry.get(message.app_id) or self._unknown(message.app_id)
            case ListWorkers():
                return self._worker_list()
            case ShutdownApplication():
                return self._shutdown(message.app_id)
            case RegisterWorker():
                self._register_worker(message)
            case ResourceUpdate():
                self._scheduler.release(message.worker_id, message.released_slots)
                self._allocate()
            case RequestResource():
                self._request(message)
            case RegisterAppMaster():
                self._register_app_master(message)
            case ApplicationStatusChanged():
                self._on_status(message)
            case ExecutorLaunchRejected() | ExecutorExited():
                self._on_app_master_gone(message)
            case _:
                assert_never(message)
        return None

    def on_exited(self, exited: Exited) -> None:
        """Forget a worker and its slots."""
        for worker_id, path in list(self._workers.items()):
            if path == exited.ref.path:
                del self._workers[worker_id]
                self._scheduler.on_worker_lost(worker_id)
                self._on_app_masters_lost(worker_id)

    # -- clients ---------------------------------------------------------------------------

    def _submit(self, message: SubmitApplication) -> Submitted | Refused:
        try:
            app_id = self._registry.submit(message, self.context.wall_ms())
        except SubmitRefused as error:
            return Refused(reason=str(error))
        self._submitted[app_id] = message
        self._scheduler.request(ResourceRequest(app_id=app_id, slots=_APP_MASTER_SLOTS))
        self._allocate()
        return Submitted(app_id=app_id)

    def _shutdown(self, app_id: AppId) -> ShutdownAccepted | Refused:
        known = self._registry.get(app_id)
        if known is None:
            return self._unknown(app_id)
        if not self._registry.shutdown(app_id, self.context.wall_ms()):
            return Refused(reason=f"application {app_id} is already {known.status}")
        self._clean_up(app_id, "terminated")
        return ShutdownAccepted(app_id=app_id)

    def _unknown(self, app_id: AppId) -> Refused:
        known = ", ".join(str(each.app_id) for each in self._registry.summaries()) or "none"
        return Refused(reason=f"no application has id {app_id}; ids known: {known}")

    def _worker_list(self) -> WorkerList:
        return WorkerList(
            workers=tuple(
                WorkerSummary(worker_id=worker_id, slots=each.total, free_slots=each.free)
                for worker_id, each in self._scheduler.workers().items()
            )
        )

    # -- workers and slots -----------------------------------------------------------------

    def _register_worker(self, message: RegisterWorker) -> None:
        worker_id = WorkerId(self._next_worker)
        self._next_worker += 1
        self._workers[worker_id] = message.worker
        self._scheduler.on_worker(worker_id, total=message.slots, free=message.slots)
        ref = self._post.find(message.worker)
        if ref is not None:
            self.context.watch(ref)
        self._post.tell(
            message.worker,
            WorkerRegistered(worker_id=worker_id, master=self.context.self_ref.path),
        )
        self._allocate()

    def _register_app_master(self, message: RegisterAppMaster) -> None:
        if self._is_living(message.app_id):
            self._app_masters[message.app_id] = message.app_master
            self._post.tell(message.app_master, AppMasterRegistered(app_id=message.app_id))

    def _request(self, message: RequestResource) -> None:
        if not self._is_living(message.app_id):
            return  # It was stopped while the request was under way.
        self._scheduler.request(
            ResourceRequest(app_id=message.app_id, slots=message.slots, executors=message.executors)
        )
        self._allocate()

    def _allocate(self) -> None:
        for app_id, worker_id, slots in self._scheduler.allocate():
            if app_id not in self._app_master_workers:
                self._launch_app_master(app_id, worker_id)
                continue
            allocation = Allocation(
                worker_id=worker_id, worker=self._workers[worker_id], slots=slots
            )
            message = ResourceAllocated(app_id=app_id, allocations=(allocation,))
            if not self._post.tell(self._app_masters[app_id], message):
                self._scheduler.release(worker_id, slots)

    def _launch_app_master(self, app_id: AppId, worker_id: WorkerId) -> None:
        self._app_master_workers[app_id] = worker_id
        submitted = self._submitted[app_id]
        self._post.tell(
            self._workers[worker_id],
            LaunchExecutor(
                app_id=app_id,
                executor_id=MASTER_EXECUTOR,
                slots=_APP_MASTER_SLOTS,
                name=submitted.name,
                artifact=submitted.artifact,
                executors=submitted.executors,
                config=submitted.config,
                reply_to=self.context.self_ref.path,
            ),
        )

    # -- applications ----------------------------------------------------------------------

    def _on_status(self, message: ApplicationStatusChanged) -> None:
        changed = self._registry.on_status(
            message.app_id,
            message.status,
            progress=message.progress,
            cause=message.cause,
            now_ms=self.context.wall_ms(),
        )
        if changed and message.status in TERMINAL:
            self._clean_up(message.app_id, message.status)

    def _on_app_master_gone(self, message: ExecutorLaunchRejected | ExecutorExited) -> None:
        if isinstance(message, ExecutorLaunchRejected):
            self._fail(message.app_id, f"the app master was not started: {message.reason}")
        else:
            self._fail(message.app_id, f"the app master is gone: {message.cause or 'stopped'}")

    def _on_app_masters_lost(self, worker_id: WorkerId) -> None:
        for app_id, where in list(self._app_master_workers.items()):
            if where == worker_id:
                self._fail(app_id, f"the app master is gone: worker {worker_id} is lost")

    def _fail(self, app_id: AppId, cause: str) -> None:
        if self._is_living(app_id):
            self._registry.on_status(
                app_id, "failed", cause=ErrorCard(cause=cause), now_ms=self.context.wall_ms()
            )
            self._clean_up(app_id, "failed")

    def _is_living(self, app_id: AppId) -> bool:
        known = self._registry.get(app_id)
        return known is not None and known.status not in TERMINAL

    def _clean_up(self, app_id: AppId, reason: str) -> None:
        """Take back what it waits for, end its app master, forget all but its summary."""
        self._scheduler.cancel(app_id)
        self._submitted.pop(app_id, None)
        self._app_masters.pop(app_id, None)
        worker_id = self._app_master_workers.pop(app_id, None)
        if worker_id in self._workers:
            self._post.tell(
                self._workers[worker_id],
                ShutdownExecutor(app_id=app_id, executor_id=MASTER_EXECUTOR, reason=reason),
            )


def _brief(summary: ApplicationSummary) -> ApplicationSummary:
    """Leave out the traceback: those of many applications do not fit into one message."""
    if summary.cause is None:
        return summary
    return replace(summary, cause=replace(summary.cause, traceback=""))
