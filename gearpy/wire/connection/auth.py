"""Proof that both ends know one key: the bytes and the checks, without any state.

Four messages of fixed size, before any frame: the client's HELLO carries its nonce and the
principal whose key it would prove, see `keys`; the server's CHALLENGE another nonce and the
principal whose key is to be proved, which is another one if the server does not have the first.
The client's PROOF and then the server's WELCOME are HMAC-SHA256 with that key over both nonces,
both principals, the purpose of the connection, the protocol version agreed on and the role of the
one who proves.

HELLO says the oldest protocol version that the client speaks, and the end of its nonce the newest:
processes from before there were two know nothing of that, and find the version they expect.
CHALLENGE says the newest version that both speak. Nobody in between can have them agree on an
older one: the client's nonce is proved as it was sent, and so is the version.

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
from gearpy.messages.versions import PROTOCOL, KnownVersions
from gearpy.wire.connection.keys import CLUSTER, Principal

NONCE_BYTES: Final = 32
_MAGIC: Final = b"gearpy\x00\x0a"
#: It stands before the newest version in a client's nonce; no random nonce has it.
_NEWEST_IS: Final = b"newest="
#: Magic, oldest version, purpose, principal, nonce.
_HELLO: Final = struct.Struct(f"<8sBBq{NONCE_BYTES}s")
#: Magic, agreed version, principal, nonce.
_CHALLENGE: Final = struct.Struct(f"<8sBq{NONCE_BYTES}s")
#: Magic, agreed version, role, purpose, both principals, both nonces.
_PROVED: Final = struct.Struct(f"<8sBBBqq{NONCE_BYTES}s{NONCE_BYTES}s")

HELLO_BYTES: Final = _HELLO.size
CHALLENGE_BYTES: Final = _CHALLENGE.size
PROOF_BYTES: Final = 32
#: Sent instead of WELCOME to a client whose proof is wrong; as long as a proof.
REFUSED: Final = bytes(PROOF_BYTES)


class Role(IntEnum):
    """The end of a connection: client or server."""

    CLIENT = 1
    SERVER = 2


class Purpose(IntEnum):
    """The purpose of a connection; said in HELLO and covered by the proofs."""

    LINK = 1
    CLIENT = 2
    PEER = 3


class Hello(NamedTuple):
    """The client's first message; without a common version, what follows that means nothing."""

    oldest: int
    newest: int
    purpose: Purpose
    principal: Principal
    nonce: bytes


class Challenge(NamedTuple):
    """The server's first message; of a version that is not known, the rest means nothing."""

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
    version: int


def client_nonce(fresh: bytes, newest: int) -> bytes:
    """Return a nonce that ends with the newest version that a client speaks.

    Args:
        fresh: `NONCE_BYTES` random bytes; the last eight are not used.
    """
    said = _NEWEST_IS + bytes([newest])
    return fresh[: NONCE_BYTES - len(said)] + said


def hello(
    purpose: Purpose,
    nonce: bytes,
    principal: Principal = CLUSTER,
    version: int = PROTOCOL.oldest,
) -> bytes:
    """Return the client's first message.

    Args:
        nonce: of `client_nonce`; one that is not speaks for a client of one version.
        version: the oldest one that the client speaks.
    """
    return _HELLO.pack(_MAGIC, version, purpose, principal.number, nonce)


def parse_hello(data: bytes, versions: KnownVersions = PROTOCOL) -> Hello:
    """Read a HELLO, as one who speaks these versions."""
    magic, oldest, purpose, number, nonce = _HELLO.unpack(data)
    _check_magic(magic)
    newest = nonce[-1] if nonce[:-1].endswith(_NEWEST_IS) else oldest
    if versions.common(oldest, newest) is None:
        return Hello(oldest, newest, Purpose.LINK, CLUSTER, nonce)
    if purpose not in set(Purpose):
        raise ProtocolError(f"unknown purpose {purpose} of a connection")
    return Hello(oldest, newest, Purpose(purpose), Principal.of_number(number), nonce)


def challenge(
    nonce: bytes, principal: Principal = CLUSTER, version: int = PROTOCOL.newest
) -> bytes:
    return _CHALLENGE.pack(_MAGIC, version, principal.number, nonce)


def parse_challenge(data: bytes) -> Challenge:
    magic, version, number, nonce = _CHALLENGE.unpack(data)
    _check_magic(magic)
    return Challenge(version, Principal.of_number(number), nonce)


def proof(key: bytes, role: Role, proved: Proved) -> bytes:
    text = _PROVED.pack(
        _MAGIC,
        proved.version,
        role,
        proved.purpose,
        proved.asked.number,
        proved.named.number,
        proved.client_nonce,
        proved.server_nonce,
    )
    return hmac.digest(key, text, "sha256")


def check_proof(expected: bytes, received: bytes, principal: Principal = CLUSTER) -> None:
    """Compare two proofs in constant time."""
    if not hmac.compare_digest(expected, received):
        raise AuthenticationFailed(f"the peer does not know {principal.key_name}")


def _check_magic(magic: bytes) -> None:
    if magic != _MAGIC:
        raise ProtocolError("the peer does not speak gearpy's protocol")
