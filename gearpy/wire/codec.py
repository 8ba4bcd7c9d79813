"""Control messages <-> bytes: ``[protocol version, class name, fields]`` in msgpack.

Only the classes of the modules of `messages`, `data` excepted, can travel, and a message is
accepted only in exactly the form that `encode_control` gives it: every field of its version
present, none beside them, every value of the declared type. A message that an older process has
made, and one that is made for it, is without the fields that it does not know, see
`messages.versions`.

An answer, in the body of a letter, is ``u8 outcome | control message, nothing, or class name and
text of an error``. A frame of kind `NODE` holds a message of `messages.peer`.
"""

from types import ModuleType
from typing import Any, Final

import msgspec

from gearpy import errors
from gearpy.errors import GearpyError, ProtocolError
from gearpy.messages import actor_app, app, client, cluster, masters, metrics, peer, summaries
from gearpy.messages.cluster import LastAnswer
from gearpy.messages.peer import Letter, PeerMessage
from gearpy.messages.versions import ADDED, NEWEST, PROTOCOL
from gearpy.wire.connection.frames import (
    Frame,
    FrameKind,
    FrameLimits,
    encode_frame,
)


def _structs_of(*modules: ModuleType) -> dict[str, type[msgspec.Struct]]:
    classes: dict[str, type[msgspec.Struct]] = {}
    for module in modules:
        for name, cls in vars(module).items():
            is_own = getattr(cls, "__module__", "") == module.__name__ and name[0] != "_"
            if is_own and isinstance(cls, type) and issubclass(cls, msgspec.Struct):
                assert name not in classes, f"two control messages are called {name}"
                classes[name] = cls
    return classes


#: Every class that may cross a control connection, by its name on the wire.
CONTROL_CLASSES: Final = _structs_of(
    actor_app, app, client, cluster, masters, metrics, peer, summaries
)

_ENVELOPE: Final = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])
_DECODERS: Final[dict[str, msgspec.msgpack.Decoder[Any]]] = {
    name: msgspec.msgpack.Decoder(cls) for name, cls in CONTROL_CLASSES.items()
}


def encode_control(message: object, version: int = PROTOCOL.newest) -> bytes:
    """Return a control message as bytes, in a version that both sides speak."""
    name = type(message).__name__
    assert CONTROL_CLASSES.get(name) is type(message), f"{name} is no control message"
    if not _is_in(name, version):
        raise ProtocolError(f"there is no control message {name!r} in protocol version {version}")
    form = _form(_with_older_contents(message, version), version)
    try:
        return msgspec.msgpack.encode((version, name, form))
    except UnicodeEncodeError:
        # Text of users' errors may hold lone surrogates; escaped text beats a lost message.
        plain = _escaped(msgspec.to_builtins(form))
        return msgspec.msgpack.encode((version, name, plain))


def decode_control(data: bytes | memoryview) -> object:
    """Return the control message that `encode_control` made into ``data``.

    Fields that its version does not know have their defaults.

    Raises:
        ProtocolError: unknown version or class, or a field that is missing, unknown or of
            the wrong type; the text names class and field.
    """
    try:
        version, name, fields = _ENVELOPE.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ProtocolError(f"malformed control message: {error}") from error
    if not PROTOCOL.knows(version):
        raise ProtocolError(
            f"control message {name!r} of protocol version {version}, expected {PROTOCOL.text}"
        )
    decoder = _DECODERS.get(name)
    if decoder is None or not _is_in(name, version):
        raise ProtocolError(f"unknown control message {name!r}")
    try:
        message: object = decoder.decode(fields)
    except (msgspec.DecodeError, RecursionError, OverflowError, ValueError) as error:
        raise ProtocolError(f"control message {name}: {error}") from error
    form = _form(message, version)
    if msgspec.msgpack.encode(form) != bytes(fields):
        raise ProtocolError(f"control message {name}: {_surplus(form, fields)}")
    return message


def _is_in(name: str, version: int) -> bool:
    return version >= NEWEST or ADDED.get(name) != ()


def _form(message: Any, version: int) -> Any:
    return message if version >= NEWEST else _older_form(message)


