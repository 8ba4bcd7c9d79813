"""Protobuf as a form of values, by classes that protoc has made."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from gearpy.connectors.kafka.protobuf_values import filled, of_field, plain
from gearpy.connectors.kafka.registry import (
    HEAD_BYTES,
    MAGIC,
    Reference,
    RegistrySchema,
    SchemaRegistry,
    number_of,
)
from gearpy.connectors.kafka.values import ValueForm
from gearpy.distribution import require
from gearpy.errors import ConfigError

#: Files whose names begin so are known to every registry.
_KNOWN_TO_ALL: Final = "google/protobuf/"
_KIND: Final = "PROTOBUF"
_NUMBER_BITS_MAX: Final = 70  # Protobuf itself writes no more for a number.


def protobuf(message: Any, *, registry: SchemaRegistry | str | None = None) -> "ProtobufForm":
    """Return Protobuf as the form of the values of a topic.

    A source gives the messages as dicts, by the names of the ``.proto`` file; numbers of 64 bits
    are numbers, bytes are bytes. A ``Timestamp`` is a datetime in UTC, a ``Duration`` a timedelta,
    both without what is finer than a microsecond; a wrapper is its value, a ``Struct`` a dict, a
    ``ListValue`` a list, a ``Value`` what it holds. A sink takes the same, or messages.

    Args:
        message: the class that protoc has made of the ``.proto`` file.
        registry: give it, or its address, if records begin with the number of a schema, as
            Confluent's clients write them. The class alone says what the fields are; of each
            number the registry is asked whether its schema is one of Protobuf.

    Raises:
        ConfigError: the class is none of Protobuf.

    Example:
        >>> import gearpy as gp
        >>> from google.protobuf.duration_pb2 import Duration
        >>> gp.protobuf(Duration).name
        'protobuf'
    """
    require("protobuf", "google.protobuf")
    if not (isinstance(message, type) and hasattr(message, "DESCRIPTOR")):
        raise ConfigError(f"protobuf: {message!r:.100} is no class that protoc has made")
    if isinstance(registry, str):
        registry = SchemaRegistry(registry)
    return ProtobufForm(message, registry)


class ProtobufForm(ValueForm):
    name = "protobuf"

    def __init__(self, message: Any, registry: SchemaRegistry | None) -> None:
        self._message = message
        self._registry = registry
        self._heads: dict[str, bytes] = {}  # They are by topic.
        self._known: set[int] = set()  # Schemas of the registry that are of Protobuf.

    def begin(self, operator: str) -> None:
        from google.protobuf.message import Message  # noqa: PLC0415 - an extra

        self._base = Message

    def prepare(self, topic: str) -> None:
        self._head(topic)

    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        return [None if body is None else self._decoded(body) for body in bodies]

    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        head = self._head(topic)
        return [head + self._message_of(value).SerializeToString() for value in values]

    def _decoded(self, body: bytes) -> Any:
        message = self._message()
        try:
            message.ParseFromString(body[self._begin(body) :])
        except Exception as error:  # DecodeError is of a class that differs between versions.
            raise ValueError(f"is no {self._message.__name__} of Protobuf: {error}") from error
        try:
            return plain(message)
        except (OverflowError, ValueError) as error:  # A time that Python has no value for.
            unreadable = "a value that Python has none for"
            for field, _ in message.ListFields():
                try:
                    of_field(message, field)
                except (OverflowError, ValueError):
                    unreadable = f"a field {field.name!r} that Python has no value for"
                    break
            name = self._message.__name__
            raise ValueError(f"is a {name} with {unreadable}: {error}") from error

    def _begin(self, body: bytes) -> int:
        """Return where the message begins: behind the number of its schema and its place there."""
        if self._registry is None:
            return 0
        number = number_of(body)
        if number not in self._known:
            kind = self._registry.schema(number).kind
            if kind != _KIND:
                raise ValueError(
                    f"its schema, {number} of the registry, is {kind} and none of Protobuf"
                )
            self._known.add(number)
        count, at = _number(body, HEAD_BYTES)
        for _ in range(count):
            _, at = _number(body, at)
        return at

    def _message_of(self, value: Any) -> Any:
        if isinstance(value, self._base):
            return value
        try:
            return filled(self._message(), value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the value is no {self._message.__name__}: {error}") from error

    def _head(self, topic: str) -> bytes:
        if self._registry is None:
            return b""
        if topic not in self._heads:
            of = self._message.DESCRIPTOR
            schema = _schema_of(self._registry, of.file)
            number = self._registry.register(f"{topic}-value", schema)
            places = _places(of)
            path = (
                b"\x00"
                if places == [0]
                else _written(len(places)) + b"".join(map(_written, places))
            )
            self._heads[topic] = MAGIC + number.to_bytes(4, "big") + path
        return self._heads[topic]


def _schema_of(registry: SchemaRegistry, file: Any) -> RegistrySchema:
    references = []
    for imported in file.dependencies:
        if imported.name.startswith(_KNOWN_TO_ALL):
            continue
        schema = _schema_of(registry, imported)
        registry.register(imported.name, schema)
        version = registry.version(imported.name, schema)
        references.append(Reference(imported.name, imported.name, version))
    text = base64.b64encode(file.serialized_pb).decode()
    return RegistrySchema(text, _KIND, references)


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return a number of the head, in Protobuf's zigzag form, and the place behind it."""
    value = shift = 0
    while shift < _NUMBER_BITS_MAX:
        if at >= len(body):
            raise ValueError("is cut off")
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("has a number in its head that never ends")


def _written(number: int) -> bytes:
    """Return a number that is not negative in the form of `_number`."""
    value, out = number << 1, bytearray()
    while value > 0x7F:  # noqa: PLR2004 - as many bits as a byte takes
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _places(of: Any) -> list[int]:
    """Return the place of a class in its file: of its outermost class, then inwards."""
    if of.containing_type is None:
        return [list(of.file.message_types_by_name).index(of.name)]
    inside = [each.name for each in of.containing_type.nested_types]
    return [*_places(of.containing_type), inside.index(of.name)]
