"""One role at a time, with stand-ins for the others: what is repeated, late, or lost."""

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from random import Random
from threading import Event
from typing import Any, BinaryIO

import pytest

from gearpy.actor.api import Actor
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.clocks import monotonic_ms, wall_ms
from gearpy.cluster.executor.actor import ExecutorActor, ExecutorSettings
from gearpy.cluster.host.task_limits import output_limits, task_limits
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import ApplicationLoader, embed
from gearpy.config.schema import Config
from gearpy.ids import ActorPath, AppId, ExecutorId, SessionId
from gearpy.messages.app import (
    LaunchTasks,
    SnapshotFile,
    SnapshotsDamaged,
    StartAllTasks,
    StepDone,
    StopAllTasks,
    TaskLaunch,
    TasksStopped,
)
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from tests.cluster.build import an_app
from tests.eventually import eventually

Configured = Callable[..., Config]


class Probe(Actor[Any]):
    def __init__(self, got: list[Any]) -> None:
        self._got = got

    def receive(self, message: Any) -> None:
        self._got.append(message)


@pytest.fixture
def system() -> Iterator[ThreadedActorSystem]:
    with ThreadedActorSystem() as made:
        yield made


def probe(system: ThreadedActorSystem, name: str) -> tuple[ActorPath, list[Any]]:
    got: list[Any] = []
    return system.spawn(lambda: Probe(got), name).path, got


def test_post_passes_no_objects_on(system: ThreadedActorSystem) -> None:
    post = Post(system)
    path, got = probe(system, "role")
    message = SubmitApplication(name="a", artifact=Artifact(kind="memory", location="1"))

    assert post.tell(path, message)
    assert not post.tell(ActorPath("", "nobody"), message)

    eventually(lambda: got)
    assert got == [message]
    assert got[0] is not message
    assert got[0].config is not message.config


def test_executor_answers_repeated_steps_and_does_them_once(
    system: ThreadedActorSystem, configured: Configured
) -> None:
    app_master, got = probe(system, "appmaster")
    made: list[int] = []
    executor, dag = an_executor(system, configured(), app_master, made.append)
    tasks = tuple(
        TaskLaunch(task_id=task, session=SessionId(number))
        for number, task in enumerate(dag.tasks(), 1)
    )
    launch = LaunchTasks(region=0, version=dag.version, attempt=0, tasks=tasks)
    start = StartAllTasks(version=dag.version, attempt=0, start_time_ms=0)
    stop = StopAllTasks(version=dag.version, attempt=0, completed=False)

    for step, answer, before in (
        (launch, StepDone, 0),
        (start, StepDone, 2),
        (stop, TasksStopped, 0),
    ):
        executor.tell(step)
        wait_for_count(got, answer, before + 1)
        executor.tell(step)
        wait_for_count(got, answer, before + 2)

    assert made == [1]


def test_attempt_that_is_stopped_while_it_is_loaded_never_begins(
    system: ThreadedActorSystem, configured: Configured
) -> None:
    app_master, got = probe(system, "appmaster")
    executor, _ = an_executor(system, configured(), app_master, lambda _: None)

    executor.tell(LaunchTasks(region=0, version=0, attempt=0, tasks=()))
    executor.tell(StopAllTasks(version=0, attempt=0, completed=False))
    wait_for_count(got, TasksStopped, 1)
    executor.tell(LaunchTasks(region=0, version=0, attempt=1, tasks=()))
    wait_for_count(got, StepDone, 1)

    launched = [each.attempt for each in got if isinstance(each, StepDone)]
    assert launched in ([1], [0, 1])


class Waiting(MemoryCheckpoints):
    def __init__(self) -> None:
        super().__init__()
        self.may_read = Event()

    def open(self, location: str) -> BinaryIO:
        self.may_read.wait()
        return super().open(location)


