"""One task at work: order, back-pressure, watermarks, clock."""

import itertools
from collections.abc import Iterable, Iterator

import pytest

from gearpy.errors import MessageLost
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import Ack, Batch, DataMessage, EncodedBatch, LatencyProbe, Message
from gearpy.task.api.interfaces import Task
from gearpy.task.runtime.runner import OUTBOX_FULL
from gearpy.wire.values.payload import encode_batch
from tests.task.build import (
    SESSION,
    TARGET,
    TASK,
    UPSTREAM_SESSION,
    Bench,
    Echo,
    Recorder,
    on_next_of,
    some_limits,
    task_of,
)


class Endless(Task):
    """Answers one record with numbers for ever, and counts how many were asked for."""

    pulled = 0

    def on_next(self, message: Message) -> Iterator[Message]:
        """Yield without an end."""
        for number in itertools.count():
            self.pulled += 1
            yield Message(number, message.timestamp)


def a_message(batch: Batch | EncodedBatch) -> DataMessage:
    """Return the first message of the link from upstream."""
    return DataMessage(
        session=UPSTREAM_SESSION, source=TaskId(0, 0), target=TASK, seq=1, batch=batch, epoch=1
    )


# -- order and counting ----------------------------------------------------------------------


def test_links_are_opened_before_anything_else() -> None:
    """The receiver counts from there."""
    bench = Bench(Echo, targets=(2, 1)).open()

    assert bench.opened == [TaskId(2, 0), TaskId(2, 1), TaskId(3, 0)]


def test_records_keep_their_order() -> None:
    """Through the queue, the task and the link."""
    bench = Bench(Echo).open()

    for start in range(0, 60, 20):
        bench.send(*range(start, start + 20))
    bench.run()

    assert bench.target.values == list(range(60))
    assert bench.runner.records_queued == 0


def test_returned_messages_and_output_stay_in_order() -> None:
    """A task may use both."""

    class Both(Task):
        def on_next(self, message: Message) -> Iterable[Message]:
            self.context.output(Message("output"))
            return [Message("returned")]

    bench = Bench(Both).open()

    bench.send(1, 2)
    bench.run()

    assert bench.target.values == ["output", "returned"] * 2


def test_batch_task_may_use_output_too() -> None:
    """What was put out before a batch is yielded goes before it."""

    class Both(Task):
        def on_batch(self, batch: Batch) -> Iterator[Batch]:
            self.context.output(Message("first"))
            yield Batch(["second"], [0])
            self.context.output(Message("third"))

    bench = Bench(Both).open()

    bench.send(1)
    bench.run()

    assert bench.target.values == ["first", "second", "third"]


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


def test_counters_count_records() -> None:
    """They are what progress is made of."""
    bench = Bench(on_next_of(lambda message: [message, message])).open()

    bench.send(1, 2, 3)
    bench.run()

    clock = bench.runner.clock()
    assert (clock.records_in, clock.records_out) == (3, 6)


def test_large_output_is_cut_by_bytes() -> None:
    """A frame has a limit; one record above it travels alone."""
    bench = Bench(Echo, limits=some_limits(batch_bytes=1000)).open()

    bench.send(*("x" * 400 for _ in range(6)))
    bench.run()

    assert [len(data.batch) for data in bench.target.data] == [2, 2, 2]


def test_batch_from_the_wire_is_decoded_by_the_task() -> None:
    """In its own thread of work, not in the network's."""
    bench = Bench(Echo).open()
    message = a_message(EncodedBatch(2, b"".join(encode_batch(["a", "b"], [1, 2]))))

    bench.runner.receive(message)
    bench.run()

    assert bench.target.messages == [Message("a", 1), Message("b", 2)]


def test_probe_is_taken_without_harm() -> None:
    """It measures time only."""
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


def test_endless_answer_goes_on_as_the_target_takes_it() -> None:
    """Acks are taken while the task is blocked, and nothing is lost where it was cut."""
    bench = Bench(Endless, limits=some_limits(window=50, interval=10, batch=16)).open()
    bench.send(1)

    for _ in range(30):
        bench.turn()
        bench.consume(TARGET, 3)

    values = bench.target.values
    assert values == list(range(len(values)))
    assert len(values) > 200
    assert task_of(bench).pulled <= len(values) + 50 + 2 * 16


