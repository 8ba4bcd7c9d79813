"""Strangers at the port: closed, nothing delivered, and good peers still served."""

import queue
import random
import socket
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId, TaskId
from gearpy.messages.client import ListWorkers, WorkerList
from gearpy.messages.peer import Greeting, Letter, Ping
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.links.tcp import TcpTransport
from gearpy.wire.codec import encode_control, encode_peer
from gearpy.wire.connection.auth import (
    CHALLENGE_BYTES,
    HELLO_BYTES,
    NONCE_BYTES,
    PROOF_BYTES,
    Purpose,
    Role,
    hello,
)
from gearpy.wire.connection.frames import HEADER_BYTES, FrameKind, FrameLimits, encode_frame
from gearpy.wire.connection.keys import KeyRing, Principal, application_key
from gearpy.wire.connection.machine import Connection
from gearpy.wire.link_codec import LinkCodec
from tests.transport.build import KEYS, PATIENCE_S, SECRET, Inbox, Losses, ask_for_workers, request

TARGET = TaskId(1, 0)
LIMITS = TransportLimits(unauthenticated_max=3)
#: For who must be cut off in time; still long enough for good peers on a busy machine.
IMPATIENT = TransportLimits(handshake_timeout_ms=1000)
GOOD_FRAME = b"".join(LinkCodec().encode(request(666, TARGET)))
GOOD_LETTER = b"".join(encode_peer(Letter(number=1, to="actor", body=b"bad"), FrameLimits()))
GOOD_QUESTION = b"".join(
    encode_peer(Letter(number=1, to="", body=encode_control(ListWorkers()), ask=1), FrameLimits())
)
OTHER_CLUSTER = KeyRing.of_cluster(b"t" * 32)


def keys_of(app_id: int, secret: bytes = SECRET) -> KeyRing:
    return KeyRing.of_application(AppId(app_id), application_key(secret, AppId(app_id)))


class Port:
    """A transport under attack, with a task, and somebody who answers questions and letters."""

    def __init__(self, keys: KeyRing = KEYS, limits: TransportLimits = LIMITS) -> None:
        self.keys = keys
        self.inbox = Inbox()
        self.asked: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.transport = TcpTransport(keys, limits=limits)
        self.transport.register(TARGET, self.inbox)
        self.transport.serve_control(self._answer)
        self.address = self.transport.start()
        self.letters: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.nodes = self.transport.serve_peers()
        self.nodes.serve(lambda _, letter: self.letters.put(letter.body))

    def connect(self) -> socket.socket:
        return socket.create_connection(split_address(self.address), PATIENCE_S)

    def assert_heard_nothing(self) -> None:
        assert self.inbox.empty
        assert self.asked.empty()
        assert self.letters.empty()

    def assert_serves_good_peers(self) -> None:
        """Write all that peers write; nothing else was delivered before."""
        self.assert_heard_nothing()
        losses = Losses()
        good = TcpTransport(self.keys, on_link_lost=losses)
        good.start()
        try:
            good.locate({TARGET: self.address})
            good.send([request(7, TARGET)])
            assert self.inbox.take_seqs(1) == [7]
            good.serve_peers().send(self.nodes.node, to="actor", body=b"good")
            assert self.letters.get(timeout=PATIENCE_S) == b"good"
        finally:
            good.stop()
        assert ask_for_workers(self.address, self.keys) == WorkerList(workers=())
        assert self.asked.get_nowait() == ListWorkers()
        assert self.inbox.empty

    def _answer(self, message: object) -> object:
        self.asked.put(message)
        return WorkerList(workers=())


def a_port(stack: ExitStack, keys: KeyRing = KEYS, limits: TransportLimits = LIMITS) -> Port:
    port = Port(keys, limits)
    stack.callback(port.transport.stop)
    return port


@pytest.fixture
def port(stack: ExitStack) -> Port:
    return a_port(stack)


def assert_closed_by_peer(sock: socket.socket) -> bytes:
    """Wait until the other side closes; return what it said before."""
    said = b""
    with suppress(ConnectionError):
        while received := sock.recv(4096):
            said += received
    return said


def as_client(
    sock: socket.socket, keys: KeyRing = KEYS, purpose: Purpose = Purpose.LINK
) -> Connection:
    """Shake hands by hand; return the connection after our proof was sent."""
    client = Connection(
        role=Role.CLIENT,
        keys=keys,
        nonce=bytes(NONCE_BYTES),
        now_ms=0,
        purpose=purpose,
        follow=True,
    )
    sock.sendall(client.data_to_send())
    client.receive_data(sock.recv(CHALLENGE_BYTES, socket.MSG_WAITALL), 1)
    sock.sendall(client.data_to_send())
    return client