def test_attempt_that_cannot_be_loaded_does_not_stop_the_one_behind_it(
    system: ThreadedActorSystem, configured: Configured
) -> None:
    """That one is answered as soon as it is there, though nobody asks again."""
    app_master, got = probe(system, "appmaster")
    checkpoints = Waiting()
    executor, dag = an_executor(system, configured(), app_master, lambda _: None, checkpoints)
    [*tasks] = dag.tasks()
    gone = SnapshotFile(location="k/app1/epochs/gone", sha256="", tasks=tuple(tasks))
    launches = tuple(TaskLaunch(task_id=task, session=SessionId(1)) for task in tasks)

    executor.tell(LaunchTasks(region=0, version=0, attempt=0, tasks=launches, snapshots=(gone,)))
    executor.tell(StopAllTasks(version=0, attempt=0, completed=False))
    executor.tell(LaunchTasks(region=0, version=0, attempt=1, tasks=launches))
    executor.tell(StopAllTasks(version=0, attempt=9, completed=False))
    wait_for_count(got, TasksStopped, 2)  # It has heard of both attempts.
    checkpoints.may_read.set()

    wait_for_count(got, StepDone, 1)
    [damaged] = [each for each in got if isinstance(each, SnapshotsDamaged)]
    assert damaged.attempt == 0


def wait_for_count(got: list[Any], kind: type[Any], number: int) -> None:
    eventually(lambda: sum(type(each) is kind for each in got) >= number)


def an_executor(
    system: ThreadedActorSystem,
    config: Config,
    app_master: ActorPath,
    on_made: Callable[[int], None],
    checkpoints: Checkpoints | None = None,
) -> tuple[Any, Any]:
    application = an_app("roles").build()
    target = next(iter(application.processors.values()))
    make = target.task
    target.task = lambda context: (on_made(1), make(context))[1]  # type: ignore[func-returns-value]
    runners = RunnerFactory(
        application=application,
        output=output_limits(config),
        limits=task_limits(config),
        turn_ms=5,
        clock_ms=monotonic_ms,
        wall_ms=wall_ms,
        rng=Random(),
    )
    settings = ExecutorSettings(
        app_id=AppId(1),
        executor_id=ExecutorId(0),
        launch=1,
        slots=9,
        app_master=app_master,
        dispatcher=SharedDispatcher(),
        pin_tasks=False,
        mailbox_max=1000,
        report_interval_ms=10,
        checkpoints_prefix="k/app1",
        chain_files_max=4,
        clock_ms=monotonic_ms,
    )
    tuning = ProcessTuning()
    executor = system.spawn(
        lambda: ExecutorActor(
            settings,
            runners=lambda: runners,
            make_transport=lambda _: MemoryTransport(MemoryHub(), "one"),
            post=Post(system),
            checkpoints=checkpoints or MemoryCheckpoints(),
            tuning=tuning,
            release=tuning.restore,
        ),
        "executor",
    )
    return executor, application.dag


def test_application_is_loaded_until_the_last_role_releases_it() -> None:
    loader, app = ApplicationLoader(), an_app("loaded")
    artifact, app_id = embed(app), AppId(1)

    first = loader.load(app_id, artifact, ExecutorId(-1))
    second = loader.load(app_id, artifact, ExecutorId(0))
    loader.release(app_id, ExecutorId(0))
    loader.release(app_id, ExecutorId(0))
    third = loader.load(app_id, artifact, ExecutorId(1))
    loader.release(app_id, ExecutorId(1))
    loader.release(app_id, ExecutorId(-1))

    assert first is second is third
    assert loader.load(app_id, artifact, ExecutorId(0)) is not first


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_tuning_is_undone_in_any_order(order: tuple[int, ...]) -> None:
    before = (gc.get_threshold(), sys.getswitchinterval())
    tunings = [ProcessTuning() for _ in order]
    assert sys.getswitchinterval() == pytest.approx(0.001)

    for place in order[:2]:
        tunings[place].restore()
        tunings[place].restore()
    assert sys.getswitchinterval() == pytest.approx(0.001)
    tunings[order[2]].restore()

    assert (gc.get_threshold(), sys.getswitchinterval()) == before
