"""A whole cluster in virtual time: real roles, real tasks, a network and processes by chance."""

import dataclasses
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from gearpy.actor.api import Actor, Exited, Failed
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.cluster.app.actor import AppMasterActor
from gearpy.cluster.app.config import application_config
from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.cluster.executor.actor import ExecutorActor
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.master.actor import MasterActor
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.outline import (
    LoadedProgram,
    OutlineDifferences,
    differences,
    outline_of,
)
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.cluster.worker.executor_role import executor_settings, runner_factory
from gearpy.config.load import from_overrides
from gearpy.config.schema import Config
from gearpy.core.app.application import ApplicationCore
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, WorkerId, address_of
from gearpy.messages.client import (
    Accepted,
    Artifact,
    DrainApplication,
    GetApplication,
    GetVersions,
    ListWorkers,
    Refused,
    UpdateApplication,
    UpdatePlanned,
    VersionList,
    VersionSummary,
)
from gearpy.messages.cluster import LaunchExecutor
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.log import MemoryLog
from gearpy.task.api.application import Buildable, StreamApplication
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.testing.world import World
from gearpy.transport.api import LinkLost
from gearpy.transport.loop.virtual_loop import VirtualCoroutines
from gearpy.wire.codec import decode_control, encode_control
from tests.world.actors import WorldActorSystem
from tests.world.masters import SimulatedMasters, addresses_of
from tests.world.network import Network, WorldNodes, WorldTransport
from tests.world.promises import LetterPromises
from tests.world.stores import FaultyCheckpoints

_MASTER: Final = "master:1"
#: Ends the name of the actors that save and load snapshots.
_SNAPSHOTS: Final = "-snapshots"
_ASK_S: Final = 20.0  #: Of the wall: nothing that is asked waits for virtual time.
_SETTINGS: Final = {
    "checkpoint.interval-ms": "200",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
    "application.trial-seconds": "1",
    "executor.start-timeout-seconds": "10",
    "streaming.ack-once-every-message-count": "10",
    "streaming.max-pending-message-count-per-connection": "50",
    "streaming.batch-max-records": "16",
    "source.read-batch-size": "16",
}


@dataclass(slots=True)
class Process:
    name: str
    system: WorldActorSystem
    nodes: WorldNodes
    post: Post
    #: Of an executor or app master: its starter, and the function to call when it ends.
    parent: "Process | None" = None
    on_exit: Callable[[str], None] | None = None
    launch: LaunchExecutor | None = None
    app_master: AppMasterActor | None = None

    @property
    def address(self) -> str:
        return address_of(self.nodes.node)

    @property
    def is_alive(self) -> bool:
        return not self.system.is_killed


class _NoTuning(ProcessTuning):
    def __init__(self) -> None:
        pass

    def freeze(self, *, all_of_it: bool = True) -> None:
        pass

    def keep(self) -> None:
        pass