def test_endless_batches_are_suspended() -> None:
    """The same for a task that takes batches."""
    pulled = []

    class Exploding(Task):
        def on_batch(self, batch: Batch) -> Iterator[Batch]:
            for number in itertools.count():
                pulled.append(number)
                yield Batch([number] * 16, [0] * 16)

    bench = Bench(Exploding, limits=some_limits(window=50, batch=16)).open()

    bench.send(1)
    bench.turn()

    assert bench.runner.is_blocked
    assert len(pulled) == 4


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


def test_blocked_task_takes_no_new_step_behind_an_ack_request() -> None:
    """Sending the rest before the answer may use the last credit."""
    bench = Bench(Echo, limits=some_limits(window=10, interval=10, batch=16)).open()
    bench.send(*range(15))
    bench.ask()
    bench.send(*range(15, 30))

    bench.turn()

    assert bench.runner.is_blocked
    assert bench.runner.records_queued == 15
    bench.run()
    assert bench.target.values == list(range(30))


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
    """The task fails, and recovery begins."""
    bench = Bench(Echo).open()
    bench.send(*range(10))
    bench.turn()

    with pytest.raises(MessageLost):
        bench.runner.receive(Ack(session=SESSION, source=TARGET, target=TASK, seq=10, received=9))


def test_lost_end_of_a_stream_is_message_loss() -> None:
    """A message without records counts, too; else the target would wait for the end for ever."""
    bench = Bench(Echo).open()
    bench.send(1, watermark_ms=MAX_MS)
    bench.turn()
    bench.pass_time(20)
    queue = bench.target.queue
    end = next(m for m in queue if isinstance(m, DataMessage) and m.watermark_ms == MAX_MS)

    queue.remove(end)

    with pytest.raises(MessageLost):
        bench.run()


def test_bare_watermark_waits_for_credit() -> None:
    """It counts like a record, and no more than the window is ever unacknowledged."""
    bench = Bench(Echo, limits=some_limits(window=2, interval=2, batch=2)).open()
    bench.send(1, 2)
    bench.turn()

    bench.send(watermark_ms=7)
    bench.pass_time(20)
    told_before = [m.watermark_ms for m in bench.target.queue if isinstance(m, DataMessage)]
    bench.run()
    bench.pass_time(20)
    bench.run()

    assert 7 not in told_before
    assert bench.target.watermark_ms == 7


def test_quiet_link_is_asked_about_without_traffic() -> None:
    """The owner is told when to come back."""
    bench = Bench(Echo).open()
    bench.send(1)

    wake_ms = bench.turn()
    bench.consume(TARGET, 10)
    unsettled = bench.runner.clock()
    bench.pass_time(5)
    bench.consume(TARGET, 10)

    assert wake_ms == 5
    assert unsettled.clock_ms == MIN_MS
    assert bench.turn() is None


# -- watermarks and clock --------------------------------------------------------------------


def test_watermark_is_passed_on_behind_the_records() -> None:
    """With the next data, or bare after a while."""
    bench = Bench(Echo).open()

    bench.send(Message("a", 5), watermark_ms=7)
    bench.run()
    bench.pass_time(3)
    bench.run()

    assert bench.target.values == ["a"]
    assert bench.target.watermark_ms == 7


def test_end_of_the_stream_is_told_at_once() -> None:
    """Nobody waits for an interval at the end."""
    bench = Bench(Echo).open()
    bench.pass_time(0)

    bench.send("a", watermark_ms=MAX_MS)
    bench.run()

    assert bench.target.watermark_ms == MAX_MS


def test_clock_waits_for_the_ack_of_the_last_records() -> None:
    """The end of an application is certain only when everything was processed."""
    bench = Bench(Echo).open()
    bench.send(Message("a", 5), watermark_ms=MAX_MS)

    bench.turn()
    sent = bench.runner.clock().clock_ms
    bench.consume(TARGET, 10)
    bench.pass_time(5)
    bench.consume(TARGET, 10)

    assert sent == 5
    assert bench.runner.clock().clock_ms == MAX_MS


def test_clock_waits_for_records_that_have_no_room_yet() -> None:
    """They were put out before the watermark, which is then told behind them."""
    bench = Bench(Echo, limits=some_limits(window=2, interval=2)).open()

    bench.send(Message("b", 5), Message("c", 6), Message("a", 1), watermark_ms=10)
    bench.turn()

    assert bench.runner.is_blocked
    assert (bench.runner.clock().clock_ms, bench.runner.clock().watermark_ms) == (1, 10)


