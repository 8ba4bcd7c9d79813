"""The connection state machine, see `gearpy.wire.connection.machine`. Time is virtual."""

import hmac
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import AuthenticationFailed, ConnectionLost
from gearpy.ids import AppId
from gearpy.messages.versions import PROTOCOL, KnownVersions
from gearpy.wire.connection import auth
from gearpy.wire.connection.auth import Proved, Purpose, Role
from gearpy.wire.connection.frames import HEADER_BYTES, Frame, FrameKind, FrameLimits, encode_frame
from gearpy.wire.connection.keys import CLUSTER, KeyRing, Principal
from gearpy.wire.connection.machine import (
    Authenticated,
    Connection,
    ConnectionClosed,
    ConnectionEvent,
    HandshakeLimits,
)

SECRET = b"s" * 32
CLUSTER_KEYS = KeyRing.of_cluster(SECRET)
OTHER_CLUSTER = KeyRing.of_cluster(b"t" * 32)
APP_1, APP_2 = Principal(AppId(1)), Principal(AppId(2))
FRAME = b"".join(encode_frame(FrameKind.DATA, [b"hello"], FrameLimits()))


def a_connection(
    role: Role,
    *,
    keys: KeyRing = CLUSTER_KEYS,
    purpose: Purpose = Purpose.LINK,
    follow: bool = False,
    newest: int = PROTOCOL.newest,
    frames: FrameLimits | None = None,
    handshake: HandshakeLimits | None = None,
) -> Connection:
    return Connection(
        role=role,
        keys=keys,
        nonce=bytes([role]) * auth.NONCE_BYTES,
        now_ms=0,
        purpose=purpose,
        follow=follow,
        versions=KnownVersions(newest),
        frames=frames or FrameLimits(),
        handshake=handshake or HandshakeLimits(),
    )


def a_connection_of(role: Role, newest: int) -> Connection:
    return a_connection(role, newest=newest)


def keys_of(principal: Principal, secret: bytes = SECRET) -> KeyRing:
    ring = KeyRing.of_cluster(secret)
    if principal.application is None:
        return ring
    key = ring.key_of(principal)
    assert key is not None
    return KeyRing.of_application(principal.application, key)


def a_pair(
    *,
    client: KeyRing = CLUSTER_KEYS,
    server: KeyRing = CLUSTER_KEYS,
    follow: bool = False,
    frames: FrameLimits | None = None,
) -> tuple[Connection, Connection]:
    return (
        a_connection(Role.CLIENT, keys=client, follow=follow, frames=frames),
        a_connection(Role.SERVER, keys=server, frames=frames),
    )


def talk(client: Connection, server: Connection) -> None:
    while data := client.data_to_send():
        server.receive_data(data, 1)
        client.receive_data(server.data_to_send(), 1)


def open_pair() -> tuple[Connection, Connection]:
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
    client, server = a_connection(Role.CLIENT, purpose=purpose), a_connection(Role.SERVER)

    talk(client, server)

    assert client.events() == server.events() == [Authenticated(purpose, CLUSTER)]
    assert client.authenticated
    assert server.authenticated
    assert server.purpose is purpose


@pytest.mark.parametrize(
    ("client", "server", "follow", "agreed"),
    [
        (CLUSTER, CLUSTER, False, CLUSTER),
        (CLUSTER, CLUSTER, True, CLUSTER),
        (APP_1, CLUSTER, False, APP_1),
        (APP_1, APP_1, False, APP_1),
        (CLUSTER, APP_1, True, APP_1),
    ],
)
def test_both_ends_learn_in_whose_name_the_other_speaks(
    *, client: Principal, server: Principal, follow: bool, agreed: Principal
) -> None:
    """An application proves its own key; the cluster can prove any."""
    ends = a_pair(client=keys_of(client), server=keys_of(server), follow=follow)

    talk(*ends)

    assert [end.events() for end in ends] == [[Authenticated(Purpose.LINK, agreed)]] * 2
    assert [end.principal for end in ends] == [agreed] * 2


@pytest.mark.parametrize(
    ("client", "server", "follow"),
    [(APP_1, APP_2, False), (APP_1, APP_2, True), (CLUSTER, APP_1, False)],
)
def test_a_client_proves_no_key_but_its_own_unless_it_may_follow(
    *, client: Principal, server: Principal, follow: bool
) -> None:
    """Else user code that listens at a master's address would be taken for the master."""
    ends = a_pair(client=keys_of(client), server=keys_of(server), follow=follow)

    talk(*ends)

    assert f"the peer belongs to {server}, this side spoke for {client}" in str(
        error_of(ends[0].events())
    )
    assert ends[0].data_to_send() == b""
    assert not ends[1].authenticated


