"""The worker in virtual time, with a launcher and a master that do what a test says."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.actor.api import Actor, Exited, Failed, Ref
from gearpy.cluster.net.post import Post
from gearpy.cluster.worker.actor import WorkerActor, WorkerSettings
from gearpy.errors import ConfigError, ConnectionLost
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.client import Artifact, DrainWorker, LogText, ReadLog, Refused, WorkerDrains
from gearpy.messages.cluster import (
    ExecutorExited,
    ExecutorLaunchRejected,
    LaunchExecutor,
    MastersChanged,
    OtherCluster,
    RegisterWorker,
    ResourceUpdate,
    RunningExecutor,
    ShutdownExecutor,
    WorkerRegistered,
)
from gearpy.testing.world import World
from tests.world.actors import WorldActorSystem

SLOTS = 4
SECOND_MS = 1000
APP = AppId(7)


class Probe(Actor[Any]):
    """Stands for a role: keeps what it gets; a master answers workers."""

    def __init__(self, got: list[Any], post: Post, worker_id: WorkerId | None) -> None:
        self._got = got
        self._post = post
        self._worker_id = worker_id

    def receive(self, message: Any) -> None:
        self._got.append(message)
        if isinstance(message, RegisterWorker) and self._worker_id is not None:
            self._post.tell(
                message.worker,
                WorkerRegistered(worker_id=self._worker_id, master=self.context.self_ref.path),
            )


class FakeLaunched:
    def __init__(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> None:
        self.message = message
        self.end = on_exit
        self.stops: list[bool] = []

    def stop(self, *, kill: bool) -> None:
        self.stops.append(kill)


class FakeLauncher:
    def __init__(self) -> None:
        self.launched: list[FakeLaunched] = []
        self.error: Exception | None = None

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> FakeLaunched:
        if self.error is not None:
            raise self.error
        self.launched.append(FakeLaunched(message, on_exit))
        return self.launched[-1]


class Scene:
    """A worker with four slots, and what everybody else was told."""

    def __init__(self) -> None:
        self.world = World(seed=1)
        self.system = WorldActorSystem(self.world, "")
        self.post = Post(self.system)
        self.launcher = FakeLauncher()
        self.said: list[str] = []
        self.waited: list[str] = []
        self.masters: list[tuple[str, ...]] = []
        self.exits: list[Exited] = []
        self.got: dict[str, list[Any]] = {}
        self.probe("boss")
        self.worker: Ref[Any]

    def start(self, *masters: str, read_log: Callable[[ReadLog], LogText] | None = None) -> None:
        first, *others = masters or ("master",)
        settings = WorkerSettings(
            other_masters=[ActorPath("", each) for each in others],
            reconnect_timeout_ms=10 * SECOND_MS,
            stop_timeout_ms=5 * SECOND_MS,
            read_log=read_log,
            on_ready=self.said.append,
            on_waiting=self.waited.append,
            on_masters=self.masters.append,
        )
        self.worker = self.system.spawn(
            lambda: WorkerActor(ActorPath("", first), SLOTS, self.launcher, self.post, settings),
            "worker",
        )
        self.worker.add_watcher(self, self.exits.append)
        self.run()

    def probe(self, name: str, worker_id: int | None = None) -> Ref[Any]:
        """Put a role there; with an id it is a master."""
        got = self.got[name] = []
        number = None if worker_id is None else WorkerId(worker_id)
        return self.system.spawn(lambda: Probe(got, self.post, number), name)

    def run(self, for_ms: int = 100) -> None:
        over: list[bool] = []
        self.world.later(for_ms, lambda: over.append(True))
        self.world.run(lambda: bool(over), within_ms=for_ms)

    def tell(self, *messages: Any) -> None:
        for message in messages:
            self.worker.tell(message)
        self.run()

    def stop(self, name: str) -> None:
        ref = self.system.resolve(name)
        assert ref is not None
        self.system.stop(ref)
        self.run()

    def told(self, name: str, kind: type[Any]) -> list[Any]:
        return [each for each in self.got[name] if isinstance(each, kind)]

    def end(self, number: int, cause: str = "") -> None:
        self.launcher.launched[number].end(cause)
        self.run()


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.probe("master", 3)
    made.start()
    return made


def a_launch(
    executor_id: int = 0, *, launch: int = 1, slots: int = 2, boss: str = "boss"
) -> LaunchExecutor:
    return LaunchExecutor(
        app_id=APP,
        executor_id=ExecutorId(executor_id),
        launch=launch,
        app_master=launch,
        slots=slots,
        name="a",
        artifact=Artifact(kind="memory", location="1"),
        executors=1,
        config={},
        reply_to=ActorPath("", boss),
    )


def a_shutdown(executor_id: int = 0, *, launch: int = 1, kill: bool = False) -> ShutdownExecutor:
    return ShutdownExecutor(
        app_id=APP, executor_id=ExecutorId(executor_id), launch=launch, reason="test", kill=kill
    )


def an_exit(executor_id: int = 0, *, launch: int = 1, cause: str = "") -> ExecutorExited:
    return ExecutorExited(
        app_id=APP, executor_id=ExecutorId(executor_id), launch=launch, cause=cause
    )


def a_running(executor_id: int = 0, *, slots: int = 2, launch: int = 1) -> RunningExecutor:
    return RunningExecutor(
        app_id=APP,
        executor_id=ExecutorId(executor_id),
        launch=launch,
        app_master=launch,
        slots=slots,
    )


def an_update(*running: RunningExecutor, refused: Sequence[RunningExecutor] = ()) -> ResourceUpdate:
    return ResourceUpdate(worker_id=WorkerId(3), running=running, refused=tuple(refused))


# -- slots ---------------------------------------------------------------------------------------


def test_more_than_fits_is_refused_and_counted_once(scene: Scene) -> None:
    scene.tell(a_launch(0, slots=3), a_launch(1, slots=2))

    (rejected,) = scene.told("boss", ExecutorLaunchRejected)
    assert (rejected.executor_id, rejected.reason) == (1, "2 slots asked, 1 free")
    first = a_running(0, slots=3)
    assert scene.told("master", ResourceUpdate) == [
        an_update(first),
        an_update(first, refused=[a_running(1)]),
    ]
    assert len(scene.launcher.launched) == 1


@pytest.mark.parametrize("error", [ConfigError("no"), OSError("no"), RuntimeError("no")])
def test_what_cannot_be_started_is_refused_with_the_reason(scene: Scene, error: Exception) -> None:
    """A wrong configuration, no process or no thread: the worker goes on."""
    scene.launcher.error = error

    scene.tell(a_launch())

    (rejected,) = scene.told("boss", ExecutorLaunchRejected)
    assert (rejected.launch, rejected.reason) == (1, "no")
    assert scene.told("master", ResourceUpdate) == [an_update(refused=[a_running()])]
    assert scene.worker.is_alive


def test_a_repeated_launch_changes_nothing(scene: Scene) -> None:
    scene.tell(a_launch(), a_launch())

    assert len(scene.launcher.launched) == 1
    assert scene.got["boss"] == []


def test_a_newer_launch_waits_for_the_end_of_the_older(scene: Scene) -> None:
    """Nobody wants the older one any more, so it is killed; its slots may be used."""
    scene.tell(a_launch(launch=1, slots=3), a_launch(launch=2, slots=4))
    assert [each.stops for each in scene.launcher.launched] == [[True]]

    scene.end(0)

    assert [each.message.launch for each in scene.launcher.launched] == [1, 2]
    assert scene.told("boss", ExecutorExited) == [an_exit(launch=1)]
    newer = a_running(launch=2, slots=4)
    assert scene.told("master", ResourceUpdate)[-1] == an_update(newer)


def test_of_three_launches_the_newest_runs(scene: Scene) -> None:
    scene.tell(a_launch(launch=1), a_launch(launch=2), a_launch(launch=3), a_launch(launch=2))
    scene.end(0)

    assert [each.message.launch for each in scene.launcher.launched] == [1, 3]
    assert [each.launch for each in scene.told("boss", ExecutorLaunchRejected)] == [2, 2]


def test_a_waiting_launch_can_be_called_off(scene: Scene) -> None:
    scene.tell(a_launch(launch=1), a_launch(launch=2), a_shutdown(launch=2))
    scene.end(0)

    assert len(scene.launcher.launched) == 1
    assert scene.told("boss", ExecutorExited) == [an_exit(launch=2), an_exit(launch=1)]
    assert scene.told("master", ResourceUpdate)[-2:] == [
        an_update(a_running(), refused=[a_running(launch=2)]),
        an_update(),
    ]


@pytest.mark.parametrize("kill", [True, False])
def test_the_running_launch_is_stopped(scene: Scene, *, kill: bool) -> None:
    """Gently or at once, as asked; an order for another launch is ignored."""
    scene.tell(a_launch(launch=2))

    scene.tell(a_shutdown(launch=1), a_shutdown(launch=3), a_shutdown(launch=2, kill=kill))

    assert scene.launcher.launched[0].stops == [kill]


# -- the master ----------------------------------------------------------------------------------


def test_a_worker_waits_for_its_first_master() -> None:
    scene = Scene()
    scene.start()
    scene.run(60 * SECOND_MS)
    assert scene.waited == ["no master at master yet; trying again every second"]

    scene.probe("master", 3)
    scene.run(2 * SECOND_MS)

    assert scene.said == ["worker 3 ready: 4 slots, master master"]


def test_everything_goes_on_while_the_master_is_away(scene: Scene) -> None:
    scene.tell(a_launch(0, slots=1), a_launch(1, slots=1))
    scene.stop("master")
    scene.end(0)
    scene.tell(a_launch(2, slots=2))
    scene.run(3 * SECOND_MS)
    scene.probe("master", 3)
    scene.run(2 * SECOND_MS)

    (registered,) = scene.told("master", RegisterWorker)
    assert registered.worker_id == 3
    left = a_running(1, slots=1), a_running(2, slots=2)
    assert registered.running == left
    assert [each.stops for each in scene.launcher.launched] == [[], [], []]
    assert len(scene.said) == 1

    scene.end(2)
    assert scene.told("master", ResourceUpdate) == [an_update(*left), an_update(left[0])]


def test_what_changes_between_registration_and_answer_is_told_then() -> None:
    """The master believes what was registered; all at once, as each word is about all of it."""
    scene = Scene()
    scene.probe("master", 3)
    scene.start()
    scene.tell(a_launch(0, slots=1), a_launch(1, slots=2))
    scene.stop("master")
    silent = scene.probe("master")
    scene.run(2 * SECOND_MS)
    assert scene.told("master", RegisterWorker)

    scene.end(0)
    scene.tell(a_launch(2, slots=2), a_launch(3, slots=2))
    assert scene.told("master", ResourceUpdate) == []
    answer = WorkerRegistered(worker_id=WorkerId(3), master=silent.path)
    scene.tell(answer, answer)

    left = a_running(1), a_running(2)
    assert scene.told("master", ResourceUpdate) == [an_update(*left, refused=[a_running(3)])]


@pytest.mark.parametrize("ends_before_the_answer", [True, False])
def test_what_begins_before_the_first_answer_is_told(*, ends_before_the_answer: bool) -> None:
    """An app master can be quicker with what it was granted than the master with its answer.

    Slots that are never given back are missing for ever: after some restarts nothing fits.
    """
    scene = Scene()
    silent = scene.probe("master")
    scene.start()
    answer = WorkerRegistered(worker_id=WorkerId(3), master=silent.path)
    scene.tell(a_launch(0), a_launch(1, slots=3))  # The second one does not fit.

    if ends_before_the_answer:
        scene.end(0)
        scene.run(2 * SECOND_MS)  # It registers again.
        scene.tell(answer)
    else:
        scene.tell(answer)
        scene.end(0)

    updates = scene.told("master", ResourceUpdate)
    assert updates[0].refused == (a_running(1, slots=3),)
    assert updates[-1].running == ()


def test_a_master_that_was_away_hears_of_an_app_master_that_ended(scene: Scene) -> None:
    """Before the worker registers without it, so that the cause is known."""
    scene.tell(a_launch(MASTER_EXECUTOR, boss="master"))
    scene.stop("master")
    scene.end(0, "exited with code 3")
    scene.probe("master", 3)
    scene.run(2 * SECOND_MS)

    exited, registered, _ = scene.got["master"]
    assert exited == an_exit(MASTER_EXECUTOR, cause="exited with code 3")
    assert isinstance(registered, RegisterWorker)


def test_a_worker_ends_when_its_master_stays_away(scene: Scene) -> None:
    scene.tell(a_launch())
    scene.stop("master")
    scene.run(9 * SECOND_MS)
    assert scene.launcher.launched[0].stops == []

    scene.run(3 * SECOND_MS)
    assert scene.launcher.launched[0].stops == [False]
    assert scene.worker.is_alive
    scene.end(0)

    (exited,) = scene.exits
    assert isinstance(exited.reason, Failed)
    assert isinstance(exited.reason.cause, ConnectionLost)
    assert str(exited.reason.cause) == "no master at master for 10 s: the worker ends"


def test_a_worker_stays_with_its_cluster_and_keeps_what_runs() -> None:
    scene = Scene()
    first = scene.probe("master")
    scene.start()
    answer = WorkerRegistered(worker_id=WorkerId(3), master=first.path, cluster_id="mine")
    scene.tell(answer, a_launch())
    scene.stop("master")
    scene.probe("master")
    scene.run(2 * SECOND_MS)
    scene.tell(OtherCluster(cluster_id="other"))

    scene.run(5 * SECOND_MS)
    assert {each.cluster_id for each in scene.told("master", RegisterWorker)} == {"mine"}
    assert scene.launcher.launched[0].stops == []

    scene.run(5 * SECOND_MS)
    scene.end(0)
    (exited,) = scene.exits
    assert isinstance(exited.reason, Failed)
    text = "the master at master is of cluster other, this worker belongs to cluster mine"
    assert str(exited.reason.cause).startswith(text)


def test_an_old_master_is_not_listened_to(scene: Scene) -> None:
    scene.probe("late")

    scene.tell(WorkerRegistered(worker_id=WorkerId(9), master=ActorPath("", "late")))
    scene.tell(a_launch())
    scene.end(0)

    assert scene.got["late"] == []
    assert scene.told("master", ResourceUpdate) == [an_update(a_running()), an_update()]


def test_a_worker_goes_to_the_master_that_leads_later(scene: Scene) -> None:
    scene.probe("next", 3)

    answer = WorkerRegistered(worker_id=WorkerId(3), master=ActorPath("", "next"), term=2)
    scene.tell(answer)  # Asked again, now that its end would be heard.
    assert len(scene.told("next", RegisterWorker)) == 1
    scene.tell(answer, replace(a_launch(), term=2))

    assert scene.told("next", ResourceUpdate)[-1] == an_update(a_running())


def test_a_master_that_ended_since_it_answered_is_asked_again() -> None:
    """What it had sent before is no sign of it: nobody would hear of its end a second time."""
    scene = Scene()
    first = scene.probe("master")
    scene.start()
    scene.stop("master")
    scene.probe("master")  # Another process has its address, and does not lead.

    scene.tell(WorkerRegistered(worker_id=WorkerId(3), master=first.path))
    scene.run(3 * SECOND_MS)

    assert scene.said == []
    assert len(scene.told("master", RegisterWorker)) > 2


def test_a_worker_looks_for_the_masters_that_there_are(scene: Scene) -> None:
    """Those that its master has told it last; what it starts is told the same."""
    scene.tell(MastersChanged(masters=("a:1", "b:1"), term=2))
    scene.tell(MastersChanged(masters=("c:1",), term=1))
    assert scene.masters == [("a:1", "b:1")]

    scene.stop("master")
    scene.run(60 * SECOND_MS)

    (exited,) = scene.exits
    assert "no master at a:1 or b:1 for 10 s" in str(exited.reason)


def test_orders_of_a_master_that_leads_no_more_are_refused(scene: Scene) -> None:
    """The newest term counts, of whatever order; what app masters ask for has none."""
    order = replace(a_shutdown(MASTER_EXECUTOR, kill=True), term=1)
    scene.tell(replace(a_launch(MASTER_EXECUTOR), term=2), a_launch(0))
    app_master, executor = scene.launcher.launched

    scene.tell(order)
    assert app_master.stops == []
    scene.tell(replace(order, term=2), a_shutdown(0))
    assert (app_master.stops, executor.stops) == ([True], [False])


# -- orphans -------------------------------------------------------------------------------------


def test_executors_that_outlive_their_app_master_are_killed(scene: Scene) -> None:
    scene.tell(a_launch(MASTER_EXECUTOR, slots=1, boss="master"), a_launch(0), a_launch(1, slots=1))
    scene.stop("boss")
    scene.end(0, "killed by signal 9 (SIGKILL)")
    scene.end(1)
    scene.run(4 * SECOND_MS)
    assert scene.launcher.launched[2].stops == []

    scene.run(2 * SECOND_MS)

    assert [each.stops for each in scene.launcher.launched] == [[], [], [True]]


def test_executors_of_the_next_app_master_are_left_alone(scene: Scene) -> None:
    scene.probe("next")
    scene.tell(a_launch(MASTER_EXECUTOR, slots=1, boss="master"), a_launch(1, slots=1))
    scene.stop("boss")
    scene.end(0)
    scene.tell(a_launch(2, slots=1, boss="next"))

    scene.run(60 * SECOND_MS)

    assert [each.stops for each in scene.launcher.launched] == [[], [True], []]


# -- the end -------------------------------------------------------------------------------------


def test_a_worker_that_drains_ends_with_what_it_runs(scene: Scene) -> None:
    scene.tell(a_launch(0, slots=1), a_launch(0, launch=2, slots=1), DrainWorker())
    scene.tell(a_launch(1, slots=1))

    assert scene.launcher.launched[0].stops == [True, False]
    assert [each.launch for each in scene.told("boss", ExecutorLaunchRejected)] == [2, 1]
    assert scene.exits == []
    assert scene.told("master", ResourceUpdate)[-1].is_leaving
    scene.end(0)

    assert [str(exited.reason) for exited in scene.exits] == ["Stopped()"]
    refused = [each for told in scene.told("master", ResourceUpdate) for each in told.refused]
    assert refused == [a_running(0, launch=2, slots=1), a_running(1, slots=1)]
    assert scene.told("master", ResourceUpdate)[-1].running == ()


def test_a_worker_without_executors_drains_at_once(scene: Scene) -> None:
    """Asked to do so only if it is idle, it says what it waits for otherwise."""
    scene.tell(a_launch())
    assert "is not idle" in scene.post.ask(scene.worker.path, DrainWorker(if_idle=True), 5).reason
    assert scene.post.ask(scene.worker.path, DrainWorker(), 5) == WorkerDrains(executors=1)
    assert scene.exits == []
    scene.end(0)
    assert len(scene.exits) == 1


def test_an_idle_worker_drains_at_once(scene: Scene) -> None:
    scene.tell(DrainWorker(if_idle=True))

    assert len(scene.exits) == 1


def test_what_still_runs_is_killed_with_the_worker(scene: Scene) -> None:
    scene.tell(a_launch())

    scene.stop("worker")

    assert scene.launcher.launched[0].stops == [True]


def test_a_worker_answers_for_the_logs_that_it_has() -> None:
    scene = Scene()
    text = LogText(source="a", text="b")
    scene.start(read_log=lambda _: text)
    question = ReadLog(app_id=APP, executor_id=ExecutorId(0), lines=1)

    assert scene.post.ask(scene.worker.path, question, 5) == text


def test_a_worker_without_logs_says_so(scene: Scene) -> None:
    question = ReadLog(app_id=APP, executor_id=ExecutorId(0), lines=1)

    assert scene.post.ask(scene.worker.path, question, 5) == Refused(
        reason="this worker keeps no logs"
    )
