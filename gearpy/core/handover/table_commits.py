"""Exactly once into a table that changes by transactions, such as one of Delta Lake.

The table notes the entry of each lane (see `ledger`) in the same transaction as its rows, and
refuses a transaction that would change an entry which another one has changed since it was read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gearpy.core.handover.ledger import LedgerClaim, LedgerEntry, Step


class Lane(NamedTuple):
    """The rows of one task of a sink in one run."""

    run: str
    sink: str
    task: int

    @property
    def owner_id(self) -> str:
        return f"gearpy/{self.run}/{self.sink}/{self.task}/owner"

    @property
    def epoch_id(self) -> str:
        return f"gearpy/{self.run}/{self.sink}/{self.task}/epoch"


class LanePart(NamedTuple):
    """A file of a lane that readers of the table see."""

    path: str
    begun: int  #: Its rows belong to this epoch, or to a later one.
    incarnation: int


class Shown(NamedTuple):
    """An entry of the table's history: a transaction of a lane."""

    epoch: int
    begun: int  #: Its files have it, too.
    files: int
    undid: int | None = None  #: It has taken the lane over, so later epochs vanished.


class Change(NamedTuple):
    """One transaction of a lane: what it notes, and the files that vanish by it."""

    step: Step
    remove: tuple[str, ...] = ()


def next_change(
    found: LedgerEntry,
    claim: LedgerClaim,
    *,
    epoch: int | None = None,
    parts: Iterable[LanePart] = (),
) -> Change | None:
    """Return the transaction of `LedgerClaim.step`; None if everything is done already."""
    step = claim.step(found, epoch=epoch)
    if step is None:
        return None
    if step.undoes is None:
        return Change(step)
    later = [each for each in parts if each.begun > step.undoes and each.incarnation < claim.owner]
    return Change(step, tuple(each.path for each in later))


def rewritten(
    found: LedgerEntry, *, since: int, history: Iterable[Shown], parts: Sequence[LanePart]
) -> list[int]:
    """Return later epochs whose files are missing or changed.

    Another writer has merged them with others, so their rows cannot be removed by removing files.
    """
    if found.committed <= since:
        return []
    there = Counter(part.begun for part in parts if part.begun > since)
    entries = list(history)
    expected: dict[int, int] = {}
    upto: int | None = None  # Later epochs were undone by an entry before.
    for entry in entries:
        if (upto is None or entry.epoch <= upto) and entry.epoch > since and entry.files:
            expected[entry.begun] = entry.files
        if entry.undid is not None:
            upto = entry.undid if upto is None else min(upto, entry.undid)
    lost = [begun for begun, files in expected.items() if there[begun] < files]
    if not entries and not there:  # The log does not go back so far.
        lost = [found.committed]
    return sorted(lost)