class _WatchedWorld(World):
    """A world in which somebody may look at what each act has done, before the next one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.on_act: Callable[[], object] | None = None

    def step(self) -> bool:
        is_done = super().step()
        if self.on_act is not None:
            self.on_act()
        return is_done


class ClusterSimulation:
    """Simulates one master, some workers and their children, each in a process of a `World`.

    The master's log and the checkpoints outlive their processes, as disks do; of the log, the
    synced part.

    Args:
        settings: keys of the configuration that differ from those quick to simulate.
    """

    def __init__(
        self,
        seed: int,
        *,
        workers: int = 3,
        slots: int = 8,
        masters: int = 1,
        settings: Mapping[str, str] | None = None,
        duplicates: float = 0.0,
        checkpoints: Checkpoints | None = None,
        chain_files_max: int = 16,
        log_segments_max: int = 64,
        idle_poll_ms: int = 10,
    ) -> None:
        self.world = _WatchedWorld(seed)
        self._idle_poll_ms = idle_poll_ms
        self._chain_files_max = chain_files_max
        self._log_segments_max = log_segments_max
        listed = {"cluster.masters": ",".join(addresses_of(masters))} if masters > 1 else {}
        self.config: Config = from_overrides({**_SETTINGS, **listed, **(settings or {})})
        self.network = Network(
            self.world,
            heartbeat_timeout_ms=self.config.cluster.heartbeat_timeout_ms,
            duplicates=duplicates,
        )
        self.log = MemoryLog()
        self.checkpoints = FaultyCheckpoints(self.world, checkpoints)
        self.promises = LetterPromises(self.checkpoints.stored)
        self.network.on_letter = self.promises.on_letter
        self.processes: list[Process] = []
        self.workers: list[Process] = []
        self._apps: dict[str, Callable[[], Any]] = {}
        self._slots = slots
        self._addresses = 0
        self.several = SimulatedMasters(self, masters) if masters > 1 else None
        if self.several is None:
            self.start_master()
        for number in range(workers):
            self.workers.append(self.start_worker(number))
        self.client = ClusterClient(self._ask)

    # -- a user's actions ------------------------------------------------------------------

    def submit(
        self,
        app: Callable[[], Buildable],
        *,
        executors: int = 2,
        config: Mapping[str, str] | None = None,
        resume_from: str = "",
    ) -> RunningApplication:
        name = app().build().name
        self._apps[name] = app
        self.world.run(lambda: bool(self.client.ask(ListWorkers()).workers), within_ms=10_000)
        artifact = Artifact(kind="memory", location=name)
        return self.client.submit(
            name, artifact, executors=executors, config=dict(config or {}), resume_from=resume_from
        )

    def update(
        self,
        app_id: AppId,
        app: Callable[[], Buildable] | None = None,
        *,
        scale: Mapping[str, int] | None = None,
        version: int | None = None,
        allows_drop: bool = False,
        at_event_ms: int | None = None,
    ) -> UpdatePlanned | Refused | None:
        """Change a running application; None without an app master that answers."""
        artifact = None
        if app is not None:
            location = f"update{len(self._apps)}"
            self._apps[location] = app
            artifact = Artifact(kind="memory", location=location)
        message = UpdateApplication(
            app_id=app_id,
            artifact=artifact,
            scale=tuple((scale or {}).items()),
            version=version,
            allows_drop=allows_drop,
            at_event_ms=at_event_ms,
        )
        answer: UpdatePlanned | Refused | None = self.ask_app_master(message)
        return answer

    def lose_program(self, name: str) -> None:
        """Let a program be gone; what has loaded it goes on."""
        del self._apps[name]

    @property
    def programs(self) -> list[str]:
        """The names of all programs that were submitted, or that an application was changed to."""
        return list(self._apps)

    def versions(self, app_id: AppId) -> tuple[VersionSummary, ...]:
        """Return the versions of an application; none without an app master that answers."""
        answer = self.ask_app_master(GetVersions(app_id=app_id))
        return answer.versions if isinstance(answer, VersionList) else ()

    def ask_app_master(self, message: Any) -> Any:
        """Return the answer of the app master, as messages travel; None if there is none."""
        for process in self.launched(MASTER_EXECUTOR):
            if not process.system.is_paused and (roots := process.system.roots()):
                with suppress(GearpyError):
                    question: Any = decode_control(encode_control(message))
                    return decode_control(encode_control(roots[0].ask(question, _ASK_S)))
        return None

    def drain(self, app_id: AppId) -> bool:
        """Have an application end where its sources are; False without an app master that runs."""
        return isinstance(self.ask_app_master(DrainApplication(app_id=app_id)), Accepted)

    def summary(self, app_id: AppId) -> ApplicationSummary | None:
        """Return the master's summary of an application, if the master lives."""
        with suppress(GearpyError):
            if self._has_master:
                return self.client.ask(GetApplication(app_id=app_id))
        return None

    def run_until_free(self, *, within_ms: int) -> dict[WorkerId, int]:
        """Let the world go on until no slot is taken; return the slots still taken, by worker."""
        taken: dict[WorkerId, int] = {}
        next_look_ms = 0

        def are_free() -> bool:
            nonlocal next_look_ms, taken
            if self.world.now_ms < next_look_ms or not self._has_master:
                return False
            next_look_ms = self.world.now_ms + 50
            with suppress(GearpyError):
                workers = self.client.ask(ListWorkers()).workers
                taken = {each.worker_id: each.slots - each.free_slots for each in workers}
                return not any(taken.values())
            return False

        return {} if self.world.run(are_free, within_ms=within_ms) else taken

    def run_to_end(self, app_id: AppId, *, within_ms: int) -> ApplicationSummary | None:
        """Let the world go on until an application has ended; None if it does not in time."""
        next_look_ms = 0
        summary: ApplicationSummary | None = None

        def is_over() -> bool:
            nonlocal next_look_ms, summary
            if self.world.now_ms < next_look_ms:
                return False
            next_look_ms = self.world.now_ms + 50
            summary = self.summary(app_id)
            return summary is not None and summary.status not in {"pending", "active"}

        # Not asked again: the master may be killed meanwhile.
        return summary if self.world.run(is_over, within_ms=within_ms) else None

    @property
    def master(self) -> Process:
        """The master; of several the one that leads, or has led."""
        return self._master if self.several is None else self.several.leader

    @property
    def _has_master(self) -> bool:
        if self.several is not None:
            return True
        return self.master.is_alive and not self.master.system.is_paused

    def _ask(self, message: Any) -> Any:
        if self.several is not None:
            return self.several.ask(message)
        ref = self.master.system.resolve("master")
        assert ref is not None, "the master runs"
        question: Any = decode_control(encode_control(message))
        return decode_control(encode_control(ref.ask(question, 30.0)))

    # -- processes -------------------------------------------------------------------------

    def start_master(self) -> None:
        """Start a master over the log of the one before; of several, all that do not live."""
        if self.several is not None:
            self.several.start_dead()
            return
        self._master = process = self._process("master", _MASTER)
        process.system.spawn(
            lambda: MasterActor(process.post, log=self.log, config=self.config, rng=self.world.rng),
            "master",
        )

    def new_process(self, name: str, address: str) -> Process:
        return self._process(name, address)

    def start_worker(self, number: int) -> Process:
        process = self._process(f"worker{number}")
        masters = [_MASTER] if self.several is None else self.several.addresses
        first, *others = (ActorPath(each, "master") for each in masters)
        settings = WorkerSettings(
            other_masters=others,
            reconnect_timeout_ms=self.config.cluster.reconnect_timeout_s * 1000,
            stop_timeout_ms=self.config.executor.stop_timeout_s * 1000,
        )
        launcher = _Launcher(self, process)
        process.nodes.on_given_up = lambda _: self._begin_anew(number)
        process.system.spawn(
            lambda: WorkerActor(first, self._slots, launcher, process.post, settings), "worker"
        )
        return process

    def _begin_anew(self, number: int) -> None:
        """Have a worker that was given up end, with all that it runs, and start again."""
        if self.workers[number].is_alive:
            self.kill(self.workers[number])
            self.workers[number] = self.start_worker(number)

    def kill(self, process: Process) -> None:
        """End a process as SIGKILL does; processes that a worker has started end with it."""
        if not process.is_alive:
            return
        process.system.kill()
        self.network.on_killed(process.nodes.node)
        if self.several is not None:
            self.several.on_killed(process)
        elif process is self.master:
            self.log = self.log.crash(self.world.rng)
        for child in [each for each in self.processes if each.parent is process]:
            self.kill(child)
        self._tell_parent(process, "killed by signal 9 (SIGKILL)")

    def pause(self, process: Process, duration_ms: int) -> None:
        if process.is_alive and not process.system.is_paused:
            process.system.pause()
            self.network.on_silent(process.nodes)
            self.world.later(duration_ms, process.system.resume)

    def launched(self, executor_id: ExecutorId | None = None) -> list[Process]:
        """Return the living processes of executors (-1: app masters; None: of both)."""
        return [
            each
            for each in self.processes
            if each.is_alive
            and each.launch is not None
            and executor_id in (None, each.launch.executor_id)
        ]

    def launch(
        self, parent: Process, message: LaunchExecutor, on_exit: Callable[[str], None]
    ) -> Process:
        role = "appmaster" if message.executor_id == MASTER_EXECUTOR else "executor"
        name = f"app{message.app_id}-{role}{message.executor_id}-{message.launch}"
        child = self._process(name, parent=parent)
        child.on_exit, child.launch = on_exit, message
        factory = self._role(child, message)

        child.nodes.on_given_up = lambda _: self.kill(child)

        def begin() -> None:
            ref = child.system.spawn(factory, name)
            ref.add_watcher(self, lambda exited: self._on_actor_exited(child, exited))

        self.world.later(self.world.rng.randrange(100, 600), lambda: child.system.do(begin))
        return child

    def stop(self, child: Process, *, kill: bool) -> None:
        told = child.on_exit
        if told is not None:
            child.on_exit = lambda _: told("")
        if kill or child.system.is_paused:
            self.kill(child)
            return
        assert child.launch is not None
        for cell in child.system.roots():
            child.system.stop_gracefully(cell)
        self.world.later(self.config.executor.stop_timeout_s * 1000, lambda: self.kill(child))

    def _on_actor_exited(self, child: Process, exited: Exited) -> None:
        if child.is_alive:
            cause = str(exited.reason) if isinstance(exited.reason, Failed) else ""
            child.system.kill()
            self.network.on_killed(child.nodes.node)
            self._tell_parent(child, cause)

    def _tell_parent(self, process: Process, cause: str) -> None:
        self.processes = [each for each in self.processes if each is not process]
        on_exit, parent = process.on_exit, process.parent
        if on_exit is not None and parent is not None:
            self.world.later(
                self.world.rng.randrange(1, 30), lambda: parent.system.do(lambda: on_exit(cause))
            )

    def _process(self, name: str, address: str = "", *, parent: Process | None = None) -> Process:
        if not address:
            self._addresses += 1
            address = f"{name}:{self._addresses}"
        nodes = self.network.join(lambda node: WorldActorSystem(self.world, node), address)
        # While the store is slow, who stores snapshots waits for it.
        nodes.system.waiting = (_SNAPSHOTS, self.checkpoints.wait_ms)
        process = Process(name, nodes.system, nodes, Post(nodes.system, nodes), parent)
        self.processes.append(process)
        return process

    @property
    def core(self) -> ApplicationCore | None:
        """What decides in the newest app master; to look at only. None if there is none."""
        for each in reversed(self.processes):  # Asked for with each event: the newest is the last.
            if each.app_master is not None and each.is_alive:
                return each.app_master._core  # noqa: SLF001
        return None

    # -- roles -----------------------------------------------------------------------------

    def _role(self, child: Process, message: LaunchExecutor) -> Callable[[], Actor[Any]]:
        if message.executor_id == MASTER_EXECUTOR:
            return lambda: self._app_master(child, message)
        clock_ms = self.world.read_clock
        dispatcher = SharedDispatcher(turn_ms=2)
        settings = replace(
            executor_settings(message, self.config, dispatcher, clock_ms=clock_ms),
            chain_files_max=self._chain_files_max,
        )
        return lambda: ExecutorActor(
            settings,
            runners=lambda: self._runners(child, message),
            make_transport=lambda on_lost: self._transport(child, on_lost),
            post=child.post,
            checkpoints=self.checkpoints,
            tuning=_NoTuning(),
            release=lambda: None,
        )

    def _app_master(self, child: Process, message: LaunchExecutor) -> AppMasterActor:
        child.app_master = AppMasterActor(
            message,
            lambda asked: application_config(self.config, asked),
            load=self._load_to_plan,
            post=child.post,
            checkpoints=self.checkpoints,
            rng=self.world.rng,
            loads_in_turns=True,
            segments_max=self._log_segments_max,
        )
        return child.app_master

    def _runners(self, child: Process, message: LaunchExecutor) -> RunnerFactory:
        factory = runner_factory(
            message,
            self.config,
            self._load(message.artifact),
            rng=random.Random(self.world.rng.random()),
            clock_ms=self.world.read_clock,
            now_ms=lambda: self.world.now_ms,
            coroutines=VirtualCoroutines(
                lambda: self.world.now_ms,
                lambda delay_ms, act: self.world.later(delay_ms, lambda: child.system.do(act)),
                self.world.rng,
            ),
        )
        poll_ms = self._idle_poll_ms
        limits = dataclasses.replace(factory.limits, idle_poll_ms=poll_ms, brisk_poll_ms=poll_ms)
        return replace(factory, limits=limits)

    def _load(self, artifact: Artifact) -> StreamApplication:
        if artifact.location not in self._apps:
            raise ConfigError(f"there is no program {artifact.location}")
        app = self._apps[artifact.location]()
        loaded = app.scaled(dict(artifact.scale)) if artifact.scale else app.build().build()
        assert isinstance(loaded, StreamApplication)
        return loaded

    def _load_to_plan(self, artifact: Artifact, compared: Artifact | None) -> LoadedProgram:
        program = self._load(artifact)
        found = OutlineDifferences()
        if compared is not None:
            found = differences(self._load(compared), program)
        outline = outline_of(program, artifact, self.config)
        return LoadedProgram(
            artifact=artifact, outline=outline, compared=compared, differences=found
        )

    def _transport(self, child: Process, on_lost: LinkLost) -> WorldTransport:
        address = child.address
        return WorldTransport(self.network, child.system, address, on_lost)


class _Launcher:
    def __init__(self, cluster: ClusterSimulation, worker: Process) -> None:
        self._cluster = cluster
        self._worker = worker

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> "_Launched":
        child = self._cluster.launch(self._worker, message, on_exit)
        return _Launched(self._cluster, child)


@dataclass(frozen=True, slots=True)
class _Launched:
    cluster: ClusterSimulation
    child: Process

    def stop(self, *, kill: bool) -> None:
        self.cluster.stop(self.child, kill=kill)
