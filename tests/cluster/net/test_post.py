"""Messages between actors of one process and of several, see `gearpy.cluster.net.post`."""

import gc
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from weakref import ref as weak

import pytest

from gearpy.actor.api import Actor, Exited, Killed, Ref
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.cluster.net.post import Allow, Post, RemoteRef
from gearpy.errors import ActorStopped, AskTimeout, ConfigError, GearpyError
from gearpy.ids import ActorPath, AppId, address_of
from gearpy.messages.client import ListWorkers, ShutdownApplication
from gearpy.messages.cluster import PutValue, ValueStored
from gearpy.transport.letters.peers import LetterPeers
from gearpy.transport.links.tcp import TcpTransport
from tests.eventually import DEADLINE_S

SECRET = b"s" * 32
PATIENCE_S = float(DEADLINE_S)


class Echo(Actor[Any]):
    """Keeps what it gets, answers as it is told to, and watches as it is told to."""

    def __init__(self, seen: "queue.SimpleQueue[Any]") -> None:
        self._seen = seen

    def receive(self, message: Any) -> object:
        self._seen.put(message)
        match message:
            case Ref():
                self.context.watch(message)
            case PutValue(key="raise"):
                raise ConfigError("this is wrong")
            case PutValue(key="bug"):
                raise ZeroDivisionError("a bug")
            case PutValue(key="slow"):
                threading.Event().wait(0.5)
            case PutValue(key="none"):
                return None
            case PutValue(key="large"):
                return PutValue(app_id=AppId(1), launch=1, key="", value=bytes(2 << 20))
            case PutValue(key="stop"):
                self.context.stop_self()
        return ValueStored(app_id=AppId(1), key="", version=1)

    def on_exited(self, exited: Exited) -> None:
        self._seen.put(exited)


def put(key: str = "", value: bytes = b"") -> PutValue:
    return PutValue(app_id=AppId(1), launch=1, key=key, value=value)


class Side:
    """A process: transport, nodes, actors, post; and one actor called echo."""

    def __init__(self, *, port: int = 0, allow: Allow | None = None) -> None:
        self.seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.transport = TcpTransport(SECRET, port=port)
        self.transport.start()
        self.nodes: LetterPeers = self.transport.serve_peers()
        self.system = ThreadedActorSystem(node=self.nodes.node)
        self.post = Post(self.system, self.nodes, allow=allow, answer_timeout_s=PATIENCE_S)
        self.echo: Ref[Any] = self.system.spawn(lambda: Echo(self.seen), "echo")

    def sees(self) -> Any:
        return self.seen.get(timeout=PATIENCE_S)

    def stop(self) -> None:
        self.post.close()
        self.transport.stop()
        self.system.shutdown()


Make = Callable[..., Side]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def make_one(**kwargs: Any) -> Side:
            side = Side(**kwargs)
            stack.callback(side.stop)
            return side

        yield make_one


class Stuck(Actor[Any]):
    def __init__(self, go: threading.Event) -> None:
        self._go = go
        self.entered = threading.Event()

    def receive(self, message: Any) -> object:
        self.entered.set()
        self._go.wait(PATIENCE_S)
        return None


def spawn_full(side: Side, go: threading.Event) -> ActorPath:
    """Return an actor that is busy until ``go``, with no room for more than it has."""
    stuck = Stuck(go)
    ref: Ref[Any] = side.system.spawn(lambda: stuck, "full", mailbox_max=1)
    ref.tell(put())
    assert stuck.entered.wait(PATIENCE_S)
    ref.tell(put())
    return ref.path


def test_a_message_reaches_an_actor_of_another_process(make: Make) -> None:
    one, other = make(), make()

    assert one.post.tell(other.echo.path, put("there"))
    assert other.sees() == put("there")
    assert other.post.tell(one.echo.path, put("and back"))
    assert one.sees() == put("and back")
    assert one.echo.path.node == one.post.node == one.nodes.node


def test_without_nodes_other_processes_cannot_be_reached() -> None:
    """Everything in one process: nothing leads elsewhere."""
    with ThreadedActorSystem() as system:
        post = Post(system)

        assert post.node == ""
        assert not post.tell(ActorPath("a:1", "echo"), put())
        assert post.find(ActorPath("a:1", "echo")) is None
        with pytest.raises(ActorStopped, match="no actor a:1/echo"):
            post.ask(ActorPath("a:1", "echo"), put(), 1)


def test_a_reference_to_a_remote_actor_is_the_same_as_long_as_it_is_held(make: Make) -> None:
    """Actors compare with ``is``; nothing is kept for ever."""
    one, other = make(), make()

    ref = one.post.find(other.echo.path)
    assert isinstance(ref, RemoteRef)
    assert one.post.find(other.echo.path) is ref
    assert ref == other.echo
    assert ref.is_alive

    ref.tell(put("hello"))
    assert other.sees() == put("hello")
    dead = weak(ref)
    del ref
    gc.collect()
    assert dead() is None


def test_an_actor_hears_once_that_the_process_of_a_watched_actor_is_lost(make: Make) -> None:
    one, other = make(), make()
    ref = one.post.find(other.echo.path)
    assert ref is not None
    one.echo.tell(ref)
    assert one.sees() is ref
    ref.tell(put("up"))
    assert other.sees() == put("up")

    other.stop()

    assert one.sees() == Exited(ref, Killed())
    assert not ref.is_alive
    ref.tell(put("too late"))
    assert one.seen.empty()


def test_a_watch_that_is_undone_is_not_told(make: Make) -> None:
    one, other = make(), make()
    ref, told = one.post.find(other.echo.path), queue.SimpleQueue[Exited]()
    assert ref is not None
    ref.add_watcher("a", told.put)
    ref.add_watcher("b", told.put)
    ref.remove_watcher("a")

    other.stop()

    assert told.get(timeout=PATIENCE_S).ref is ref
    ref.add_watcher("late", told.put)
    assert told.get(timeout=PATIENCE_S).ref is ref
    assert told.empty()


