"""Frames and their incremental decoder, see `gearpy.wire.connection.frames`."""

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, ProtocolError
from gearpy.wire.connection.frames import (
    FRAME_VERSION,
    HEADER_BYTES,
    FrameDecoder,
    FrameKind,
    FrameLimits,
    encode_frame,
)

LIMITS = FrameLimits(data_bytes_max=1000, control_bytes_max=100, ack_bytes_max=10)
Plain = tuple[FrameKind, bytes]


def frame(kind: FrameKind = FrameKind.DATA, body: bytes = b"body") -> bytes:
    return b"".join(encode_frame(kind, [body], LIMITS))


def raw_frame(*, size: int, version: int = FRAME_VERSION, kind: int = 1) -> bytes:
    head = struct.pack("<IBB", size, version, kind)
    crc = crc32(head)
    return head + struct.pack("<HI", crc & 0xFFFF, crc)


def decode(decoder: FrameDecoder, data: bytes) -> list[Plain]:
    return [(one.kind, bytes(one.body)) for one in decoder.feed(data)]


FRAMES = st.lists(st.tuples(st.just(FrameKind.DATA), st.binary(max_size=40)), max_size=6)


@given(FRAMES, st.data())
def test_frames_arrive_however_they_are_split(frames: list[Plain], data: st.DataObject) -> None:
    """The invariant: the network may cut anywhere, and less than one frame is held back."""
    stream = b"".join(frame(kind, body) for kind, body in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    decoder = FrameDecoder(LIMITS)

    received: list[Plain] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decode(decoder, stream[start:end])
        assert decoder.held_bytes < HEADER_BYTES + 40

    assert received == frames
    assert decoder.held_bytes == 0


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        (FrameKind.DATA, 1000),
        (FrameKind.UNMANAGED, 100),
        (FrameKind.PEER, 100),
        (FrameKind.ACK, 10),
        (FrameKind.ACK_REQUEST, 10),
        (FrameKind.INITIAL_ACK_REQUEST, 10),
        (FrameKind.LATENCY_PROBE, 10),
        (FrameKind.RECEIPT, 10),
    ],
)
def test_each_kind_has_a_size_limit_both_ways(kind: FrameKind, limit: int) -> None:
    assert decode(FrameDecoder(LIMITS), frame(kind, bytes(limit))) == [(kind, bytes(limit))]
    with pytest.raises(ProtocolError, match=f"announces {limit + 1} bytes, over the limit"):
        FrameDecoder(LIMITS).feed(raw_frame(size=limit + 1, kind=kind))
    with pytest.raises(ConfigError, match=f"{limit + 1} bytes is over the limit of {limit}"):
        frame(kind, bytes(limit + 1))


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (raw_frame(size=1, version=2), "frame of version 2, expected 1"),
        (raw_frame(size=1, kind=200), "unknown frame kind 200"),
        (raw_frame(size=1, kind=0), "unknown frame kind 0"),
        (raw_frame(size=2**32 - 1), "announces 4294967295 bytes"),
        (frame()[:-1] + b"?", "checksum of a DATA frame of 4 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "frame of version 47"),
    ],
)
def test_nonsense_fails_the_decoder_for_good(bad: bytes, text: str) -> None:
    """After an error nothing more is decoded: the stream has lost its frame boundaries."""
    decoder = FrameDecoder(LIMITS)

    with pytest.raises(ProtocolError, match=text):
        decoder.feed(bad)

    with pytest.raises(ProtocolError, match=text):
        decoder.feed(frame())


def test_a_flipped_bit_is_found_at_once() -> None:
    for at in range(len(frame()) * 8):
        damaged = bytearray(frame())
        damaged[at // 8] ^= 1 << at % 8

        with pytest.raises(ProtocolError):
            FrameDecoder(LIMITS).feed(bytes(damaged))


@given(st.binary(max_size=40), st.sets(st.integers(0, 40 * 8 - 1), min_size=2, max_size=8))
def test_flipped_bits_never_pass_unseen(body: bytes, flips: set[int]) -> None:
    damaged = bytearray(frame(body=body))
    for at in flips:
        damaged[at // 8 % len(damaged)] ^= 1 << at % 8

    try:
        received = FrameDecoder(LIMITS).feed(bytes(damaged))
    except ProtocolError:
        return

    assert received == [] or bytes(damaged) == frame(body=body)


STALL = FrameLimits(data_bytes_max=1 << 20, stall_ms=1000)


def test_a_frame_that_does_not_go_on_is_an_error() -> None:
    """The rest was lost; nothing that comes behind it could be understood."""
    decoder = FrameDecoder(STALL)
    decoder.feed(frame()[:-1])

    for now_ms in (0, 500, 999):
        decoder.on_tick(now_ms)

    with pytest.raises(ProtocolError, match="for 1000 ms: 15 of 16 bytes have arrived"):
        decoder.on_tick(1000)


def test_a_frame_that_grows_by_a_few_bytes_does_not_go_on() -> None:
    decoder = FrameDecoder(STALL)
    decoder.feed(raw_frame(size=1 << 20))
    decoder.on_tick(0)

    for now_ms in range(100, 1000, 100):
        decoder.feed(bytes(50))
        decoder.on_tick(now_ms)

    with pytest.raises(ProtocolError, match="has not gone on"):
        decoder.on_tick(1000)


def test_a_large_frame_on_a_slow_network_is_waited_for() -> None:
    decoder = FrameDecoder(STALL)
    body = bytes(1 << 20)
    whole = b"".join(encode_frame(FrameKind.DATA, [body], STALL))

    received = []
    for at in range(0, len(whole), 70_000):
        received += decoder.feed(whole[at : at + 70_000])
        decoder.on_tick(at // 70_000 * 900)

    assert [bytes(each.body) for each in received] == [body]


@given(st.lists(st.binary(max_size=60)))
def test_random_chunks_raise_nothing_but_protocol_errors(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(LIMITS)

    for chunk in chunks:
        try:
            decoder.feed(chunk)
        except ProtocolError:
            break
        assert decoder.held_bytes < HEADER_BYTES + LIMITS.data_bytes_max
