"""WorkerActor: offers slots and starts executors in them."""

import logging
from collections.abc import Callable
from typing import Any, assert_never

from gearpy.actor.api import Actor, Exited, Failed, Ref
from gearpy.cluster.post import Post
from gearpy.errors import GearpyError
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import (
    ExecutorExited,
    ExecutorLaunchRejected,
    LaunchExecutor,
    RegisterWorker,
    ResourceUpdate,
    ShutdownExecutor,
    WorkerMessage,
    WorkerRegistered,
)

__all__ = ["ExecutorMaker", "WorkerActor"]

_log = logging.getLogger(__name__)

#: Makes the actor of an executor, or of an app master for executor -1.
ExecutorMaker = Callable[[LaunchExecutor], Callable[[], Actor[Any]]]


class WorkerActor(Actor[WorkerMessage]):
    """Keeps account of its slots and of the executors in them.

    Runs on: its own thread. Restart: none. Gearpump: `Worker`.
    """

    def __init__(self, master: ActorPath, slots: int, make: ExecutorMaker, post: Post) -> None:
        self._master = master
        self._slots = slots
        self._make = make
        self._post = post
        self._worker_id: WorkerId | None = None
        self._running: dict[tuple[AppId, ExecutorId], tuple[LaunchExecutor, Ref[Any]]] = {}

    def on_start(self) -> None:
        """Register with the master."""
        self._post.tell(
            self._master, RegisterWorker(worker=self.context.self_ref.path, slots=self._slots)
        )

    def receive(self, message: WorkerMessage) -> None:
        """Start or stop an executor."""
        match message:
            case WorkerRegistered():
                self._worker_id = message.worker_id
            case LaunchExecutor():
                self._launch(message)
            case ShutdownExecutor():
                self._shutdown(message)
            case _:
                assert_never(message)

    def on_exited(self, exited: Exited) -> None:
        """Free the slots of an executor and say that it is gone."""
        key = next((k for k, (_, ref) in self._running.items() if ref is exited.ref), None)
        if key is None:
            return
        launch, _ = self._running.pop(key)
        self._release(launch.slots)
        cause = str(exited.reason) if isinstance(exited.reason, Failed) else ""
        self._post.tell(
            launch.reply_to,
            ExecutorExited(app_id=launch.app_id, executor_id=launch.executor_id, cause=cause),
        )

    @property
    def _free_slots(self) -> int:
        return self._slots - sum(launch.slots for launch, _ in self._running.values())

    def _launch(self, message: LaunchExecutor) -> None:
        if message.slots > self._free_slots:
            self._reject(message, f"{message.slots} slots asked, {self._free_slots} free")
            return
        key = (message.app_id, message.executor_id)
        kind = "appmaster" if message.executor_id == MASTER_EXECUTOR else f"executor{key[1]}"
        try:
            ref = self.context.spawn(self._make(message), f"app{message.app_id}-{kind}")
        except (GearpyError, OSError, RuntimeError) as error:  # The latter: no thread to be had.
            self._reject(message, str(error))
            return
        self._running[key] = (message, ref)

    def _reject(self, message: LaunchExecutor, reason: str) -> None:
        self._release(message.slots)
        self._post.tell(
            message.reply_to,
            ExecutorLaunchRejected(
                app_id=message.app_id, executor_id=message.executor_id, reason=reason
            ),
        )

    def _shutdown(self, message: ShutdownExecutor) -> None:
        running = self._running.get((message.app_id, message.executor_id))
        if running is None:
            return
        if message.executor_id == MASTER_EXECUTOR:  # Slots on their way to it must not be lost.
            self.context.system.stop_gracefully(running[1])
        else:
            self.context.stop(running[1])

    def _release(self, slots: int) -> None:
        if self._worker_id is not None:
            self._post.tell(
                self._master, ResourceUpdate(worker_id=self._worker_id, released_slots=slots)
            )