def test_an_address_may_get_another_process(make: Make) -> None:
    worker, master = make(), make()
    path = ActorPath(address_of(master.post.node), "echo")
    ref, told = worker.post.find(path), queue.SimpleQueue[Exited]()
    assert ref is not None
    ref.add_watcher("w", told.put)
    ref.tell(put("register"))
    assert master.sees() == put("register")

    port = int(path.node.rpartition(":")[2])
    master.stop()
    assert told.get(timeout=PATIENCE_S) == Exited(ref, Killed())
    assert ref.is_alive
    master = make(port=port)
    ref.tell(put("again"))

    assert master.sees() == put("again")


def test_an_actor_of_another_process_can_be_asked(make: Make) -> None:
    one, other = make(), make()
    ref = one.post.find(other.echo.path)
    assert ref is not None

    stored = ValueStored(app_id=AppId(1), key="", version=1)
    assert one.post.ask(other.echo.path, put(), PATIENCE_S) == stored
    assert ref.ask(put(), PATIENCE_S) == stored
    assert ref.ask(put("none"), PATIENCE_S) is None


def test_errors_come_back_as_what_they_were(make: Make) -> None:
    one, other = make(), make()
    path = other.echo.path

    with pytest.raises(ConfigError, match="this is wrong"):
        one.post.ask(path, put("raise"), PATIENCE_S)
    other.system.spawn(lambda: Echo(other.seen), "again")
    with pytest.raises(GearpyError, match="ZeroDivisionError: a bug"):
        one.post.ask(ActorPath(path.node, "again"), put("bug"), PATIENCE_S)
    with pytest.raises(ActorStopped, match="no actor /nobody"):
        one.post.ask(ActorPath(path.node, "nobody"), put(), PATIENCE_S)


def test_an_answer_that_does_not_come_in_time_is_a_timeout(make: Make) -> None:
    one, other = make(), make()

    with pytest.raises(AskTimeout, match=r"no answer from actor .*/echo to PutValue in 0.05 s"):
        one.post.ask(other.echo.path, put("slow"), 0.05)
    assert one.post.ask(other.echo.path, put("none"), PATIENCE_S) is None


def test_a_question_ends_when_the_process_that_was_asked_is_lost(make: Make) -> None:
    one, other = make(), make()
    stuck = threading.Event()
    other.system.spawn(lambda: Stuck(stuck), "stuck")
    stopper = threading.Timer(0.2, other.transport.stop)
    stopper.start()

    with pytest.raises(ActorStopped, match="is gone"):
        one.post.ask(ActorPath(other.post.node, "stuck"), put(), 60)

    stuck.set()
    stopper.join()
    with pytest.raises(ActorStopped, match="is gone"):
        one.post.ask(other.echo.path, put(), 60)


def test_more_questions_than_can_be_handled_are_refused_at_once(make: Make) -> None:
    one, other = make(), make()
    go = threading.Event()
    other.system.spawn(lambda: Stuck(go), "stuck")
    outcomes: queue.SimpleQueue[object] = queue.SimpleQueue()

    def ask() -> None:
        try:
            outcomes.put(one.post.ask(ActorPath(other.post.node, "stuck"), put(), PATIENCE_S))
        except GearpyError as error:
            outcomes.put(str(error))

    threads = [threading.Thread(target=ask) for _ in range(70)]
    for thread in threads:
        thread.start()
    busy = [outcomes.get(timeout=PATIENCE_S) for _ in range(6)]
    go.set()

    assert all("busy: 64 questions in flight" in str(outcome) for outcome in busy)
    assert [outcomes.get(timeout=PATIENCE_S) for _ in range(64)] == [None] * 64
    for thread in threads:
        thread.join(PATIENCE_S)


def test_a_message_that_is_not_allowed_is_refused(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[tuple[str, str, str]] = []

    def allow(sender: str, to: str, message: object) -> bool:
        calls.append((sender, to, type(message).__name__))
        return not isinstance(message, ShutdownApplication)

    one, other = make(), make(allow=allow)
    path = other.echo.path

    assert one.post.tell(path, ShutdownApplication(app_id=AppId(1)))
    with pytest.raises(GearpyError, match="may not send ShutdownApplication to echo"):
        one.post.ask(path, ShutdownApplication(app_id=AppId(1)), PATIENCE_S)
    assert one.post.tell(path, ListWorkers())

    assert other.sees() == ListWorkers()
    assert calls[0] == (one.post.node, "echo", "ShutdownApplication")
    assert "may not send ShutdownApplication to echo" in caplog.text


def test_what_cannot_be_delivered_is_logged_and_nothing_ends(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    one, other = make(), make()
    go = threading.Event()
    full, node = spawn_full(other, go), other.post.node

    one.nodes.send(node, to="echo", body=b"\xff no message")
    one.nodes.send(node, to="", body=b"\xff no answer", answers=7)
    one.post.tell(ActorPath(node, "nobody"), put())
    for _ in range(9):
        one.post.tell(full, put())
    one.post.tell(other.echo.path, put("last"))

    assert other.sees() == put("last")
    go.set()
    assert caplog.text.count("was not delivered: ") == 9
    assert "has no use for a letter that cannot be read: malformed control message" in caplog.text


def test_a_message_too_large_to_travel_is_a_mistake_of_its_sender(make: Make) -> None:
    """It would arrive nowhere."""
    one, other = make(), make()

    with pytest.raises(ConfigError, match="over the limit"):
        one.post.tell(other.echo.path, put(value=bytes(2 << 20)))