def _older_form(value: Any) -> Any:
    """Return plain data without the fields that the version before does not know."""
    if isinstance(value, msgspec.Struct):
        added = ADDED.get(type(value).__name__, ())
        names = (name for name in value.__struct_fields__ if name not in added)
        return {name: _older_form(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: _older_form(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_older_form(item) for item in value]
    return value


def _with_older_contents(message: object, version: int) -> object:
    """Return a message that has encoded ones inside with these in another version, too."""
    if version < NEWEST and isinstance(message, Letter):
        answer = bytes([_MESSAGE])
        head = answer if message.answers and message.body.startswith(answer) else b""
        rest = _in_version(message.body[len(head) :], version)
        return msgspec.structs.replace(message, body=head + rest)
    if version < NEWEST and isinstance(message, LastAnswer):
        return msgspec.structs.replace(message, answer=_in_version(message.answer, version))
    return message


def _in_version(encoded: bytes, version: int) -> bytes:
    """Return an encoded message in another version; as it is where that has no such message.

    Then the receiver refuses it by its name, and says so to the process that asks.
    """
    try:
        return encode_control(decode_control(encoded), version)
    except ProtocolError:
        return encoded


def _surplus(message: object, fields: msgspec.Raw) -> str:
    """Say how the received fields differ from those of the message that was decoded.

    msgspec fills in defaults and skips unknown fields of dataclasses; the first difference of
    the two forms is one of those.
    """
    try:
        received = msgspec.msgpack.decode(fields)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError) as error:
        return f"malformed value in a field that was skipped: {error}"
    return _difference(msgspec.to_builtins(message), received, "$") or "not in canonical form"


def _difference(expected: Any, received: Any, path: str) -> str:
    if isinstance(expected, dict) and isinstance(received, dict):
        for name in sorted(received.keys() - expected.keys(), key=str):
            return f"unknown field {name!r} - at `{path}`"
        for name in sorted(expected.keys() - received.keys(), key=str):
            return f"missing field {name!r} - at `{path}`"
        children = ((expected[name], received[name], f"{path}.{name}") for name in expected)
    elif isinstance(expected, list | tuple) and isinstance(received, list):
        pairs = enumerate(zip(expected, received, strict=True))
        children = ((one, other, f"{path}[{at}]") for at, (one, other) in pairs)
    else:
        return ""
    return next(filter(None, (_difference(*child) for child in children)), "")


def _escaped(value: Any) -> Any:
    """Return plain data with lone surrogates in its text written as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value


# -- answers and letters -----------------------------------------------------------------------

_MESSAGE: Final = 0
_NOTHING: Final = 1
_ERROR: Final = 2

#: Texts of errors are cut, lest the answer be refused for its size.
_ERROR_CHARS_MAX: Final = 100_000
_ERROR_DECODER: Final = msgspec.msgpack.Decoder(tuple[str, str])

#: Errors that arrive as what they were: those made of one text.
_ERRORS: Final[dict[str, type[GearpyError]]] = {
    name: getattr(errors, name)
    for name in errors.__all__
    if "__init__" not in vars(getattr(errors, name)) or name == "ConfigError"
}


def encode_answer(answer: object | None) -> bytes:
    if answer is None:
        return bytes([_NOTHING])
    if isinstance(answer, Exception):
        text = str(answer)[:_ERROR_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
        return bytes([_ERROR]) + msgspec.msgpack.encode((type(answer).__name__, text))
    return bytes([_MESSAGE]) + encode_control(answer)


def decode_answer(body: bytes | memoryview) -> object | None:
    """Return the answer in a letter; it may be a `GearpyError`."""
    outcome, rest = bytes(body[:1]), memoryview(body)[1:]
    if outcome == bytes([_MESSAGE]):
        return decode_control(rest)
    if outcome == bytes([_ERROR]):
        try:
            name, text = _ERROR_DECODER.decode(rest)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(f"malformed error in an answer: {error}") from error
        known = _ERRORS.get(name)
        return GearpyError(f"{name}: {text}") if known is None else known(text)
    if outcome == bytes([_NOTHING]) and not rest:
        return None
    raise ProtocolError(
        f"malformed answer: outcome {outcome.hex() or 'missing'}, {len(body)} bytes"
    )


def encode_peer(
    message: PeerMessage, limits: FrameLimits, version: int = PROTOCOL.newest
) -> list[bytes | memoryview]:
    """Return the frame of a message from one process to another, in their common version."""
    return encode_frame(FrameKind.PEER, [encode_control(message, version)], limits)


def decode_peer(frame: Frame) -> PeerMessage:
    if frame.kind is not FrameKind.PEER:
        raise ProtocolError(f"a {frame.kind.name} frame is not allowed on a connection of peers")
    message = decode_control(frame.body)
    if not isinstance(message, PeerMessage):
        raise ProtocolError(f"{type(message).__name__} is nothing that one peer says to another")
    return message
