"""The input side of a task."""

from dataclasses import replace

import pytest

from gearpy.core.flow.alignment import EpochEnd
from gearpy.errors import MessageLost
from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.data import AckRequest, Batch, DataMessage, InitialAckRequest
from gearpy.task.runtime.inlet import Inlet, QueuedMessage

SOURCE, TASK = TaskId(0, 0), TaskId(1, 0)
SESSION = SessionId(4)


def an_inlet(*others: TaskId, is_open: bool = True) -> Inlet:
    inlet = Inlet(TASK, [SOURCE, *others], 1)
    if is_open:
        inlet.receive(InitialAckRequest(SESSION, SOURCE, TASK))
        inlet.next()
    return inlet


def data(seq: int, records: int, *, session: SessionId = SESSION, epoch: int = 1) -> DataMessage:
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
    inlet = an_inlet()
    ask = AckRequest(SESSION, SOURCE, TASK, 3)
    messages: list[QueuedMessage] = [data(1, 3), ask, data(2, 1)]

    for message in messages:
        inlet.receive(message)

    assert [inlet.next() for _ in range(4)] == [*messages, None]


def test_answer_says_what_was_processed() -> None:
    inlet = an_inlet()
    first, second = data(1, 3), data(2, 2)
    for message in (first, second):
        inlet.receive(message)
    inlet.on_processed(first)

    answer = inlet.answer(AckRequest(SESSION, SOURCE, TASK, 5), now_ms=0)

    assert answer is not None
    assert (answer.seq, answer.received) == (5, 3)
    assert (answer.source, answer.target, answer.session) == (TASK, SOURCE, SESSION)


def test_opening_is_answered_with_zero() -> None:
    """Gearpump answers `InitialAckRequest` the same way."""
    answer = an_inlet().answer(InitialAckRequest(SESSION, SOURCE, TASK), now_ms=0)

    assert answer is not None
    assert (answer.seq, answer.received) == (0, 0)


def test_stale_and_doubled_data_never_enter_the_queue() -> None:
    inlet = an_inlet()
    inlet.receive(data(1, 1))

    inlet.receive(data(1, 1))
    inlet.receive(data(2, 1, session=SessionId(3)))

    assert inlet.next() is not None
    assert not inlet


def test_gap_is_message_loss() -> None:
    with pytest.raises(MessageLost):
        an_inlet().receive(data(2, 1))


def test_old_session_gets_no_answer() -> None:
    assert an_inlet().answer(AckRequest(SessionId(3), SOURCE, TASK, 3), now_ms=0) is None
    assert an_inlet().watermarks.watermark_ms == MIN_MS


def test_data_of_a_stale_session_is_of_no_epoch() -> None:
    inlet = an_inlet()
    inlet.receive(data(1, 1, epoch=5))

    inlet.receive(data(1, 1, session=SessionId(3)))

    inlet.receive(data(2, 1, epoch=5))  # The link has not gone back: no `MessageLost`.


def test_what_a_link_promises_as_it_ends_an_epoch_is_of_that_epoch() -> None:
    """Else one task of a step would have closed a window by its end, and its neighbour not."""
    inlet = an_inlet(other := TaskId(0, 1))
    inlet.receive(InitialAckRequest(SESSION, other, TASK))
    inlet.next()
    others = replace(data(1, 0, epoch=2), source=other)

    for message in (data(1, 1), data(2, 0, epoch=2), data(3, 1, epoch=2), others):
        inlet.receive(message)

    taken = [inlet.next() for _ in range(6)]
    assert [each.epoch for each in taken if isinstance(each, DataMessage | EpochEnd)] == [
        1, 1, 1, 1, 2,
    ]  # fmt: skip
    assert taken[2:4] == [others, EpochEnd(1)]