def test_an_application_cannot_say_it_is_another_one_or_the_cluster() -> None:
    """The name alone is worth nothing: the proof is made with the key of that name."""
    stolen = keys_of(APP_1).key_of(APP_1)
    assert stolen is not None
    for claimed in (APP_2, CLUSTER):
        liar = KeyRing(claimed, stolen)
        client, server = a_pair(client=liar)

        talk(client, server)

        text = f"another {claimed.key_name.removeprefix('the ')}"
        assert text in str(error_of(client.events()))
        assert f"does not know {claimed.key_name}" in str(error_of(server.events()))


@pytest.mark.parametrize("follow", [False, True])
def test_a_challenge_that_names_another_key_on_the_way_is_found_out(*, follow: bool) -> None:
    """Both principals are part of the proof: nobody in between can choose a weaker one."""
    client, server = a_pair(follow=follow)
    server.receive_data(client.data_to_send(), 1)
    challenge = server.data_to_send()
    forged = auth.challenge(challenge[-auth.NONCE_BYTES :], APP_1)

    client.receive_data(forged, 1)
    server.receive_data(client.data_to_send(), 1)
    server.receive_eof()

    assert not server.authenticated
    assert not client.authenticated


def test_a_hello_that_asks_for_another_key_on_the_way_is_found_out() -> None:
    client, server = a_pair(follow=True)
    hello = client.data_to_send()
    server.receive_data(auth.hello(Purpose.LINK, hello[-auth.NONCE_BYTES :], APP_1), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send(), 1)

    assert isinstance(error_of(server.events()), AuthenticationFailed)


def test_a_recorded_handshake_opens_nothing() -> None:
    client, server = a_pair()
    hello = client.data_to_send()
    server.receive_data(hello, 1)
    client.receive_data(server.data_to_send(), 1)
    recorded = hello + client.data_to_send() + FRAME
    later = Connection(role=Role.SERVER, keys=CLUSTER_KEYS, nonce=b"n" * 32, now_ms=0)

    later.receive_data(recorded, 1)

    assert isinstance(error_of(later.events()), AuthenticationFailed)


def test_a_peer_that_speaks_tls_is_recognised() -> None:
    client = a_connection(Role.CLIENT)

    client.receive_data(b"\x15\x03\x03\x00\x02\x02\x46", 1)
    client.receive_eof()

    assert 'set transport.tls = "on"' in str(error_of(client.events()))


@given(st.data())
def test_the_handshake_and_frames_survive_any_split(data: st.DataObject) -> None:
    """The invariant: frames after `Authenticated`, in order, however the network cuts."""
    client, server = a_pair()
    client.data_to_send()
    # What a client sends, as one stream: the server's nonce is fixed.
    server_nonce = bytes([Role.SERVER]) * auth.NONCE_BYTES
    client_nonce = bytes([Role.CLIENT]) * auth.NONCE_BYTES
    proved = Proved(Purpose.LINK, CLUSTER, CLUSTER, client_nonce, server_nonce, 1)
    proof = auth.proof(SECRET, Role.CLIENT, proved)
    stream = auth.hello(Purpose.LINK, client_nonce) + proof + FRAME + FRAME
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        server.receive_data(stream[start:end], 1)

    events = server.events()
    assert events[0] == Authenticated(Purpose.LINK, CLUSTER)
    frames = [event for event in events[1:] if isinstance(event, Frame)]
    assert [bytes(frame.body) for frame in frames] == [b"hello", b"hello"]


def test_a_wrong_secret_is_found_by_both_ends_and_nothing_is_decoded() -> None:
    """The client hears why, and frames behind the proof are not looked at."""
    client, server = a_pair(server=OTHER_CLUSTER)
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
    client = a_connection(Role.CLIENT)
    client.data_to_send()
    client.receive_data(auth.challenge(bytes([Role.CLIENT]) * auth.NONCE_BYTES), 1)
    own_proof = client.data_to_send()

    client.receive_data(own_proof, 1)

    assert isinstance(error_of(client.events()), AuthenticationFailed)


def test_a_proof_relayed_to_another_purpose_fails() -> None:
    client, server = a_pair()
    hello = client.data_to_send()
    server.receive_data(auth.hello(Purpose.CLIENT, hello[-auth.NONCE_BYTES :]), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send(), 1)

    assert isinstance(error_of(server.events()), AuthenticationFailed)


