"""Proof that both ends know the cluster secret: the bytes and the checks, without any state.

Four messages of fixed size, before any frame: the client's HELLO carries its nonce, the server's
CHALLENGE another; the client's PROOF and then the server's WELCOME are HMAC-SHA256 over both
nonces, the purpose of the connection, the protocol version and the role of the one who proves.
The role makes a reflected proof worthless, the nonces a recorded one. The server proves last, so
that a stranger learns nothing. A server that refuses sends REFUSED, to tell a wrong secret from
a broken network. This protects the start of a connection, not what follows: on a network that
is not trusted, TLS goes around it.
"""

import hmac
import struct
from enum import IntEnum
from typing import Final

from gearpy.errors import AuthenticationFailed, ProtocolError
from gearpy.wire.frames import PROTOCOL_VERSION

__all__ = [
    "CHALLENGE_BYTES",
    "HELLO_BYTES",
    "NONCE_BYTES",
    "PROOF_BYTES",
    "REFUSED",
    "Purpose",
    "Role",
    "challenge",
    "check_proof",
    "hello",
    "parse_challenge",
    "parse_hello",
    "proof",
]

NONCE_BYTES: Final = 32
_MAGIC: Final = b"gearpy\x00\x0a"
_HELLO: Final = struct.Struct(f"<8sBB{NONCE_BYTES}s")  # Magic, version, purpose, nonce.
_CHALLENGE: Final = struct.Struct(f"<8sB{NONCE_BYTES}s")  # Magic, version, nonce.
_PROVED: Final = struct.Struct("<8sBBB")  # Magic, version, role, purpose; then both nonces.

HELLO_BYTES: Final = _HELLO.size
CHALLENGE_BYTES: Final = _CHALLENGE.size
PROOF_BYTES: Final = 32
#: Sent instead of WELCOME to a client whose proof is wrong; as long as a proof.
REFUSED: Final = bytes(PROOF_BYTES)


class Role(IntEnum):
    """Which end of a connection one is."""

    CLIENT = 1
    SERVER = 2


class Purpose(IntEnum):
    """What a connection is for; said in HELLO and covered by the proofs."""

    LINK = 1
    CONTROL = 2


def hello(purpose: Purpose, nonce: bytes) -> bytes:
    """Return the client's first message."""
    return _HELLO.pack(_MAGIC, PROTOCOL_VERSION, purpose, nonce)


def parse_hello(data: bytes) -> tuple[int, Purpose, bytes]:
    """Return version, purpose and nonce of a HELLO; the version may not be ours.

    Raises:
        ProtocolError: the client speaks another protocol.
    """
    magic, version, purpose, nonce = _HELLO.unpack(data)
    if magic != _MAGIC:
        raise ProtocolError("the peer does not speak gearpy's protocol")
    if version == PROTOCOL_VERSION and purpose not in set(Purpose):
        raise ProtocolError(f"unknown purpose {purpose} of a connection")
    return version, Purpose(purpose if version == PROTOCOL_VERSION else Purpose.LINK), nonce


def challenge(nonce: bytes) -> bytes:
    """Return the server's first message."""
    return _CHALLENGE.pack(_MAGIC, PROTOCOL_VERSION, nonce)


def parse_challenge(data: bytes) -> tuple[int, bytes]:
    """Return version and nonce of a CHALLENGE; the version may not be ours.

    Raises:
        ProtocolError: the server speaks another protocol.
    """
    magic, version, nonce = _CHALLENGE.unpack(data)
    if magic != _MAGIC:
        raise ProtocolError("the peer does not speak gearpy's protocol")
    return version, nonce


def proof(
    secret: bytes, *, role: Role, purpose: Purpose, client_nonce: bytes, server_nonce: bytes
) -> bytes:
    """Return the proof that the end with this role knows the secret."""
    proved = _PROVED.pack(_MAGIC, PROTOCOL_VERSION, role, purpose) + client_nonce + server_nonce
    return hmac.digest(secret, proved, "sha256")


def check_proof(expected: bytes, received: bytes) -> None:
    """Compare two proofs in constant time.

    Raises:
        AuthenticationFailed: they differ.
    """
    if not hmac.compare_digest(expected, received):
        raise AuthenticationFailed("the peer does not know the cluster secret")
