"""Applications of actors on a cluster in this process."""

from collections.abc import Callable
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.net.post import Post
from gearpy.cluster.worker import actor_app_role
from gearpy.config.schema import Config
from gearpy.errors import ApplicationFailed, AskTimeout, ConfigError, SubmitRefused
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.actor_app import AskAppMaster
from gearpy.messages.client import ListWorkers
from gearpy.messages.cluster import AppMasterRegistered, LaunchExecutor, PutValue, ValueStored
from gearpy.wire.values.payload import encode_value
from tests.cluster.master_build import APP, ARTIFACT, Cluster, Role
from tests.eventually import DEADLINE_S, eventually

Configured = Callable[..., Config]


class Echo(gp.AppExecutor):
    def on_start(self) -> None:
        self.context.tell(["started", self.context.config.get("greeting")])

    def on_message(self, message: Any) -> None:
        if message == "raise":
            raise ValueError("told to")
        if message == "fail":
            self.context.fail("as it was told")
        self.context.schedule(1, lambda: self.context.tell(["echo", message]))


class Gathers(gp.AppMaster):
    count = 2

    def on_start(self) -> None:
        self.notes: list[Any] = []
        self.waiting: list[Any] = []
        self.context.request(self.count)

    def on_message(self, executor: int, message: Any) -> None:
        """Note it; an echo is the answer to a question."""
        self.notes.append([executor, *message])
        if message[0] == "echo" and self.waiting:
            self.waiting.pop().set(message[1])

    def on_lost(self, executor: int, cause: str) -> None:
        self.notes.append([executor, "lost", cause])

    def on_question(self, question: Any) -> Any:  # noqa: PLR0911 - an arm for each wish
        match question:
            case "notes":
                return self.notes
            case "up":
                return sorted(self.context.executors)
            case ["store", str(key), str(value)]:
                self.context.store(key, value.encode())
                return None
            case ["tell", int(executor), message]:
                return self.context.tell(executor, message)
            case ["echo", message]:
                self.waiting.append(self.context.later())
                self.context.tell(0, message)
                return self.waiting[-1]
            case "succeed":
                return self.context.succeed()
            case "fail":
                return self.context.fail("it was enough")
            case ["drop", int(executor)]:
                return self.context.drop(executor)
            case "never":
                return self.context.later()
            case _:
                raise ValueError(f"what is {question!r}?")


class OnEach(Gathers):
    def on_start(self) -> None:
        self.notes, self.waiting = [], []
        self.context.request_on_each_worker()


def an_app(master: type[gp.AppMaster] = Gathers) -> gp.ActorApp:
    return gp.ActorApp("echo", master=master, executor=Echo, config={"greeting": "hello"})


def test_executors_start_talk_and_end_with_the_application(configured: Configured) -> None:
    with LocalCluster(configured(), slots=4) as cluster, cluster.submitted(an_app()) as running:
        eventually(lambda: running.summary().status == "active")
        eventually(lambda: running.ask("up") == [0, 1])
        started = [[0, "started", "hello"], [1, "started", "hello"]]
        eventually(lambda: sorted(running.ask("notes")) == started)
        assert running.ask(["echo", {"deep": (1, 2)}]) == {"deep": (1, 2)}
        assert [each.status for each in running.describe().executors] == ["running", "running"]
        assert running.describe().of_actors
        running.ask("succeed")
        assert running.wait(DEADLINE_S).status == "succeeded"
        eventually(
            lambda: all(w.free_slots == w.slots for w in cluster.client.ask(ListWorkers()).workers)
        )


@pytest.mark.parametrize(("order", "cause"), [("raise", "told to"), ("fail", "as it was told")])
def test_an_executor_that_fails_is_replaced(configured: Configured, order: str, cause: str) -> None:
    config = configured(application__backoff_base_ms=1)
    with LocalCluster(config, slots=4) as cluster, cluster.submitted(an_app()) as running:
        eventually(lambda: running.summary().status == "active" and running.ask("up") == [0, 1])
        assert running.ask(["tell", 1, order])
        lost = eventually_found(running, "lost")
        assert lost[0] == 1
        assert cause in lost[2]
        eventually(lambda: running.ask("notes").count([1, "started", "hello"]) == 2)
        assert running.summary().progress.restarts == 1
        assert cause in running.describe().failures[0].error.cause


