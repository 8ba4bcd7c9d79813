"""LaunchSpec: a worker's instructions to a process it starts, on its standard input."""

import struct
from collections.abc import Callable
from dataclasses import field
from typing import Final

import msgspec

from gearpy.errors import ProtocolError
from gearpy.late_dataclass import dataclass
from gearpy.messages.cluster import LaunchExecutor

_LENGTH: Final = struct.Struct(">I")
_BYTES_MAX: Final = 8 << 20  # A launch message fits a control frame, which is smaller.


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """Everything that a process of an application needs to begin.

    ``config`` is the worker's configuration with that of the application over it, ``own`` the
    worker's alone: an app master finds in the coordinator log what goes over it. ``token`` is
    the line of a `wire.connection.keys.LaunchToken`, a secret: it is why all this is neither in the
    arguments nor in the environment, where other users see it.
    """

    launch: LaunchExecutor
    config: dict[str, str]
    own: dict[str, str]
    token: str = field(repr=False)
    worker_node: str  # For readers of the log.
    artifacts: str  # Folder of fetched artifacts, which all processes of the worker share.

    def encoded(self) -> bytes:
        """Return the spec with its length before it."""
        body = msgspec.msgpack.encode(self)
        return _LENGTH.pack(len(body)) + body


def read_spec(read: Callable[[int], bytes]) -> LaunchSpec:
    """Read a spec with a function that returns up to so many bytes, and none at the end.

    Raises:
        EOFError: the worker is gone.
        ProtocolError: it is no spec.
    """
    (length,) = _LENGTH.unpack(_read_all(read, _LENGTH.size))
    if length > _BYTES_MAX:
        raise ProtocolError(f"launch spec of {length} bytes, at most {_BYTES_MAX}")
    try:
        return msgspec.msgpack.decode(_read_all(read, length), type=LaunchSpec)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError("standard input holds no launch spec") from error


def _read_all(read: Callable[[int], bytes], length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = read(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data
