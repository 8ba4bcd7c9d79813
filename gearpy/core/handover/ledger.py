"""The ledger of a sink that shows each record once: who owns a task's output, what is committed.

An entry is of one task of a sink in one run. A store keeps it with what it stands for: in the same
transaction, in names of files, or in a marker beside the records. Each start of the task reads the
entry, takes it over, and commits epoch after epoch; an earlier start, which was given up and goes
on, finds another owner and ends. What is decided here on what was read holds if the store refuses
to write over an entry that somebody has changed since.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from gearpy.errors import GearpyError

#: Later than all starts of a task and all epochs. A run that another one goes on from belongs to a
#: successor of this number: what follows comes again from there, so the run may write no more.
LATEST: Final = 2**62


class LedgerEntry(NamedTuple):
    """What a store notes of a task's output; owner 0: nobody has written yet."""

    owner: int = 0
    committed: int = 0


class Step(NamedTuple):
    """One transaction: the entry that it leaves, and what happens with it.

    Attributes:
        undoes: it takes over, and what was committed behind this epoch vanishes.
        commits: it commits the epoch that was asked for.
    """

    entry: LedgerEntry
    undoes: int | None
    commits: bool


class LedgerClaim(NamedTuple):
    """The claim of one start of a task on an entry.

    Attributes:
        owner: the incarnation of the start.
        since: the epoch that it goes on from.
        writer: of whom it is, for people: "kafka: task 3".
    """

    owner: int
    since: int
    writer: str = ""

    def step(self, found: LedgerEntry, *, epoch: int | None = None) -> Step | None:
        """Return the transaction that takes over, if need be, and commits an epoch, if given one.

        None: all of that was done before.
        """
        if found.owner > self.owner:
            raise given_up(self.writer, owner=found.owner, mine=self.owner)
        is_mine = found.owner == self.owner
        last = found.committed if is_mine else min(found.committed, self.since)
        commits = epoch is not None and epoch > last
        if is_mine and not commits:
            return None
        entry = LedgerEntry(self.owner, epoch if commits and epoch is not None else last)
        return Step(entry, None if is_mine else self.since, commits)

    def commit(self, found: LedgerEntry, epoch: int) -> LedgerEntry | None:
        """Return the entry that an epoch leaves, once it was taken over; None: it is committed."""
        if found.owner != self.owner:
            raise given_up(self.writer, owner=found.owner, mine=self.owner)
        return LedgerEntry(self.owner, epoch) if epoch > found.committed else None


def claims(
    writer: str, runs: Iterable[str], run: str, *, incarnation: int, epoch: int
) -> dict[str, LedgerClaim]:
    """Return the claims of a start by run: of earlier runs that it goes on from, and its own."""
    earlier = {each: LedgerClaim(LATEST, LATEST, writer) for each in sorted({*runs} - {run})}
    return earlier | {run: LedgerClaim(incarnation, epoch, writer)}


def given_up(writer: str, *, owner: int, mine: int, run: str = "", by: str = "") -> GearpyError:
    """Return the error of a start that finds a later owner."""
    later = "a run that goes on from this one" if owner >= LATEST else f"start {owner}"
    of_run, by_run = (f" of run {each}" if each else "" for each in (run, by))
    return GearpyError(
        f"{writer} belongs to {later}{by_run} by now: this is start {mine}{of_run}, which was "
        "given up"
    )
