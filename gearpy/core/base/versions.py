"""Versions of what masters say and store, while an upgrade goes from process to process."""

from collections.abc import Iterable
from typing import Final

from gearpy.messages.versions import KnownVersions

#: What masters say to each other, their log, and its snapshots. Raised when an older gearpy could
#: misread any of it, which must then still be written as it was in the version before; a field
#: with a default needs no new one.
MASTERS: Final = KnownVersions(1)


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
        """Return the version in which a member is spoken to."""
        own = self._versions
        return max(own.oldest, min(own.newest, self._newest.get(member, own.oldest)))

    def of_all(self, members: Iterable[str]) -> int:
        """Return the version that all of these members understand."""
        return min(map(self.to, members), default=self._versions.newest)
