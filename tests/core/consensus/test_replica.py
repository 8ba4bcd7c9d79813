"""Tests of one replica; how several get on is in the transcripts and the simulation."""

import pytest

from gearpy.core.consensus.actions import ApplyEntry, Persist, Readable, RestoreState, Transmit
from gearpy.core.consensus.limits import ReplicaLimits
from gearpy.core.consensus.messages import (
    AppendEntries,
    AskVote,
    CastVote,
    EntriesAppended,
    TakeOver,
)
from gearpy.core.consensus.replica import Replica
from gearpy.core.consensus.stored import LogEntry, StateSnapshot, StoredLog
from tests.core.consensus_world import FirstNumber

LIMITS = ReplicaLimits(heartbeat_ms=100, election_ms=1000, uncommitted_max=3, kept_entries=0)


def a_replica(*members: str, stored: StoredLog | None = None) -> Replica:
    stored = stored or StoredLog.of_members(*members)
    return Replica(members[0], stored, LIMITS, FirstNumber(), 0)


def a_leader() -> Replica:
    """Return a replica that leads `a b c` in term 1, and has written its first entry."""
    replica = a_replica("a", "b", "c")
    replica.on_tick(1000)
    replica.on_message("b", CastVote(term=1, is_granted=True, is_trial=True), 1000)
    replica.on_written(1000)
    replica.on_message("b", CastVote(term=1, is_granted=True, is_trial=False), 1000)
    replica.on_written(1000)
    assert replica.role == "leader"
    return replica


def an_answer(index: int, *, round_: int = 0) -> EntriesAppended:
    return EntriesAppended(term=1, is_match=True, index=index, previous_index=0, round=round_)


def test_a_single_member_leads_and_commits_by_itself() -> None:
    replica = a_replica("a")
    replica.on_tick(1000)
    replica.on_written(1000)
    replica.on_written(1000)

    index, _ = replica.propose(b"x", 1000)
    actions = replica.on_written(1000)

    assert [each.index for each in actions if isinstance(each, ApplyEntry)] == [index]


def test_a_leader_without_a_majority_steps_down() -> None:
    replica = a_leader()

    replica.on_tick(2000)

    assert (replica.role, replica.leader) == ("follower", "")


def test_a_leader_that_is_heard_stays() -> None:
    replica = a_leader()
    replica.on_message("c", an_answer(1), 1900)

    replica.on_tick(2000)

    assert replica.role == "leader"


def test_no_more_is_taken_than_can_wait() -> None:
    replica = a_leader()

    while replica.can_propose:
        replica.propose(b"x", 1000)

    assert replica.log.last_index == LIMITS.uncommitted_max


def test_one_write_holds_all_that_came_meanwhile() -> None:
    replica = a_leader()
    replica.on_message("b", an_answer(1), 1000)
    replica.propose(b"x", 1000)
    replica.propose(b"y", 1000)
    replica.on_message("b", an_answer(3), 1000)
    replica.propose(b"z", 1000)

    actions = replica.on_written(1000)

    (write,) = [each.write for each in actions if isinstance(each, Persist)]
    assert [each.command for each in write.entries] == [b"y", b"z"]


def test_a_read_waits_for_a_majority() -> None:
    replica = a_leader()
    replica.on_message("b", an_answer(1), 1000)

    asked = replica.read(7, 1000)
    answered = replica.on_message("c", an_answer(1, round_=1), 1000)

    assert Readable(7) not in asked
    assert Readable(7) in answered


def test_a_read_of_a_new_leader_waits_for_its_first_entry() -> None:
    replica = a_leader()
    replica.read(7, 1000)

    early = replica.on_message("b", an_answer(0, round_=1), 1000)
    late = replica.on_message("b", an_answer(1, round_=1), 1000)

    assert Readable(7) not in early
    assert late[-2:] == [ApplyEntry(1, LogEntry(term=1)), Readable(7)]


