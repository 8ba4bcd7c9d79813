"""Epochs that have names, each as a file of its own; and the view of how an application ends."""

import re
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState, StateView, draft
from gearpy.core.coordinator.views import APPLICATION, DAG, DagVersion, DagVersions
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, ProtocolError

_DRAIN: Final = "drain"  # The savepoint to make at the end of the application.
#: It is raised when an older gearpy cannot read the file any more.
_FORMAT: Final = 1
_WITH_TAKEN: Final = 2  # It has files that tasks of an earlier graph have stored.
_SUM_BYTES: Final = 4
_NAME: Final = re.compile(r"(?!app[0-9]+$)[A-Za-z][A-Za-z0-9._-]{0,62}", re.ASCII)
_SHOWN_CHARS_MAX: Final = 100


def check_savepoint(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name[:_SHOWN_CHARS_MAX]!r} is no name of a savepoint: take up to 63 letters, "
            "digits, dots, dashes and underscores, a letter first, and not app and a number"
        )


class DrainView(StateView):
    """View of the drain that was asked for: it goes on when the app master is launched again."""

    @property
    def is_asked(self) -> bool:
        return self._state.find(APPLICATION, _DRAIN) is not None

    @property
    def savepoint(self) -> str:
        found = self._state.find(APPLICATION, _DRAIN)
        return "" if found is None else str(found.understood().get("savepoint", ""))

    def write(self, savepoint: str) -> list[CoordinatorMessage]:
        return [draft(APPLICATION, _DRAIN, {"savepoint": savepoint})]

    def clear(self) -> list[CoordinatorMessage]:
        return [draft(APPLICATION, _DRAIN, None)] if self.is_asked else []


class Savepoint(Struct, frozen=True, kw_only=True):
    """An epoch of each region under a name, and all that an application needs to begin with it."""

    name: str
    manifests: tuple[Manifest, ...]
    graph: DagVersion
    stored_ms: int
    application: str = ""

    @property
    def epochs(self) -> dict[int, int]:
        return {each.region: each.epoch for each in self.manifests}

    @property
    def files(self) -> frozenset[str]:
        return frozenset(file.location for each in self.manifests for file in each.snapshots)


class _Stored(Struct, frozen=True, kw_only=True):
    """The content of the file of a savepoint, behind its checksum."""

    format: int
    name: str
    application: str
    stored_ms: int
    version: int
    graph: dict[str, Any]
    manifests: tuple[Manifest, ...]


def encode_savepoint(savepoint: Savepoint) -> bytes:
    (graph,) = DagVersions(CoordinatorState()).write(savepoint.graph)
    has_taken = any(file.taken for each in savepoint.manifests for file in each.snapshots)
    stored = _Stored(
        format=_WITH_TAKEN if has_taken else _FORMAT,
        name=savepoint.name,
        application=savepoint.application,
        stored_ms=savepoint.stored_ms,
        version=savepoint.graph.version,
        graph=dict(graph.values or {}),
        manifests=savepoint.manifests,
    )
    body = msgspec.msgpack.encode(stored)
    return crc32(body).to_bytes(_SUM_BYTES) + body


def decode_savepoint(data: bytes) -> Savepoint:
    body = data[_SUM_BYTES:]
    if crc32(body).to_bytes(_SUM_BYTES) != data[:_SUM_BYTES]:
        raise ProtocolError("malformed savepoint: its checksum is another one")
    try:
        stored = msgspec.msgpack.decode(body, type=_Stored)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"malformed savepoint: {error}") from error
    if stored.format not in {_FORMAT, _WITH_TAKEN}:
        raise ProtocolError(
            f"savepoint {stored.name} has format {stored.format}, of another gearpy than this one"
        )
    graph = draft(DAG, str(stored.version), stored.graph)
    return Savepoint(
        name=stored.name,
        application=stored.application,
        stored_ms=stored.stored_ms,
        graph=DagVersions(CoordinatorState([graph])).read()[0],
        manifests=stored.manifests,
    )
