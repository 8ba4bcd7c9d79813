"""Records that were given back to tasks survive a restart that comes before an epoch has them."""

from gearpy.core.app.replays import GivenBack, ReplayNews
from gearpy.ids import TaskId
from gearpy.messages.client import QuarantinedRecord
from gearpy.messages.summaries import ErrorCard

TASK, OTHER = TaskId(1, 0), TaskId(2, 0)


def a_record(number: int) -> QuarantinedRecord:
    return QuarantinedRecord(
        number=number,
        processor_id=1,
        value=b"x",
        event_time_ms=0,
        error=ErrorCard(cause=""),
        at_ms=0,
    )


def test_a_record_is_done_when_an_epoch_has_it() -> None:
    replays = GivenBack()
    assert replays.begin(a_record(7), TASK, 3)
    assert not replays.begin(a_record(7), TASK, 3)
    assert replays.next_steps(TASK, 3, (3, 100)) == ReplayNews()  # Nobody has it yet.
    replays.on_taken(7, 3, epoch=12)

    assert replays.next_steps(TASK, 3, (3, 11)) == ReplayNews()
    assert replays.next_steps(OTHER, 3, (3, 12)) == ReplayNews()
    assert replays.next_steps(TASK, 3, (3, 12)) == ReplayNews(done=(7,))
    assert replays.tasks() == frozenset()
    assert replays.done == (7,)
    assert not replays.begin(a_record(7), TASK, 3)  # The master may still have it.


def test_a_record_is_given_again_to_an_attempt_that_has_gone_back_before_it() -> None:
    """Once, when all of its tasks run; what the attempt before says of it does not count."""
    replays = GivenBack()
    replays.begin(a_record(7), TASK, 3)
    replays.on_taken(7, 3, epoch=12)

    assert replays.next_steps(TASK, None, (3, 11)) == ReplayNews()
    assert replays.next_steps(TASK, 4, (3, 11)) == ReplayNews(again=(a_record(7),))
    assert replays.next_steps(TASK, 4, (3, 11)) == ReplayNews()
    replays.on_taken(7, 3, epoch=13)
    assert replays.next_steps(TASK, 4, (4, 13)) == ReplayNews()
    replays.on_taken(7, 4, epoch=14)
    assert replays.next_steps(TASK, 4, (4, 14)) == ReplayNews(done=(7,))


def test_a_record_that_an_epoch_has_is_not_given_to_the_next_attempt() -> None:
    replays = GivenBack()
    replays.begin(a_record(7), TASK, 3)
    replays.on_taken(7, 3, epoch=12)

    assert replays.next_steps(TASK, 4, (3, 12)) == ReplayNews(done=(7,))