def proved(
    sock: socket.socket, keys: KeyRing = KEYS, purpose: Purpose = Purpose.LINK
) -> Connection:
    client = as_client(sock, keys, purpose)
    client.receive_data(sock.recv(PROOF_BYTES, socket.MSG_WAITALL), 1)
    assert client.authenticated
    client.events()
    return client


# -- who has not proved anything -----------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 512,
        b"\x00" * 1000,
        b"\xff" * 100_000,
        GOOD_FRAME * 10,
        GOOD_QUESTION * 10,
        GOOD_LETTER * 10,
        *(
            hello(purpose, bytes(NONCE_BYTES)) + b"\x00" * PROOF_BYTES + GOOD_FRAME + GOOD_LETTER
            for purpose in Purpose
        ),
        hello(Purpose.LINK, bytes(NONCE_BYTES), Principal(AppId(1))) + b"\x00" * PROOF_BYTES,
        b"".join(encode_frame(FrameKind.DATA, [bytes(1 << 20)], FrameLimits())),
    ],
    ids=lambda garbage: garbage[:12].hex() + f"-{len(garbage)}",
)
def test_garbage_is_cut_off_and_nothing_is_delivered(port: Port, garbage: bytes) -> None:
    with port.connect() as sock:
        with suppress(ConnectionError):
            sock.sendall(garbage)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_random_bytes_are_cut_off(stack: ExitStack) -> None:
    """Hundreds of strangers, one after the other; some begin as a peer would."""
    port = a_port(stack, limits=IMPATIENT)
    rng = random.Random(20_262)
    strangers = 300
    for _ in range(strangers):
        begin = hello(rng.choice(list(Purpose)), rng.randbytes(NONCE_BYTES))
        kept = rng.choice([0, 8, 10, HELLO_BYTES])
        with port.connect() as sock, suppress(ConnectionError):
            sock.sendall(begin[:kept] + rng.randbytes(rng.randrange(1, 2000)))

    port.assert_serves_good_peers()


@pytest.mark.parametrize("purpose", Purpose)
def test_a_wrong_secret_is_refused_and_what_follows_is_not_read(
    port: Port, purpose: Purpose
) -> None:
    with port.connect() as sock:
        client = as_client(sock, OTHER_CLUSTER, purpose)
        sock.sendall(GOOD_FRAME + GOOD_QUESTION + GOOD_LETTER)
        client.receive_data(assert_closed_by_peer(sock), 1)

    assert not client.authenticated
    port.assert_serves_good_peers()


@pytest.mark.parametrize("purpose", Purpose)
def test_the_key_of_an_application_of_another_cluster_is_refused(
    port: Port, purpose: Purpose
) -> None:
    """The cluster derives the key itself; it does not take the peer's."""
    with port.connect() as sock:
        client = as_client(sock, keys_of(1, b"t" * 32), purpose)
        sock.sendall(GOOD_FRAME + GOOD_QUESTION + GOOD_LETTER)
        client.receive_data(assert_closed_by_peer(sock), 1)

    assert not client.authenticated
    port.assert_serves_good_peers()


@pytest.mark.parametrize("purpose", Purpose)
def test_one_application_is_not_let_in_by_another(stack: ExitStack, purpose: Purpose) -> None:
    port = a_port(stack, keys_of(2))
    key = application_key(SECRET, AppId(1))
    for keys in (keys_of(1), KeyRing(Principal(AppId(2)), key), KeyRing.of_cluster(key)):
        with port.connect() as sock:
            client = as_client(sock, keys, purpose)
            with suppress(ConnectionError):
                sock.sendall(bytes(PROOF_BYTES) + GOOD_FRAME + GOOD_QUESTION + GOOD_LETTER)
            client.receive_data(assert_closed_by_peer(sock), 1)
        assert not client.authenticated

    port.assert_serves_good_peers()


@pytest.mark.parametrize("purpose", Purpose)
def test_a_recorded_handshake_is_refused(port: Port, purpose: Purpose) -> None:
    with port.connect() as sock:
        said = bytearray()
        client = Connection(
            role=Role.CLIENT, keys=KEYS, nonce=b"n" * NONCE_BYTES, now_ms=0, purpose=purpose
        )
        for expected in (CHALLENGE_BYTES, PROOF_BYTES):
            words = client.data_to_send()
            said += words
            sock.sendall(words)
            client.receive_data(sock.recv(expected, socket.MSG_WAITALL), 1)
        assert client.authenticated

    with port.connect() as sock:
        with suppress(ConnectionError):
            sock.sendall(bytes(said) + GOOD_FRAME + GOOD_QUESTION + GOOD_LETTER)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


