"""The process of one executor, or app master: ``python -m gearpy.cluster.worker``.

Its worker starts it and tells it on standard input what to be; see `launch_spec`. It ends with
its actor: with code 0 if that was asked to stop, else 1 and why as the last line of standard
error. SIGTERM asks it to stop, a second signal ends it at once.
"""

import faulthandler
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from gearpy.actor.api import Actor, Exited, ExitReason, Failed, Killed, Ref
from gearpy.clocks import wall_ms
from gearpy.cluster.host.held import tell_if_held
from gearpy.cluster.host.interruptible import wait_interruptibly
from gearpy.cluster.host.logs import log_to
from gearpy.cluster.host.open_files import allow_open_files
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.forker import OWN_ORDERS
from gearpy.cluster.processes.lifeline import hold_lifeline
from gearpy.cluster.processes.oom import prefer_to_kill
from gearpy.cluster.processes.spec import LaunchSpec, read_spec
from gearpy.cluster.programs.artifacts import ApplicationLoader, Program, loaded_as
from gearpy.cluster.programs.fetch import ArtifactCache
from gearpy.config.load import from_overrides
from gearpy.config.schema import Config, ExecutorConfig
from gearpy.errors import GearpyError, OperatorError
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import Artifact
from gearpy.storage.archives import ArtifactLimits
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.task.api.application import StreamApplication
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.connection.keys import LaunchToken

_log = logging.getLogger(__name__)

_FAILED: Final = 1
_STOP_AGAIN: Final = 128 + signal.SIGTERM  # Shells have it so.
_STDIN: Final = 0
_FOR_LIFE: Final = ExitStack()  # Nothing is closed before the process ends.


def main(*, is_program_here: bool = False) -> NoReturn:
    """Be an executor, or an app master.

    Args:
        is_program_here: the process is a fork of one that runs the program. It logs as that does,
            and is not told of long calls: a timer of `faulthandler` that was set there would wait
            for its thread, which is not here.
    """
    try:
        spec = read_spec(partial(os.read, _STDIN), LaunchSpec)
    except EOFError:
        os._exit(_FAILED)  # The worker is gone.
    except GearpyError as error:
        _end(str(error))
    hold_lifeline()
    try:
        _end(_run(spec, is_program_here=is_program_here))
    except (GearpyError, OSError) as error:
        _end(str(error))


def _run(spec: LaunchSpec, *, is_program_here: bool) -> str:
    config = from_overrides(spec.config)
    faulthandler.enable(all_threads=False)  # That of the crash; others hide it.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    if not is_program_here:
        log_to(logging.StreamHandler(sys.stderr), config.log)
        tell_if_held(config.cluster.heartbeat_timeout_ms)
    limit_resources(config.executor)
    LaunchToken.of_line(spec.token).check(wall_ms())
    launch = spec.launch
    is_app_master = launch.executor_id == MASTER_EXECUTOR
    kind = "appmaster" if is_app_master else f"executor{launch.executor_id}"
    name = f"app{launch.app_id}-{kind}-{launch.launch}"
    endpoint = Endpoint(config, _credentials(config, spec))
    exits = _Exits()
    spawned = Future[Ref[Any]]()

    if launch.executor_id == MASTER_EXECUTOR or config.metrics.executor_port < 0:
        page = ""
    else:
        from gearpy.cluster.worker.executor_page import executor_page  # noqa: PLC0415 - as roles are

        page = _FOR_LIFE.enter_context(executor_page(config, launch, spawned))

    make = _role(spec, config, endpoint, page)
    _Sigterm(lambda: endpoint.system.stop_gracefully(spawned.result())).listen()
    spawned.set_result(endpoint.system.spawn(make, name))  # User code may run from here on.
    spawned.result().add_watcher(exits, exits.on_exited)
    told = (name, os.getpid(), endpoint.node, spec.worker_node)
    _log.info("%s runs as process %d, node %s, of worker %s", *told)
    endpoint.peers.on_given_up = _end_as_given_up
    match reason := exits.wait():
        case Failed(cause=OperatorError() as error):
            place = f" at {error.source}" if error.source else ""
            failure = f"{error.traceback}\n{_line(f'{error.operator}: {error.cause}{place}')}"
        case Failed():
            failure = f"{reason.traceback}\n{_line(str(reason))}"
        case Killed():
            failure = "it did not stop in time"
        case _:
            failure = ""
    if not failure:  # After a failure a peer's kill would hide it.
        told_end = partial(_log.debug, "given up while ending: %s")
        endpoint.peers.on_given_up = told_end  # They are told that this process ends.
        endpoint.close()
    return failure


