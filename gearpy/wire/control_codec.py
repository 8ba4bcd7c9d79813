"""Questions and answers on a control connection, and what nodes say to each other <-> frames.

A request or tell is ``u64 request id | control message``; a reply is ``u64 request id | u8
outcome | control message, nothing, or class name and text of an error``. The id of a reply is that
of its request. What follows it is also the body of a letter that answers. A node frame is a message
of `messages.node`.
"""

import struct
from typing import Final

import msgspec

from gearpy import errors
from gearpy.errors import GearpyError, ProtocolError
from gearpy.messages.node import NodeMessage
from gearpy.wire.codec import decode_control, encode_control
from gearpy.wire.connection.frames import Frame, FrameKind, FrameLimits, encode_frame

__all__ = [
    "decode_answer",
    "decode_node",
    "decode_reply",
    "decode_request",
    "encode_answer",
    "encode_error",
    "encode_node",
    "encode_reply",
    "encode_request",
    "encode_tell",
    "request_id_of",
]

_ID: Final = struct.Struct("<Q")
_REPLY: Final = struct.Struct("<QB")
_MESSAGE: Final = 0
_NOTHING: Final = 1
_ERROR: Final = 2

#: Texts of errors are cut, lest the reply be refused for its size.
_ERROR_CHARS_MAX: Final = 100_000

_Buffers = list[bytes | memoryview]
_ERROR_DECODER: Final = msgspec.msgpack.Decoder(tuple[str, str])

#: Errors that arrive as what they were: those made of one text.
_ERRORS: Final[dict[str, type[GearpyError]]] = {
    name: getattr(errors, name)
    for name in errors.__all__
    if "__init__" not in vars(getattr(errors, name)) or name == "ConfigError"
}


def encode_request(request_id: int, message: object, limits: FrameLimits) -> _Buffers:
    """Return the frame of a question."""
    body: _Buffers = [_ID.pack(request_id), encode_control(message)]
    return encode_frame(FrameKind.CONTROL_REQUEST, body, limits)


def encode_tell(message: object, limits: FrameLimits) -> _Buffers:
    """Return the frame of a message that wants no answer."""
    return encode_frame(FrameKind.CONTROL_TELL, [_ID.pack(0), encode_control(message)], limits)


def encode_reply(request_id: int, message: object | None, limits: FrameLimits) -> _Buffers:
    """Return the frame of an answer; None is an answer too."""
    outcome = _NOTHING if message is None else _MESSAGE
    head = _REPLY.pack(request_id, outcome)
    body: _Buffers = [head] if message is None else [head, encode_control(message)]
    return encode_frame(FrameKind.CONTROL_REPLY, body, limits)


def encode_error(request_id: int, error: Exception, limits: FrameLimits) -> _Buffers:
    """Return the frame that answers with an error: its class name and text."""
    body: _Buffers = [_REPLY.pack(request_id, _ERROR), _encoded_error(error)]
    return encode_frame(FrameKind.CONTROL_REPLY, body, limits)


def encode_answer(answer: object | None) -> bytes:
    """Return the body of a letter that answers: a control message, None, or an exception."""
    if answer is None:
        return bytes([_NOTHING])
    if isinstance(answer, Exception):
        return bytes([_ERROR]) + _encoded_error(answer)
    return bytes([_MESSAGE]) + encode_control(answer)


def decode_answer(body: bytes | memoryview) -> object | None:
    """Return what a letter answers; it may be a `GearpyError`. Raises `ProtocolError`."""
    if not body:
        raise ProtocolError("malformed answer in a letter: it is empty")
    return _answer(body[0], memoryview(body)[1:], "a letter")


def encode_node(message: NodeMessage, limits: FrameLimits) -> _Buffers:
    """Return the frame of what one node says to another."""
    return encode_frame(FrameKind.NODE, [encode_control(message)], limits)


def decode_node(frame: Frame) -> NodeMessage:
    """Return what another node says.

    Raises:
        ProtocolError: it is something else, or malformed.
    """
    if frame.kind is not FrameKind.NODE:
        raise ProtocolError(f"a {frame.kind.name} frame is not allowed on a connection of nodes")
    message = decode_control(frame.body)
    if not isinstance(message, NodeMessage):
        raise ProtocolError(f"{type(message).__name__} is nothing that one node says to another")
    return message


def _encoded_error(error: Exception) -> bytes:
    text = str(error)[:_ERROR_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
    return msgspec.msgpack.encode((type(error).__name__, text))


def request_id_of(frame: Frame) -> int | None:
    """Return which request a frame asks, or None for a tell.

    Raises:
        ProtocolError: it is neither, or malformed.
    """
    if frame.kind not in {FrameKind.CONTROL_REQUEST, FrameKind.CONTROL_TELL}:
        raise ProtocolError(f"a {frame.kind.name} frame is not allowed on a control connection")
    if len(frame.body) < _ID.size:
        raise ProtocolError(f"malformed {frame.kind.name} frame of {len(frame.body)} bytes")
    return None if frame.kind is FrameKind.CONTROL_TELL else _ID.unpack_from(frame.body)[0]


def decode_request(frame: Frame) -> object:
    """Return the message of a request or tell, or raise `ProtocolError`."""
    return decode_control(frame.body[_ID.size :])


def decode_reply(frame: Frame) -> tuple[int, object | None]:
    """Return the id and the answer of a reply; the answer may be a `GearpyError`.

    Raises:
        ProtocolError: it is no reply, or malformed.
    """
    if frame.kind is not FrameKind.CONTROL_REPLY:
        raise ProtocolError(f"expected a CONTROL_REPLY frame, got {frame.kind.name}")
    if len(frame.body) < _REPLY.size:
        raise ProtocolError(f"malformed CONTROL_REPLY frame of {len(frame.body)} bytes")
    request_id, outcome = _REPLY.unpack_from(frame.body)
    return request_id, _answer(outcome, frame.body[_REPLY.size :], "a CONTROL_REPLY frame")


def _answer(outcome: int, body: memoryview, where: str) -> object | None:
    if outcome == _MESSAGE:
        return decode_control(body)
    if outcome == _ERROR:
        return _error(body, where)
    if outcome == _NOTHING and not body:
        return None
    raise ProtocolError(f"malformed answer in {where}: outcome {outcome}, {len(body)} bytes")


def _error(body: memoryview, where: str) -> GearpyError:
    try:
        name, text = _ERROR_DECODER.decode(body)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"malformed error in {where}: {error}") from error
    known = _ERRORS.get(name)
    return GearpyError(f"{name}: {text}") if known is None else known(text)
