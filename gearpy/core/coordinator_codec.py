"""Files of a coordinator log as bytes: a header with a checksum, then messages as msgpack.

A message is ``[[version, type, key], {host, username, source, timestamp, values}]``, as in Samza's
`CoordinatorStreamMessage`. The checksum covers the name of the file, so that one file cannot stand
for another.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, Final
from zlib import crc32

import msgspec

from gearpy.core.coordinator_log import CoordinatorMessage, MessageDraft
from gearpy.errors import ConfigError, LogDamaged

__all__ = ["FORMAT_VERSION", "check_draft", "decode_segment", "encode_segment"]

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"GEARCLOG"
_HEADER: Final = Struct(">8sHQI")  # Magic, version, size of the body, checksum.
_CHECKED: Final = Struct(">8sHQ")

#: Limits of one message.
_TYPE_CHARS_MAX: Final = 100
_KEY_CHARS_MAX: Final = 10_000
_NESTING_MAX: Final = 32
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1

_RECORDS: Final = msgspec.msgpack.Decoder(list[tuple[tuple[int, str, str], dict[str, Any]]])
_TEXTS: Final = ("host", "username", "source")


def check_draft(draft: MessageDraft) -> None:
    """Refuse what could not be read again as it was.

    Raises:
        ConfigError: the type or key is empty or too long, or the values are not plain.
    """
    if not 0 < len(draft.type) <= _TYPE_CHARS_MAX:
        raise ConfigError(
            f"type {draft.type[:_TYPE_CHARS_MAX]!r} of a message has {len(draft.type)} characters, "
            f"allowed are 1 to {_TYPE_CHARS_MAX}"
        )
    if not 0 < len(draft.key) <= _KEY_CHARS_MAX:
        raise ConfigError(
            f"the key of a message {draft.type} has {len(draft.key)} characters, allowed are 1 to "
            f"{_KEY_CHARS_MAX}"
        )
    if draft.values is not None:
        _check_plain(draft.values, f"{draft.type} {draft.key}", _NESTING_MAX)
    try:
        msgspec.msgpack.encode([draft.type, draft.key, draft.values])
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"message {draft.type} {draft.key!r} has text that is none: {error}"
        ) from error


def encode_segment(messages: Iterable[CoordinatorMessage], *, name: str) -> bytes:
    """Return the file that holds these messages, under a name."""
    body = msgspec.msgpack.encode([_record_of(each) for each in messages])
    checked = _CHECKED.pack(_MAGIC, FORMAT_VERSION, len(body))
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, len(body), _checksum(name, checked, body)) + body


def decode_segment(data: bytes, *, name: str, log: str) -> Sequence[CoordinatorMessage]:
    """Return the messages that `encode_segment` was given for this name.

    Raises:
        LogDamaged: it is not what was stored, or of another version of gearpy.
    """
    body = _body_of(data, name, f"{log}/{name}")
    try:
        return [_message_of(*each) for each in _RECORDS.decode(body)]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        reason = f"malformed messages: {error}"
        raise LogDamaged(file=f"{log}/{name}", offset=_HEADER.size, reason=reason) from error


def _body_of(data: bytes, name: str, file: str) -> bytes:
    if len(data) < _HEADER.size:
        reason = f"it ends after {len(data)} bytes, within its header"
        raise LogDamaged(file=file, offset=len(data), reason=reason)
    magic, version, size, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise LogDamaged(file=file, offset=0, reason="it does not begin as it must")
    if version != FORMAT_VERSION:
        reason = f"format version {version}, this gearpy reads version {FORMAT_VERSION}"
        raise LogDamaged(file=file, offset=len(_MAGIC), reason=reason)
    body = data[_HEADER.size :]
    if len(body) != size:
        reason = f"it holds {len(body)} bytes of {size}"
        raise LogDamaged(file=file, offset=len(data), reason=reason)
    if _checksum(name, data[: _CHECKED.size], body) != checksum:
        raise LogDamaged(file=file, offset=_HEADER.size, reason="the checksum does not match")
    return body


def _checksum(name: str, checked: bytes, body: bytes) -> int:
    return crc32(body, crc32(checked, crc32(name.encode())))


def _record_of(message: CoordinatorMessage) -> tuple[tuple[int, str, str], dict[str, Any]]:
    return (message.version, message.type, message.key), {
        **message.extras,
        "host": message.host,
        "username": message.username,
        "source": message.source,
        "timestamp": message.timestamp_ms,
        "values": None if message.values is None else dict(message.values),
    }


def _message_of(place: tuple[int, str, str], value: dict[str, Any]) -> CoordinatorMessage:
    version, type_, key = place
    texts = {name: value.pop(name, "") for name in _TEXTS}
    timestamp, values = value.pop("timestamp", 0), value.pop("values", None)
    if not all(isinstance(each, str) for each in texts.values()) or not isinstance(timestamp, int):
        raise ValueError(f"message {type_} {key} does not say where it is from")
    if values is not None and not isinstance(values, dict):
        raise ValueError(f"message {type_} {key} has {type(values).__name__} for values")
    return CoordinatorMessage(
        type=type_,
        key=key,
        values=values,
        timestamp_ms=timestamp,
        version=version,
        extras=value,
        **texts,
    )


def _check_plain(value: Any, where: str, levels: int) -> None:
    if not levels:
        raise ConfigError(f"message {where}: values nest deeper than {_NESTING_MAX}")
    match value:
        case None | bool() | float() | str() | bytes():
            return
        case int() if _INT_MIN <= value <= _INT_MAX:
            return
        case list():
            for each in value:
                _check_plain(each, where, levels - 1)
        case dict() if all(isinstance(key, str) for key in value):
            for each in value.values():
                _check_plain(each, where, levels - 1)
        case _:
            raise ConfigError(
                f"message {where} holds {str(value)[:100]!r} ({type(value).__name__}): values are "
                "None, bool, int of 64 bits, float, str, bytes, list, and dict with str as keys"
            )