def test_an_executor_that_always_fails_ends_the_application(configured: Configured) -> None:
    class Breaks(gp.AppExecutor):
        def on_start(self) -> None:
            raise ValueError("cannot begin")

    app = gp.ActorApp("breaks", master=Gathers, executor=Breaks)
    config = configured(application__total_retries=1, application__backoff_base_ms=1)
    with (
        LocalCluster(config, slots=4) as cluster,
        cluster.submitted(app) as running,
        pytest.raises(ApplicationFailed, match=r"executor \d: .*cannot begin"),
    ):
        running.wait(DEADLINE_S)


def test_each_worker_has_an_executor(configured: Configured) -> None:
    """One each, though all would fit on one."""
    with (
        LocalCluster(configured(), workers=3, slots=4) as cluster,
        cluster.submitted(an_app(OnEach)) as running,
    ):
        eventually(lambda: running.summary().status == "active")
        eventually(lambda: running.ask("up") == [0, 1, 2])
        workers = [each.worker_id for each in running.describe().executors]
        assert sorted(workers) == [0, 1, 2]
        running.ask(["drop", 1])
        eventually(lambda: running.ask("up") == [0, 2])


def test_questions_are_answered_refused_or_time_out(configured: Configured) -> None:
    with LocalCluster(configured(), slots=4) as cluster, cluster.submitted(an_app()) as running:
        eventually(lambda: running.summary().status == "active")
        with pytest.raises(SubmitRefused, match="Gathers refused: what is 'x'"):
            running.ask("x")
        with pytest.raises(AskTimeout, match=r"has not answered for 0\.1 s"):
            running.ask("never", timeout_s=0.1)
        with pytest.raises(SubmitRefused, match="it has no streams"):
            running.metrics()
        assert running.ask("up") is not None
        running.ask("fail")
        with pytest.raises(ApplicationFailed, match="it was enough"):
            running.wait(DEADLINE_S)
        with pytest.raises(SubmitRefused, match="failed: it must run for that"):
            running.ask("up")


def test_what_is_stored_waits_until_the_master_has_it() -> None:
    cluster = Cluster()
    master = Role(cluster, "master")
    launch = LaunchExecutor(
        app_id=APP,
        executor_id=MASTER_EXECUTOR,
        launch=1,
        app_master=1,
        slots=1,
        name="echo",
        artifact=ARTIFACT,
        executors=1,
        config={},
        reply_to=master.path,
    )
    role = actor_app_role.role(launch, Config(), post=Post(cluster.system), load=an_app)
    app_master = cluster.system.spawn(role, "app")
    registered = AppMasterRegistered(app_id=APP, launch=1, master=master.path)

    def tell(*messages: Any) -> None:
        for message in messages:
            app_master.tell(message)
        cluster.settle()

    def asked(value: str) -> AskAppMaster:
        return AskAppMaster(app_id=APP, question=encode_value(["store", "k", value]))

    tell(registered, asked("old"), asked("new"))
    old, new = master.all(PutValue)
    tell(ValueStored(app_id=APP, key="k", version=old.version), registered)
    assert [each.value for each in master.all(PutValue)] == [b"old", b"new", b"new"]
    tell(ValueStored(app_id=APP, key="k", version=new.version), registered)
    assert len(master.all(PutValue)) == 3


def test_one_without_answers_says_so(configured: Configured) -> None:
    app = gp.ActorApp("mute", master=gp.AppMaster, executor=gp.AppExecutor)
    with LocalCluster(configured(), slots=4) as cluster, cluster.submitted(app) as running:
        eventually(lambda: running.summary().status == "active")
        with pytest.raises(SubmitRefused, match="AppMaster answers no questions"):
            running.ask(1)


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        gp.ActorApp("1", master=int, executor=gp.AppMaster)  # type: ignore[arg-type]
    assert len(caught.value.mistakes) == 3
    with pytest.raises(ConfigError, match=r"application of actors.*gear app submit"):
        gp.run(an_app())  # type: ignore[arg-type]


def eventually_found(running: Any, what: str) -> Any:
    found: list[Any] = []

    def look() -> bool:
        found[:] = [each for each in running.ask("notes") if each[1] == what]
        return bool(found)

    eventually(look)
    return found[0]
