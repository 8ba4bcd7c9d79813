"""The input side of a task."""

import pytest

from gearpy.core.flow.alignment import EpochEnd
from gearpy.errors import MessageLost
from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.data import AckRequest, Batch, DataMessage, InitialAckRequest
from gearpy.task.runtime.inlet import Injected, Inlet, QueuedMessage

SOURCE, TASK = TaskId(0, 0), TaskId(1, 0)
SESSION = SessionId(4)


def an_inlet(*others: TaskId, is_open: bool = True) -> Inlet:
    """Return an inlet of one open link, and others that are silent."""
    inlet = Inlet(TASK, [SOURCE, *others], 1)
    if is_open:
        inlet.receive(InitialAckRequest(SESSION, SOURCE, TASK))
        inlet.next()
    return inlet


def data(seq: int, records: int, *, session: SessionId = SESSION, epoch: int = 1) -> DataMessage:
    """Return a message of so many records."""
    return DataMessage(
        session=session,
        source=SOURCE,
        target=TASK,
        seq=seq,
        batch=Batch([0] * records, [0] * records),
        watermark_ms=seq,
        epoch=epoch,
    )


def test_messages_come_out_as_they_came_in() -> None:
    """Questions stand behind the records they are about."""
    inlet = an_inlet()
    ask = AckRequest(SESSION, SOURCE, TASK, 3)
    messages: list[QueuedMessage] = [data(1, 3), ask, data(2, 1)]

    for message in messages:
        inlet.receive(message)

    assert [inlet.next() for _ in range(4)] == [*messages, None]


def test_records_are_counted_while_they_wait() -> None:
    """From their arrival until they are processed."""
    inlet = an_inlet()
    message = data(1, 3)
    inlet.receive(message)
    inlet.next()

    assert inlet.records_queued == 3
    assert inlet.on_processed(message)
    assert inlet.records_queued == 0
    assert inlet.watermarks.watermark_ms == 1


def test_answer_says_what_was_processed() -> None:
    """Not what has arrived."""
    inlet = an_inlet()
    first, second = data(1, 3), data(2, 2)
    for message in (first, second):
        inlet.receive(message)
    inlet.on_processed(first)

    answer = inlet.answer(AckRequest(SESSION, SOURCE, TASK, 5))

    assert answer is not None
    assert (answer.seq, answer.received) == (5, 3)
    assert (answer.source, answer.target, answer.session) == (TASK, SOURCE, SESSION)


def test_opening_is_answered_with_zero() -> None:
    """Gearpump answers `InitialAckRequest` the same way."""
    answer = an_inlet().answer(InitialAckRequest(SESSION, SOURCE, TASK))

    assert answer is not None
    assert (answer.seq, answer.received) == (0, 0)


def test_stale_and_doubled_data_never_enter_the_queue() -> None:
    """They are counted."""
    inlet = an_inlet()
    inlet.receive(data(1, 1))

    inlet.receive(data(1, 1))
    inlet.receive(data(2, 1, session=SessionId(3)))

    assert (inlet.duplicates, inlet.stale) == (1, 1)
    assert inlet.next() is not None
    assert not inlet


def test_gap_is_message_loss() -> None:
    """At once, not at the next count."""
    with pytest.raises(MessageLost):
        an_inlet().receive(data(2, 1))


def test_question_about_a_lost_opening_is_answered_with_zero() -> None:
    """All records of the session were dropped, and the sender must learn of it."""
    inlet = an_inlet(is_open=False)
    inlet.receive(data(1, 3))

    answer = inlet.answer(AckRequest(SESSION, SOURCE, TASK, 3))

    assert answer is not None
    assert answer.received == 0


def test_old_session_gets_no_answer() -> None:
    """Nobody waits for it."""
    assert an_inlet().answer(AckRequest(SessionId(3), SOURCE, TASK, 3)) is None
    assert an_inlet().watermarks.watermark_ms == MIN_MS


def test_end_of_an_epoch_stands_in_the_queue() -> None:
    """Behind all that came before, and before the message that says so."""
    inlet = an_inlet()
    ask = AckRequest(SESSION, SOURCE, TASK, 1)
    messages: list[QueuedMessage] = [data(1, 1), ask, data(2, 1, epoch=2)]

    for message in messages:
        inlet.receive(message)

    assert [inlet.next() for _ in range(4)] == [*messages[:2], EpochEnd(1), messages[2]]
    assert inlet.next() is None


def test_link_that_is_ahead_waits_with_its_questions() -> None:
    """They are answered when what they ask about was processed; until then it is no empty inlet."""
    inlet = an_inlet(TaskId(0, 1))
    inlet.receive(data(1, 3, epoch=2))
    inlet.receive(AckRequest(SESSION, SOURCE, TASK, 3))

    assert inlet.next() is None
    assert not inlet
    assert not inlet.is_empty
    assert inlet.records_queued == 3


def test_data_of_a_stale_session_is_of_no_epoch() -> None:
    """Its numbers are those of another life."""
    inlet = an_inlet()
    inlet.receive(data(1, 1, epoch=5))

    inlet.receive(data(1, 1, session=SessionId(3)))

    assert inlet.stale == 1


def test_record_given_by_hand_waits_for_nothing() -> None:
    """It stands in the queue as if it had come on a link that is not ahead."""
    inlet = an_inlet(TaskId(0, 1))
    inlet.receive(data(1, 1, epoch=2))

    inlet.inject(Injected(b"x", 5))

    assert inlet.next() == Injected(b"x", 5)


def test_restored_inlet_begins_at_its_watermark() -> None:
    """And goes on when its links have come there again."""
    inlet = an_inlet()
    inlet.restore(2)
    steps = [data(1, 1), data(2, 1), data(3, 1)]

    assert inlet.watermarks.watermark_ms == 2
    assert [inlet.on_processed(message) for message in steps] == [False, False, True]
    assert inlet.watermarks.watermark_ms == 3
