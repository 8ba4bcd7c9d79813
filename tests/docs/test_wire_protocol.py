"""docs/wire-protocol.md describes the bytes that the code sends and reads."""

import datetime as dt
import decimal
import fractions
import re
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from gearpy.ids import AppId, SessionId, TaskId
from gearpy.messages.client import GetApplication
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Origin,
    Unmanaged,
)
from gearpy.messages.peer import (
    Fenced,
    Greeting,
    Letter,
    LettersTaken,
    PeerMessage,
    Ping,
    Pong,
    Welcome,
)
from gearpy.messages.versions import PROTOCOL
from gearpy.transport.api import TransportLimits
from gearpy.wire.codec import (
    CONTROL_CLASSES,
    decode_peer,
    encode_answer,
    encode_control,
    encode_peer,
)
from gearpy.wire.connection import auth
from gearpy.wire.connection.auth import NONCE_BYTES, Purpose, Role
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameKind, FrameLimits
from gearpy.wire.connection.keys import CLUSTER, KeyRing
from gearpy.wire.connection.machine import Connection
from gearpy.wire.connection.receipts import encode_receipt
from gearpy.wire.link_codec import LinkCodec
from gearpy.wire.values.payload import decode_value, encode_value
from tests.wire.message_fields import fields_of

PAGE: Final = (Path(__file__).parents[2] / "docs" / "wire-protocol.md").read_text()
CODEC: Final = LinkCodec()
LIMITS: Final = TransportLimits()
_TYPES: Final = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i64": "q"}
_LINE: Final = re.compile(
    r"((?:[0-9a-f]{2} )*[0-9a-f]{2})  (?:(u8|u16|u32|u64|i64) .* = (-?\d+)$)?"
)


def blocks() -> dict[str, list[str]]:
    found = re.findall(r"^```hex\n# ([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return {name: lines.splitlines() for name, lines in found}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without quotes of code."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip().strip("`") for cell in line[2:-2].split(" | ")] for line in lines[1:]]


def bytes_of(name: str) -> bytes:
    """Return the bytes of one example; a line with a type and a value must agree with itself."""
    data = b""
    for line in blocks()[name]:
        parts = _LINE.match(line)
        assert parts, line
        here = bytes.fromhex(parts[1])
        if parts[2]:
            assert here == struct.pack(f"<{_TYPES[parts[2]]}", int(parts[3])), line
        data += here
    return data


def said_in_a_handshake() -> Iterator[tuple[str, bytes]]:
    """Let two ends shake hands with the secret and nonces of the page; yield what they say."""
    keys = KeyRing.of_cluster(bytes(range(32)))
    client = Connection(role=Role.CLIENT, keys=keys, nonce=b"\xaa" * NONCE_BYTES, now_ms=0)
    server = Connection(role=Role.SERVER, keys=keys, nonce=b"\xbb" * NONCE_BYTES, now_ms=0)
    ends = [client, server]
    for name in ("HELLO", "CHALLENGE", "PROOF", "WELCOME"):
        said = ends[0].data_to_send()
        ends[1].receive_data(said, 1)
        ends.reverse()
        yield name, said
    assert client.authenticated
    assert server.authenticated


def test_the_handshake_is_as_described() -> None:
    said = dict(said_in_a_handshake())

    assert {name: bytes_of(name) for name in said} == said
    assert bytes_of("REFUSED") == auth.REFUSED


def test_purposes_and_roles_have_their_numbers() -> None:
    table = {(kind, name): int(number) for kind, name, number, _ in rows("Numbers in a handshake")}

    expected = {("purpose", purpose.name): purpose.value for purpose in Purpose}
    expected |= {("role", role.name): role.value for role in Role}
    assert table == expected | {("principal", "the cluster"): CLUSTER.number}


LINK: Final = (SessionId(7), TaskId(1, 0), TaskId(2, 3))

