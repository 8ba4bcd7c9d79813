"""Exactly once into a table that changes by transactions, such as one of Delta Lake.

The table notes two numbers for each lane in the same transaction as its rows: who owns the lane,
and the last epoch that was shown. A transaction in which one of them would change although another
one has changed it since it was read is refused by the table, so what is decided here on what was
read holds when it is written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

#: Owner of a lane of a run that another run goes on from: later than all starts of that run.
SUCCESSOR: Final = 2**62


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


class Noted(NamedTuple):
    """The note of a table on a lane."""

    owner: int | None = None  #: None: nobody has written yet.
    epoch: int = 0


class LanePart(NamedTuple):
    """A file of a lane that readers of the table see."""

    path: str
    begun: int  #: Its rows belong to this epoch, or to a later one.
    incarnation: int


class Shown(NamedTuple):
    """An entry of the table's history: a transaction of a lane."""

    epoch: int
    begun: int  #: As of its files.
    files: int
    undid: int | None = None  #: By this one the lane was taken over, and later epochs vanished.


class Change(NamedTuple):
    """One transaction of a lane: the change of its files, and the note."""

    add: bool  #: The files of the epoch that was to be shown.
    remove: tuple[str, ...]
    noted: Noted
    undoes: int | None = None  #: It takes the lane over: later epochs vanish.


class GivenUp(NamedTuple):
    """Somebody later has the lane."""

    owner: int


def next_change(
    noted: Noted,
    *,
    incarnation: int,
    since: int,
    epoch: int | None = None,
    parts: Iterable[LanePart] = (),
) -> Change | GivenUp | None:
    """Return the transaction by which a lane is taken over, if need be, and an epoch is shown.

    Args:
        since: the epoch that it went on from; what earlier ones have shown for later epochs is
            removed when it takes over.
        epoch: the one to show; None to take over only.
        parts: the files of the lane; may be left out if nothing later than ``since`` is noted.

    Returns:
        None if everything is done already.
    """
    if noted.owner is not None and noted.owner > incarnation:
        return GivenUp(noted.owner)
    remove: tuple[str, ...] = ()
    last = noted.epoch
    is_mine = noted.owner == incarnation
    if not is_mine:
        remove = tuple(
            part.path for part in parts if part.begun > since and part.incarnation < incarnation
        )
        last = min(last, since)
    add = epoch is not None and epoch > last
    if is_mine and not add:
        return None
    if add and epoch is not None:
        last = epoch
    return Change(add, remove, Noted(incarnation, last), None if is_mine else since)


def rewritten(
    noted: Noted, *, since: int, history: Iterable[Shown], parts: Sequence[LanePart]
) -> list[int]:
    """Return later epochs whose files are missing or changed.

    Another writer has merged them with others, so their rows cannot be removed by removing files.
    """
    if noted.epoch <= since:
        return []
    found = Counter(part.begun for part in parts if part.begun > since)
    entries = list(history)
    expected = {
        entry.begun: entry.files
        for entry in _not_undone(entries)
        if entry.epoch > since and entry.files
    }
    lost = [begun for begun, files in expected.items() if found[begun] < files]
    if not entries and not found:  # The log does not go back so far.
        lost = [noted.epoch]
    return sorted(lost)


def _not_undone(history: Iterable[Shown]) -> Iterator[Shown]:
    upto: int | None = None
    for entry in history:
        if upto is None or entry.epoch <= upto:
            yield entry
        if entry.undid is not None:
            upto = entry.undid if upto is None else min(upto, entry.undid)
