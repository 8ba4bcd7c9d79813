"""LocalCluster: master and workers in one process, executors in it or as processes of their own."""

import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Literal, Self, TypeAlias

from msgspec.structs import replace

from gearpy.actor.api import Ref
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.cluster.client.alerting import following
from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.cluster.client.gateway import Gateway
from gearpy.cluster.host.about import names_of_machine, this_process
from gearpy.cluster.host.audit import note_action
from gearpy.cluster.host.folders import TemporaryFolder
from gearpy.cluster.host.logs import LogSettings
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.master.actor import MasterActor, MasterMailbox
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.net.post import Post
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.programs.artifacts import embed, forget
from gearpy.cluster.programs.fetch import ArtifactCache
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.cluster.worker.processes import CHILD_COMMAND, ProcessLauncher, ProcessSettings
from gearpy.cluster.worker.program_forks import ProgramLauncher, ProgramPlaces
from gearpy.cluster.worker.threads import ThreadLauncher
from gearpy.config.load import Overrides, chosen
from gearpy.config.schema import Config
from gearpy.core.app.hosts import PROGRAM_PROCESS
from gearpy.errors import ConfigError, ends_at_the_caller
from gearpy.messages.client import Artifact, LogText, ProcessDetail, ReadLog, Refused
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.archives import ArtifactLimits
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints, checkpoints_at
from gearpy.storage.log import MemoryLog
from gearpy.task.api.actor_app import ActorApp
from gearpy.task.api.application import Buildable, StreamApplication
from gearpy.transport.api import split_address
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.codec import decode_control, encode_control

_STOP_S: Final = 10.0
_SECRET_BYTES: Final = 32
_STOP_AT_ONCE_S: Final = 0.5

_Launcher: TypeAlias = ThreadLauncher | ProcessLauncher | ProgramLauncher