def test_end_is_reported_only_when_all_is_acknowledged() -> None:
    """Even if a record claims to happen at the end of time."""
    bench = Bench(Echo).open()

    bench.send(Message("a", MAX_MS), watermark_ms=MAX_MS)
    bench.turn()

    assert bench.runner.clock().clock_ms == MAX_MS - 1


def test_clock_waits_for_what_the_task_holds() -> None:
    """State that is not sent yet would be lost by a restart at a later time."""

    class Holding(Task):
        hold_ms = 4

    bench = Bench(Holding).open()

    bench.send(watermark_ms=10)
    bench.run()
    held = bench.runner.clock().clock_ms
    task_of(bench).hold_ms = MAX_MS

    assert held == 4
    assert bench.runner.clock().clock_ms == 10


def test_clock_does_not_go_back_for_late_records() -> None:
    """Promised is promised."""
    bench = Bench(Echo).open()
    bench.send(watermark_ms=10)
    bench.run()
    assert bench.runner.clock().clock_ms == 10

    bench.send(Message("late", 3))
    bench.turn()

    assert bench.runner.clock().clock_ms == 10


def test_clock_at_the_end_does_not_go_back() -> None:
    """A timer after the end may still send; the end was reported."""

    class Late(Recorder):
        def on_watermark(self, watermark_ms: int) -> None:
            self.context.schedule(10, "late")

        def on_timer(self, payload: object) -> None:
            self.context.output(Message(payload, 5))

    bench = Bench(Late).open()
    bench.send(watermark_ms=MAX_MS)
    bench.run()
    assert bench.runner.clock().clock_ms == MAX_MS

    bench.pass_time(10)

    assert bench.runner.clock().clock_ms == MAX_MS


def test_idle_is_passed_on_and_cleared_before_the_next_records() -> None:
    """Idle links pin no clock; records on one that still counts as idle could come too late."""
    bench = Bench(Echo).open()

    bench.send(watermark_ms=10, idle=True)
    bench.run()
    idle = (bench.target.idle, bench.runner.clock().idle)
    bench.send(Message("a", 20), watermark_ms=15)
    bench.run()

    assert idle == (True, True)
    assert [data.idle for data in bench.target.data if len(data.batch)] == [False]
    assert not bench.runner.clock().idle


def test_promise_that_comes_with_idleness_is_passed_on() -> None:
    """Records before it are done, so windows may close though nothing comes after it."""
    bench = Bench(Echo, upstream=2).open()

    bench.send(watermark_ms=50, idle=True, source=1)
    bench.send(watermark_ms=10, idle=True, source=0)
    bench.run()

    assert (bench.target.watermark_ms, bench.target.idle) == (50, True)


def test_task_is_idle_only_if_all_its_inputs_are() -> None:
    """One that gives goes on."""
    bench = Bench(Echo, upstream=2).open()

    bench.send(idle=True, source=0)
    bench.run()
    one = bench.runner.clock().idle
    bench.send(idle=True, source=1)
    bench.run()

    assert (one, bench.runner.clock().idle) == (False, True)


def test_upstream_clock_is_known_to_the_task() -> None:
    """Gearpump: `TaskContext.upstreamMinClock`."""
    seen = []
    bench = Bench(on_next_of(lambda _: seen.append(task_of(bench).context.upstream_min_clock())))
    bench.open()

    bench.send("a", watermark_ms=7)
    bench.send("b")
    bench.turn()

    assert seen == [MIN_MS, 7]


def test_a_turn_ends_when_there_is_enough_to_send() -> None:
    """Who gets it can begin; a credit that was asked for is not late by the rest of the turn."""
    bench = Bench(Echo, limits=some_limits(window=1000, interval=1000, batch=1)).open()
    bench.run()
    bench.send(*range(20))
    bench.ask()
    sent = []

    while bench.runner.turn() == 0:
        sent.append(len(bench.runner.outbox))
        bench.runner.outbox.clear()

    assert sent == [OUTBOX_FULL] * 5
    assert [type(message) for message in bench.runner.outbox] == [Ack]
