"""ProcessLauncher: executors and app masters as child processes of a worker."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from gearpy.clocks import wall_ms
from gearpy.cluster.app.config import keys_asked
from gearpy.cluster.host.folders import WorkFolders, files_in
from gearpy.cluster.host.leftovers import end_of_dead_workers
from gearpy.cluster.host.log_home import LogHome
from gearpy.cluster.host.logs import (
    LogFile,
    LogFormat,
    LogSettings,
    WritesLines,
    application_log,
)
from gearpy.cluster.processes.child_process import ChildProcess
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.spec import LaunchSpec, encoded_spec
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config, ExecutorConfig
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import LogText, ReadLog, Refused
from gearpy.messages.cluster import LaunchExecutor
from gearpy.transport.security.secret import make_private_folders
from gearpy.wire.connection.keys import KeyRing, LaunchToken

_log = logging.getLogger(__name__)

#: -P: a file of the working folder must not stand in for a module.
CHILD_COMMAND: Final = (sys.executable, "-P", "-m", "gearpy.cluster.worker")

#: What every application begins with.
_FIRST: Final = (MASTER_EXECUTOR, 1)
_NAMES_SHOWN_MAX: Final = 10


class ProcessSettings(Struct, frozen=True, kw_only=True):
    """The settings that all children of one worker share.

    ``folder`` is this worker's own; below it each child gets a working folder. Fetched
    ``artifacts`` are shared by all. ``command`` is what is run, or forked from a fork server where
    that can be; tests run something smaller. Without it children can only be forked. ``secret`` is
    that of the cluster, for children that may say all that it may: they are forks of it.
    """

    config: Config
    keys: KeyRing
    folder: Path
    artifacts: Path
    logs: LogSettings
    worker_node: str = ""
    command: Sequence[str] = CHILD_COMMAND
    is_forked: bool = True
    secret: bytes = b""


class ChildPlace(Struct, frozen=True, kw_only=True):
    """The working folder of a child, and where its outputs go."""

    folder: Path
    out: WritesLines
    errors: WritesLines
    form: LogFormat


class ChildPlaces(Protocol):
    """Gives children their places."""

    def of(self, launch: LaunchExecutor) -> ChildPlace: ...

    def release(self, place: ChildPlace, *, failed: bool) -> None: ...

    def read_log(self, question: ReadLog) -> LogText | Refused: ...

    def close(self) -> None: ...


class WorkerPlaces:
    """Gives each child a working folder and a log of its own.

    A process that ended well and wrote no file into its working folder leaves nothing; of the
    others the last few working folders are kept.

    Runs on: any thread.
    """

    def __init__(self, folder: Path, logs: LogSettings) -> None:
        self._folders = WorkFolders(folder)
        self._logs = LogHome(logs)

    def of(self, launch: LaunchExecutor) -> ChildPlace:
        logs = self._logs.of(launch.cluster_id)
        if (launch.executor_id, launch.launch) == _FIRST:
            logs.set_aside(launch.app_id)  # Another cluster had the same numbers.
        name = application_log(launch.app_id, launch.executor_id, launch.launch)
        folder = self._folders.make(name.removesuffix(".log").replace("/", "-"))
        log = logs.open(name)
        return ChildPlace(folder=folder, out=log, errors=log, form=logs.format)

    def release(self, place: ChildPlace, *, failed: bool) -> None:
        log = place.out
        assert isinstance(log, LogFile), "it is that of the child"
        log.write(_left_behind(place.folder))
        log.close()
        self._folders.release(place.folder, failed=failed)

    def read_log(self, question: ReadLog) -> LogText | Refused:
        return self._logs.answer(question)

    def close(self) -> None:
        self._logs.close()


class ProcessLauncher:
    """Starts executors and app masters as processes; an `ExecutorLauncher`.

    Runs on: any thread; each child has a thread that watches it.
    """

    def __init__(
        self,
        settings: ProcessSettings,
        *,
        places: ChildPlaces | None = None,
        forks: ForkServer | None = None,
    ) -> None:
        self._settings = settings
        self._own = as_overrides(settings.config)
        self._places = places or WorkerPlaces(settings.folder, settings.logs)
        self._lock = threading.Lock()  # It guards `_children`.
        self._children: set[ChildProcess] = set()
        make_private_folders(settings.artifacts)
        self._fork_server = forks or (
            ForkServer(settings.command, settings.folder) if settings.is_forked else None
        )
        if number := end_of_dead_workers():
            _log.warning("a worker that was killed has left %d processes behind, killed", number)

    def warm_up(self) -> None:
        if self._fork_server is not None:
            self._fork_server.begin()

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> ChildProcess:
        keys = {**self._own, **keys_asked(message.config)}
        executor = from_overrides(keys).executor
        spec = encoded_spec(self._spec(message, keys, executor))
        environment = dict(each.split("=", 1) for each in executor.environment)
        options = [word for each in executor.python_options for word in each.split()]
        program, *words = self._settings.command or ("",)
        place = self._places.of(message)
        known = threading.Event()

        def on_end(cause: str) -> None:
            self._places.release(place, failed=bool(cause))
            on_exit(cause)
            known.wait()
            with self._lock:
                self._children.discard(child)

        try:
            child = ChildProcess(
                [program, *options, *words] if program else [],
                spec,
                folder=place.folder,
                log=place.out,
                errors=place.errors,
                log_format=place.form,
                stop_timeout_s=self._settings.config.executor.stop_timeout_s,
                on_end=on_end,
                # Both count when an interpreter begins, and that of the fork server has begun.
                fork_server=None if options or environment else self._fork_server,
                environment=environment,
                # It has programs tried, and runs none itself.
                orders=message.executor_id == MASTER_EXECUTOR and message.artifact.runs != "actors",
            )
        except BaseException:
            self._places.release(place, failed=False)
            raise
        with self._lock:
            self._children.add(child)
        known.set()
        return child

    def on_masters(self, masters: Sequence[str]) -> None:
        self._own = {**self._own, "cluster.masters": ",".join(masters)}

    def read_log(self, question: ReadLog) -> LogText | Refused:
        return self._places.read_log(question)

    def close(self, timeout_s: float = 5.0) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            child.stop(kill=True)
        until_s = time.monotonic() + timeout_s
        for child in children:
            child.join(max(0.0, until_s - time.monotonic()))
        if self._fork_server is not None:
            self._fork_server.close()
        self._places.close()

    def _spec(
        self, message: LaunchExecutor, config: dict[str, str], executor: ExecutorConfig
    ) -> LaunchSpec:
        settings = self._settings
        token = LaunchToken.issued(
            settings.keys,
            message.app_id,
            message.executor_id,
            launch=message.launch,
            expires_ms=wall_ms() + executor.start_timeout_s * 1000,
        )
        return LaunchSpec(
            launch=message,
            config=config,
            own=self._own,
            token=token.as_line(),
            worker_node=settings.worker_node,
            artifacts=str(settings.artifacts),
            secret=settings.secret,
        )


def _left_behind(folder: Path) -> bytes:
    names = files_in(folder)
    if not names:
        return b""
    shown = ", ".join(names[:_NAMES_SHOWN_MAX]) + (", ..." if len(names) > _NAMES_SHOWN_MAX else "")
    text = f"left in the working folder {folder}, which is removed some time: {shown}; name files "
    return (text + "by absolute paths\n").encode("utf-8", "backslashreplace")
