"""Forms of values in topics: bytes, text, JSON, MessagePack, and those of others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgpack
import msgspec

from gearpy.columns.json_text import json_of
from gearpy.errors import ConfigError

#: Forms that are known by a name.
FormName: TypeAlias = Literal["bytes", "text", "json", "msgpack"]
_BYTES_ONLY: Final = {bytes}
_JSON_ATOMS: Final = frozenset({str, int, bool, type(None)})
#: One for all, as a program that is compared with its next version knows it by that.
_OF_JSON: Final = msgspec.json.Decoder().decode


class ValueForm(ABC):
    """The form of values in a topic. Used by one task, after `begin`."""

    name: str

    def begin(self, operator: str) -> None:  # noqa: B027 - most need nothing
        """Learn the source or sink that uses the form; load the modules that it needs."""

    def prepare(self, topic: str) -> None:  # noqa: B027 - as above
        """Learn the facts for writing to a topic, such as the number of the schema there."""

    @abstractmethod
    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        """Return the values of records; None for one without. Another form is a `ValueError`."""

    @abstractmethod
    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        """Return the bytes for records of a topic; or raise ValueError or TypeError."""


class PlainForm(ValueForm):
    """A form of single values, by two functions."""

    def __init__(
        self, name: str, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]
    ) -> None:
        self.name = name
        self._decode = decode
        self._encode = encode

    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        try:
            return [None if body is None else self._decode(body) for body in bodies]
        except (msgspec.MsgspecError, msgpack.UnpackException, TypeError, RecursionError) as error:
            raise ValueError(f"is no {self.name}: {str(error) or type(error).__name__}") from error

    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        return list(map(self._encode, values))


class BytesForm(ValueForm):
    """Values as they are in the topic; a record without a value is None."""

    name = "bytes"

    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        return list(bodies)

    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        if not set(map(type, values)) <= _BYTES_ONLY:
            wrong = next(each for each in values if type(each) is not bytes)
            raise TypeError(
                f"the value is {type(wrong).__name__}, not bytes: choose value='text' or 'json', "
                "or make bytes of it"
            )
        return list(values)


class TextForm(ValueForm):
    """Text in UTF-8; a record without a value is None."""

    name = "text"

    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        try:
            return [None if body is None else str(body, "utf-8") for body in bodies]
        except UnicodeDecodeError as error:
            raise ValueError(f"is no text in UTF-8: {error}; choose value='bytes'") from error

    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        try:
            return list(map(str.encode, values))
        except TypeError as error:
            raise TypeError(f"a value is no text: choose value='json': {error}") from error


def _json_bytes(value: Any) -> bytes:
    if type(value) in _JSON_ATOMS:
        return msgspec.json.encode(value)
    return json_of(value).encode()  # Others msgspec may change: NaN becomes null, bytes a text.


def form_of(operator: str, argument: str, given: Any) -> ValueForm:
    if isinstance(given, str) and given in get_args(FormName):
        if given == "bytes":
            return BytesForm()
        if given == "text":
            return TextForm()
        if given == "json":
            return PlainForm(given, _OF_JSON, _json_bytes)
        return PlainForm(given, msgpack.unpackb, msgpack.packb)
    if isinstance(given, ValueForm) and not isinstance(given, type):
        return given
    raise ConfigError(
        f"{operator}: {argument} is {given!r:.100}, must be one of "
        f"{', '.join(get_args(FormName))}, or gp.avro(...) or gp.protobuf(...)"
    )
