"""Tests of the simulator of consensus: of each class of bug one is planted, some seed must find it.

A simulator that finds nothing may be blind. The bugs are put into the product by `monkeypatch`, for
one test each. The same seeds find nothing without them, see `test_simulation`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from gearpy.core.consensus.actions import Transmit
from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.leadership import Leadership
from gearpy.core.consensus.messages import (
    AppendEntries,
    EntriesAppended,
    ReplicaMessage,
    SendSnapshotPart,
)
from gearpy.core.consensus.replica import Replica
from gearpy.core.consensus.stored import DiskWrite, LogEntry, StateSnapshot, StoredLog
from tests.core.consensus_world import ConsensusResult, run_consensus_seed

_SEEDS: Final = 20


def first_found(first: int = 0) -> ConsensusResult:
    """Return the first seed that went wrong; where one is known, it is begun just before it."""
    for seed in range(first, first + _SEEDS):
        if (result := run_consensus_seed(seed)).problem:
            return result
    raise AssertionError(f"none of {_SEEDS} seeds has found it")


def test_an_answer_before_the_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Replica, to: str, message: ReplicaMessage) -> None:
        self._transmit(Transmit(to, message))

    monkeypatch.setattr(Replica, "_reveal", at_once)

    assert "not on disk" in first_found().problem


def test_a_leader_that_counts_what_it_has_not_written_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_of_it = property(lambda self: self.last_index, _ignore)
    monkeypatch.setattr(EntryLog, "durable_index", all_of_it, raising=False)

    assert first_found().problem


def _ignore(_: object, __: object) -> None:
    pass


def test_commits_of_earlier_terms_by_counting_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 8 of the paper of Raft: a later leader may replace what a majority has."""

    def advance(self: Leadership) -> Iterable[Transmit]:
        matches = (each.match_index for each in self._progress.values())
        self.commit_index = max(
            self.commit_index, self._of_majority(self._log.durable_index, matches)
        )
        return original(self)

    original = Leadership.advance
    monkeypatch.setattr(Leadership, "advance", advance)

    assert first_found().problem


def test_a_follower_that_cuts_matching_entries_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: Replica, first: int, entries: Sequence[LogEntry]) -> None:
        if first <= self.log.last_index:
            self.log.truncate(first)
        self.log.append(entries)

    monkeypatch.setattr(Replica, "_take_entries", take)

    assert first_found().problem


def test_answers_of_other_terms_that_count_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are about entries that may have been replaced since."""
    receive = Replica.__dict__["_receive"]

    def receive_all(self: Replica, sender: str, message: ReplicaMessage) -> None:
        if isinstance(message, EntriesAppended) and message.term < self.term:
            message = replace(message, term=self.term)
        receive(self, sender, message)

    monkeypatch.setattr(Replica, "_receive", receive_all)

    assert first_found(7390).problem


def test_votes_for_logs_that_lack_entries_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntryLog, "is_covered_by", lambda *_: True)

    assert first_found().problem


def test_a_vote_that_a_crash_takes_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = StoredLog.apply

    def forget(self: StoredLog, write: DiskWrite) -> None:
        apply(self, write)
        self.vote = ""

    monkeypatch.setattr(StoredLog, "apply", forget)

    assert first_found().problem


def test_a_term_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    init = EntryLog.__init__

    def begin(self: EntryLog, stored: StoredLog) -> None:
        init(self, stored)
        self.term, self.vote = self.last_term, ""

    monkeypatch.setattr(EntryLog, "__init__", begin)

    assert first_found().problem


def test_reads_without_a_round_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "_confirmed_now", lambda self: self._round)

    assert "reads" in first_found().problem


def test_half_of_the_members_as_a_majority_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Replica, names: set[str]) -> bool:
        return 2 * len(names.intersection(self.members)) >= len(self.members)

    monkeypatch.setattr(Replica, "_is_majority", half)

    assert first_found().problem


def test_changes_of_members_before_a_commit_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def can_change(self: Leadership, members: Iterable[str]) -> bool:
        return self.can_propose and bool(set(members))

    monkeypatch.setattr(Leadership, "can_change", can_change)

    assert first_found(155).problem


def test_a_follower_that_commits_more_than_matches_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append = Replica.__dict__["_append"]

    def commit_all(self: Replica, sender: str, message: AppendEntries) -> None:
        append(self, sender, message)
        if message.commit_index <= self.log.last_index:
            self.commit_index = max(self.commit_index, message.commit_index)

    monkeypatch.setattr(Replica, "_append", commit_all)

    assert first_found(283).problem


def test_parts_of_a_snapshot_in_any_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Replica.__dict__["_take_part"]

    def take_any(self: Replica, sender: str, message: SendSnapshotPart) -> None:
        known = self._parts
        offset = len(known.state) if known and known.index == message.index else 0
        take(self, sender, replace(message, offset=offset))

    monkeypatch.setattr(Replica, "_take_part", take_any)

    assert first_found(85).problem


def test_a_snapshot_that_keeps_a_log_of_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    install = EntryLog.install

    def keep(self: EntryLog, snapshot: StateSnapshot) -> None:
        rest: tuple[Any, ...] = ()
        if self.base_index <= snapshot.index < self.last_index:
            rest = self.entries_from(snapshot.index + 1, 1 << 30)
        install(self, snapshot)
        self.append(rest)

    monkeypatch.setattr(EntryLog, "install", keep)

    assert first_found(379).problem


def test_a_replaced_entry_that_counts_as_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    truncate = EntryLog.truncate

    def keep_count(self: EntryLog, first: int) -> None:
        durable, writing = self.durable_index, self._writing_to
        truncate(self, first)
        self.durable_index, self._writing_to = durable, writing

    monkeypatch.setattr(EntryLog, "truncate", keep_count)

    assert first_found().problem
