"""A master with stand-ins for workers and app masters, in virtual time."""

from random import Random
from typing import Any, Final, TypeVar

from gearpy.actor.api import Actor, Ref
from gearpy.cluster.master.actor import MasterActor
from gearpy.cluster.net.post import Post
from gearpy.config.load import from_overrides
from gearpy.config.schema import Config
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.client import (
    Artifact,
    ClusterSummary,
    GetApplication,
    GetCluster,
    ListWorkers,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.cluster import (
    ApplicationStatusChanged,
    ExecutorExited,
    LaunchExecutor,
    RegisterAppMaster,
    RegisterWorker,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    RunningExecutor,
)
from gearpy.messages.summaries import (
    ApplicationProgress,
    ApplicationStatus,
    ApplicationSummary,
    ErrorCard,
    WorkerSummary,
)
from gearpy.storage.log import MemoryLog
from gearpy.testing.world import World
from tests.world.actors import WorldActorSystem

M = TypeVar("M")
APP: Final = AppId(1)
ARTIFACT: Final = Artifact(kind="memory", location="1")
#: Longer than any pause or grace.
LONG_MS: Final = 100_000


class Probe(Actor[Any]):
    def __init__(self, got: list[Any]) -> None:
        self._got = got

    def receive(self, message: Any) -> None:
        self._got.append(message)


class Role:
    """A worker or an app master: what it got, and what it says."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.cluster = cluster
        self.got: list[Any] = []
        self.ref: Ref[Any] = cluster.system.spawn(lambda: Probe(self.got), name)
        self.path = self.ref.path

    def all(self, kind: type[M]) -> list[M]:
        return [each for each in self.got if isinstance(each, kind)]

    def last(self, kind: type[M]) -> M:
        return self.all(kind)[-1]

    def die(self) -> None:
        self.cluster.system.stop(self.ref)
        self.cluster.settle()


class Cluster:
    def __init__(
        self,
        node: str = "",
        log: MemoryLog | None = None,
        /,
        *,
        snapshot_records: int = 10_000,
        ended_max: int = 1000,
        **overrides: Any,
    ) -> None:
        self._snapshot_records, self._ended_max = snapshot_records, ended_max
        self.world = World(seed=0)
        self.system = WorldActorSystem(self.world, node)
        self.config = configured(overrides)
        self.log = log or MemoryLog()
        self.names = iter(range(1000))
        self.master = self._start()

    def _start(self) -> Ref[Any]:
        post, config = Post(self.system), self.config
        return self.system.spawn(
            lambda: MasterActor(
                post,
                log=self.log,
                config=config,
                rng=Random(0),
                snapshot_records=self._snapshot_records,
                ended_max=self._ended_max,
            ),
            f"master{next(self.names)}",
        )

    def restart(self) -> None:
        """Kill the master, lose what its log did not sync, and start it again."""
        self.system.stop(self.master)
        self.settle()
        self.log = self.log.crash()
        self.master = self._start()
        self.settle()

    def settle(self, ms: int = 10) -> None:
        deadline_ms = self.world.now_ms + ms
        self.world.later(ms, lambda: None)
        self.world.run(lambda: self.world.now_ms >= deadline_ms, within_ms=ms)

    def tell(self, *messages: object) -> None:
        for message in messages:
            self.master.tell(message)
        self.settle()

    def ask(self, message: object) -> Any:
        answer = self.master.ask(message, 5)
        self.settle()
        return answer

    def worker(self, slots: int = 9, *hosts: str) -> Role:
        worker = Role(self, f"worker{next(self.names)}")
        self.tell(RegisterWorker(worker=worker.path, slots=slots, hosts=hosts))
        return worker

    def cluster_id(self) -> str:
        answer = self.ask(GetCluster())
        assert isinstance(answer, ClusterSummary), answer
        return answer.cluster_id

    def submit(self, name: str = "words", **config: str) -> AppId:
        answer = self.ask(SubmitApplication(name=name, artifact=ARTIFACT, config=config))
        assert isinstance(answer, Submitted), answer
        return answer.app_id

    def app_master(self, launch: LaunchExecutor) -> Role:
        role = Role(self, f"app{launch.app_id}-{launch.launch}-{next(self.names)}")
        self.register(role, launch)
        return role

    def register(self, role: Role, launch: LaunchExecutor) -> None:
        message = RegisterAppMaster(
            cluster_id=launch.cluster_id,
            app_id=launch.app_id,
            app_master=role.path,
            launch=launch.launch,
        )
        self.tell(message)

    def summary(self, app_id: AppId = APP) -> ApplicationSummary:
        answer = self.ask(GetApplication(app_id=app_id))
        assert isinstance(answer, ApplicationSummary), answer
        return answer

    def workers(self) -> dict[int, WorkerSummary]:
        return {each.worker_id: each for each in self.ask(ListWorkers()).workers}

    def free(self) -> dict[int, int]:
        return {worker: each.free_slots for worker, each in self.workers().items()}


def configured(overrides: dict[str, object]) -> Config:
    return from_overrides(
        {key.replace("__", ".").replace("_", "-"): str(each) for key, each in overrides.items()}
    )


def a_status(
    status: ApplicationStatus,
    *,
    launch: int = 1,
    app_id: int = 1,
    records: int = 7,
    restarts: int = 0,
) -> ApplicationStatusChanged:
    return ApplicationStatusChanged(
        app_id=AppId(app_id),
        launch=launch,
        status=status,
        progress=ApplicationProgress(records_in=records, restarts=restarts),
        cause=ErrorCard(cause="boom") if status == "failed" else None,
    )


def an_exit(launch: int = 1, cause: str = "exit code 3: boom") -> ExecutorExited:
    return ExecutorExited(app_id=APP, executor_id=MASTER_EXECUTOR, launch=launch, cause=cause)


def running(
    launch: int = 1,
    *,
    executor: int = -1,
    app_id: int = 1,
    slots: int = 1,
    app_master: int | None = None,
) -> RunningExecutor:
    return RunningExecutor(
        app_id=AppId(app_id),
        executor_id=ExecutorId(executor),
        launch=launch,
        app_master=launch if app_master is None else app_master,
        slots=slots,
    )


def an_update(
    *what: RunningExecutor, refused: tuple[RunningExecutor, ...] = (), worker: int = 0
) -> ResourceUpdate:
    return ResourceUpdate(worker_id=WorkerId(worker), running=what, refused=refused)


def a_request(slots: int, *, executors: int = 1, launch: int = 1) -> RequestResource:
    return RequestResource(app_id=APP, launch=launch, slots=slots, executors=executors)


def granted(role: Role) -> list[tuple[int, int]]:
    return [
        (each.worker_id, each.slots)
        for message in role.all(ResourceAllocated)
        for each in message.allocations
    ]


def a_running(**overrides: Any) -> tuple[Cluster, Role, Role]:
    """Return a cluster, its worker, and the app master of an active application."""
    cluster = Cluster(**overrides)
    worker = cluster.worker()
    cluster.submit()
    cluster.tell(an_update(running()))
    app_master = cluster.app_master(worker.last(LaunchExecutor))
    cluster.tell(a_status("active"))
    return cluster, worker, app_master


def back(cluster: Cluster, worker: Role, *what: RunningExecutor, slots: int = 9) -> None:
    cluster.tell(
        RegisterWorker(worker=worker.path, slots=slots, worker_id=WorkerId(0), running=what)
    )
