"""The entries that members once had on their disks: they show which disk is an older copy."""

from collections.abc import Mapping


class HeldEntries:
    """Knows up to which committed entry each member has had the log on its disk.

    A committed entry is replaced in no log. So a member whose log ends before has lost what it had
    promised to keep, as one that is started over an older copy of its folder.

    Invariant: what is known of a member never falls.
    """

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}

    def of(self, member: str) -> int:
        """Return the last entry that a member is known to have had; 0: none is known."""
        return self._indexes.get(member, 0)

    def note(self, member: str, index: int) -> None:
        """Note that a member has all entries up to a committed one on its disk."""
        if index > self.of(member):
            self._indexes[member] = index

    def learn(self, told: Mapping[str, int]) -> None:
        """Note all that another member knows."""
        for member, index in told.items():
            self.note(member, index)

    def told(self) -> dict[str, int]:
        """Return all that is known, for a message."""
        return dict(self._indexes)
