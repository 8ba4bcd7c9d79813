"""LocalCluster: every role in one process."""

import random
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Self
from weakref import WeakSet

from gearpy.actor.api import Actor, Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.cluster.appmaster import AppMasterActor
from gearpy.cluster.artifacts import ApplicationLoader, application_of, embed, forget
from gearpy.cluster.client import ClusterClient, RunningApplication
from gearpy.cluster.executor import ExecutorActor, ExecutorSettings
from gearpy.cluster.limits import (
    monotonic_ms,
    output_limits,
    task_limits,
    transport_limits,
    wall_ms,
)
from gearpy.cluster.master import MasterActor
from gearpy.cluster.post import Post
from gearpy.cluster.tuning import ProcessTuning
from gearpy.cluster.worker import WorkerActor
from gearpy.config.load import as_overrides, from_overrides, load
from gearpy.config.schema import Config
from gearpy.ids import MASTER_EXECUTOR, ActorPath
from gearpy.messages.cluster import (
    CLIENT_MESSAGES,
    ApplicationSummary,
    LaunchExecutor,
    MasterMessage,
    Refused,
)
from gearpy.task.application import Buildable
from gearpy.task.wiring import RunnerFactory
from gearpy.transport.api import Transport, split_address
from gearpy.transport.memory import MemoryHub, MemoryTransport
from gearpy.transport.secret import load_or_create_secret
from gearpy.transport.tcp import TcpTransport
from gearpy.wire.codec import decode_control, encode_control

__all__ = ["LocalCluster", "run"]

_STOP_S: Final = 10.0
#: Slots of the one worker of `run`: an application alone on a cluster always fits.
_EMBEDDED_SLOTS: Final = 1_000_000


