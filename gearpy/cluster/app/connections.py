"""The way of an app master to its master, and to the executors of its application."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from gearpy.actor.api import ActorContext, Exited
from gearpy.cluster.net.post import Post
from gearpy.cluster.net.watched import MasterWatch
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop
from gearpy.core.coordinator.versions import ProgramVersion
from gearpy.core.master.checkpoint_names import PROGRAM_KEY, PROGRAMS_KEY
from gearpy.ids import ActorPath, ExecutorId
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import (
    AppMasterRegistered,
    LaunchExecutor,
    MastersChanged,
    PutValue,
    RegisterAppMaster,
    RequestResource,
    ReturnResource,
    ShutdownExecutor,
    SlotWishes,
    WithdrawRequests,
)
from gearpy.messages.summaries import ApplicationStatus

_log = logging.getLogger(__name__)
_REGISTER_AGAIN_MS: Final = 1000


class MasterLink(MasterWatch):
    """Registers an app master with its master, and tells the master things while it is there."""

    def __init__(
        self,
        post: Post,
        launch: LaunchExecutor,
        context: Callable[[], ActorContext[Any]],
        masters: Sequence[str] = (),
    ) -> None:
        self.wishes = SlotWishes()  #: Those of the program that runs.
        self.near: tuple[str, ...] = ()  #: The machines that have the data which it reads.
        super().__init__(post, context, launch.reply_to, launch.term)
        others = (ActorPath(each, self.path.name) for each in masters)
        self._places = tuple(dict.fromkeys((self.path, *others)))
        self._launch = launch
        self._asked_ms = 0
        self._lost_ms: int | None = None
        self._programs: dict[str, bytes] = {}  # Stored under these keys.

    def register(self, status: ApplicationStatus) -> None:
        self._asked_ms = self._context().now_ms()
        if self._lost_ms is None:
            self._lost_ms = self._asked_ms
        self.begin(self._places)
        for place in self._places:  # The one that leads answers.
            self._ask(place, status)

    def _ask(self, place: ActorPath, status: ApplicationStatus) -> None:
        message = RegisterAppMaster(
            cluster_id=self._launch.cluster_id,
            app_id=self._launch.app_id,
            app_master=self._context().self_ref.path,
            launch=self._launch.launch,
            status=status,
        )
        self._post.tell(place, message)

    def look_for(self, status: ApplicationStatus, timeout_ms: int) -> None:
        away_ms, now_ms = self.away_ms(), self._context().now_ms()
        if away_ms is not None and away_ms >= timeout_ms:
            app_id = self._launch.app_id
            _log.error("application %s: no master for too long, stopping", app_id)
            self._context().stop_self()
        elif not self.is_there and now_ms - self._asked_ms >= _REGISTER_AGAIN_MS:
            self.register(status)

    def on_registered(self, message: AppMasterRegistered, status: ApplicationStatus) -> bool:
        """Note that the master is there, or that another one leads; its end is told.

        Returns: False for one that may have gone since it answered; it is asked once more.
        """
        place = message.master or self.path
        answer = self.on_answer(place, message.term)
        if answer == "unsure":
            self._ask(place, status)
        elif answer == "new":
            self._put_programs()
        return answer != "unsure"

    def on_masters(self, message: MastersChanged) -> None:
        self._places = tuple(ActorPath(each, self.path.name) for each in message.masters)

    def on_exited(self, exited: Exited) -> Literal["own", "other"] | None:
        ended = super().on_exited(exited)
        if ended == "own":
            _log.warning("application %s: the master is away", self._launch.app_id)
            self._lost_ms = self._context().now_ms()
        return ended

    def away_ms(self) -> int | None:
        if self.is_there or self._lost_ms is None:
            return None
        return self._context().now_ms() - self._lost_ms

    def tell(self, message: Any) -> None:
        if self.is_there:
            self._post.tell(self.path, message)

    def ask_for(self, command: RequestSlots, executors: Mapping[ExecutorId, int]) -> None:
        """Ask the master for slots; answered by `ResourceAllocated`. Or withdraw what was asked.

        A master of the version before, which refuses that, goes on waiting for them: it gives
        them out in the end, and gets them back.
        """
        app_id, launch = self._launch.app_id, self._launch.launch
        if not command.slots:
            self.tell(WithdrawRequests(app_id=app_id, launch=launch))
            return
        self.tell(
            RequestResource(
                app_id=app_id,
                launch=launch,
                slots=command.slots,
                executors=command.executors,
                total=sum(executors.values()),
                sizes=command.sizes,
                worker_id=command.worker_id,
                hosts=command.hosts,
                near=self.near,
                adds=command.adds,
                wishes=self.wishes,
            )
        )

    def give_back(self, command: Release) -> None:
        self.tell(
            ReturnResource(
                app_id=self._launch.app_id,
                launch=self._launch.launch,
                worker_id=command.worker_id,
                slots=command.slots,
            )
        )

    def note_programs(self, running: Artifact, versions: Iterable[ProgramVersion]) -> None:
        """Have the master store which program runs, and the files that all versions need.

        A master that is back is told again.
        """
        files = {each.artifact.location for each in versions}
        self._programs[PROGRAM_KEY] = msgspec.json.encode(running)
        self._programs[PROGRAMS_KEY] = msgspec.json.encode(sorted(files))
        self._put_programs()

    def _put_programs(self) -> None:
        for key, value in self._programs.items():
            self.put(key, value)

    def put(self, key: str, value: bytes, version: int = 0) -> None:
        app_id, launch = self._launch.app_id, self._launch.launch
        self.tell(PutValue(app_id=app_id, launch=launch, key=key, value=value, version=version))


class AppExecutors:
    """Launches, tells and stops the executors of one application, by their numbers."""

    def __init__(
        self, post: Post, launch: LaunchExecutor, context: Callable[[], ActorContext[Any]]
    ) -> None:
        self._post = post
        self._app_id = launch.app_id
        self._context = context
        self._paths: dict[ExecutorId, ActorPath] = {}
        self._launched: dict[ActorPath, tuple[ExecutorId, int]] = {}

    def launch(self, command: Launch, like: LaunchExecutor) -> bool:
        worker = self._post.find(command.allocation.worker)
        if worker is None:
            return False
        self._context().watch(worker)
        message = replace(
            like,
            executor_id=command.executor_id,
            launch=command.launch,
            slots=command.allocation.slots,
            hosts=command.hosts,
            reply_to=self._context().self_ref.path,
            term=0,
        )
        self._post.tell(command.allocation.worker, message)
        return True

    def on_registered(self, message: RegisterExecutor, *, is_current: bool) -> None:
        """Take an executor in and watch it, or send it away if it was given up meanwhile."""
        if not is_current:  # It would wait for tasks, and keep its slots, for ever.
            self._post.give_up(message.executor)
            return
        self._paths[message.executor_id] = message.executor
        self._launched[message.executor] = (message.executor_id, message.launch)
        if (ref := self._post.find(message.executor)) is not None:
            self._context().watch(ref)

    def take(self, path: ActorPath) -> tuple[ExecutorId, int] | None:
        return self._launched.pop(path, None)

    def tell(self, executor_id: ExecutorId, message: Any) -> None:
        self._post.tell(self._paths[executor_id], message)

    def give_up(self, executor_id: ExecutorId) -> None:
        if executor_id in self._paths:
            self._post.give_up(self._paths[executor_id])

    def stop(self, command: Stop) -> None:
        if command.kill:
            self.give_up(command.executor_id)
        message = ShutdownExecutor(
            app_id=self._app_id,
            executor_id=command.executor_id,
            launch=command.launch,
            reason=command.reason,
            kill=command.kill,
        )
        self._post.tell(command.worker, message)
