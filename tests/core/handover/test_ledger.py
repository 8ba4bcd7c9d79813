"""Who owns what a task of a sink writes, and which epoch of it is committed."""

from dataclasses import dataclass, field
from itertools import product

import pytest

from gearpy.core.handover.ledger import LATEST, LedgerClaim, LedgerEntry, Step, claims
from gearpy.errors import GearpyError


def test_the_first_start_takes_over_and_may_commit_at_once() -> None:
    assert LedgerClaim(1, 0).step(LedgerEntry()) == Step(LedgerEntry(1, 0), 0, commits=False)
    assert LedgerClaim(1, 0).step(LedgerEntry(), epoch=1) == Step(
        LedgerEntry(1, 1), 0, commits=True
    )


def test_an_epoch_is_committed_once() -> None:
    assert LedgerClaim(1, 0).step(LedgerEntry(1, 4), epoch=5) == Step(
        LedgerEntry(1, 5), None, commits=True
    )
    assert LedgerClaim(1, 0).step(LedgerEntry(1, 5), epoch=5) is None
    assert LedgerClaim(1, 0).step(LedgerEntry(1, 7), epoch=5) is None
    assert LedgerClaim(1, 0).step(LedgerEntry(1, 5)) is None
    assert LedgerClaim(1, 0).commit(LedgerEntry(1, 4), 5) == LedgerEntry(1, 5)
    assert LedgerClaim(1, 0).commit(LedgerEntry(1, 5), 5) is None


def test_taking_over_undoes_what_came_after() -> None:
    assert LedgerClaim(3, 4).step(LedgerEntry(2, 6)) == Step(LedgerEntry(3, 4), 4, commits=False)
    assert LedgerClaim(3, 4).step(LedgerEntry(2, 3)) == Step(LedgerEntry(3, 3), 4, commits=False)


def test_a_start_that_was_given_up_is_refused() -> None:
    for epoch in (None, 5, 9):
        with pytest.raises(GearpyError, match="task 3 belongs to start 2 by now"):
            LedgerClaim(1, 0, "task 3").step(LedgerEntry(2, 5), epoch=epoch)
    for owner in (0, 2):  # Also before it has taken over.
        with pytest.raises(GearpyError, match="was given up"):
            LedgerClaim(1, 0).commit(LedgerEntry(owner, 0), 1)


def test_runs_that_another_one_goes_on_from_end_their_right() -> None:
    found = claims("a", ["old", "new", "older"], "new", incarnation=2, epoch=7)

    assert [*found] == ["old", "older", "new"]
    assert found["new"] == LedgerClaim(2, 7, "a")
    assert found["old"].step(LedgerEntry(9, 6), epoch=7) == Step(
        LedgerEntry(LATEST, 7), LATEST, commits=True
    )
    assert found["old"].step(LedgerEntry(9, 8)) == Step(
        LedgerEntry(LATEST, 8), LATEST, commits=False
    )
    with pytest.raises(GearpyError, match="was given up"):
        LedgerClaim(10, 8).step(LedgerEntry(LATEST, 8), epoch=9)
    for run in found:  # A second run that goes on from the same one does the same again.
        assert run == "new" or found[run].step(LedgerEntry(LATEST, 7), epoch=7) is None


@dataclass
class Store:
    """Keeps an entry and the epochs that were committed, with whose start did it."""

    entry: LedgerEntry = field(default_factory=LedgerEntry)
    epochs: dict[int, int] = field(default_factory=dict)

    def settle(self, claim: LedgerClaim, epoch: int | None) -> None:
        step = claim.step(self.entry, epoch=epoch)
        if step is None:
            return
        if step.undoes is not None:
            self.epochs = {at: who for at, who in self.epochs.items() if at <= step.undoes}
        if step.commits:
            assert epoch is not None
            assert epoch not in self.epochs, "twice"
            self.epochs[epoch] = claim.owner
        self.entry = step.entry


@pytest.mark.parametrize("length", range(1, 6))
def test_whoever_acts_in_whatever_order_each_epoch_is_there_once(length: int) -> None:
    """Two starts, of which the second goes on from epoch 1, commit three epochs, each in order."""
    first, second = LedgerClaim(1, 0), LedgerClaim(2, 1)
    for order in product((first, second), repeat=length):
        store, done = Store(), {1: [1, 2, 3], 2: [2, 3]}
        store.settle(first, 1)  # Else there would be no epoch 1 to go on from.
        for claim in order:
            left = done[claim.owner]
            try:
                store.settle(claim, left[0] if left else None)
            except GearpyError:
                assert claim is first
                assert store.entry.owner == second.owner
                continue
            if left:
                left.pop(0)
        newest = max(store.epochs)
        assert sorted(store.epochs) == [*range(1, newest + 1)]
        assert store.entry.committed == newest
        if second in order:  # Nothing of the first is left behind the epoch of the second.
            assert all(who == 2 for at, who in store.epochs.items() if at > 1)