class LocalCluster:
    """A master and workers as actors in this process, with all that they start.

    What the master knows is in memory, and ends with the process; so do checkpoints, unless they
    are ``durable``. The next process removes what one that was killed has left in the temporary
    folder.

    Args:
        config: the configuration of everything, or settings of it by their keys.
        workers: how many workers.
        slots: what each of them offers; ``worker.slots`` if not given.
        listen: answer clients at the first of ``cluster.masters``.
        executors: as threads of this process, or each as a process of its own.
        data: how executors that are threads reach each other: in memory, or by TCP.
        checkpoints: where those keep their checkpoints; in memory if not given.
        durable: keep checkpoints in ``checkpoint.folder``, wherever executors are.
        forks: executors are forks of this process, of programs that it has embedded before; app
            masters are threads, and so are executors of what is in the program's memory.

    Raises:
        ConfigError: it cannot listen at that address, the secret file is not private, or
            ``checkpoint.folder`` cannot be used.
    """

    def __init__(
        self,
        config: Config | Overrides | None = None,
        *,
        workers: int = 1,
        slots: int | None = None,
        listen: bool = False,
        executors: Literal["thread", "process"] = "thread",
        data: Literal["memory", "tcp"] = "memory",
        checkpoints: Checkpoints | None = None,
        durable: bool = False,
        forks: ForkServer | None = None,
    ) -> None:
        self.config = config = chosen(config)
        self._is_durable = durable
        self._forks = forks
        if durable:
            checkpoints = _opened(config.checkpoint.folder)
        self.address = config.cluster.masters[0]
        self._data = data if forks is None else "tcp"
        self._endpoint: Endpoint | None = None
        self._credentials: Credentials | None = None
        self._secret = b""
        if listen or executors == "process" or forks is not None:
            host, port = split_address(self.address)
            if forks is not None:
                self._secret = secrets.token_bytes(_SECRET_BYTES)  # Nobody else is to come.
            self._credentials = Credentials.of_cluster(config, self._secret)
            self._endpoint = Endpoint(
                config, self._credentials, host=host, port=port if listen else 0
            )
            self.address = self._endpoint.address
        self._tuning = ProcessTuning()
        self._temporary, self._opened = TemporaryFolder(), ExitStack()
        if forks is not None and checkpoints is None:
            checkpoints = _opened(str(self._temporary.path / "checkpoints"))
        self._checkpoints = MemoryCheckpoints() if checkpoints is None else checkpoints
        self._system = self._endpoint.system if self._endpoint else ThreadedActorSystem()
        self._post = self._endpoint.post if self._endpoint else Post(self._system)
        self._master: Ref[MasterMailbox] = self._system.spawn(
            lambda: MasterActor(self._post, log=MemoryLog(), config=config, rng=random.Random()),
            "master",
        )
        folder = self._temporary.path / "artifacts"
        self._artifacts = ArtifactDesk(ArtifactStore(folder, self.config.artifact.max_bytes))
        self._alerting = following(self.ask, config)
        logs = config.log.folder if executors == "process" else ""
        about = this_process(config, self.address, logs=logs)
        self._gateway = Gateway(
            lambda message: self._master.ask(message, config.masterclient.timeout_s),
            self._post,
            artifacts=self._artifacts,
            read_log=self._read_log,
            about=about,
            admins=config.master.admins,
            alerts=self._alerting.answer,
            note_action=note_action,
            checkpoints=self._checkpoints if executors == "thread" else None,
        )
        self._launchers = self._make_launchers(workers, executors)
        for number, launcher in enumerate(self._launchers):
            self._spawn_worker(number, slots or config.worker.slots, launcher, about)
        here = self._checkpoints if executors == "thread" else None  # Processes have a folder.
        self.client = ClusterClient(self.ask, checkpoints=here, config=config)
        if self._endpoint is not None and listen:
            self._endpoint.transport.serve_control(self._gateway.answer, self._gateway.allows)
        self._alerting.start()

    def ask(self, message: Any) -> Any:
        """Ask the cluster, as a client in another process does."""
        reply = self._gateway.answer(decode_control(encode_control(message)))
        return decode_control(encode_control(reply))

    @ends_at_the_caller
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
        with self.submitted(app, executors=executors, overrides=overrides) as running:
            try:
                return running.wait(on_progress=on_progress)
            except KeyboardInterrupt:
                running.shutdown()
                raise

    @contextmanager
    def submitted(
        self,
        app: Buildable | ActorApp,
        *,
        executors: int = 1,
        overrides: Mapping[str, str] | None = None,
        checkpoints: str = "",
        launches: int = 0,
        artifact: Artifact | None = None,
        resume_from: str = "",
    ) -> Iterator[RunningApplication]:
        """Start an application of this process; it can be found as long as the context lasts.

        Args:
            artifact: of the application, if it was embedded before, and stays so.

        For the rest see `ClusterClient.submit`.

        Raises:
            ConfigError: the application cannot run.
        """
        built = app.build()
        if isinstance(built, StreamApplication) and built.of_no_use:
            raise ConfigError(built.of_no_use)
        own = None
        if artifact is None:
            artifact = own = embed(built)
        try:
            yield self.client.submit(
                built.name,
                artifact,
                executors=executors,
                config=overrides,
                checkpoints=checkpoints,
                launches=launches,
                resume_from=resume_from,
            )
        finally:
            if own is not None:
                forget(own)

    def note_pending(self, run: str, application: StreamApplication) -> None:
        """Note the folders that are useless if this process is killed: `Sink.pending_folders`."""
        sinks = [each.sink for each in application.processors.values() if each.sink is not None]
        if folders := [folder for sink in sinks for folder in sink.pending_folders]:
            self._temporary.note_pending(run, folders)

    def stop(self, *, timeout_s: float = _STOP_S) -> None:
        """Stop everything; applications that run are cut short."""
        self._alerting.stop()
        if self._endpoint is not None:
            self._endpoint.close(timeout_s)
        else:
            self._system.shutdown(timeout_s)
        for launcher in dict.fromkeys(self._launchers):
            launcher.close()
        self._tuning.restore()
        self._opened.close()
        self._temporary.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(timeout_s=_STOP_AT_ONCE_S if kind is KeyboardInterrupt else _STOP_S)

    def _read_log(self, question: ReadLog) -> LogText | Refused:
        launcher = self._launchers[0]
        if isinstance(launcher, ProcessLauncher):
            return launcher.read_log(question)
        return Refused(
            reason="this runs in the process that has started it: what it prints is there, and "
            "with --verbose its log"
        )

    def _make_launchers(
        self, workers: int, executors: Literal["thread", "process"]
    ) -> list[_Launcher]:
        if executors == "process":
            return [self._process_launcher(number) for number in range(workers)]
        threads = self._thread_launcher()
        if self._forks is None:
            return [threads] * workers  # One for all, so that their executors can meet.
        forks = self._process_launcher(0, places=ProgramPlaces(), forks=self._forks)
        return [ProgramLauncher(threads, forks)]

    def _thread_launcher(self) -> ThreadLauncher:
        cache = ArtifactCache(
            self._temporary.path / "unpacked",
            self._artifacts.answer,
            ArtifactLimits.of(self.config.artifact),
        )
        self._opened.callback(cache.close)
        return ThreadLauncher(
            self._system,
            self._post,
            self.config,
            self._tuning,
            checkpoints=self._checkpoints,
            data=self._data,
            folder_of=cache.path_of,
            credentials=self._credentials,
        )

    def _spawn_worker(
        self, number: int, slots: int, launcher: _Launcher, about: ProcessDetail
    ) -> None:
        settings = WorkerSettings(
            reconnect_timeout_ms=self.config.cluster.reconnect_timeout_s * 1000,
            stop_timeout_ms=self.config.executor.stop_timeout_s * 1000,
            about=about,
            hosts=(
                *names_of_machine(self.config),
                *(() if isinstance(launcher, ProcessLauncher) else [PROGRAM_PROCESS]),
            ),
            rack=self.config.worker.rack,
        )
        self._system.spawn(
            lambda: WorkerActor(self._master.path, slots, launcher, self._post, settings),
            f"worker{number}",
        )

    def _process_launcher(
        self,
        number: int,
        *,
        places: ProgramPlaces | None = None,
        forks: ForkServer | None = None,
    ) -> ProcessLauncher:
        assert self._endpoint is not None, "processes need somewhere to connect to"
        assert self._credentials is not None, "the endpoint has some"
        folder = self._temporary.path
        checkpoint = self.config.checkpoint
        if forks is not None:
            checkpoint = replace(checkpoint, folder=self._checkpoints.place)
        elif not self._is_durable:
            checkpoint = replace(checkpoint, folder=str(folder / "checkpoints"))
        cluster = replace(self.config.cluster, masters=(self.address,))  # The port is known now.
        return ProcessLauncher(
            ProcessSettings(
                config=replace(self.config, checkpoint=checkpoint, cluster=cluster),
                keys=self._credentials.keys,
                folder=folder / f"worker{number}",
                artifacts=folder / "fetched",
                logs=LogSettings.of(self.config),
                worker_node=self._endpoint.node,
                command=CHILD_COMMAND if forks is None else (),
                secret=self._secret,
            ),
            places=places,
            forks=forks,
        )


def _opened(folder: str) -> Checkpoints:
    try:
        found = checkpoints_at(folder)
        found.folder.make()
        return found
    except OSError as error:
        raise ConfigError(f"checkpoint.folder {folder} cannot be used: {error}") from error
