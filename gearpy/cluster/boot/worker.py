"""WorkerDaemon: a worker, with all that it needs in a process."""

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from gearpy.actor.api import Ref
from gearpy.cluster.boot.daemon import MASTER, WORKER, DaemonExit, RefusalWatch, begin_log, usable
from gearpy.cluster.host.about import names_of_machine, this_process
from gearpy.cluster.host.folders import Claim, private_folder
from gearpy.cluster.host.logs import LogSettings
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.cluster.worker.processes import ProcessLauncher, ProcessSettings
from gearpy.config.schema import Config
from gearpy.ids import ActorPath
from gearpy.messages.client import DrainWorker
from gearpy.transport.security.credentials import Credentials

_log = logging.getLogger(__name__)

_STOP_S: Final = 5.0  # Beyond the time that processes have to stop.


class WorkerDaemon:
    """A worker, and the processes that it starts.

    Frozen or cut off for too long, it is no worker any more to those who have given it up, and
    its executors do not count: it ends with `NodeGivenUp`, and another one should be made. Where
    the cluster has another secret, it ends with `AuthenticationFailed`.

    Use as a context manager, or call `close`.

    Runs on: the main thread.
    """

    def __init__(
        self,
        config: Config,
        *,
        on_ready: Callable[[str], None],
        on_waiting: Callable[[str], None],
        metrics: str = "",
        secret: bytes = b"",
    ) -> None:
        self._config = config
        self._metrics = metrics
        credentials, logs = Credentials.of_cluster(config, secret), LogSettings.of(config)
        folder = private_folder(Path(config.worker.folder), "worker.folder")
        with ExitStack() as opened, usable("worker.folder"):
            claim = Claim(folder, WORKER)
            opened.callback(claim.release)
            name = f"{WORKER}-{claim.number}"
            begin_log(logs, config, f"{name}.log", opened)
            self._endpoint = Endpoint(config, credentials)
            opened.callback(self._endpoint.close)
            self._launcher = ProcessLauncher(
                ProcessSettings(
                    config=config,
                    keys=credentials.keys,
                    folder=folder / name,
                    artifacts=folder / "artifacts",
                    logs=logs,
                    worker_node=self._endpoint.node,
                )
            )
            opened.callback(self._launcher.close)
            self._launcher.warm_up()
            home = f"{socket.gethostname()}:{folder / name}"
            self._exit = DaemonExit()
            refusals = RefusalWatch(
                config, credentials, config.cluster.masters, on_refused=self._exit.fail
            )
            opened.callback(refusals.end)

            def ready(text: str) -> None:
                refusals.end()
                on_ready(text)

            def waiting(text: str) -> None:
                on_waiting(text)
                refusals.begin()

            self._worker = self._spawn(logs, home, ready, waiting)
            self._exit.watch(self._worker)
            self._endpoint.peers.on_given_up = self._exit.give_up
            self._opened = opened.pop_all()

    def wait(self) -> None:
        self._exit.wait()

    def close(self) -> None:
        if self._exit.given_up:
            self._opened.close()
            return
        _log.info("the worker drains")
        self._worker.tell(DrainWorker())
        if not self._exit.is_within(self._config.executor.stop_timeout_s + _STOP_S):
            _log.warning("the worker did not drain in time, killed")
        self._opened.close()

    def kill(self) -> None:
        """Kill all that runs, for a process that is about to end at once; on any thread."""
        self._launcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn(
        self,
        logs: LogSettings,
        home: str,
        on_ready: Callable[[str], None],
        on_waiting: Callable[[str], None],
    ) -> Ref[Any]:
        config, post = self._config, self._endpoint.post
        master, *others = (ActorPath(each, MASTER) for each in config.cluster.masters)
        settings = WorkerSettings(
            other_masters=others,
            reconnect_timeout_ms=config.cluster.reconnect_timeout_s * 1000,
            stop_timeout_ms=config.executor.stop_timeout_s * 1000,
            read_log=self._launcher.read_log,
            on_ready=on_ready,
            on_waiting=on_waiting,
            on_masters=self._launcher.on_masters,
            about=this_process(
                config,
                self._endpoint.address,
                folder=config.worker.folder,
                logs=str(logs.folder),
                metrics=self._metrics,
            ),
            hosts=names_of_machine(config),
            rack=config.worker.rack,
            home=home,
        )
        return self._endpoint.system.spawn(
            lambda: WorkerActor(master, config.worker.slots, self._launcher, post, settings), WORKER
        )
