"""Messages between masters, in parts that fit a letter."""

from collections.abc import Iterator
from typing import Final

from gearpy.core.base.versions import MASTERS
from gearpy.core.consensus.messages import ReplicaMessage, decode_message, encode_message
from gearpy.messages.cluster import ReplicaPart
from gearpy.messages.versions import KnownVersions

_PART_BYTES: Final = 512 << 10


def parts_of(
    member: str, disk: str, message: ReplicaMessage, *, version: int, speaks: int
) -> Iterator[ReplicaPart]:
    data = encode_message(message, version)
    for start in range(0, len(data), _PART_BYTES):
        end = start + _PART_BYTES
        yield ReplicaPart(
            member=member,
            disk=disk,
            part=data[start:end],
            is_first=start == 0,
            is_last=end >= len(data),
            speaks=speaks,
        )


class PartsTaken:
    """Puts the messages of other members together. One whose parts do not all come is dropped."""

    def __init__(self, versions: KnownVersions = MASTERS) -> None:
        self._versions = versions
        self._begun: dict[str, bytearray] = {}

    def take(self, part: ReplicaPart) -> ReplicaMessage | None:
        """Take a part; return the message when it is whole."""
        if part.is_first:
            self._begun[part.member] = bytearray()
        data = self._begun.get(part.member)
        if data is None:
            return None
        data += part.part
        if not part.is_last:
            return None
        del self._begun[part.member]
        return decode_message(bytes(data), self._versions)
