"""The bytes of a proof, see `gearpy.wire.auth`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import AuthenticationFailed, ProtocolError
from gearpy.wire import auth
from gearpy.wire.auth import Purpose, Role
from gearpy.wire.frames import PROTOCOL_VERSION

NONCES = st.binary(min_size=auth.NONCE_BYTES, max_size=auth.NONCE_BYTES)
SECRET = b"s" * 32


@given(st.sampled_from(Purpose), NONCES)
def test_hello_and_challenge_carry_their_nonces(purpose: Purpose, nonce: bytes) -> None:
    """And the version, and for what the connection is."""
    assert auth.parse_hello(auth.hello(purpose, nonce)) == (PROTOCOL_VERSION, purpose, nonce)
    assert auth.parse_challenge(auth.challenge(nonce)) == (PROTOCOL_VERSION, nonce)


@given(NONCES, NONCES)
def test_a_proof_holds_for_one_role_purpose_secret_and_pair_of_nonces(a: bytes, b: bytes) -> None:
    """The invariant: change anything and it proves nothing, so it cannot be reflected."""

    def proof(
        secret: bytes = SECRET,
        role: Role = Role.CLIENT,
        purpose: Purpose = Purpose.LINK,
        nonces: tuple[bytes, bytes] = (a, b),
    ) -> bytes:
        client, server = nonces
        return auth.proof(
            secret, role=role, purpose=purpose, client_nonce=client, server_nonce=server
        )

    other = bytes([a[0] ^ 1]) + a[1:]
    others = [
        proof(secret=b"t" * 32),
        proof(role=Role.SERVER),
        proof(purpose=Purpose.CONTROL),
        proof(nonces=(other, b)),
        proof(nonces=(a, bytes([b[0] ^ 1]) + b[1:])),
    ]

    assert proof() == proof()
    assert proof() not in others
    assert len(set(others)) == len(others)


def test_a_wrong_proof_is_refused() -> None:
    """By an exception, so that it cannot be overlooked."""
    with pytest.raises(AuthenticationFailed, match="does not know the cluster secret"):
        auth.check_proof(b"a" * 32, b"b" * 32)


def test_other_protocols_are_recognised_by_their_first_bytes() -> None:
    """A browser that connects to the port gets no further."""
    with pytest.raises(ProtocolError, match="does not speak"):
        auth.parse_hello(b"GET / HTTP/1.1\r\n".ljust(auth.HELLO_BYTES))
    with pytest.raises(ProtocolError, match="does not speak"):
        auth.parse_challenge(b"HTTP/1.1 200 OK\r\n".ljust(auth.CHALLENGE_BYTES))


def test_an_unknown_purpose_is_refused() -> None:
    """There are links and control connections."""
    hello = bytearray(auth.hello(Purpose.LINK, bytes(32)))
    hello[9] = 77

    with pytest.raises(ProtocolError, match="unknown purpose 77"):
        auth.parse_hello(bytes(hello))
