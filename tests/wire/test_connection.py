"""The connection state machine, see `gearpy.wire.connection`. Time is virtual."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.wire import auth
from gearpy.wire.auth import Purpose, Role
from gearpy.wire.connection import (
    Authenticated,
    Connection,
    ConnectionClosed,
    ConnectionEvent,
    HandshakeLimits,
)
from gearpy.wire.frames import Frame, FrameKind, FrameLimits, encode_frame

SECRET = b"s" * 32
FRAME = b"".join(encode_frame(FrameKind.DATA, [b"hello"], FrameLimits()))


def a_connection(
    role: Role,
    *,
    secret: bytes = SECRET,
    purpose: Purpose = Purpose.LINK,
    handshake: HandshakeLimits | None = None,
) -> Connection:
    """Return one end of a connection that began at time 0."""
    return Connection(
        role=role,
        secret=secret,
        nonce=bytes([role]) * auth.NONCE_BYTES,
        now_ms=0,
        purpose=purpose,
        handshake=handshake or HandshakeLimits(),
    )


def a_pair(*, server_secret: bytes = SECRET) -> tuple[Connection, Connection]:
    """Return both ends."""
    return a_connection(Role.CLIENT), a_connection(Role.SERVER, secret=server_secret)


def talk(client: Connection, server: Connection) -> None:
    """Carry bytes to and fro until neither end says anything."""
    while data := client.data_to_send():
        server.receive_data(data, 1)
        client.receive_data(server.data_to_send(), 1)


def open_pair() -> tuple[Connection, Connection]:
    """Return both ends after the handshake."""
    client, server = a_pair()
    talk(client, server)
    client.events(), server.events()
    return client, server


def error_of(events: list[ConnectionEvent]) -> Exception:
    """Return why a connection closed, which must be the only event."""
    (event,) = events
    assert isinstance(event, ConnectionClosed)
    return event.error


@pytest.mark.parametrize("purpose", Purpose)
def test_two_ends_with_one_secret_authenticate_each_other(purpose: Purpose) -> None:
    """And the server learns for what the connection is."""
    client, server = a_connection(Role.CLIENT, purpose=purpose), a_connection(Role.SERVER)

    talk(client, server)

    assert client.events() == server.events() == [Authenticated(purpose)]
    assert client.authenticated
    assert server.authenticated
    assert server.purpose is purpose


@given(st.data())
def test_the_handshake_and_frames_survive_any_split(data: st.DataObject) -> None:
    """The invariant: frames after `Authenticated`, in order, however the network cuts."""
    client, server = a_pair()
    client.data_to_send()
    # What a client sends, as one stream: the server's nonce is fixed.
    server_nonce = bytes([Role.SERVER]) * auth.NONCE_BYTES
    client_nonce = bytes([Role.CLIENT]) * auth.NONCE_BYTES
    proof = auth.proof(
        SECRET,
        role=Role.CLIENT,
        purpose=Purpose.LINK,
        client_nonce=client_nonce,
        server_nonce=server_nonce,
    )
    stream = auth.hello(Purpose.LINK, client_nonce) + proof + FRAME + FRAME
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        server.receive_data(stream[start:end], 1)

    events = server.events()
    assert events[0] == Authenticated(Purpose.LINK)
    frames = [event for event in events[1:] if isinstance(event, Frame)]
    assert [bytes(frame.body) for frame in frames] == [b"hello", b"hello"]


def test_a_wrong_secret_is_found_by_both_ends_and_nothing_is_decoded() -> None:
    """The client hears why, and frames behind the proof are not looked at."""
    client, server = a_pair(server_secret=b"t" * 32)
    server.receive_data(client.data_to_send(), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send() + FRAME, 1)
    client.receive_data(server.data_to_send(), 1)

    assert isinstance(error_of(server.events()), AuthenticationFailed)
    assert isinstance(error_of(client.events()), AuthenticationFailed)
    assert server.closed
    assert client.closed


def test_a_server_that_does_not_know_the_secret_is_found_out() -> None:
    """Authentication is mutual: a client gives its records to nobody else."""
    client = a_connection(Role.CLIENT)
    client.receive_data(auth.challenge(b"n" * 32) + b"w" * 32 + FRAME, 1)

    assert isinstance(error_of(client.events()), AuthenticationFailed)


def test_a_reflected_proof_fails() -> None:
    """A client must not be fooled by its own proof sent back as a welcome."""
    client = a_connection(Role.CLIENT)
    client.data_to_send()
    client.receive_data(auth.challenge(bytes([Role.CLIENT]) * auth.NONCE_BYTES), 1)
    own_proof = client.data_to_send()

    client.receive_data(own_proof, 1)

    assert isinstance(error_of(client.events()), AuthenticationFailed)


def test_a_proof_relayed_to_another_purpose_fails() -> None:
    """A link connection cannot be turned into a control connection on the way."""
    client, server = a_pair()
    hello = client.data_to_send()
    server.receive_data(auth.hello(Purpose.CONTROL, hello[-auth.NONCE_BYTES :]), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send(), 1)

    assert isinstance(error_of(server.events()), AuthenticationFailed)


def test_a_stranger_gets_nothing_that_depends_on_the_secret() -> None:
    """The server proves itself last, and only to who has proved itself."""
    first, second = a_connection(Role.SERVER), a_connection(Role.SERVER, secret=b"t" * 32)
    for server in (first, second):
        server.receive_data(auth.hello(Purpose.LINK, bytes(32)), 1)
        server.receive_data(b"x" * auth.PROOF_BYTES, 1)

    assert first.data_to_send() == second.data_to_send()


@pytest.mark.parametrize("role", Role)
def test_a_handshake_that_takes_too_long_ends(role: Role) -> None:
    """Half a handshake must not hold a connection for ever."""
    connection = a_connection(role, handshake=HandshakeLimits(timeout_ms=100))

    connection.on_tick(99)
    closed_before = connection.closed
    connection.on_tick(100)

    assert (closed_before, connection.closed) == (False, True)
    assert "did not finish the handshake in 100 ms" in str(error_of(connection.events()))


def test_a_proof_after_the_deadline_does_not_count() -> None:
    """The deadline holds although no timer fired."""
    client, server = a_pair()
    server.receive_data(client.data_to_send(), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send(), 3000)

    assert isinstance(error_of(server.events()), AuthenticationFailed)


def test_an_open_connection_has_no_deadline() -> None:
    """It may stay idle for days."""
    client, server = open_pair()

    for end in (client, server):
        end.on_tick(10**9)
        assert end.deadline_ms is None
        assert not end.closed


def test_more_bytes_than_allowed_before_a_proof_end_it() -> None:
    """The limit holds even if a handshake message were larger."""
    server = a_connection(Role.SERVER, handshake=HandshakeLimits(bytes_max=50))

    server.receive_data(auth.hello(Purpose.LINK, bytes(32)) + b"x" * 32, 1)

    assert "more than 50 bytes before a proof" in str(error_of(server.events()))


@pytest.mark.parametrize("role", Role)
def test_another_protocol_version_is_named(role: Role) -> None:
    """An upgrade of half a cluster must say what is wrong, on both ends."""
    message = bytearray(
        auth.hello(Purpose.LINK, bytes(32)) if role is Role.SERVER else auth.challenge(bytes(32))
    )
    message[8] = 42
    connection = a_connection(role)

    connection.receive_data(bytes(message), 1)

    assert "protocol version 42, this side 1" in str(error_of(connection.events()))
    assert bool(connection.data_to_send()) is True


def test_a_malformed_frame_closes_the_connection_for_good() -> None:
    """What follows has no meaning any more."""
    client, _ = open_pair()

    client.receive_data(b"\xff" * 20, 2)
    client.receive_data(FRAME, 2)

    assert isinstance(error_of(client.events()), ProtocolError)
    assert client.events() == []


def test_the_end_of_the_peer_is_an_event_once() -> None:
    """During the handshake the text says so."""
    client, _ = open_pair()
    early = a_connection(Role.CLIENT)

    client.receive_eof()
    client.receive_eof()
    early.receive_eof()

    assert isinstance(error_of(client.events()), ConnectionLost)
    assert "during the handshake" in str(error_of(early.events()))


@given(st.lists(st.binary(max_size=100), max_size=8), st.sampled_from(Role))
def test_garbage_before_a_proof_never_becomes_a_frame(chunks: list[bytes], role: Role) -> None:
    """Nothing is decoded for a stranger, and nothing is raised."""
    connection = a_connection(role)

    for chunk in chunks:
        connection.receive_data(chunk, 1)

    assert all(isinstance(event, ConnectionClosed) for event in connection.events())
    assert not connection.authenticated
