"""Questions of clients: `ControlClient` against a real listener."""

import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from gearpy.clocks import monotonic_ms
from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GearpyError,
    ProtocolError,
    SubmitRefused,
)
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, ListWorkers, Refused, Submitted, WorkerList
from gearpy.messages.peer import Letter
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.connection.protocol import new_connection
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.links.tcp import TcpTransport
from gearpy.wire.codec import encode_control, encode_peer
from gearpy.wire.connection.auth import CHALLENGE_BYTES, Purpose, Role
from tests.bench.process_cluster import free_port
from tests.eventually import eventually
from tests.transport.build import PATIENCE_S, SECRET

LIMITS = TransportLimits(control_in_flight_max=2, control_threads=2)


class Desk:
    def __init__(self) -> None:
        self.told: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.gate = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.threads: set[str] = set()

    def __call__(self, message: object) -> object:
        self.threads.add(threading.current_thread().name)
        if not isinstance(message, GetApplication):
            self.told.put(message)
            return WorkerList(workers=())
        return getattr(self, f"on_{message.app_id}")()

    def on_0(self) -> None:
        """Answer nothing."""

    def on_1(self) -> None:
        raise SubmitRefused("name 'x' is taken")

    def on_2(self) -> None:
        raise KeyError("bug")

    def on_3(self) -> Submitted:
        self.waiting.release()
        self.gate.wait(PATIENCE_S)
        return Submitted(app_id=AppId(3))

    def on_4(self) -> Refused:
        return Refused(reason="x" * (2 << 20))

    def on_5(self) -> Refused:
        return Refused(reason="x" * 1_000_000)


def question(number: int) -> GetApplication:
    """Return a question that `Desk` answers in a certain way."""
    return GetApplication(app_id=AppId(number))


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server(desk: Desk) -> Iterator[TcpTransport]:
    server = TcpTransport(SECRET, limits=LIMITS)
    server.serve_control(desk)
    server.start()
    yield server
    desk.gate.set()
    server.stop()


@pytest.fixture
def client(server: TcpTransport) -> Iterator[ControlClient]:
    with ControlClient(server.address, SECRET) as client:
        yield client


def test_what_a_handler_raises_reaches_the_asker(client: ControlClient) -> None:
    """Ours as its class, others with their name; the connection stays."""
    with pytest.raises(SubmitRefused, match="name 'x' is taken"):
        client.ask(question(1), PATIENCE_S)
    with pytest.raises(GearpyError, match="KeyError: 'bug'"):
        client.ask(question(2), PATIENCE_S)
    with pytest.raises(ConfigError, match="over the limit"):
        client.ask(question(4), PATIENCE_S)

    assert client.ask(question(0), PATIENCE_S) is None


def test_a_late_answer_is_a_timeout_and_not_the_answer_of_the_next_question(
    client: ControlClient, desk: Desk
) -> None:
    with pytest.raises(AskTimeout, match=r"did not answer GetApplication in 0\.05 s"):
        client.ask(question(3), 0.05)
    desk.gate.set()

    assert client.ask(question(0), PATIENCE_S) is None


def test_questions_above_the_bound_are_turned_away_at_once(
    server: TcpTransport, desk: Desk
) -> None:
    """A queue of questions without bound would answer everybody too late."""
    clients = [ControlClient(server.address, SECRET) for _ in range(3)]
    threads = [
        threading.Thread(target=one.ask, args=(question(3), PATIENCE_S)) for one in clients[:2]
    ]
    for thread in threads:
        thread.start()
        assert desk.waiting.acquire(timeout=PATIENCE_S)

    with pytest.raises(GearpyError, match="busy: 2 questions in flight"):
        clients[2].ask(question(0), PATIENCE_S)

    desk.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    for one in clients:
        one.close()


def test_no_cluster_at_the_address_is_said_so() -> None:
    address = f"127.0.0.1:{free_port()}"

    with pytest.raises(ConnectionLost, match=f"no cluster at {address}"):
        ControlClient(address, SECRET).ask(ListWorkers(), PATIENCE_S)


def test_another_secret_is_refused(server: TcpTransport, desk: Desk) -> None:
    with pytest.raises(AuthenticationFailed, match="another cluster secret"):
        ControlClient(server.address, b"t" * 32).ask(ListWorkers(), PATIENCE_S)

    assert desk.told.empty()


def test_a_server_with_another_secret_is_found_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def answer_nonsense() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 5)
                accepted.recv(1000)

        thread = threading.Thread(target=answer_nonsense)
        thread.start()
        with pytest.raises(ProtocolError, match="does not speak"):
            ControlClient(address, SECRET).ask(ListWorkers(), PATIENCE_S)
        thread.join(PATIENCE_S)


def test_a_server_that_says_nothing_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        with pytest.raises(AskTimeout):
            ControlClient(address, SECRET).ask(ListWorkers(), 0.05)


def test_a_server_that_is_none_of_ours_is_named_long_before_the_time_out() -> None:
    """Another program listens there: nobody wants to wait for the time-out of the question."""
    limits = TransportLimits(handshake_timeout_ms=50)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        with pytest.raises(ConnectionLost, match=f"no cluster at {address}: nothing there"):
            ControlClient(address, SECRET, limits).ask(ListWorkers(), PATIENCE_S)


def test_a_client_finds_a_server_that_was_restarted(server: TcpTransport, desk: Desk) -> None:
    with ControlClient(server.address, SECRET) as client:
        client.ask(ListWorkers(), PATIENCE_S)
        server.stop()
        again = TcpTransport(SECRET, port=split_address(server.address)[1])
        again.serve_control(desk)
        again.start()

        answer = client.ask(ListWorkers(), PATIENCE_S)

        again.stop()
    assert answer == WorkerList(workers=())


def test_a_server_that_goes_away_in_the_middle_is_a_lost_connection(
    server: TcpTransport, desk: Desk
) -> None:
    failures: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            ControlClient(server.address, SECRET).ask(question(3), PATIENCE_S)
        except GearpyError as error:
            failures.put(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert desk.waiting.acquire(timeout=PATIENCE_S)
    server.stop()

    assert isinstance(failures.get(timeout=PATIENCE_S), ConnectionLost)
    thread.join(PATIENCE_S)


def test_a_client_that_asks_and_does_not_read_is_cut_off(server: TcpTransport) -> None:
    """Its answers would fill the memory of the server."""
    host_port = split_address(server.address)
    client = new_connection(Role.CLIENT, SECRET, LIMITS, Purpose.CLIENT)
    with socket.create_connection(host_port, PATIENCE_S) as sock:
        sock.sendall(client.data_to_send())
        client.receive_data(sock.recv(CHALLENGE_BYTES, socket.MSG_WAITALL), monotonic_ms())
        sock.sendall(client.data_to_send())
        letter = Letter(number=1, to="", body=encode_control(question(5)), ask=1)
        ask = b"".join(encode_peer(letter, LIMITS.frames))

        def was_cut_off() -> bool:
            try:
                sock.sendall(ask)
            except ConnectionError:
                return True
            return False

        eventually(was_cut_off, "the server closes the connection")