@pytest.mark.parametrize(
    "sent",
    [b"", b"gear", hello(Purpose.LINK, bytes(NONCE_BYTES)), GOOD_FRAME[:5]],
    ids=["nothing", "four-bytes", "hello", "frame"],
)
def test_half_a_handshake_is_closed_at_its_deadline(stack: ExitStack, sent: bytes) -> None:
    port = a_port(stack, limits=IMPATIENT)
    with port.connect() as sock:
        sock.sendall(sent)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_a_stranger_that_hangs_up_half_way_is_forgotten(port: Port) -> None:
    for _ in range(LIMITS.unauthenticated_max * 10):
        with port.connect() as sock:
            sock.sendall(hello(Purpose.LINK, bytes(NONCE_BYTES)))
            sock.recv(CHALLENGE_BYTES, socket.MSG_WAITALL)

    port.assert_serves_good_peers()


def test_strangers_that_say_nothing_keep_nobody_out(stack: ExitStack, port: Port) -> None:
    known = stack.enter_context(port.connect())
    proved(known)
    strangers = [stack.enter_context(port.connect()) for _ in range(LIMITS.unauthenticated_max)]
    for _ in range(5):
        with ControlClient(port.address, port.keys) as client:
            assert client.ask(ListWorkers(), PATIENCE_S) == WorkerList(workers=())
        strangers.append(stack.enter_context(port.connect()))

    assert_closed_by_peer(strangers[0])
    newest = strangers[-1]
    newest.settimeout(0.05)
    with pytest.raises(TimeoutError):
        newest.recv(1)
    known.sendall(GOOD_FRAME)
    assert 666 in port.inbox.take_seqs(1)


def test_a_crowd_of_strangers_takes_little_memory_and_goes_away(stack: ExitStack) -> None:
    """Hundreds at once, each as large as it may be; then good peers are served."""
    port = a_port(stack, limits=IMPATIENT)
    tracemalloc.start()
    stack.callback(tracemalloc.stop)
    crowd = [stack.enter_context(port.connect()) for _ in range(300)]
    for sock in crowd:
        with suppress(ConnectionError):
            sock.sendall(hello(Purpose.LINK, bytes(NONCE_BYTES)) + bytes(PROOF_BYTES - 1))

    for sock in crowd:
        assert_closed_by_peer(sock)

    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    port.assert_serves_good_peers()


# -- who has proved something, and speaks nonsense -----------------------------------------


def oversize() -> bytes:
    return b"\xff\xff\xff\xff" + GOOD_FRAME[4:]


def damaged() -> bytes:
    return GOOD_FRAME[:-1] + bytes([GOOD_FRAME[-1] ^ 1])


def of_no_kind() -> bytes:
    return GOOD_FRAME[:5] + b"\xee" + GOOD_FRAME[6:]


def surplus() -> bytes:
    """Return a good frame of the wrong size: its body has more than belongs to it."""
    body = GOOD_FRAME[HEADER_BYTES:] + b"\x00"
    return b"".join(encode_frame(FrameKind(GOOD_FRAME[5]), [body], FrameLimits()))


@pytest.mark.parametrize(
    "nonsense", [oversize, damaged, of_no_kind, surplus, lambda: GOOD_QUESTION]
)
def test_a_peer_that_speaks_nonsense_on_a_link_is_cut_off(
    port: Port, nonsense: Callable[[], bytes]
) -> None:
    with port.connect() as sock:
        proved(sock)
        sock.sendall(nonsense())
        assert_closed_by_peer(sock)

    assert port.inbox.empty
    assert port.asked.empty()


def stranger() -> bytes:
    return GOOD_LETTER


def ping() -> bytes:
    return b"".join(encode_peer(Ping(number=1), FrameLimits()))


def greeting() -> bytes:
    return b"".join(encode_frame(FrameKind.PEER, [b"\x93\x01\xa8Greeting"], FrameLimits()))


def not_for_nodes() -> bytes:
    return b"".join(encode_frame(FrameKind.PEER, [encode_control(ListWorkers())], FrameLimits()))


