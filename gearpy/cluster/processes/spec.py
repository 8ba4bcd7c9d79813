"""The instructions to a process that is started: one value on its standard input."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from gearpy.cluster.processes.framed import framed, read_framed
from gearpy.errors import ProtocolError
from gearpy.messages.cluster import LaunchExecutor

T = TypeVar("T")

_BYTES_MAX: Final = 8 << 20  # A launch message fits a control frame, which is smaller.


def encoded_spec(spec: Any) -> bytes:
    return framed(msgspec.msgpack.encode(spec))


def read_spec(read: Callable[[int], bytes], kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(read_framed(read, _BYTES_MAX), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError("standard input holds no launch spec") from error


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
    secret: bytes = field(default=b"", repr=False)  # Of the cluster, if it is a fork of that.