LINK_EXAMPLES: Final[dict[str, LinkMessage]] = {
    "DATA": DataMessage(*LINK, 1, Batch(["a", "b"], [5, 5]), watermark_ms=4, epoch=1, size_bytes=2),
    "DATA with an origin": DataMessage(
        *LINK, 2, Batch([9], [6], origin=Origin(1, 0, 40, is_alone=True)), idle=True, epoch=1
    ),
    "INITIAL_ACK_REQUEST": InitialAckRequest(*LINK),
    "ACK_REQUEST": AckRequest(*LINK, 100),
    "ACK": Ack(LINK[0], LINK[2], LINK[1], 100, 100),
    "ACK with room": Ack(LINK[0], LINK[2], LINK[1], 100, 100, 250),
    "LATENCY_PROBE": LatencyProbe(*LINK, 1_000_000),
    "UNMANAGED": Unmanaged(*LINK, "hi"),
}
PEER_EXAMPLES: Final[dict[str, PeerMessage]] = {
    "Greeting": Greeting(sender="a:1#0f", receiver="b:2", session=1),
    "Welcome": Welcome(node="b:2#1e", taken=0),
    "Fenced": Fenced(node="b:2#1e", reason="gone", given_up=True),
    "Letter": Letter(number=1, to="", body=encode_control(GetApplication(app_id=AppId(3))), ask=1),
    "Letter with an answer": Letter(number=1, to="", body=encode_answer(None), answers=1),
    "LettersTaken": LettersTaken(number=1),
    "Ping": Ping(number=5),
    "Pong": Pong(number=5),
}


def only_frame(data: bytes) -> Frame:
    (frame,) = FrameDecoder(FrameLimits()).feed(data)
    return frame


@pytest.mark.parametrize("name", LINK_EXAMPLES)
def test_link_messages_are_as_described(name: str) -> None:
    message, data = LINK_EXAMPLES[name], bytes_of(name)

    assert b"".join(CODEC.encode(message)) == data
    decoded = CODEC.decode(only_frame(data))
    if isinstance(decoded, DataMessage):
        decoded.batch = CODEC.decode_batch(decoded.batch)
    assert decoded == message


@pytest.mark.parametrize("name", PEER_EXAMPLES)
def test_messages_of_peers_are_as_described(name: str) -> None:
    message, data = PEER_EXAMPLES[name], bytes_of(name)

    assert b"".join(encode_peer(message, FrameLimits())) == data
    assert decode_peer(only_frame(data)) == message


def test_a_receipt_is_as_described() -> None:
    assert b"".join(encode_receipt(1234, FrameLimits())) == bytes_of("RECEIPT")


def test_every_example_of_the_page_is_held_to_the_code() -> None:
    named = {name for name, _ in said_in_a_handshake()} | {"REFUSED", "RECEIPT"}

    assert blocks().keys() == named | LINK_EXAMPLES.keys() | PEER_EXAMPLES.keys()


def test_frame_kinds_have_their_numbers_and_limits() -> None:
    table = {name: (int(number), limit) for number, name, limit, _ in rows("Kinds of frames")}

    names = {16 << 20: "frame_bytes_max", 1 << 20: "control_frame_bytes_max", 64: "64"}
    expected = {k.name: (k.value, names[LIMITS.frames.body_bytes_max(k)]) for k in FrameKind}
    assert table == expected
    assert f"protocol version is {PROTOCOL.newest}; " in PAGE


def test_limits_are_as_described() -> None:
    for name, value, _ in rows("Limits"):
        assert getattr(LIMITS, name) == int(value.replace(",", "")), name


#: What the examples of the page may name.
_NAMES: Final = {
    "datetime": dt,
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "PurePosixPath": PurePosixPath,
    "UUID": uuid.UUID,
}


def test_values_are_as_described() -> None:
    for number, _, example, expected in rows("Values"):
        value = eval(example, _NAMES)  # noqa: S307 - our own page
        data = encode_value(value)
        assert data.hex(" ") == expected, example
        decoded = decode_value(bytes.fromhex(expected))
        assert (type(decoded), decoded) == (type(value), value)
        if number:
            head = data[:3].removeprefix(b"\xc7")
            assert int(number) in head[1:], example


def test_every_control_message_is_listed_with_its_fields() -> None:
    table = [(name, fields) for name, fields in rows("Control messages")]

    assert table == [(name, fields_of(cls)) for name, cls in sorted(CONTROL_CLASSES.items())]
