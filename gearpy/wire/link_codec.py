"""Messages of tasks to each other <-> frames.

Every body begins with ``u64 session | u64 source task | u64 target task``. The records of a
batch stay encoded: the task that gets them decodes them in its own thread.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from gearpy.errors import ProtocolError
from gearpy.ids import SessionId, TaskId
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
from gearpy.messages.versions import NEWEST
from gearpy.wire.connection.frames import HEADER_BYTES, Frame, FrameKind, FrameLimits, encode_frame
from gearpy.wire.values.extensions import EncoderPool
from gearpy.wire.values.payload import decode_batch, decode_value, encode_batch, holds_table
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry

_LINK: Final = struct.Struct("<QQQ")  # Session, source, target.
_ONE: Final = struct.Struct("<QQQQ")  # The same and a sequence number or time.
_ACK: Final = struct.Struct("<QQQQQ")  # The same, sequence number and count.
_ROOM: Final = struct.Struct("<Q")  # It may follow an ack.
_SINCE_ROOM: Final = 2  # The first version that knows it.
#: The link, then: sequence number, epoch, watermark, flags, records, size for flow control.
_DATA: Final = struct.Struct("<QQQQQqBIQ")

#: It follows where the partition is known: source, partition, offset, flags.
_ORIGIN: Final = struct.Struct("<IIQB")

_LEAD: Final = HEADER_BYTES + _DATA.size  # Bytes of a frame before the records, or an origin.

_IDLE: Final = 1  # Flags.
_HAS_ORIGIN: Final = 2
_FLAGS_OF_ORIGIN: Final = 4  # The least bits, in the order of `Origin`.

#: Smaller bodies are copied, lest a few bytes keep a whole receive buffer alive.
_COPY_BELOW_BYTES: Final = 4096

_Buffers = list[bytes | memoryview]


class LinkCodec:
    """Encodes and decodes link messages with one set of record classes and limits.

    Any thread may use it.
    """

    def __init__(
        self,
        registry: RecordRegistry = DEFAULT_REGISTRY,
        limits: FrameLimits = FrameLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._registry = registry
        self._encoders = EncoderPool(registry)
        self._limits = limits

    def encode(self, message: LinkMessage, version: int = NEWEST) -> _Buffers:
        """Return the buffers of one frame, to be sent one after the other.

        Args:
            version: of the wire protocol, which both ends know.

        Raises:
            ConfigError: a value is of a class that cannot travel, or the frame is too large.
        """
        if type(message) is Ack and version < _SINCE_ROOM:
            message = replace(message, room=0)
        kind, body = _ENCODERS[type(message)](message, self._encoders)
        return encode_frame(kind, body, self._limits)

    def decode(self, frame: Frame) -> LinkMessage:
        """Return the message of a frame; records of a `DataMessage` stay encoded."""
        decode = _DECODERS.get(frame.kind)
        if decode is None:
            raise ProtocolError(f"a {frame.kind.name} frame is not allowed on a link")
        try:
            return decode(frame.body, self._registry)
        except struct.error as error:
            raise ProtocolError(f"malformed {frame.kind.name} frame: {error}") from error

    def decode_batch(self, batch: Batch | EncodedBatch) -> Batch:
        """Return the records of a batch, decoded if it came off the wire."""
        if isinstance(batch, Batch):
            return batch
        decoded = decode_batch(batch.body, batch.count, self._registry)
        decoded.origin = batch.origin
        return decoded


def _encode_data(m: DataMessage, encoders: EncoderPool) -> tuple[FrameKind, _Buffers]:
    batch, origin = m.batch, b""
    if batch.origin.source >= 0:
        source, partition, offset, *flags = batch.origin
        bits = sum(1 << bit for bit, is_set in enumerate(flags) if is_set)
        origin = _ORIGIN.pack(source, partition, offset, bits)
    head = _DATA.pack(
        m.session,
        m.source.packed(),
        m.target.packed(),
        m.seq,
        m.epoch,
        m.watermark_ms,
        (_IDLE if m.idle else 0) | (_HAS_ORIGIN if origin else 0),
        len(batch),
        m.size_bytes,
    )
    head += origin
    if isinstance(batch, EncodedBatch):
        return FrameKind.DATA, [head, batch.body]
    body = encode_batch(
        batch.values,
        batch.timestamps,
        encoders,
        lead=_LEAD + len(origin),
        has_late=batch.has_late,
    )
    return FrameKind.DATA, [head, *body]


def _decode_data(body: memoryview, _: RecordRegistry) -> DataMessage:
    *link, seq, epoch, watermark_ms, flags, records, size = _DATA.unpack_from(body)
    session, source, target = _ids(*link)
    if flags & ~(_IDLE | _HAS_ORIGIN):
        raise ProtocolError(f"unknown flags {flags:#x} in a DATA frame")
    origin, start = NOWHERE, _DATA.size
    if flags & _HAS_ORIGIN:
        *place, bits = _ORIGIN.unpack_from(body, _DATA.size)
        if bits >> _FLAGS_OF_ORIGIN:
            raise ProtocolError(f"unknown flags {bits:#x} of a partition in a DATA frame")
        origin = Origin(*place, *(bool(bits >> bit & 1) for bit in range(_FLAGS_OF_ORIGIN)))
        start += _ORIGIN.size
    rest = body[start:]
    records_body = bytes(rest) if len(rest) < _COPY_BELOW_BYTES else rest
    return DataMessage(
        session=session,
        source=source,
        target=target,
        seq=seq,
        batch=EncodedBatch(records, records_body, holds_table(records_body), origin),
        watermark_ms=watermark_ms,
        idle=bool(flags & _IDLE),
        epoch=epoch,
        size_bytes=size,
    )


def _link_of(m: LinkMessage) -> tuple[int, int, int]:
    return m.session, m.source.packed(), m.target.packed()


def _ids(session: int, source: int, target: int) -> tuple[SessionId, TaskId, TaskId]:
    return SessionId(session), TaskId.unpack(source), TaskId.unpack(target)


_ENCODERS: Final[dict[type, Callable[[Any, EncoderPool], tuple[FrameKind, _Buffers]]]] = {
    DataMessage: _encode_data,
    InitialAckRequest: lambda m, _: (FrameKind.INITIAL_ACK_REQUEST, [_LINK.pack(*_link_of(m))]),
    AckRequest: lambda m, _: (FrameKind.ACK_REQUEST, [_ONE.pack(*_link_of(m), m.seq)]),
    Ack: lambda m, _: (
        FrameKind.ACK,
        [_ACK.pack(*_link_of(m), m.seq, m.received), *([_ROOM.pack(m.room)] if m.room else [])],
    ),
    LatencyProbe: lambda m, _: (FrameKind.LATENCY_PROBE, [_ONE.pack(*_link_of(m), m.sent_ns)]),
    Unmanaged: lambda m, encoders: (
        FrameKind.UNMANAGED,
        [_LINK.pack(*_link_of(m)), encoders.pack(m.value)],
    ),
}


def _decode_ack(body: memoryview, _: RecordRegistry) -> Ack:
    *link, seq, received = _ACK.unpack_from(body)
    rest = body[_ACK.size :]
    return Ack(*_ids(*link), seq, received, *(_ROOM.unpack(rest) if rest else ()))


def _decode_one(
    cls: type[AckRequest] | type[LatencyProbe],
) -> Callable[[memoryview, RecordRegistry], LinkMessage]:
    def decode(body: memoryview, _: RecordRegistry) -> LinkMessage:
        *link, number = _ONE.unpack(body)
        return cls(*_ids(*link), number)

    return decode


_DECODERS: Final[dict[FrameKind, Callable[[memoryview, RecordRegistry], LinkMessage]]] = {
    FrameKind.DATA: _decode_data,
    FrameKind.INITIAL_ACK_REQUEST: lambda body, _: InitialAckRequest(*_ids(*_LINK.unpack(body))),
    FrameKind.ACK_REQUEST: _decode_one(AckRequest),
    FrameKind.ACK: _decode_ack,
    FrameKind.LATENCY_PROBE: _decode_one(LatencyProbe),
    FrameKind.UNMANAGED: lambda body, registry: Unmanaged(
        *_ids(*_LINK.unpack_from(body)), decode_value(body[_LINK.size :], registry)
    ),
}
