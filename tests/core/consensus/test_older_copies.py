"""Members that are started over older copies of their disks, without what they had promised."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.core.consensus.leadership import Leadership
from gearpy.core.consensus.replica import Replica
from tests.core.consensus_world import run_consensus_seed
from tests.core.older_copies import OlderCopyResult, run_older_copy_seed


def results(first: int, count: int) -> Iterator[OlderCopyResult]:
    return map(run_older_copy_seed, range(first, first + count))


def test_nothing_committed_is_lost_by_an_older_copy() -> None:
    """It is told, and counts no more; the others go on without it."""
    found = list(results(0, 50))

    assert [each for each in found if each.problem] == []
    assert sum(each.is_older for each in found) > sum(each.is_told for each in found) > 3


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_nothing_committed_is_lost_by_many_older_copies(first: int) -> None:
    """Some orders of events are too rare for a quick look."""
    assert [each for each in results(first, 500) if each.problem] == []


def test_a_member_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is behind for good, or catches up without a word."""
    monkeypatch.setattr(Replica, "_remember", lambda *_: None)

    assert "no progress" in run_older_copy_seed(17).problem
    assert "has not told" in run_older_copy_seed(342).problem


def test_a_member_that_is_told_for_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that were not committed may be replaced on a disk that is as it should be."""

    def note_all(self: Any) -> None:
        self._held.note(self._me, self._log.last_index)
        for member, progress in self._progress.items():
            self._held.note(member, progress.match_index)

    monkeypatch.setattr(Leadership, "_note_held", note_all)

    assert "its disk is its own" in run_consensus_seed(0).problem
