"""Values that an app master has three masters store, many at once, by letters of real processes."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gearpy.actor.api import Actor, ActorSystem, Ref
from gearpy.cluster.app.contacts import MasterLink
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.net.post import Post
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.ids import ActorPath
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import AppMasterRegistered, LaunchExecutor, PutValue, ValueStored
from gearpy.transport.security.credentials import Credentials
from tests.bench.process_cluster import ProcessCluster

_PROGRAM: Final = Artifact(kind="file", location="/nowhere.py")
_VALUE: Final = b"x" * 100
_TICK_MS: Final = 100
_AWAY_MS: Final = 600_000
_WARM_S: Final = 2.0


class _Tick:
    pass


class _Storing(Actor[AppMasterRegistered | ValueStored | _Tick]):
    """An app master that stores the next value of a key when the one before is stored."""

    def __init__(
        self, launch: LaunchExecutor, post: Post, masters: list[str], open_: int, stored: list[int]
    ) -> None:
        self._launch, self._open, self._stored = launch, open_, stored
        self._master = MasterLink(post, launch, lambda: self.context, masters)
        self._has_begun = False

    def on_start(self) -> None:
        self._master.register("pending")
        self.context.schedule(_TICK_MS, _Tick())

    def receive(self, message: AppMasterRegistered | ValueStored | _Tick) -> object:
        if not self._master.admits(message):
            return None
        match message:
            case ValueStored():
                self._stored[0] += 1
                self._put(message.key, message.version + 1)
            case AppMasterRegistered():
                is_there = self._master.on_registered(message, "pending")
                if is_there and not self._has_begun:
                    self._has_begun = True
                    for number in range(self._open):
                        self._put(f"key{number}", 0)
            case _Tick():
                self._master.look_for("pending", _AWAY_MS)
        return None

    def _put(self, key: str, version: int) -> None:
        app_id, launch = self._launch.app_id, self._launch.launch
        put = PutValue(app_id=app_id, launch=launch, key=key, value=_VALUE, version=version)
        self._master.tell(put)


@dataclass(frozen=True, slots=True)
class _Launched:
    system: ActorSystem
    ref: Ref[Any]

    def stop(self, *, kill: bool) -> None:
        self.system.stop(self.ref)


@dataclass(slots=True)
class _Launcher:
    endpoint: Endpoint
    masters: list[str]
    open_values: int
    stored: list[int]
    is_launched: threading.Event

    def launch(self, message: LaunchExecutor, _on_exit: Callable[[str], None]) -> _Launched:
        system, post = self.endpoint.system, self.endpoint.post
        ref = system.spawn(
            lambda: _Storing(message, post, self.masters, self.open_values, self.stored), "storing"
        )
        self.is_launched.set()
        return _Launched(system, ref)


def measure_values(folder: Path, *, open_values: int, seconds: float) -> float:
    """Return how many values a second three masters store, with so many on their way."""
    folder.mkdir()
    with ProcessCluster(folder, masters=3, workers=0) as cluster:
        endpoint = Endpoint(cluster.config, Credentials.of_cluster(cluster.config))
        stored = [0]
        launcher = _Launcher(endpoint, cluster.addresses, open_values, stored, threading.Event())
        master, *others = (ActorPath(each, "master") for each in cluster.addresses)
        settings = WorkerSettings(other_masters=others, reconnect_timeout_ms=_AWAY_MS)
        try:
            endpoint.system.spawn(
                lambda: WorkerActor(master, 1, launcher, endpoint.post, settings), "worker"
            )
            cluster.client.submit("values", _PROGRAM, executors=1)
            launcher.is_launched.wait()
            while not stored[0]:
                time.sleep(0.1)
            time.sleep(_WARM_S)
            before, begin_s = stored[0], time.monotonic()
            time.sleep(seconds)
            return (stored[0] - before) / (time.monotonic() - begin_s)
        finally:
            endpoint.close()
