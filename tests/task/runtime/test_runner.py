"""One task at work: order, back-pressure, watermarks, clock."""

import itertools
from collections.abc import Iterator

import pytest

from gearpy.errors import MessageLost
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import Ack, Batch, DataMessage, EncodedBatch, LatencyProbe, Message
from gearpy.task.api.interfaces import Task
from gearpy.wire.values.payload import encode_batch
from tests.task.build import (
    SESSION,
    TARGET,
    TASK,
    UPSTREAM_SESSION,
    Bench,
    Echo,
    on_next_of,
    some_limits,
    task_of,
)


class Endless(Task):
    """Answers one record with numbers for ever, and counts how many were asked for."""

    pulled = 0

    def on_next(self, message: Message) -> Iterator[Message]:
        for number in itertools.count():
            self.pulled += 1
            yield Message(number, message.timestamp)


def a_message(batch: Batch | EncodedBatch) -> DataMessage:
    return DataMessage(
        session=UPSTREAM_SESSION, source=TaskId(0, 0), target=TASK, seq=1, batch=batch, epoch=1
    )


# -- order and counting ----------------------------------------------------------------------


def test_records_keep_their_order() -> None:
    bench = Bench(Echo).open()

    for start in range(0, 60, 20):
        bench.send(*range(start, start + 20))
    bench.run()

    assert bench.target.values == list(range(60))
    assert bench.runner.records_queued == 0


def test_ack_request_is_answered_after_what_came_before() -> None:
    """An ack says: processed. Gearpump: `TaskActor` queues its acks behind the records."""
    seen_at_answer = []
    bench = Bench(on_next_of(lambda _: seen_at_answer.append(len(bench.answers)))).open()
    bench.turn()
    bench.answers.clear()

    bench.send(1, 2, 3)
    bench.ask()
    bench.turn()

    assert seen_at_answer == [0, 0, 0]
    assert [(ack.seq, ack.received, ack.target) for ack in bench.answers] == [(3, 3, TaskId(0, 0))]


def test_an_ack_says_how_many_records_are_the_work_of_a_second() -> None:
    def work(_: Message) -> None:
        bench.now_ms += 10

    bench = Bench(on_next_of(work)).open()
    bench.turn()
    bench.answers.clear()

    bench.send(*range(50))
    bench.ask()
    bench.turn()

    assert [ack.room for ack in bench.answers] == [100]


def test_the_time_that_a_commit_takes_is_not_taken_from_that_of_the_work() -> None:
    class Commits(Task):
        def on_next(self, message: Message) -> None:
            bench.now_ms += 10

        def on_commit(self, epoch: int) -> None:
            bench.now_ms += 300

    bench = Bench(Commits).open()
    bench.runner.commit(1)
    bench.turn()
    bench.answers.clear()

    bench.send(*range(50))
    bench.ask()
    bench.turn()

    assert [ack.room for ack in bench.answers] == [100]


def test_a_task_behind_which_is_no_room_is_as_slow_as_that() -> None:
    bench = Bench(Echo, limits=some_limits(window=10, interval=5)).open()
    bench.turn()
    bench.answers.clear()
    bench.send(*range(20))
    bench.ask()
    bench.turn()

    for _ in range(100):
        bench.pass_time(10)
    bench.run()

    assert bench.runner.records_queued == 0
    assert [ack.room for ack in bench.answers] == [20]


def test_a_task_sends_as_much_as_a_slow_target_wants() -> None:
    bench = Bench(Echo, limits=some_limits(window=1000, interval=10)).open()
    bench.send(*range(10))
    bench.turn()
    bench.runner.receive(Ack(SESSION, TARGET, TASK, 10, 10, room=40))

    bench.send(*range(500))
    bench.turn()

    assert bench.runner.is_blocked
    assert (
        sum(len(each.batch) for each in bench.target.queue if isinstance(each, DataMessage)) == 50
    )


def test_batch_from_the_wire_is_decoded_by_the_task() -> None:
    bench = Bench(Echo).open()
    message = a_message(EncodedBatch(2, b"".join(encode_batch(["a", "b"], [1, 2]))))

    bench.runner.receive(message)
    bench.run()

    assert bench.target.messages == [Message("a", 1), Message("b", 2)]


def test_probe_is_taken_without_harm() -> None:
    bench = Bench(Echo).open()

    bench.runner.receive(LatencyProbe(SESSION, TaskId(0, 0), TASK, 5))

    assert bench.turn() is None


# -- back-pressure ---------------------------------------------------------------------------


