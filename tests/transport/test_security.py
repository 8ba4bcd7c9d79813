"""Strangers at the port: closed, nothing delivered, and good peers still served."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from gearpy.ids import TaskId
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.tcp import TcpTransport
from gearpy.wire.auth import CHALLENGE_BYTES, NONCE_BYTES, PROOF_BYTES, Purpose, Role, hello
from gearpy.wire.connection import Connection
from gearpy.wire.frames import FrameKind, FrameLimits, encode_frame
from gearpy.wire.link_codec import LinkCodec
from tests.transport.build import PATIENCE_S, SECRET, Inbox, eventually, request

TARGET = TaskId(1, 0)
LIMITS = TransportLimits(handshake_timeout_ms=300, unauthenticated_max=3)
GOOD_FRAME = b"".join(LinkCodec().encode(request(666, TARGET)))


class Port:
    """A transport under attack, and what its only task got."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.transport = TcpTransport(SECRET, limits=LIMITS)
        self.transport.register(TARGET, self.inbox)
        self.address = self.transport.start()

    def connect(self) -> socket.socket:
        """Return a raw connection."""
        return socket.create_connection(split_address(self.address), PATIENCE_S)

    def assert_serves_good_peers(self) -> None:
        """Send one message as a peer would; nothing else was delivered before."""
        assert self.inbox.empty
        good = TcpTransport(SECRET)
        good.start()
        try:
            good.locate({TARGET: self.address})
            good.send([request(7, TARGET)])
            assert self.inbox.take_seqs(1) == [7]
        finally:
            good.stop()
        assert self.inbox.empty


@pytest.fixture
def port() -> Iterator[Port]:
    """A listening transport."""
    port = Port()
    yield port
    port.transport.stop()


def assert_closed_by_peer(sock: socket.socket) -> bytes:
    """Wait until the other side closes; return what it said before."""
    said = b""
    with suppress(ConnectionResetError):
        while received := sock.recv(4096):
            said += received
    return said


def as_client(sock: socket.socket, secret: bytes, purpose: Purpose = Purpose.LINK) -> Connection:
    """Shake hands by hand; return the connection after our proof was sent."""
    client = Connection(
        role=Role.CLIENT, secret=secret, nonce=bytes(NONCE_BYTES), now_ms=0, purpose=purpose
    )
    sock.sendall(client.data_to_send())
    client.receive_data(sock.recv(CHALLENGE_BYTES, socket.MSG_WAITALL), 1)
    sock.sendall(client.data_to_send())
    return client


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 100,
        b"\x00" * 1000,
        b"\xff" * 100_000,
        GOOD_FRAME * 10,
        hello(Purpose.LINK, bytes(NONCE_BYTES)) + b"\x00" * PROOF_BYTES + GOOD_FRAME,
        b"".join(encode_frame(FrameKind.DATA, [bytes(1 << 20)], FrameLimits())),
    ],
    ids=["http", "zeros", "ones", "frames", "bad-proof", "large"],
)
def test_garbage_is_cut_off_and_nothing_is_delivered(port: Port, garbage: bytes) -> None:
    """An unauthenticated byte reaches no decoder."""
    with port.connect() as sock:
        with suppress(ConnectionError):
            sock.sendall(garbage)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()
    eventually(lambda: port.transport.stats.refused == 1, "the stranger is counted")


def test_a_wrong_secret_is_refused_and_what_follows_is_not_read(port: Port) -> None:
    """The frame behind the proof is a perfectly good one."""
    with port.connect() as sock:
        client = as_client(sock, b"t" * 32)
        sock.sendall(GOOD_FRAME)
        client.receive_data(assert_closed_by_peer(sock), 1)

    assert not client.authenticated
    port.assert_serves_good_peers()


@pytest.mark.parametrize("sent", [b"", b"gear", hello(Purpose.LINK, bytes(NONCE_BYTES))])
def test_half_a_handshake_is_closed_at_its_deadline(port: Port, sent: bytes) -> None:
    """Silence costs a stranger its connection."""
    with port.connect() as sock:
        sock.sendall(sent)
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_too_many_strangers_at_once_are_turned_away(port: Port) -> None:
    """The limit is on strangers alone: a peer that had proved itself before stays."""
    with port.connect() as known:
        client = as_client(known, SECRET)
        client.receive_data(known.recv(PROOF_BYTES, socket.MSG_WAITALL), 1)
        strangers = [port.connect() for _ in range(LIMITS.unauthenticated_max + 1)]

        assert_closed_by_peer(strangers[-1])
        known.sendall(GOOD_FRAME)

        assert port.inbox.take_seqs(1) == [666]
        for stranger in strangers:
            stranger.close()


def oversize() -> bytes:
    """Return a header that announces four gigabytes."""
    return b"\xff\xff\xff\xff" + GOOD_FRAME[4:]


def damaged() -> bytes:
    """Return a frame with a flipped bit."""
    return GOOD_FRAME[:-1] + bytes([GOOD_FRAME[-1] ^ 1])


def control() -> bytes:
    """Return a control frame, on a link."""
    return b"".join(encode_frame(FrameKind.CONTROL_TELL, [bytes(20)], FrameLimits()))


@pytest.mark.parametrize("nonsense", [oversize, damaged, control])
def test_an_authenticated_peer_that_speaks_nonsense_is_cut_off(
    port: Port, nonsense: Callable[[], bytes]
) -> None:
    """Knowing the secret does not lift the limits."""
    with port.connect() as sock:
        client = as_client(sock, SECRET)
        client.receive_data(sock.recv(PROOF_BYTES, socket.MSG_WAITALL), 1)
        assert client.authenticated

        sock.sendall(nonsense())
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()


def test_a_control_connection_needs_somebody_to_answer(port: Port) -> None:
    """A data listener without control handler takes no questions."""
    with port.connect() as sock:
        client = as_client(sock, SECRET, Purpose.CONTROL)
        client.receive_data(sock.recv(PROOF_BYTES, socket.MSG_WAITALL), 1)

        sock.sendall(control())
        assert_closed_by_peer(sock)

    port.assert_serves_good_peers()
