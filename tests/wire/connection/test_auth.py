"""The bytes of a proof, see `gearpy.wire.connection.auth`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import AuthenticationFailed, ProtocolError
from gearpy.ids import AppId
from gearpy.messages.versions import PROTOCOL, KnownVersions
from gearpy.wire.connection import auth
from gearpy.wire.connection.auth import Proved, Purpose, Role
from gearpy.wire.connection.keys import CLUSTER, Principal

NONCES = st.binary(min_size=auth.NONCE_BYTES, max_size=auth.NONCE_BYTES)
PRINCIPALS = st.just(CLUSTER) | st.integers(0, 2**63 - 1).map(AppId).map(Principal)
SECRET = b"s" * 32


@given(st.sampled_from(Purpose), PRINCIPALS, NONCES)
def test_hello_and_challenge_carry_principal_and_nonce(
    purpose: Purpose, principal: Principal, nonce: bytes
) -> None:
    said = auth.client_nonce(nonce, PROTOCOL.newest)
    hello = auth.hello(purpose, said, principal)
    challenge = auth.challenge(nonce, principal)

    versions = PROTOCOL.oldest, PROTOCOL.newest
    assert auth.parse_hello(hello) == (*versions, purpose, principal, said)
    assert auth.parse_challenge(challenge) == (PROTOCOL.newest, principal, nonce)


@given(NONCES, st.integers(1, 255))
def test_a_nonce_says_the_newest_version_of_its_client(nonce: bytes, newest: int) -> None:
    said = auth.client_nonce(nonce, newest)

    assert len(said) == auth.NONCE_BYTES
    assert said[:24] == nonce[:24]
    assert auth.parse_hello(auth.hello(Purpose.LINK, said)).newest == newest
    for version in (1, 2):
        plain = auth.parse_hello(auth.hello(Purpose.LINK, bytes(32), version=version))
        assert (plain.oldest, plain.newest) == (version, version)


def test_a_hello_without_a_common_version_says_no_more_than_that() -> None:
    """Numbers of purposes may mean something else there."""
    hello = bytearray(auth.hello(Purpose.LINK, bytes(32), version=4))
    hello[9] = 77

    assert auth.parse_hello(bytes(hello), KnownVersions(6)).newest == 4


@given(NONCES, NONCES)
def test_a_proof_holds_for_one_key_role_and_connection(a: bytes, b: bytes) -> None:
    """The invariant: change anything and it proves nothing, so it cannot be used elsewhere."""
    proved = Proved(Purpose.LINK, CLUSTER, CLUSTER, a, b, 2)
    flipped = bytes([a[0] ^ 1]) + a[1:]
    right = auth.proof(SECRET, Role.CLIENT, proved)

    others = [
        auth.proof(b"t" * 32, Role.CLIENT, proved),
        auth.proof(SECRET, Role.SERVER, proved),
        auth.proof(SECRET, Role.CLIENT, proved._replace(purpose=Purpose.CLIENT)),
        auth.proof(SECRET, Role.CLIENT, proved._replace(version=1)),
        auth.proof(SECRET, Role.CLIENT, proved._replace(asked=Principal(AppId(0)))),
        auth.proof(SECRET, Role.CLIENT, proved._replace(named=Principal(AppId(0)))),
        auth.proof(SECRET, Role.CLIENT, proved._replace(client_nonce=flipped)),
        auth.proof(SECRET, Role.CLIENT, proved._replace(server_nonce=bytes([b[0] ^ 1]) + b[1:])),
    ]

    assert auth.proof(SECRET, Role.CLIENT, proved) == right
    assert right not in others
    assert len(set(others)) == len(others)


def test_a_wrong_proof_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="does not know the cluster secret"):
        auth.check_proof(b"a" * 32, b"b" * 32)
    with pytest.raises(AuthenticationFailed, match="does not know the key of application 7"):
        auth.check_proof(b"a" * 32, b"b" * 32, Principal(AppId(7)))


def test_other_protocols_are_recognised_by_their_first_bytes() -> None:
    with pytest.raises(ProtocolError, match="does not speak"):
        auth.parse_hello(b"GET / HTTP/1.1\r\n".ljust(auth.HELLO_BYTES))
    with pytest.raises(ProtocolError, match="does not speak"):
        auth.parse_challenge(b"HTTP/1.1 200 OK\r\n".ljust(auth.CHALLENGE_BYTES))


def test_an_unknown_purpose_is_refused() -> None:
    hello = bytearray(auth.hello(Purpose.LINK, bytes(32)))
    hello[9] = 77

    with pytest.raises(ProtocolError, match="unknown purpose 77"):
        auth.parse_hello(bytes(hello))