def test_task_stops_while_a_target_has_no_room() -> None:
    """Pressure goes upstream: what came in stays in the queue, unacknowledged."""
    bench = Bench(Echo, limits=some_limits(window=10, interval=5)).open()
    bench.turn()
    bench.answers.clear()

    for start in range(0, 100, 10):
        bench.send(*range(start, start + 10))
        bench.ask()
    for _ in range(5):
        bench.turn()

    assert bench.runner.is_blocked
    assert bench.runner.records_queued >= 70
    assert len(bench.answers) <= 2
    bench.run()
    assert bench.target.values == list(range(100))
    assert len(bench.answers) == 10


def test_endless_answer_to_one_record_is_suspended() -> None:
    """Memory is bounded within a record: at most a window and two batches are asked for."""
    bench = Bench(Endless, limits=some_limits(window=50, batch=16)).open()

    bench.send(1)
    for _ in range(10):
        bench.turn()

    assert bench.runner.is_blocked
    assert task_of(bench).pulled <= 50 + 2 * 16


def test_large_result_of_a_watermark_is_suspended() -> None:
    """A million windows may close at once; the watermark waits for the last of them."""
    pulled = []

    class Closing(Task):
        def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
            for number in range(100):
                pulled.append(number)
                yield Batch([number] * 16, [watermark_ms - 1] * 16)

    bench = Bench(Closing, limits=some_limits(window=50, batch=16)).open()

    bench.send(watermark_ms=100)
    bench.turn()

    assert len(pulled) == 4
    assert bench.runner.clock().watermark_ms == MIN_MS
    bench.run()
    assert len(bench.target.messages) == 1600
    assert bench.runner.clock().watermark_ms == 100


def test_one_slow_target_stops_the_task_for_all() -> None:
    """Otherwise what the slow one does not take would pile up."""
    bench = Bench(Echo, targets=(1, 1), limits=some_limits(window=10, interval=5)).open()
    quick = TaskId(3, 0)
    bench.send(*range(30))

    for _ in range(20):
        bench.turn()
        bench.consume(quick, 100)

    assert bench.runner.is_blocked
    assert len(bench.targets[quick].messages) <= 10 + 2 * 16


@pytest.mark.parametrize("session", [SESSION - 1, SESSION + 1])
def test_ack_of_another_session_is_ignored(session: int) -> None:
    """However wrong it is. Gearpump: `SubscriptionSpec`."""
    bench = Bench(Echo).open()
    bench.send(*range(10))
    bench.turn()

    bench.runner.receive(
        Ack(session=SessionId(session), source=TARGET, target=TASK, seq=10, received=1)
    )

    assert not bench.runner.is_settled


def test_wrong_count_of_a_target_is_message_loss() -> None:
    bench = Bench(Echo).open()
    bench.send(*range(10))
    bench.turn()

    with pytest.raises(MessageLost):
        bench.runner.receive(Ack(session=SESSION, source=TARGET, target=TASK, seq=10, received=9))


# -- watermarks and clock --------------------------------------------------------------------


def test_watermark_is_passed_on_behind_the_records() -> None:
    bench = Bench(Echo).open()

    bench.send(Message("a", 5), watermark_ms=7)
    bench.run()
    bench.pass_time(3)
    bench.run()

    assert bench.target.values == ["a"]
    assert bench.target.watermark_ms == 7


def test_clock_waits_for_the_ack_of_the_last_records() -> None:
    bench = Bench(Echo).open()
    bench.send(Message("a", 5), watermark_ms=MAX_MS)

    bench.turn()
    sent = bench.runner.clock().clock_ms
    bench.consume(TARGET, 10)
    bench.pass_time(5)
    bench.consume(TARGET, 10)

    assert sent == 5
    assert bench.runner.clock().clock_ms == MAX_MS


def test_end_is_reported_only_when_all_is_acknowledged() -> None:
    bench = Bench(Echo).open()

    bench.send(Message("a", MAX_MS), watermark_ms=MAX_MS)
    bench.turn()

    assert bench.runner.clock().clock_ms == MAX_MS - 1


def test_clock_does_not_go_back_for_late_records() -> None:
    bench = Bench(Echo).open()
    bench.send(watermark_ms=10)
    bench.run()
    assert bench.runner.clock().clock_ms == 10

    bench.send(Message("late", 3))
    bench.turn()

    assert bench.runner.clock().clock_ms == 10


def test_upstream_clock_is_known_to_the_task() -> None:
    seen = []
    bench = Bench(on_next_of(lambda _: seen.append(task_of(bench).context.upstream_min_clock())))
    bench.open()

    bench.send("a", watermark_ms=7)
    bench.send("b")
    bench.turn()

    assert seen == [MIN_MS, 7]
