"""Versions of what masters say and store, while an upgrade goes from process to process."""

from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar, get_args

import msgspec

from gearpy.errors import ProtocolError
from gearpy.messages.versions import KnownVersions

#: What masters say to each other, their log, and its snapshots. Raised when an older gearpy could
#: misread any of it, which must then still be written as it was in the version before; a field
#: with a default needs no new one.
MASTERS: Final = KnownVersions(1)

_T = TypeVar("_T")
_ENVELOPE: Final = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])


class Envelopes(Generic[_T]):
    """Makes objects into bytes, with a version and the name of their class, and back."""

    def __init__(self, kinds: Any, kind: str, place: str) -> None:
        self._decoders: dict[str, msgspec.msgpack.Decoder[_T]] = {
            each.__name__: msgspec.msgpack.Decoder(each) for each in get_args(kinds)
        }
        self._kind, self._place = kind, place

    def encode(self, thing: _T, version: int = MASTERS.newest) -> bytes:
        return msgspec.msgpack.encode((version, type(thing).__name__, thing))

    def decode(self, data: bytes, versions: KnownVersions = MASTERS) -> _T:
        """Return the object that `encode` made into bytes."""
        try:
            version, name, fields = _ENVELOPE.decode(data)
            versions.check(version, f"the {self._kind} {name!r} of {self._place}")
            if name not in self._decoders:
                raise ProtocolError(
                    f"{self._place} has a {self._kind} {name!r}, which this gearpy does not know: "
                    "start the gearpy that wrote it"
                )
            return self._decoders[name].decode(fields)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(
                f"{self._place} has a {self._kind} that is none: {error}"
            ) from error


class CommonVersion:
    """Knows the version in which all can be spoken to; a member that has told none, as before.

    A member says with each message which version is the newest that it understands. It is spoken to
    in that one, or in one's own if that is older; what all shall read is of the oldest of these.
    """

    def __init__(self, versions: KnownVersions) -> None:
        self._versions = versions
        self._newest: dict[str, int] = {}

    def on_told(self, member: str, newest: int) -> None:
        """Note the newest version that a member understands.

        Raises:
            ProtocolError: this gearpy cannot speak to it.
        """
        self._newest[member] = newest
        if newest < self._versions.oldest:
            self._versions.check(newest, f"master {member}")

    def to(self, member: str) -> int:
        own = self._versions
        return max(own.oldest, min(own.newest, self._newest.get(member, own.oldest)))

    def of_all(self, members: Iterable[str]) -> int:
        return min(map(self.to, members), default=self._versions.newest)
