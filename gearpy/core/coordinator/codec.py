"""Files of a coordinator log as bytes: messages with a checksum each, and marks of an opening.

A file of messages is a header, a table with the size and checksum of each message, and the messages
as msgpack: ``[[version, type, key], {host, username, source, timestamp, values}]``, as in Samza's
`CoordinatorStreamMessage`. So damage of one message leaves the others readable. The checksum of
header and table covers the name of the file, so that one file cannot stand for another.

A mark says what the log has acknowledged: how many files, and which epochs count.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from gearpy.core.coordinator.blocks import HEADER_BYTES, OTHER_VERSION, BlockFormat
from gearpy.core.coordinator.log import CoordinatorMessage
from gearpy.errors import ConfigError, LogDamaged

#: The cure for a damaged file, for people.
ADVICE: Final = (
    "bring the file back from a copy, or see with 'gear checkpoint repair' what is left without it"
)

#: Its number is that of the messages.
_SEGMENT: Final = BlockFormat(b"GEARCLOG", 2)
_MARK: Final = BlockFormat(b"GEARMARK", 2)
_ENTRY: Final = Struct(">II")  # Size and checksum of a message.

#: Limits of one message.
_TYPE_CHARS_MAX: Final = 100
_KEY_CHARS_MAX: Final = 10_000
_NESTING_MAX: Final = 32
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1

_Damaged: TypeAlias = Callable[[int, str], LogDamaged]
_RECORD: Final = msgspec.msgpack.Decoder(tuple[tuple[int, str, str], dict[str, Any]])
_TEXTS: Final = ("host", "username", "source")


def check_message(message: CoordinatorMessage) -> None:
    """Refuse a message that could not be read back unchanged."""
    type_, key = message.type, message.key
    if not 0 < len(type_) <= _TYPE_CHARS_MAX:
        raise ConfigError(
            f"type {type_[:_TYPE_CHARS_MAX]!r} of a message has {len(type_)} characters, "
            f"allowed are 1 to {_TYPE_CHARS_MAX}"
        )
    if not 0 < len(key) <= _KEY_CHARS_MAX:
        raise ConfigError(
            f"the key of a message {type_} has {len(key)} characters, allowed are 1 to "
            f"{_KEY_CHARS_MAX}"
        )
    if message.values is not None:
        _check_plain(message.values, f"{type_} {key}", _NESTING_MAX)
    try:
        msgspec.msgpack.encode([type_, key, message.values])
    except UnicodeEncodeError as error:
        raise ConfigError(f"message {type_} {key!r} has text that is none: {error}") from error


def encode_segment(messages: Iterable[CoordinatorMessage], *, name: str) -> bytes:
    records = [
        msgspec.msgpack.encode(
            (
                (each.version, each.type, each.key),
                {
                    **each.extras,
                    "host": each.host,
                    "username": each.username,
                    "source": each.source,
                    "timestamp": each.timestamp_ms,
                    "values": None if each.values is None else dict(each.values),
                },
            )
        )
        for each in messages
    ]
    table = b"".join(_ENTRY.pack(len(each), crc32(each)) for each in records)
    return b"".join([_SEGMENT.header(len(records), table, name=name), table, *records])


def decode_segment(data: bytes, *, name: str, log: str) -> Sequence[CoordinatorMessage]:
    found = salvage_segment(data, name=name, log=log)
    if found.damage is not None:
        raise found.damage
    return found.messages


class Salvaged(NamedTuple):
    """The readable messages of a file, and its first damage.

    ``lost`` is the number of unreadable messages; None if it is not known.
    """

    messages: Sequence[CoordinatorMessage]
    damage: LogDamaged | None = None
    lost: int | None = 0


def salvage_segment(data: bytes, *, name: str, log: str) -> Salvaged:
    damaged = _damaged(f"{log}/{name}")
    try:
        count = _SEGMENT.number(data, damaged)
        table = data[HEADER_BYTES : HEADER_BYTES + count * _ENTRY.size]
        if len(table) < count * _ENTRY.size:
            raise damaged(len(data), f"it ends within the table of its {count} messages")
        _SEGMENT.check(data, damaged, table, name=name)
    except LogDamaged as damage:
        return Salvaged((), damage, None)
    messages, first, at = list[CoordinatorMessage](), None, HEADER_BYTES + len(table)
    for number, (size, checksum) in enumerate(_ENTRY.iter_unpack(table), 1):
        record = data[at : at + size]
        which = f"message {number} of {count}"
        if len(record) < size:
            first = first or damaged(len(data), f"it ends within {which}")
        elif crc32(record) != checksum:
            first = first or damaged(at, f"the checksum of {which} does not match")
        else:
            try:
                messages.append(_message_in(record))
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                first = first or damaged(at, f"{which} is malformed: {error}")
        at += size
    if len(data) > at:
        first = first or damaged(at, f"{len(data) - at} bytes follow its last message")
    return Salvaged(messages, first, count - len(messages))


def _message_in(record: bytes) -> CoordinatorMessage:
    (version, type_, key), value = _RECORD.decode(record)
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


class CommitMark(NamedTuple):
    """The acknowledgement by an opening of the log: all files from its ``base`` up to ``serial``.

    Both are 0 before the first. ``epochs`` are the keys of the epochs that count then: any other
    epoch that is found was deleted by a message that is lost.
    """

    serial: int = 0
    base: int = 0
    epochs: tuple[str, ...] = ()


def encode_mark(mark: CommitMark, *, name: str) -> bytes:
    return _MARK.block(msgspec.msgpack.encode(mark), name=name)


def decode_mark(data: bytes, *, name: str, log: str) -> CommitMark:
    damaged = _damaged(f"{log}/{name}")
    try:
        return msgspec.msgpack.decode(_MARK.body(data, damaged, name=name), type=CommitMark)
    except (msgspec.DecodeError, ValueError) as error:
        raise damaged(HEADER_BYTES, f"it is no mark: {error}") from error


def _damaged(file: str) -> _Damaged:
    def damaged(offset: int, reason: str) -> LogDamaged:
        fix = "use the gearpy that wrote it" if OTHER_VERSION in reason else ADVICE
        return LogDamaged(file=file, offset=offset, reason=reason, fix=fix)

    return damaged


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