class LocalCluster:
    """A master, workers and all that they start, as actors in this process.

    Args:
        config: the configuration of everything.
        workers: how many workers.
        slots: what each of them offers; ``worker.slots`` if not given.
        listen: answer clients at the first of ``cluster.masters``.
        data: how executors reach each other: in memory, or each by its own TCP listener.

    Raises:
        ConfigError: it cannot listen at that address, or the secret file is not private.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        workers: int = 1,
        slots: int | None = None,
        listen: bool = False,
        data: Literal["memory", "tcp"] = "memory",
    ) -> None:
        self.config = config = config or load()
        self.address = config.cluster.masters[0]
        self._data = data
        self._listener = self._start_listener() if listen else None
        self._tuning = ProcessTuning(config)
        self._system = ThreadedActorSystem()
        self._post = Post(self._system)
        self._loader = ApplicationLoader()
        self._hub = MemoryHub()
        self._opened: WeakSet[Transport] = WeakSet()
        self._dispatchers: WeakSet[SharedDispatcher] = WeakSet()
        self._master: Ref[MasterMessage] = self._system.spawn(
            lambda: MasterActor(self._post), "master"
        )
        for number in range(workers):
            self._system.spawn(self._worker(slots or config.worker.slots), f"worker{number}")
        self.client = ClusterClient(self.ask)
        if self._listener is not None:
            self._listener.serve_control(self._answer)

    def ask(self, message: MasterMessage) -> Any:
        """Ask the master, as a client in another process does."""
        question: Any = decode_control(encode_control(message))
        reply = self._master.ask(question, self.config.masterclient.timeout_s)
        return decode_control(encode_control(reply))

    def run(
        self,
        app: Buildable,
        *,
        executors: int = 1,
        overrides: Mapping[str, str] | None = None,
        on_progress: Callable[[ApplicationSummary], None] | None = None,
    ) -> ApplicationSummary:
        """Run an application of this process to its end; see `RunningApplication.wait`.

        Raises:
            ConfigError: the application cannot run.
            OperatorError: user code raised.
            ApplicationFailed: it failed in another way.
        """
        built = app.build()
        artifact = embed(built)
        try:
            running = self.client.submit(
                built.name, artifact, executors=executors, config=overrides
            )
            return self._wait(running, on_progress)
        finally:
            forget(artifact)

    def stop(self) -> None:
        """Stop everything; applications that run are cut short."""
        if self._listener is not None:
            self._listener.stop()
        self._system.shutdown(_STOP_S)
        for transport in self._opened:  # Of executors that were killed.
            transport.stop()
        for dispatcher in self._dispatchers:
            dispatcher.close()
        self._tuning.restore()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(
        self,
        running: RunningApplication,
        on_progress: Callable[[ApplicationSummary], None] | None,
    ) -> ApplicationSummary:
        try:
            return running.wait(on_progress=on_progress)
        except KeyboardInterrupt:
            running.shutdown()
            raise

    def _start_listener(self) -> TcpTransport:
        host, port = split_address(self.address)
        listener = TcpTransport(
            load_or_create_secret(self.config.transport.secret_file),
            host=host,
            port=port,
            limits=transport_limits(self.config),
        )
        self.address = listener.start()
        return listener

    def _answer(self, message: object) -> object:
        if not isinstance(message, CLIENT_MESSAGES):
            return Refused(reason=f"{type(message).__name__} is not for clients")
        return self.ask(message)

    def _worker(self, slots: int) -> Callable[[], WorkerActor]:
        master = self._master.path
        return lambda: WorkerActor(master, slots, self._make_executor, self._post)

    def _make_executor(self, launch: LaunchExecutor) -> Callable[[], Actor[Any]]:
        config = from_overrides({**as_overrides(self.config), **launch.config})
        if launch.executor_id == MASTER_EXECUTOR:
            return lambda: AppMasterActor(launch, self._loader, self._post, config)
        name = f"app{launch.app_id}-executor{launch.executor_id}"
        settings = _settings(launch, config, name)
        self._dispatchers.add(settings.dispatcher)
        return lambda: ExecutorActor(
            settings,
            lambda: self._runners(launch, config),
            self._transport(name),
            self._post,
            self._tuning,
            release=lambda: self._loader.release(launch.app_id, launch.executor_id),
        )

    def _transport(self, name: str) -> Transport:
        transport = self._new_transport(name)
        self._opened.add(transport)
        return transport

    def _new_transport(self, name: str) -> Transport:
        if self._data == "memory":
            return MemoryTransport(self._hub, name)
        secret = load_or_create_secret(self.config.transport.secret_file)
        limits = transport_limits(self.config)
        return TcpTransport(secret, host=self.config.hostname, limits=limits)

    def _runners(self, launch: LaunchExecutor, config: Config) -> RunnerFactory:
        return RunnerFactory(
            application=self._loader.load(launch.app_id, launch.artifact, launch.executor_id),
            output=output_limits(config),
            limits=task_limits(config),
            turn_ms=config.streaming.turn_time_ms,
            clock_ms=monotonic_ms,
            wall_ms=wall_ms,
            rng=random.Random(),
            app_id=launch.app_id,
            executor_id=launch.executor_id,
        )


def run(
    app: Buildable | Callable[..., Buildable],
    *,
    executors: int = 1,
    config: Config | None = None,
    on_progress: Callable[[ApplicationSummary], None] | None = None,
) -> ApplicationSummary:
    """Run an application in this process until it ends.

    Args:
        app: an application, or a function that makes one (of a list of arguments: it gets
            ``sys.argv[1:]``).
        executors: how many executors share its tasks.
        config: the configuration; what `load_config` gives if not given.
        on_progress: called several times a second with how it is.

    Raises:
        ConfigError: the application cannot run.
        OperatorError: user code raised.
        ApplicationFailed: it failed in another way.
    """
    if not hasattr(app, "build"):
        app = application_of(app, sys.argv[1:])
    with LocalCluster(config, slots=_EMBEDDED_SLOTS) as cluster:
        return cluster.run(app, executors=executors, on_progress=on_progress)


def _settings(launch: LaunchExecutor, config: Config, name: str) -> ExecutorSettings:
    threads = config.shared_dispatcher.threads
    return ExecutorSettings(
        app_id=launch.app_id,
        executor_id=launch.executor_id,
        slots=launch.slots,
        app_master=ActorPath(launch.reply_to.node, launch.reply_to.name),
        dispatcher=SharedDispatcher(threads, turn_ms=config.streaming.turn_time_ms, name=name),
        pin_tasks=config.task_dispatcher == "pinned",
        mailbox_max=config.actor.mailbox_max,
        report_interval_ms=config.streaming.clock_report_interval_ms,
        clock_ms=monotonic_ms,
    )
