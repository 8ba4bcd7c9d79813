"""ThreadLauncher: executors and app masters as actors of this process."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from gearpy.actor.api import Actor, ActorSystem, Exited, Failed, Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import ApplicationLoader, Program, loaded_as
from gearpy.cluster.worker import actor_app_role, app_master_role, executor_role
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.storage.checkpoints import Checkpoints
from gearpy.task.api.application import StreamApplication
from gearpy.transport.api import LinkLost, Transport
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.credentials import Credentials

_log = logging.getLogger(__name__)


class _LaunchedActor(Struct, frozen=True):
    """An executor, or app master, that is an actor."""

    system: ActorSystem
    ref: Ref[Any]
    is_app_master: bool

    def stop(self, *, kill: bool) -> None:
        """Stop it; an app master first handles waiting messages, such as slots on their way."""
        if self.is_app_master and not kill:
            self.system.stop_gracefully(self.ref)
        else:
            self.system.stop(self.ref)


class ThreadLauncher:
    """Starts executors as threads of this process; an `ExecutorLauncher`.

    They share the program: it is loaded once.

    Runs on: any thread.

    Args:
        checkpoints: where snapshots are; those in memory end with this process, as all else does.
        data: how executors reach each other: in memory, or each by its own TCP listener.
        credentials: of the cluster, for the latter; those of the configuration if not given.
    """

    def __init__(
        self,
        system: ActorSystem,
        post: Post,
        config: Config,
        tuning: ProcessTuning,
        *,
        checkpoints: Checkpoints,
        data: Literal["memory", "tcp"] = "memory",
        folder_of: Callable[[Artifact], Path | None] = lambda _: None,
        credentials: Credentials | None = None,
    ) -> None:
        self._system = system
        self._post = post
        self._config = config
        self._tuning = tuning
        self._data = data
        self._credentials = credentials
        self._folder_of = folder_of
        self._checkpoints = checkpoints
        self._loader = ApplicationLoader()
        self._hub = MemoryHub()
        self._transports: WeakSet[Transport] = WeakSet()
        self._dispatchers: WeakSet[SharedDispatcher] = WeakSet()

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> _LaunchedActor:
        is_app_master = message.executor_id == MASTER_EXECUTOR
        kind = "appmaster" if is_app_master else f"executor{message.executor_id}"
        name = f"app{message.app_id}-{kind}-{message.launch}"
        ref = self._system.spawn(self._factory(message, name), name)

        def notify(exited: Exited) -> None:
            on_exit(str(exited.reason) if isinstance(exited.reason, Failed) else "")

        ref.add_watcher(on_exit, notify)
        return _LaunchedActor(self._system, ref, is_app_master)

    def close(self) -> None:
        for transport in self._transports:
            transport.stop()
        for dispatcher in self._dispatchers:
            dispatcher.close()

    def _factory(self, launch: LaunchExecutor, name: str) -> Callable[[], Actor[Any]]:
        config = from_overrides({**as_overrides(self._config), **launch.config})
        unheeded = config.executor.python_options or config.executor.environment
        if unheeded and launch.executor_id == MASTER_EXECUTOR:
            _log.warning(
                "executor.python-options and executor.environment are for processes of their own; "
                "%s runs on threads of this one, whose Python has begun",
                launch.name,
            )

        def load(artifact: Artifact = launch.artifact) -> Program:
            folder = self._folder_of(artifact)
            return self._loader.load(launch.app_id, artifact, user, folder=folder)

        user = (launch.executor_id, launch.launch)

        def release() -> None:
            self._loader.release(launch.app_id, user)

        if launch.artifact.runs == "actors":
            return actor_app_role.role(launch, config, post=self._post, load=load, release=release)
        if launch.executor_id == MASTER_EXECUTOR:
            # Nobody can look at what is in memory: it goes with its application.
            checkpoint = replace(self._config.checkpoint, keep_succeeded=0)
            own = replace(self._config, checkpoint=checkpoint)
            return lambda: app_master_role.app_master(
                launch,
                own,
                post=self._post,
                checkpoints=self._checkpoints,
                folder_of=self._folder_of,
            )
        dispatcher = executor_role.new_dispatcher(launch)
        self._dispatchers.add(dispatcher)
        return lambda: executor_role.executor(
            launch,
            config,
            post=self._post,
            checkpoints=self._checkpoints,
            load=lambda: loaded_as(StreamApplication, load()),
            make_transport=lambda on_lost: self._transport(name, on_lost),
            dispatcher=dispatcher,
            tuning=self._tuning,
            release=release,
            is_process=False,
        )

    def _transport(self, name: str, on_lost: LinkLost) -> Transport:
        transport = self._new_transport(name, on_lost)
        self._transports.add(transport)
        return transport

    def _new_transport(self, name: str, on_lost: LinkLost) -> Transport:
        if self._data == "memory":
            return MemoryTransport(self._hub, name)
        return TcpTransport(
            self._credentials or Credentials.of_cluster(self._config),
            host=self._config.hostname,
            listen_host=self._config.listen_host,
            limits=transport_limits(self._config),
            on_link_lost=on_lost,
        )
