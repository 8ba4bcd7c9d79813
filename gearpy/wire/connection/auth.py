"""Proof that both ends know one key: the bytes and the checks, without any state.

Four messages of fixed size, before any frame: the client's HELLO carries its nonce and the
principal whose key it would prove, see `keys`; the server's CHALLENGE another nonce and the
principal whose key is to be proved, which is another one if the server does not have the first.
The client's PROOF and then the server's WELCOME are HMAC-SHA256 with that key over both nonces,
both principals, the purpose of the connection, the protocol version and the role of the one who
proves.

The role makes a reflected proof worthless, the nonces a recorded one, the principals one that
was diverted to another key. The server proves last, so that a stranger learns nothing but whose
key it wants. A server that refuses sends REFUSED, to tell a wrong secret from a broken network.
This protects the start of a connection, not what follows: on a network that is not trusted, TLS
goes around it.
"""

import hmac
import struct
from enum import IntEnum
from typing import Final, NamedTuple

from gearpy.errors import AuthenticationFailed, ProtocolError
from gearpy.wire.connection.frames import PROTOCOL_VERSION
from gearpy.wire.connection.keys import CLUSTER, Principal

NONCE_BYTES: Final = 32
_MAGIC: Final = b"gearpy\x00\x0a"
#: Magic, version, purpose, principal, nonce.
_HELLO: Final = struct.Struct(f"<8sBBq{NONCE_BYTES}s")
#: Magic, version, principal, nonce.
_CHALLENGE: Final = struct.Struct(f"<8sBq{NONCE_BYTES}s")
#: Magic, version, role, purpose, both principals, both nonces.
_PROVED: Final = struct.Struct(f"<8sBBBqq{NONCE_BYTES}s{NONCE_BYTES}s")

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
    """The purpose of a connection; said in HELLO and covered by the proofs."""

    LINK = 1
    CLIENT = 2
    PEER = 3


class Hello(NamedTuple):
    """The client's first message. ``version`` may not be ours; then the rest means nothing."""

    version: int
    purpose: Purpose
    principal: Principal
    nonce: bytes


class Challenge(NamedTuple):
    """The server's first message. ``version`` may not be ours; then the rest means nothing."""

    version: int
    principal: Principal
    nonce: bytes


class Proved(NamedTuple):
    """The facts that both proofs cover. ``asked`` is of HELLO, ``named`` of CHALLENGE."""

    purpose: Purpose
    asked: Principal
    named: Principal
    client_nonce: bytes
    server_nonce: bytes


def hello(purpose: Purpose, nonce: bytes, principal: Principal = CLUSTER) -> bytes:
    """Return the client's first message."""
    return _HELLO.pack(_MAGIC, PROTOCOL_VERSION, purpose, principal.number, nonce)


def parse_hello(data: bytes) -> Hello:
    """Read a HELLO.

    Raises:
        ProtocolError: the client speaks another protocol.
    """
    magic, version, purpose, number, nonce = _HELLO.unpack(data)
    _check_magic(magic)
    if version != PROTOCOL_VERSION:
        return Hello(version, Purpose.LINK, CLUSTER, nonce)
    if purpose not in set(Purpose):
        raise ProtocolError(f"unknown purpose {purpose} of a connection")
    return Hello(version, Purpose(purpose), Principal.of_number(number), nonce)


def challenge(nonce: bytes, principal: Principal = CLUSTER) -> bytes:
    """Return the server's first message."""
    return _CHALLENGE.pack(_MAGIC, PROTOCOL_VERSION, principal.number, nonce)


def parse_challenge(data: bytes) -> Challenge:
    """Read a CHALLENGE.

    Raises:
        ProtocolError: the server speaks another protocol.
    """
    magic, version, number, nonce = _CHALLENGE.unpack(data)
    _check_magic(magic)
    return Challenge(version, Principal.of_number(number), nonce)


def proof(key: bytes, role: Role, proved: Proved) -> bytes:
    """Return the proof that the end with this role knows the key."""
    text = _PROVED.pack(
        _MAGIC,
        PROTOCOL_VERSION,
        role,
        proved.purpose,
        proved.asked.number,
        proved.named.number,
        proved.client_nonce,
        proved.server_nonce,
    )
    return hmac.digest(key, text, "sha256")


def check_proof(expected: bytes, received: bytes, principal: Principal = CLUSTER) -> None:
    """Compare two proofs in constant time.

    Raises:
        AuthenticationFailed: they differ.
    """
    if not hmac.compare_digest(expected, received):
        raise AuthenticationFailed(f"the peer does not know {principal.key_name}")


def _check_magic(magic: bytes) -> None:
    if magic != _MAGIC:
        raise ProtocolError("the peer does not speak gearpy's protocol")
