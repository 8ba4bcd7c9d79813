"""A worker on which app masters are played: they load and store a value of their application.

Each loads it when it begins, stores others, and falls, so that the next one is launched.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from gearpy.actor.api import Actor, ActorSystem, Exited, Failed, Ref
from gearpy.cluster.app.connections import MasterLink
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.net.post import Post
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.errors import GearpyError
from gearpy.ids import ActorPath
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import AppMasterRegistered, LaunchExecutor, PutValue, ValueStored
from gearpy.transport.security.credentials import Credentials
from tests.bench.linear_history import History, Operation
from tests.bench.process_cluster import ProcessCluster

_APPS: Final = ("values1", "values2")
_KEY: Final = "value"
_SLOTS: Final = 8
_TICK_MS: Final = 100
_PAUSE_MS: Final = 60  # Between two values, at most.
_STORES_MAX: Final = 12  # Of one app master.
_AWAY_MS: Final = 600_000
_PROGRAM: Final = Artifact(kind="file", location="/nowhere.py")


class _Tick:
    pass


class _Store:
    pass


class _Fell(Exception):
    """The app master is to be launched again."""


@dataclass(slots=True)
class _Storing:
    number: int
    value: str
    begin: int


class _PlayedAppMaster(Actor[AppMasterRegistered | ValueStored | _Tick | _Store]):
    def __init__(
        self,
        launch: LaunchExecutor,
        post: Post,
        masters: list[str],
        history: History,
        is_quiet: threading.Event,
    ) -> None:
        self._launch, self._history, self._is_quiet = launch, history, is_quiet
        self._master = MasterLink(post, launch, lambda: self.context, masters)
        self._rng = random.Random(f"{launch.name} {launch.launch}")
        self._left = self._rng.randrange(1, _STORES_MAX)
        self._begin = 0
        self._has_loaded = False
        self._storing: _Storing | None = None
        self._number = 0

    def on_start(self) -> None:
        self._begin = time.monotonic_ns()
        self._master.register("pending")
        self.context.schedule(_TICK_MS, _Tick())

    def on_exited(self, exited: Exited) -> None:
        self._master.on_exited(exited)

    def on_stop(self) -> None:
        if self._storing is not None:
            self._note("store", self._storing.value, None, self._storing.begin)

    def receive(self, message: AppMasterRegistered | ValueStored | _Tick | _Store) -> object:
        if not self._master.admits(message):
            return None
        match message:
            case AppMasterRegistered():
                self._on_registered(message)
            case ValueStored(version=version):
                if self._storing is not None and version == self._storing.number:
                    self._note("store", self._storing.value, "ok", self._storing.begin)
                    self._storing = None
                    self._go_on()
            case _Store():
                self._store()
            case _Tick():
                self._master.look_for("pending", _AWAY_MS)
        return None

    def _on_registered(self, message: AppMasterRegistered) -> None:
        is_mine = message.launch == self._launch.launch
        if not is_mine or not self._master.on_registered(message, "pending"):
            return
        if not self._has_loaded:
            self._has_loaded = True
            self._note("load", "", message.values.get(_KEY, b"").decode(), self._begin)
            self._go_on()
        elif self._storing is not None:
            self._put(self._storing)

    def _go_on(self) -> None:
        self.context.schedule_once(self._rng.randrange(1, _PAUSE_MS), _Store())

    def _store(self) -> None:
        if self._is_quiet.is_set():
            self._go_on()
            return
        if not self._left:
            raise _Fell
        self._left -= 1
        self._number += 1
        value = f"{self._launch.launch}-{self._number}"
        self._storing = _Storing(self._number, value, time.monotonic_ns())
        self._put(self._storing)

    def _put(self, storing: _Storing) -> None:
        self._master.tell(
            PutValue(
                app_id=self._launch.app_id,
                launch=self._launch.launch,
                key=_KEY,
                value=storing.value.encode(),
                version=storing.number,
            )
        )

    def _note(self, op: Any, argument: str, result: str | None, begin: int) -> None:
        client, end = 100 + self._launch.launch, time.monotonic_ns()
        self._history.add([Operation(client, self._launch.name, op, argument, result, begin, end)])


@dataclass(frozen=True, slots=True)
class _Launched:
    system: ActorSystem
    ref: Ref[Any]

    def stop(self, *, kill: bool) -> None:
        self.system.stop(self.ref)


class PlayedWorker:
    """A worker of this process. Use as a context manager.

    One that was given up, as it was cut off for too long, is replaced.
    """

    def __init__(self, cluster: ProcessCluster, history: History) -> None:
        self._cluster, self._history = cluster, history
        self._is_given_up = threading.Event()
        self.is_quiet = threading.Event()  #: As long as it is set, nobody stores anything.

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._endpoint.close()

    def submit(self) -> None:
        for name in _APPS:
            self._cluster.client.submit(name, _PROGRAM, executors=1)

    def replace_if_lost(self) -> None:
        if self._is_given_up.is_set():
            self._is_given_up.clear()
            self._endpoint.close()
            self._begin()

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> _Launched:
        """Start a played app master; see `ExecutorLauncher`."""
        system = self._endpoint.system
        ref = system.spawn(
            lambda: _PlayedAppMaster(
                message, self._endpoint.post, self._cluster.addresses, self._history, self.is_quiet
            ),
            f"{message.name}-{message.launch}",
        )

        def notify(exited: Exited) -> None:
            with suppress(GearpyError):  # The worker has ended, too.
                on_exit(str(exited.reason) if isinstance(exited.reason, Failed) else "")

        ref.add_watcher(on_exit, notify)
        return _Launched(system, ref)

    def _begin(self) -> None:
        config = self._cluster.config
        self._endpoint = endpoint = Endpoint(config, Credentials.of_cluster(config))
        endpoint.peers.on_given_up = lambda _: self._is_given_up.set()
        master, *others = (ActorPath(each, "master") for each in self._cluster.addresses)
        settings = WorkerSettings(other_masters=others, reconnect_timeout_ms=_AWAY_MS)
        endpoint.system.spawn(
            lambda: WorkerActor(master, _SLOTS, self, endpoint.post, settings), "worker"
        )