def test_a_stranger_gets_nothing_that_depends_on_the_secret() -> None:
    first, second = a_connection(Role.SERVER), a_connection(Role.SERVER, keys=OTHER_CLUSTER)
    for server in (first, second):
        server.receive_data(auth.hello(Purpose.LINK, bytes(32)), 1)
        server.receive_data(b"x" * auth.PROOF_BYTES, 1)

    assert first.data_to_send() == second.data_to_send()


@pytest.mark.parametrize("role", Role)
def test_a_handshake_that_takes_too_long_ends(role: Role) -> None:
    connection = a_connection(role, handshake=HandshakeLimits(timeout_ms=100))

    connection.on_tick(99)
    closed_before = connection.closed
    connection.on_tick(100)

    assert (closed_before, connection.closed) == (False, True)
    assert "did not finish the handshake in 100 ms" in str(error_of(connection.events()))


def test_a_proof_after_the_deadline_does_not_count() -> None:
    client, server = a_pair()
    server.receive_data(client.data_to_send(), 1)
    client.receive_data(server.data_to_send(), 1)

    server.receive_data(client.data_to_send(), 3000)

    assert isinstance(error_of(server.events()), AuthenticationFailed)


def test_a_peer_that_stops_amid_a_frame_is_given_up() -> None:
    """Or it would hold memory, and its connection would be of no use, for ever."""
    client, server = open_pair()
    data = b"".join(encode_frame(FrameKind.DATA, [b"x" * 50], FrameLimits()))
    server.receive_data(data + data[:-1], 1000)
    server.on_tick(1000)
    server.on_tick(6999)
    frames = [event for event in server.events() if isinstance(event, Frame)]

    server.on_tick(7000)

    assert len(frames) == 1
    assert server.frame_bytes_in == 2 * len(data) - 1
    assert "a frame has not gone on for 6000 ms" in str(error_of(server.events()))
    assert client.frame_bytes_in == 0


def test_an_open_connection_has_no_deadline() -> None:
    client, server = open_pair()

    for end in (client, server):
        end.on_tick(10**9)
        assert end.deadline_ms is None
        assert not end.closed


def test_more_bytes_than_allowed_before_a_proof_end_it() -> None:
    server = a_connection(Role.SERVER, handshake=HandshakeLimits(bytes_max=50))

    server.receive_data(auth.hello(Purpose.LINK, bytes(32)) + b"x" * 32, 1)

    assert "more than 50 bytes before a proof" in str(error_of(server.events()))


@pytest.mark.parametrize(
    ("newest", "common"),
    [((1, 1), 1), ((1, 2), 1), ((2, 1), 1), ((2, 2), 2), ((2, 3), 2), ((3, 2), 2), ((9, 8), 8)],
)
def test_two_ends_speak_the_newest_version_that_both_know(
    newest: tuple[int, int], common: int
) -> None:
    """Each speaks its own version and the one before: so an upgrade goes from one to the next."""
    client, server = map(a_connection_of, Role, newest)

    talk(client, server)

    for end in (client, server):
        assert end.events() == [Authenticated(Purpose.LINK, CLUSTER)]
        assert end.version == common


@pytest.mark.parametrize("newest", [(1, 3), (3, 1), (2, 4), (9, 2)])
def test_ends_that_are_two_versions_apart_name_them(newest: tuple[int, int]) -> None:
    client, server = map(a_connection_of, Role, newest)

    talk(client, server)

    for end, own, other in ((client, *newest), (server, *newest[::-1])):
        text = f"protocol version {other}, this side {KnownVersions(own).text}"
        assert text in str(error_of(end.events()))


def test_a_client_and_a_server_of_version_1_are_understood() -> None:
    keys = KeyRing.of_cluster(bytes(range(32)))
    head, cluster, other = b"gearpy\x00\x0a\x01", b"\xff" * 8, b"\xbb" * 32
    server = Connection(role=Role.SERVER, keys=keys, nonce=other, now_ms=0)
    server.receive_data(head + b"\x01" + cluster + b"\xaa" * 32, 1)
    assert server.data_to_send() == head + cluster + other
    proof = "f587a334323eb59220091add457eb9385a0b060093e7d01d3434b7125c00a6e9"
    server.receive_data(bytes.fromhex(proof), 1)
    welcome = "1390792083fb49f210d34ceec87674868aaa68e33838ad436975755b6fee0f04"
    assert server.data_to_send().hex() == welcome
    assert server.version == 1

    client = Connection(role=Role.CLIENT, keys=keys, nonce=b"\xaa" * 32, now_ms=0)
    said = client.data_to_send()
    assert said[:10] == head + b"\x01"
    client.receive_data(head + cluster + other, 1)
    proved = head + b"\x01\x01" + cluster + cluster + said[18:] + other
    assert client.data_to_send() == hmac.digest(bytes(range(32)), proved, "sha256")
    assert client.version == 1


