"""Questions that are asked again: `Masters`."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gearpy.cluster.net import masters as masters_module
from gearpy.cluster.net.masters import Masters, the_only
from gearpy.errors import (
    ActorStopped,
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GearpyError,
    LeadershipLost,
    SubmitRefused,
)
from gearpy.ids import AppId
from gearpy.messages.client import (
    Artifact,
    ClusterSummary,
    GetApplication,
    GetCluster,
    NotLeader,
    ShutdownApplication,
    SubmitApplication,
)
from gearpy.transport.api import TransportLimits
from gearpy.transport.links.tcp import TcpTransport
from tests.bench.process_cluster import free_port
from tests.transport.build import PATIENCE_S, SECRET

LIMITS = TransportLimits(handshake_timeout_ms=300)
QUESTION = GetApplication(app_id=AppId(1))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def masters(*addresses: str, secret: bytes = SECRET, patience_s: float = PATIENCE_S) -> Masters:
    return Masters(addresses, secret, LIMITS, timeout_s=1.0, patience_s=patience_s)


def a_master(stack: ExitStack) -> str:
    """Start one that answers with the question; return its address."""
    server = TcpTransport(SECRET)
    stack.callback(server.stop)
    address = server.start()

    def answer(message: object) -> object:
        if message == GetApplication(app_id=AppId(2)):
            raise SubmitRefused("no")
        return message

    server.serve_control(answer)
    return address


def nobody() -> str:
    return f"127.0.0.1:{free_port()}"


def test_a_network_that_fails_costs_time_only(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    kept: list[socket.socket] = []
    seen = threading.Semaphore(0)

    def be_a_bad_network() -> None:
        for number in range(4):
            connection, _ = listener.accept()
            if number == 1:
                kept.append(connection)  # Silent.
            elif number == 2:
                connection.sendall(b"what is this?")
                connection.close()
            else:
                connection.close()
            seen.release()

    thread = threading.Thread(target=be_a_bad_network, daemon=True)
    thread.start()
    host, port = listener.getsockname()
    asking = masters(f"{host}:{port}", nobody(), a_master(stack))

    for _ in range(4):
        assert asking.ask(QUESTION) == QUESTION

    thread.join(PATIENCE_S)
    assert all(seen.acquire(timeout=0) for _ in range(4))
    for connection in kept:
        connection.close()


def test_patience_has_an_end() -> None:
    address = nobody()
    with pytest.raises(ConnectionLost, match=address):
        masters(address, patience_s=0.3).ask(QUESTION)


def test_an_answer_is_an_answer(stack: ExitStack) -> None:
    """Also one that says no, or that the secret is wrong: it would be the same again."""
    address = a_master(stack)

    with pytest.raises(SubmitRefused, match="no"):
        masters(address).ask(GetApplication(app_id=AppId(2)))
    with pytest.raises(AuthenticationFailed):
        masters(address, secret=b"x" * 32).ask(QUESTION)


def test_a_cluster_in_one_process_has_one_master() -> None:
    assert the_only(["a:1"]) == "a:1"
    with pytest.raises(ConfigError, match=r"cluster\.masters is a:1, b:2: name one master"):
        the_only(["a:1", "b:2"])


# -- several masters -----------------------------------------------------------------------------


class Member:
    """One of several masters; it answers as it is told to."""

    def __init__(self, stack: ExitStack) -> None:
        server = TcpTransport(SECRET)
        stack.callback(server.stop)
        self.address = server.start()
        self.leader = ""
        self.asked: list[object] = []
        self.error: GearpyError | None = None
        self.masters: tuple[str, ...] = ()
        self.speaks = threading.Event()
        self.speaks.set()
        stack.callback(self.speaks.set)
        server.serve_control(self.answer)

    def answer(self, message: object) -> object:
        self.speaks.wait()
        if self.leader != self.address:
            return NotLeader(leader=self.leader, masters=self.masters)
        if isinstance(message, GetCluster):
            return ClusterSummary(cluster_id="c")
        self.asked.append(message)
        error, self.error = self.error, None
        if error is not None:
            raise error
        return message


def members(stack: ExitStack, count: int = 3) -> list[Member]:
    made = [Member(stack) for _ in range(count)]
    for each in made:
        each.leader = made[-1].address
    return made


def asking(stack: ExitStack, *made: Member) -> Masters:
    addresses = [each.address for each in made]
    client = Masters(addresses, SECRET, LIMITS, timeout_s=10.0, one_cluster=True)
    return stack.enter_context(client)


def test_the_one_that_leads_is_found(stack: ExitStack) -> None:
    made = members(stack)

    assert asking(stack, *made).ask(QUESTION) == QUESTION
    assert asking(stack, made[0]).ask(QUESTION) == QUESTION
    assert made[2].asked == [QUESTION, QUESTION]


def test_an_election_is_waited_for(stack: ExitStack) -> None:
    """Nobody leads for a moment; then another one does, and hears the question once more."""
    made = members(stack)
    client = asking(stack, *made)
    client.ask(QUESTION)
    for each in made:
        each.leader = ""
    threading.Timer(0.3, lambda: setattr(made[0], "leader", made[0].address)).start()

    assert client.ask(QUESTION) == QUESTION
    assert made[0].asked == [QUESTION]


def test_who_asks_masters_of_which_none_leads_is_told(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = members(stack)
    client = asking(stack, *made)
    for each in made:
        each.leader = ""
    monkeypatch.setattr(masters_module, "_ELECTION_S", 0.1)

    with pytest.raises(ConnectionLost, match="no master leads at present"):
        client.ask(QUESTION)
    away = nobody()
    with pytest.raises(ConnectionLost, match="no master leads at present") as told:
        Masters([away, made[0].address], SECRET, LIMITS, timeout_s=10.0).ask(QUESTION)

    assert f"no cluster at {away}: " in str(told.value)
    assert f"{made[0].address} answers and does not lead" in str(told.value)
    assert [each.asked for each in made] == [[], [], []]


@pytest.mark.parametrize("error", [LeadershipLost("it ended"), ActorStopped("it ended")])
def test_what_may_have_been_done_is_not_asked_for_again(
    stack: ExitStack, error: GearpyError
) -> None:
    made = members(stack)
    client = asking(stack, *made)
    submit = SubmitApplication(name="a", artifact=Artifact(kind="file", location="a"), key="k")
    stop = ShutdownApplication(app_id=AppId(1))

    made[2].error = error
    assert client.ask(submit) == submit
    made[2].error = error
    with pytest.raises(type(error), match="it ended"):
        client.ask(stop)

    assert made[2].asked == [submit, submit, stop]


def test_a_leader_that_says_nothing_is_left_for_another_one(stack: ExitStack) -> None:
    made = members(stack)
    client = asking(stack, *made)
    client.ask(QUESTION)
    made[2].speaks.clear()
    submit = SubmitApplication(name="a", artifact=Artifact(kind="file", location="a"), key="k")

    def elect() -> None:
        for each in made:
            each.leader = made[0].address

    threading.Timer(0.5, elect).start()

    assert client.ask(submit) == submit
    assert made[0].asked == [submit]

    made[0].speaks.clear()
    for each in made:
        each.leader = made[1].address
    with pytest.raises(AskTimeout, match=f"{made[1].address} leads now"):
        client.ask(ShutdownApplication(app_id=AppId(1)))
    assert made[1].asked == []
    assert client.ask(QUESTION) == QUESTION


def test_a_leader_that_says_nothing_is_waited_for_while_no_other_one_leads(
    stack: ExitStack,
) -> None:
    made = members(stack)
    client = asking(stack, *made)
    client.ask(QUESTION)
    made[2].speaks.clear()
    threading.Timer(1.0, made[2].speaks.set).start()

    assert client.ask(QUESTION) == QUESTION
    assert made[2].asked == [QUESTION, QUESTION]


def test_masters_that_were_added_are_asked_too(stack: ExitStack) -> None:
    made = members(stack, 4)
    made[0].leader = ""
    made[0].masters = tuple(each.address for each in made)

    assert asking(stack, made[0]).ask(QUESTION) == QUESTION
    assert made[3].asked == [QUESTION]
