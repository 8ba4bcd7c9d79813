"""The epochs of a simulation: one at a time, complete when all tasks have ended it, or never."""

from random import Random

import pytest

from gearpy.core.epoch.epochs import Cut
from gearpy.core.epoch.pace import EpochCut
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.testing.epochs import EpochFaults, SimulatedEpochs

A, B = TaskId(0, 0), TaskId(1, 0)


def some_epochs(*, damaged: float = 0.0, cut: EpochCut = "position") -> SimulatedEpochs:
    return SimulatedEpochs([A, B], cut=cut, faults=EpochFaults(damaged=damaged))


def a_snapshot(epoch: int, *, has_missed_cut: bool = False) -> TaskSnapshot:
    head = f"head{epoch}".encode()
    return TaskSnapshot(epoch=epoch, head=head, has_missed_cut=has_missed_cut)


def complete(epochs: SimulatedEpochs) -> int:
    epoch = epochs.begin([]).epoch
    epochs.on_snapshots(A, [a_snapshot(epoch)])
    epochs.on_snapshots(B, [a_snapshot(epoch)])
    assert epochs.on_stored(epoch)
    return epoch


def a_clock(newest_ms: int, clock_ms: int = 0) -> TaskClock:
    return TaskClock(
        task_id=A,
        session=SessionId(1),
        clock_ms=clock_ms,
        watermark_ms=clock_ms,
        newest_ms=newest_ms,
    )


def test_epoch_is_complete_when_all_have_ended_it_and_it_is_stored() -> None:
    epochs = some_epochs()
    cut = epochs.begin([])
    assert cut == Cut(1, None)
    announced = epochs.ending
    assert announced == cut

    assert epochs.on_snapshots(A, [a_snapshot(1)]) is None
    assert epochs.on_snapshots(B, [a_snapshot(1)]) == 1
    assert epochs.on_snapshots(B, []) is None, "it is being stored"
    assert (epochs.complete_epoch, epochs.resumes) == (0, {})

    assert epochs.on_stored(1)
    assert (epochs.complete_epoch, epochs.ending) == (1, None)
    assert {task: resume.head for task, resume in epochs.resumes.items()} == {
        A: b"head1",
        B: b"head1",
    }


def test_epoch_that_was_given_up_is_never_complete() -> None:
    epochs = some_epochs()
    epochs.begin([])
    epochs.on_snapshots(A, [a_snapshot(1)])
    epochs.begin([])

    assert epochs.on_snapshots(B, [a_snapshot(1)]) is None
    assert not epochs.on_stored(1)
    assert epochs.on_snapshots(A, [a_snapshot(2)]) is None
    assert epochs.on_snapshots(B, [a_snapshot(2)]) == 2
    assert epochs.on_stored(2)

    assert (epochs.complete_epoch, epochs.given_up) == (2, 1)
    assert epochs.resumes[A].head == b"head2"


def test_who_does_not_know_of_an_epoch_is_to_be_told() -> None:
    epochs = some_epochs()
    complete(epochs)

    assert epochs.uncommitted(1) == [A, B]
    epochs.on_committed(A, 1)
    assert (epochs.uncommitted(1), epochs.committed_epoch) == ([B], 0)
    epochs.on_committed(B, 1)
    assert (epochs.uncommitted(1), epochs.committed_epoch) == ([], 1)
    complete(epochs)
    assert (epochs.uncommitted(1), epochs.uncommitted(2)) == ([], [A, B])


@pytest.mark.parametrize("seed", range(6))
def test_crash_goes_back_to_the_newest_complete_epoch(seed: int) -> None:
    """What was asked for since may be forgotten or not; nobody knows what tasks had committed."""
    epochs = some_epochs()
    complete(epochs)
    epochs.on_committed(A, 1)
    epochs.begin([])

    assert not epochs.on_crash(Random(seed))

    assert (epochs.complete_epoch, epochs.ending, epochs.committed_epoch) == (1, None, 0)
    assert epochs.asked_epoch in {1, 2}


def test_crash_goes_further_back_when_an_epoch_is_damaged() -> None:
    epochs = some_epochs(damaged=1.0)
    complete(epochs)
    complete(epochs)

    assert epochs.on_crash(Random(0))
    assert epochs.complete_epoch == 1
    assert not epochs.on_crash(Random(0))
    assert epochs.complete_epoch == 1


def test_epochs_end_by_event_time() -> None:
    epochs = some_epochs(cut="event-time")

    cut = epochs.begin([a_clock(1000)])
    assert cut.cut_time_ms is not None
    assert cut.cut_time_ms > 1000
    epochs.on_snapshots(A, [a_snapshot(1)])
    epochs.on_snapshots(B, [a_snapshot(1)])
    epochs.on_stored(1)
    assert (epochs.by_event_time, epochs.missed_cuts) == (1, 0)

    epochs.begin([a_clock(5000)])
    epochs.on_snapshots(A, [a_snapshot(2, has_missed_cut=True)])
    epochs.on_snapshots(B, [a_snapshot(2)])
    epochs.on_stored(2)
    assert (epochs.by_event_time, epochs.missed_cuts) == (1, 1)

    epochs.begin([a_clock(9000)])
    assert epochs.begin([a_clock(MIN_MS, MAX_MS)]).cut_time_ms is None
    assert epochs.given_up == 1