@pytest.mark.parametrize("purpose", [Purpose.PEER, Purpose.CLIENT])
@pytest.mark.parametrize(
    "nonsense",
    [oversize, damaged, of_no_kind, lambda: GOOD_FRAME, stranger, ping, greeting, not_for_nodes],
)
def test_a_process_that_speaks_nonsense_is_cut_off(
    port: Port, nonsense: Callable[[], bytes], purpose: Purpose
) -> None:
    with port.connect() as sock:
        proved(sock, purpose=purpose)
        sock.sendall(nonsense() + GOOD_LETTER)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_a_malformed_question_is_answered_with_an_error(port: Port) -> None:
    """The peer is known, and the frame is whole: the others' questions go on."""
    letter = Letter(number=1, to="", body=b"\xc1", ask=1)
    with port.connect() as sock:
        client = proved(sock, purpose=Purpose.CLIENT)
        sock.sendall(b"".join(encode_peer(letter, FrameLimits())))
        while not (events := client.events()):
            client.receive_data(sock.recv(4096), 1)

    assert b"ProtocolError" in bytes(events[0].body)  # type: ignore[union-attr]
    port.assert_serves_good_peers()


def test_a_frame_that_never_ends_holds_what_came_of_it_and_no_more(port: Port) -> None:
    """Sixteen megabytes are announced; memory is taken for what arrives."""
    size = FrameLimits().data_bytes_max
    with port.connect() as sock:
        proved(sock)
        tracemalloc.start()
        sock.sendall(size.to_bytes(4, "little") + b"\x01\x01" + bytes(1000))
        port.assert_serves_good_peers()
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak_bytes < size / 4


def test_a_control_connection_needs_somebody_to_answer() -> None:
    transport = TcpTransport(SECRET, limits=LIMITS)
    with socket.create_connection(split_address(transport.start()), PATIENCE_S) as sock:
        proved(sock, purpose=Purpose.CLIENT)

        sock.sendall(GOOD_QUESTION)
        assert_closed_by_peer(sock)
    transport.stop()


# -- who has proved something, and may not do what it wants --------------------------------


def test_an_application_sends_no_records_into_the_cluster(port: Port) -> None:
    with port.connect() as sock:
        proved(sock, keys_of(1))
        with suppress(ConnectionError):
            sock.sendall(GOOD_FRAME)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_an_application_asks_nothing_of_the_cluster_unless_it_may(port: Port) -> None:
    with (
        ControlClient(port.address, keys_of(1)) as client,
        pytest.raises(GearpyError, match="application 1 may not send ListWorkers"),
    ):
        client.ask(ListWorkers(), PATIENCE_S)

    port.assert_serves_good_peers()


def test_a_handler_can_let_an_application_ask() -> None:
    server = TcpTransport(SECRET)
    server.serve_control(
        lambda _: WorkerList(workers=()),
        lambda principal, message: principal.application == 1 and message == ListWorkers(),
    )
    with ControlClient(server.start(), keys_of(1)) as client:
        assert client.ask(ListWorkers(), PATIENCE_S) == WorkerList(workers=())
    with ControlClient(server.address, keys_of(2)) as client, pytest.raises(GearpyError):
        client.ask(ListWorkers(), PATIENCE_S)
    server.stop()


def test_user_code_at_the_address_of_a_master_is_not_taken_for_it(stack: ExitStack) -> None:
    impostor = a_port(stack, keys_of(1))

    with (
        ControlClient(impostor.address, KEYS) as client,
        pytest.raises(GearpyError, match="belongs to application 1, this side spoke for the clus"),
    ):
        client.ask(ListWorkers(), PATIENCE_S)

    impostor.assert_serves_good_peers()


def test_an_application_does_not_take_the_name_of_a_node_of_the_cluster(
    stack: ExitStack, port: Port
) -> None:
    master = TcpTransport(KEYS)
    master.start()
    stack.callback(master.stop)
    nodes = master.serve_peers()
    nodes.send(port.nodes.node, to="actor", body=b"first")
    assert port.letters.get(timeout=PATIENCE_S) == b"first"
    lie = Greeting(sender=nodes.node, receiver=port.nodes.node, session=2, resumes=False)

    with port.connect() as sock:
        proved(sock, keys_of(1), Purpose.PEER)
        sock.sendall(b"".join(encode_peer(lie, FrameLimits())) + GOOD_LETTER)
        assert_closed_by_peer(sock)

    nodes.send(port.nodes.node, to="actor", body=b"second")
    assert port.letters.get(timeout=PATIENCE_S) == b"second"
    assert port.letters.empty()


def test_processes_of_one_application_send_each_other_records(stack: ExitStack) -> None:
    a_port(stack, keys_of(7)).assert_serves_good_peers()


def test_a_link_to_another_application_is_given_up(stack: ExitStack) -> None:
    losses = Losses()
    sender = TcpTransport(keys_of(1), on_link_lost=losses)
    sender.start()
    stack.callback(sender.stop)
    port = a_port(stack, keys_of(2))
    sender.locate({TARGET: port.address})

    sender.send([request(1, TARGET)])

    assert "belongs to application 2, this side spoke for application 1" in losses.take()[1]
    port.assert_serves_good_peers()