def test_leadership_is_given_to_a_member_that_has_all_entries() -> None:
    """Another one would ask in vain, and nobody would lead meanwhile."""
    replica = a_leader()

    early = replica.transfer("b", 1000)
    late = replica.on_message("b", an_answer(1), 1000)

    assert Transmit("b", TakeOver(term=1)) not in early
    assert Transmit("b", TakeOver(term=1)) in late


def test_nothing_is_taken_while_leadership_is_given_away() -> None:
    """Else the other member would never have all entries; it may be gone, too."""
    replica = a_leader()

    replica.transfer("b", 1000)
    before = replica.can_propose
    replica.on_message("c", an_answer(1), 1900)
    replica.on_tick(2000)

    assert (before, replica.can_propose) == (False, True)


def test_members_change_only_after_an_entry_of_the_term() -> None:
    replica = a_leader()

    before = replica.can_change(["a", "b"])
    replica.on_message("b", an_answer(1), 1000)

    assert (before, replica.can_change(["a", "b"])) == (False, True)
    assert not replica.can_change(["a"])


def test_a_member_votes_once_in_a_term() -> None:
    replica = a_replica("a", "b", "c")
    ask = AskVote(term=1, last_index=0, last_term=0, is_trial=False)
    replica.on_message("b", ask, 0)
    (to_b,) = [each for each in replica.on_written(0) if isinstance(each, Transmit)]
    (to_c,) = [each for each in replica.on_message("c", ask, 0) if isinstance(each, Transmit)]

    assert to_b == Transmit("b", CastVote(term=1, is_granted=True, is_trial=False))
    assert to_c == Transmit("c", CastVote(term=1, is_granted=False, is_trial=False))


def test_state_is_restored_before_entries_are_applied() -> None:
    snapshot = StateSnapshot(index=5, term=1, members=("a", "b"), state=b"five")
    stored = StoredLog(term=1, snapshot=snapshot, base_index=5, base_term=1)
    replica = a_replica("a", stored=stored)

    actions = replica.on_tick(0)

    assert RestoreState(snapshot) in actions


def test_two_leaders_of_a_term_are_a_bug() -> None:
    replica = a_leader()
    message = AppendEntries(
        term=1, previous_index=0, previous_term=0, entries=(), commit_index=0, round=0
    )

    with pytest.raises(AssertionError, match="leads term 1, too"):
        replica.on_message("b", message, 1000)


def test_a_leader_whose_process_is_gone_is_not_waited_for() -> None:
    replica = a_replica("a", "b", "c")
    heartbeat = AppendEntries(
        term=1, previous_index=0, previous_term=0, entries=(), commit_index=0, round=0
    )
    replica.on_message("b", heartbeat, 500)
    replica.on_written(500)
    due_ms = replica.due_ms

    replica.on_lost("c", 510)
    assert replica.due_ms == due_ms
    replica.on_lost("b", 510)

    assert replica.due_ms == 510 + LIMITS.heartbeat_ms // 2
    ask = AskVote(term=2, last_index=0, last_term=0, is_trial=True)
    (answer,) = replica.on_message("c", ask, 520)
    assert isinstance(answer, Transmit)
    assert answer.message == CastVote(term=2, is_granted=True, is_trial=True)


def test_a_member_whose_removal_only_it_has_can_still_lead() -> None:
    members = (("a",), ("a", "b"), ("a",))
    entries = [LogEntry(term=1, members=each) for each in members]
    replica = a_replica("b", stored=StoredLog(term=1, entries=entries))

    actions = replica.on_tick(2000)

    asked = [each.to for each in actions if isinstance(each, Transmit)]
    assert asked == ["a"]


def test_a_member_that_was_removed_wants_no_votes() -> None:
    entries = [LogEntry(term=1, members=each) for each in (("a", "b"), ("a",))]
    replica = a_replica("b", stored=StoredLog(term=1, entries=entries))
    heartbeat = AppendEntries(
        term=1, previous_index=2, previous_term=1, entries=(), commit_index=2, round=0
    )
    replica.on_message("a", heartbeat, 100)

    assert not [each for each in replica.on_tick(5000) if isinstance(each, Transmit)]