def _role(
    spec: LaunchSpec, config: Config, endpoint: Endpoint, page: str
) -> Callable[[], Actor[Any]]:
    launch = spec.launch
    checkpoints = checkpoints_at(config.checkpoint.folder)
    cache = ArtifactCache(
        Path(spec.artifacts),
        Masters(
            config.cluster.masters,
            _credentials(config, spec),
            transport_limits(config),
            timeout_s=config.masterclient.timeout_s,
            patience_s=config.cluster.reconnect_timeout_s,
        ).ask,
        ArtifactLimits.of(config.artifact),
        quota_bytes=config.worker.programs_quota_bytes,
    )
    _FOR_LIFE.callback(cache.close)
    loader, user = ApplicationLoader(own_process=True), (launch.executor_id, launch.launch)

    def load(artifact: Artifact = launch.artifact) -> Program:
        folder = cache.path_of(artifact)
        return loader.load(launch.app_id, artifact, user, folder=folder)

    def load_graph(artifact: Artifact = launch.artifact) -> StreamApplication:
        return loaded_as(StreamApplication, load(artifact))

    # A process that is no fork loads its own role and no other: that is some megabytes less.
    if launch.artifact.runs == "actors":
        from gearpy.cluster.worker.actor_app_role import role  # noqa: PLC0415

        return role(launch, config, post=endpoint.post, load=load, metrics_address=page)
    if launch.executor_id == MASTER_EXECUTOR:
        from gearpy.cluster.worker.app_master_role import app_master  # noqa: PLC0415

        return lambda: app_master(
            launch,
            from_overrides(spec.own),
            post=endpoint.post,
            checkpoints=checkpoints,
            folder_of=cache.path_of,
            forks=ForkServer((), Path(), orders=OWN_ORDERS[0]) if OWN_ORDERS else None,
        )
    from gearpy.cluster.worker.executor_role import executor, new_dispatcher  # noqa: PLC0415

    tuning = ProcessTuning()
    return lambda: executor(
        launch,
        config,
        post=endpoint.post,
        checkpoints=checkpoints,
        load=load_graph,
        make_transport=endpoint.data_transport,
        dispatcher=new_dispatcher(launch),
        tuning=tuning,
        metrics_address=page,
    )


def _credentials(config: Config, spec: LaunchSpec) -> Credentials:
    if spec.secret:
        return Credentials.of_cluster(config, spec.secret)
    return Credentials.of_launch(config, LaunchToken.of_line(spec.token))


# -- the process -------------------------------------------------------------------------------


def limit_resources(config: ExecutorConfig) -> None:
    """Keep this process and its children within limits; 0 is no limit."""
    allow_open_files()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # A core holds the key and users' records.
    prefer_to_kill()
    if most := config.memory_max_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _end_as_given_up(reason: str) -> None:
    """End at once: others have gone on without this process, and must not meet it again."""
    _log.error("given up: %s", reason)
    _end(f"it was frozen or cut off for too long: {reason}")


class _Exits:
    """Waits for the end of an actor, on the main thread, where signals come."""

    def __init__(self) -> None:
        self._exited = threading.Event()
        self._reason: ExitReason | None = None

    def on_exited(self, exited: Exited) -> None:
        self._reason = exited.reason
        self._exited.set()

    def wait(self) -> ExitReason:
        wait_interruptibly(self._exited)
        assert self._reason is not None
        return self._reason


class _Sigterm:
    """Calls a function at the first SIGTERM; ends the process at the second."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._came = False

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker, which asks us.

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            os._exit(_STOP_AGAIN)
        self._came = True
        # The main thread may hold any lock of ours.
        threading.Thread(target=self._stop, name="gearpy-stop", daemon=True).start()


def _line(text: str) -> str:
    return text.replace("\n", " ")


def _end(failure: str) -> NoReturn:
    """End this process, even if threads of users still run."""
    if failure:
        sys.stderr.write(f"{failure}\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(_FAILED if failure else 0)
