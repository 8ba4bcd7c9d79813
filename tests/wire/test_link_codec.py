"""Link messages as frames, see `gearpy.wire.link_codec`."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import FrameTooLarge, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import (
    NOWHERE,
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    EncodedBatch,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Origin,
    Unmanaged,
)
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameKind, FrameLimits
from gearpy.wire.link_codec import LinkCodec

CODEC = LinkCodec()

NUMBERS = st.integers(0, 2**64 - 1)
SESSIONS = NUMBERS.map(SessionId)
TASKS = st.builds(TaskId, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
LINK = (SESSIONS, TASKS, TASKS)
VALUES = st.lists(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.booleans())))
DATA = st.builds(
    DataMessage,
    session=SESSIONS,
    source=TASKS,
    target=TASKS,
    seq=NUMBERS,
    batch=VALUES.map(lambda values: Batch(values, list(range(len(values))))),
    watermark_ms=st.integers(MIN_MS, MAX_MS),
    idle=st.booleans(),
    epoch=NUMBERS,
    size_bytes=NUMBERS,
)
MESSAGES: st.SearchStrategy[LinkMessage] = st.one_of(
    DATA,
    st.builds(InitialAckRequest, *LINK),
    st.builds(AckRequest, *LINK, NUMBERS),
    st.builds(Ack, *LINK, NUMBERS, NUMBERS, NUMBERS),
    st.builds(LatencyProbe, *LINK, NUMBERS),
    st.builds(Unmanaged, *LINK, st.one_of(st.text(), st.tuples(st.integers()))),
)


def test_a_peer_of_the_version_before_is_told_no_room() -> None:
    ack = Ack(SessionId(1), TaskId(1, 0), TaskId(0, 0), 9, 9, room=70)

    old, without = CODEC.encode(ack, version=1), CODEC.encode(replace(ack, room=0))

    assert b"".join(old) == b"".join(without)


def a_data_message(values: list[Any]) -> DataMessage:
    batch = Batch(values, [0] * len(values))
    return DataMessage(SessionId(1), TaskId(0, 0), TaskId(1, 0), 1, batch)


def over_the_wire(message: LinkMessage) -> LinkMessage:
    """Return what arrives of a message; records still encoded."""
    (frame,) = FrameDecoder(FrameLimits()).feed(b"".join(CODEC.encode(message)))
    return CODEC.decode(frame)


@given(MESSAGES)
def test_a_message_arrives_as_it_was_sent(message: LinkMessage) -> None:
    """The invariant: decoding undoes encoding. Gearpump: `MessageSerializerSpec`."""
    arrived = over_the_wire(message)

    if isinstance(arrived, DataMessage):
        assert isinstance(arrived.batch, EncodedBatch)
        arrived.batch = CODEC.decode_batch(arrived.batch)
    assert arrived == message


def test_records_that_are_already_encoded_pass_through() -> None:
    first = over_the_wire(a_data_message(["a", ("b", 1)]))

    second = over_the_wire(first)

    assert isinstance(second, DataMessage)
    assert CODEC.decode_batch(second.batch).values == ["a", ("b", 1)]


def test_a_decoded_batch_is_left_as_it_is() -> None:
    batch = Batch([1], [2])

    assert CODEC.decode_batch(batch) is batch


def test_a_small_body_does_not_keep_its_receive_buffer_alive() -> None:
    small, large = (over_the_wire(a_data_message([b"x" * n])) for n in (10, 10_000))

    assert isinstance(small, DataMessage)
    assert isinstance(small.batch, EncodedBatch)
    assert isinstance(small.batch.body, bytes)
    assert isinstance(large, DataMessage)
    assert isinstance(large.batch, EncodedBatch)
    assert isinstance(large.batch.body, memoryview)


def test_a_batch_over_the_frame_limit_is_refused_by_its_sender() -> None:
    """The peer would close the connection, and everybody's messages with it."""
    codec = LinkCodec(limits=FrameLimits(data_bytes_max=1000))

    with pytest.raises(FrameTooLarge, match=r"raise transport\.frame-max-bytes"):
        codec.encode(a_data_message([b"x" * 1000]))


@given(st.sampled_from(FrameKind), st.binary(max_size=120))
def test_a_malformed_frame_is_a_protocol_error_and_nothing_else(
    kind: FrameKind, body: bytes
) -> None:
    try:
        message = CODEC.decode(Frame(kind, memoryview(body)))
        if isinstance(message, DataMessage):
            CODEC.decode_batch(message.batch)
    except ProtocolError:
        pass


def test_unknown_flags_are_refused() -> None:
    (frame,) = FrameDecoder(FrameLimits()).feed(b"".join(CODEC.encode(a_data_message([]))))
    body = bytearray(frame.body)
    body[48] = 0x80

    with pytest.raises(ProtocolError, match="unknown flags 0x80"):
        CODEC.decode(Frame(FrameKind.DATA, memoryview(body)))


@pytest.mark.parametrize(
    "origin",
    [
        NOWHERE,
        Origin(0, 0, 0),
        Origin(3, 7, 1 << 40, is_alone=True, is_sorted=True, is_by_arrival=True, is_split=True),
    ],
)
def test_partition_of_records_arrives(origin: Origin) -> None:
    message = a_data_message([1, 2])
    assert isinstance(message.batch, Batch)
    message.batch.origin = origin

    arrived = over_the_wire(message)

    assert isinstance(arrived, DataMessage)
    assert arrived.batch.origin == origin
    assert LinkCodec().decode_batch(arrived.batch).origin == origin