def test_nobody_on_the_way_can_have_two_ends_speak_an_older_version() -> None:
    """What an older version lacks, such as a check, would be lacking by somebody else's choice."""
    client, server = a_pair()
    hello = client.data_to_send()
    server.receive_data(hello[:-8] + bytes(8), 1)  # As if it were of version 1.
    client.receive_data(server.data_to_send(), 1)
    server.receive_data(client.data_to_send(), 1)
    assert isinstance(error_of(server.events()), AuthenticationFailed)
    assert not client.authenticated

    client, server = a_pair()
    server.receive_data(client.data_to_send(), 1)
    challenge = bytearray(server.data_to_send())
    challenge[8] = 1
    client.receive_data(bytes(challenge), 1)
    server.receive_data(client.data_to_send(), 1)
    assert isinstance(error_of(server.events()), AuthenticationFailed)
    assert not client.authenticated


@pytest.mark.parametrize("role", Role)
def test_another_protocol_version_is_named(role: Role) -> None:
    message = bytearray(
        auth.hello(Purpose.LINK, bytes(32)) if role is Role.SERVER else auth.challenge(bytes(32))
    )
    message[8] = 42
    connection = a_connection(role)

    connection.receive_data(bytes(message), 1)

    assert "protocol version 42, this side 1 and 2" in str(error_of(connection.events()))
    assert bool(connection.data_to_send()) is True


def test_the_end_of_the_peer_is_an_event_once() -> None:
    client, _ = open_pair()
    early = a_connection(Role.CLIENT)

    client.receive_eof()
    client.receive_eof()
    early.receive_eof()

    assert isinstance(error_of(client.events()), ConnectionLost)
    assert "during the handshake" in str(error_of(early.events()))


@given(st.lists(st.binary(max_size=100), max_size=8), st.sampled_from(Role))
def test_garbage_before_a_proof_never_becomes_a_frame(chunks: list[bytes], role: Role) -> None:
    connection = a_connection(role)

    for chunk in chunks:
        connection.receive_data(chunk, 1)

    assert all(isinstance(event, ConnectionClosed) for event in connection.events())
    assert not connection.authenticated


FUZZED_STREAMS = 4_000
BODY_BYTES_MAX = 64


@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_damaged_streams_end_a_connection_or_change_nothing(role: Role) -> None:
    """Thousands of good streams with some bytes changed, cut or repeated, before and after proof.

    Whatever comes: nothing is raised, no frame comes before the proof, and no more is kept
    than one frame.
    """
    rng = Random(20_261)
    small = FrameLimits(data_bytes_max=BODY_BYTES_MAX, control_bytes_max=BODY_BYTES_MAX)
    frames = 0
    for _ in range(FUZZED_STREAMS):
        client, server = a_pair(frames=small)
        end = client if role is Role.CLIENT else server
        if rng.random() < 0.8:
            talk(client, server)
            end.events()
        proved = end.authenticated
        for chunk in chunks_of(rng, damaged(rng, a_stream(rng))):
            end.receive_data(chunk, 1)
            assert end.held_bytes <= HEADER_BYTES + BODY_BYTES_MAX
        events = end.events()
        frames += sum(isinstance(event, Frame) for event in events)
        assert proved or not any(isinstance(event, Frame) for event in events)
        assert all(isinstance(event, Frame) for event in events[:-1])
        assert end.closed == (bool(events) and isinstance(events[-1], ConnectionClosed))

    assert frames > FUZZED_STREAMS / 2


def a_stream(rng: Random) -> bytearray:
    stream = bytearray()
    limits = FrameLimits(ack_bytes_max=BODY_BYTES_MAX * 2)
    for _ in range(rng.randrange(1, 6)):
        body = rng.randbytes(rng.randrange(BODY_BYTES_MAX * 9 // 8))
        stream += b"".join(encode_frame(rng.choice(list(FrameKind)), [body], limits))
    return stream


def damaged(rng: Random, stream: bytearray) -> bytes:
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(stream) + 1)
        match rng.randrange(4):
            case 0:
                stream[at : at + 1] = rng.randbytes(1)
            case 1:
                del stream[at : at + rng.randrange(20)]
            case 2:
                stream[at:at] = stream[at : at + rng.randrange(40)]
            case _:
                stream[at:at] = rng.randbytes(rng.randrange(20))
    return bytes(stream)


def chunks_of(rng: Random, stream: bytes) -> list[bytes]:
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(5)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
