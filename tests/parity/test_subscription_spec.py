"""Promises of Gearpump's `SubscriptionSpec`; life times come with DAG versions."""

import pytest

from gearpy.errors import MessageLost
from gearpy.ids import SessionId, TaskId
from gearpy.messages.data import Ack, AckRequest, Message
from gearpy.task.api.interfaces import Task
from tests.task.build import SESSION, TARGET, TASK, Bench, some_limits

INTERVAL, WINDOW = 100, 500


class Echo(Task):
    """Sends what it gets."""

    def on_next(self, message: Message) -> None:
        """Send it."""
        self.context.output(message)


def a_bench() -> Bench:
    """Return a task whose output nobody acknowledges."""
    return Bench(Echo, limits=some_limits(window=WINDOW, interval=INTERVAL, batch=INTERVAL)).open()


def send(bench: Bench, count: int) -> None:
    """Send records one by one."""
    for number in range(count):
        bench.send(number)
        bench.turn()


def test_ack_is_asked_for_after_so_many_messages() -> None:
    """`SubscriptionSpec`: the request comes after the messages and carries their number.

    Gearpump's carries 200 after 100 messages, since a request weighs as much as a whole interval;
    here only messages count.
    """
    bench = a_bench()

    send(bench, INTERVAL)

    *_, last = bench.target.queue
    assert last == AckRequest(SESSION, TASK, TARGET, INTERVAL)
    assert [type(message) for message in bench.target.queue].count(AckRequest) == 1


def test_wrong_count_is_message_loss() -> None:
    """`SubscriptionSpec`: throw MsgLostException when the ack does not fit."""
    bench = a_bench()
    send(bench, INTERVAL)

    with pytest.raises(MessageLost):
        bench.runner.receive(
            Ack(session=SESSION, source=TARGET, target=TASK, seq=INTERVAL, received=INTERVAL - 1)
        )


def test_ack_of_a_stale_session_is_ignored() -> None:
    """`SubscriptionSpec`: an ack of another session changes nothing, however wrong it is."""
    bench = a_bench()
    send(bench, INTERVAL)

    for session in (SESSION - 1, SESSION + 1):
        bench.runner.receive(
            Ack(session=SessionId(session), source=TARGET, target=TASK, seq=INTERVAL, received=1)
        )

    send(bench, WINDOW - INTERVAL)
    assert bench.runner.clock().records_out == WINDOW


def test_sender_blocks_when_no_ack_comes() -> None:
    """`SubscriptionSpec`: disallow more messages until there is an ack."""
    bench = a_bench()

    send(bench, WINDOW + 1)
    was_blocked = bench.runner.is_blocked
    for _ in range(3):
        bench.consume(TaskId(2, 0), WINDOW)
        bench.turn()

    assert (was_blocked, bench.runner.is_blocked) == (True, False)
    assert len(bench.target.messages) == WINDOW + 1
