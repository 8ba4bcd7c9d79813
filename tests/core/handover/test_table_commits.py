"""What one transaction after the other does to a table that several may write to."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.handover.ledger import LedgerClaim, LedgerEntry, Step
from gearpy.core.handover.table_commits import Change, Lane, LanePart, Shown, next_change, rewritten
from gearpy.errors import GearpyError

LANE = Lane("run", "part", 3)


def test_ids_tell_runs_sinks_and_tasks_apart() -> None:
    lanes = [LANE, Lane("run2", "part", 3), Lane("run", "b", 3), Lane("run", "part", 4)]

    ids = [name for lane in lanes for name in (lane.owner_id, lane.epoch_id)]

    assert len(set(ids)) == len(ids)


def test_taking_over_undoes_what_came_after() -> None:
    parts = [LanePart("a", 4, 1), LanePart("b", 5, 1), LanePart("c", 6, 2), LanePart("d", 6, 3)]

    change = next_change(LedgerEntry(2, 6), LedgerClaim(3, 4), parts=parts)

    assert change == Change(Step(LedgerEntry(3, 4), 4, commits=False), ("b", "c"))


def test_an_owner_removes_nothing() -> None:
    parts = [LanePart("a", 5, 1)]

    assert next_change(LedgerEntry(2, 4), LedgerClaim(2, 4), epoch=5, parts=parts) == Change(
        Step(LedgerEntry(2, 5), None, commits=True)
    )
    assert next_change(LedgerEntry(2, 5), LedgerClaim(2, 4), epoch=5, parts=parts) is None


@pytest.mark.parametrize(
    ("history", "parts", "lost"),
    [
        ([Shown(6, 6, 2), Shown(5, 5, 1)], [LanePart("a", 6, 1), LanePart("b", 6, 1)], [5]),
        ([Shown(6, 6, 2), Shown(5, 5, 1)], [LanePart("a", 6, 1), LanePart("b", 5, 1)], [6]),
        ([Shown(6, 6, 1), Shown(5, 5, 0)], [LanePart("a", 6, 1)], []),
        # Epoch 5 was undone before, and came again.
        ([Shown(6, 6, 1), Shown(4, 5, 0, 4), Shown(5, 5, 3)], [LanePart("a", 6, 2)], []),
        # It was taken over without anything to undo.
        ([Shown(6, 6, 0, 6), Shown(6, 6, 1)], [], [6]),
        ([Shown(3, 3, 1)], [], []),
        # The log was cleaned.
        ([], [], [6]),
        ([], [LanePart("a", 6, 1)], []),
    ],
)
def test_files_that_were_merged_are_found(
    history: list[Shown], parts: list[LanePart], lost: list[int]
) -> None:
    assert rewritten(LedgerEntry(1, 6), since=4, history=history, parts=parts) == lost


def test_nothing_later_is_nothing_merged() -> None:
    assert rewritten(LedgerEntry(1, 4), since=4, history=[Shown(4, 4, 1)], parts=[]) == []


@dataclass
class FakeTable:
    """Files and a note; refuses what was decided on an old version."""

    entry: LedgerEntry = field(default_factory=LedgerEntry)
    files: dict[str, LanePart] = field(default_factory=dict)
    version: int = 0

    def apply(self, change: Change, seen: int, added: LanePart | None) -> bool:
        if seen != self.version:
            return False
        for path in change.remove:
            del self.files[path]
        if change.step.commits and added is not None:
            assert added.path not in self.files
            self.files[added.path] = added
        self.entry, self.version = change.step.entry, self.version + 1
        return True


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_each_epoch_is_there_once(seed: int) -> None:
    rng, table = Random(seed), FakeTable()
    live, newest, truth = 1, 0, dict[int, str]()
    reads: list[tuple[int, int, int | None, LedgerEntry, int, list[LanePart]]] = []
    sinces = {1: 0}
    for _ in range(60):
        act = rng.random()
        if act < 0.15:  # Somebody goes on, from the newest epoch or the one before.
            newest = max(0, newest - rng.randint(0, 1))
            truth = {epoch: path for epoch, path in truth.items() if epoch <= newest}
            live += 1
            sinces[live] = newest
            _settle(table, live, newest, None)
        elif act < 0.5:  # An epoch is complete.
            newest += 1
            truth[newest] = f"{newest}-{live}"
            _settle(table, live, sinces[live], newest)
        elif act < 0.75:  # Somebody reads, and is slow.
            who = rng.randint(1, live)
            epoch = rng.choice([None, rng.randint(sinces[who] + 1, sinces[who] + 3)])
            parts = list(table.files.values())
            reads.append((who, sinces[who], epoch, table.entry, table.version, parts))
        elif reads:
            who, since, epoch, noted, seen, parts = reads.pop(rng.randrange(len(reads)))
            if who == live:
                continue
            assert not _has_applied(table, LedgerClaim(who, since), epoch, (noted, seen, parts))
        if table.entry.owner == live:
            assert sorted(table.files) == sorted(truth.values())


def _has_applied(
    table: FakeTable,
    claim: LedgerClaim,
    epoch: int | None,
    read: tuple[LedgerEntry, int, list[LanePart]],
) -> bool:
    found, seen, parts = read
    try:
        change = next_change(found, claim, epoch=epoch, parts=parts)
    except GearpyError:
        return False
    added = None if epoch is None else LanePart(f"{epoch}-{claim.owner}", epoch, claim.owner)
    return change is not None and table.apply(change, seen, added)


def _settle(table: FakeTable, who: int, since: int, epoch: int | None) -> None:
    claim, parts = LedgerClaim(who, since), list(table.files.values())
    if next_change(table.entry, claim, epoch=epoch, parts=parts) is not None:
        assert _has_applied(table, claim, epoch, (table.entry, table.version, parts))
