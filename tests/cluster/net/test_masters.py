"""Questions that are asked again: `Masters`."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gearpy.cluster.net.masters import Masters, the_only
from gearpy.errors import AuthenticationFailed, ConfigError, ConnectionLost, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from gearpy.transport.api import TransportLimits
from gearpy.transport.links.tcp import TcpTransport
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
    """Return an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_a_network_that_fails_costs_time_only(stack: ExitStack) -> None:
    """The connections break some times, one is never answered, then somebody listens."""
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
    """Then it says who does not answer."""
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


def test_there_is_one_master() -> None:
    """Of several, each would be a cluster of its own."""
    assert the_only(["a:1"]) == "a:1"
    with pytest.raises(ConfigError, match=r"cluster\.masters is a:1, b:2: name one master"):
        the_only(["a:1", "b:2"])
