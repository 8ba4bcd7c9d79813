"""Records on which a task raises: it fails, or goes on without them; and records given again."""

from collections.abc import Iterator
from typing import Any

import pytest

import gearpy as gp
from gearpy.core.flow.partition import GroupByPartitioner
from gearpy.errors import OperatorError
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import Task
from gearpy.task.api.rejects import OUTPUT, Midway, OnError
from gearpy.testing import Simulation
from gearpy.wire.values.payload import decode_value, encode_value
from tests.task.build import Bench, Echo, on_next_of, some_limits, source_of

POLICIES: list[OnError] = ["skip", "quarantine"]


class Picky(Task):
    """Sends each number twice, the second one lazily; raises on a negative one in between."""

    def on_next(self, message: Message) -> Any:
        self.context.output(message)
        if message.value < 0:
            raise ValueError(f"negative: {message.value}")
        return [message] if message.value < 100 else self.lazily(message)

    def lazily(self, message: Message) -> Iterator[Message]:
        for _ in range(message.value - 100):
            yield message
        raise ValueError("too many")


@pytest.mark.parametrize("policy", POLICIES)
def test_task_goes_on_behind_a_bad_record(policy: OnError) -> None:
    bench = Bench(Picky, on_error=policy).open()

    bench.send(1, -2, 3)
    bench.send(-4, 5)
    bench.run()

    clock = bench.runner.clock()
    assert bench.target.values == [1, 1, 3, 3, 5, 5]
    assert (clock.records_in, clock.records_out) == (5, 6)
    assert clock.skipped_records == (2 if policy == "skip" else 0)
    assert clock.quarantined_records == (2 if policy == "quarantine" else 0)
    assert len(bench.runner.rejected) == clock.quarantined_records


def test_long_answer_of_a_bad_record_stays_as_far_as_it_was_sent() -> None:
    """It cannot be called back; what was not sent yet is."""
    bench = Bench(Picky, on_error="skip", limits=some_limits(batch=4)).open()

    bench.send(1, 107, 2)
    bench.run()

    assert bench.target.values == [1, 1] + [107] * 6 + [2, 2]


def test_task_without_targets_does_not_count_what_it_dropped() -> None:
    def take(message: Message) -> None:
        if message.value == 2:
            raise ValueError

    bench = Bench(on_next_of(take), targets=(), on_error="skip").open()

    bench.send(1, 2, 3)
    bench.run()

    clock = bench.runner.clock()
    assert (clock.records_in, clock.records_out, clock.skipped_records) == (3, 2, 1)


class Whole(Task):
    """Takes batches; raises if there is a negative number."""

    def on_batch(self, batch: Batch) -> Iterator[Batch]:
        yield Batch(["begin"], [0])
        if min(batch.values) < 0:
            raise ValueError("negative")
        yield batch


def test_batch_of_one_is_its_record() -> None:
    bench = Bench(Whole, on_error="quarantine").open()

    bench.send(1, 2)
    bench.send(-1)
    bench.send(3)
    bench.run()

    assert bench.target.values == ["begin", 1, 2, "begin", "begin", 3]
    assert [decode_value(record.value) for record in bench.runner.rejected] == [-1]


def test_error_of_a_source_is_a_failure() -> None:
    """Nobody knows what it would give next."""

    def produce(task: Task) -> int:
        raise ValueError("cut off")

    bench = Bench(source_of(produce), upstream=0, on_error="skip").open()

    with pytest.raises(OperatorError, match="cut off"):
        bench.turn()


def inverse(value: int) -> float:
    return 1 // value


def test_record_that_has_nowhere_to_go_is_dropped() -> None:
    """Others of its batch are sent, in their order; in quarantine it is at the output."""
    key_by = GroupByPartitioner(inverse)
    bench = Bench(Echo, targets=(2, 1), partitioner=key_by, on_error="quarantine").open()

    bench.send(1, Message(0, 20), 2, 0, -1)
    bench.run()

    values = [target.values for target in bench.targets.values()]
    assert sorted(values[0] + values[1]) == sorted(values[2]) == [-1, 1, 2]
    assert values[2] == [1, 2, -1]
    clock = bench.runner.clock()
    assert (clock.records_out, clock.quarantined_records) == (3, 2)
    assert decode_value(bench.runner.rejected[0].value) == Midway(OUTPUT, 0)
    assert bench.runner.rejected[0].event_time_ms == 20
    assert bench.runner.rejected[0].error.operator == "key_by(inverse)"


def test_output_that_is_no_message_is_a_failure() -> None:
    bench = Bench(on_next_of(lambda _: ["x"]), on_error="skip").open()
    bench.send(1)

    with pytest.raises(OperatorError, match="output takes Message"):
        bench.turn()


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (3, r"on_next returned 3: yield gp.Message\(value, timestamp\), or return a list"),
        (Message("a", 1), "got int, str: yield messages, or return a list"),
    ],
    ids=["number", "message"],
)
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_task_that_returns_no_list_is_told_what_to_return(
    returned: Any, text: str, on_error: OnError
) -> None:
    """A message is iterable, too: its value and its time are no messages.

    No record is skipped for that, as each one would be.
    """
    bench = Bench(on_next_of(lambda _: returned), on_error=on_error).open()
    bench.send(1)

    with pytest.raises(OperatorError, match=text):
        bench.turn()


class Timed(Task):
    """Sets a timer; returns numbers from a method."""

    method = ""

    def on_next(self, message: Message) -> Any:
        self.context.state.timers.event_time(5)
        return 7 if self.method == "on_next" and message.value == 2 else None

    def on_key_timer(self, timer: Any) -> Any:
        return 7 if self.method == "on_key_timer" else None


class TimedRecord(Timed):
    method = "on_next"


class TimedTimer(Timed):
    method = "on_key_timer"


@pytest.mark.parametrize("task", [TimedRecord, TimedTimer])
@pytest.mark.parametrize("second_ms", [9, 3])
def test_numbers_of_a_task_with_timers_are_told(task: type[Timed], second_ms: int) -> None:
    app = gp.StreamApp("timed")
    records = [gp.Message(1, 0), gp.Message(2, second_ms), gp.Message(3, 10)]
    app.read(gp.collection(records)).key_by(lambda _: 0).process(task).write(gp.to_list([]))

    with pytest.raises(OperatorError, match=f"TypeError: {task.method} returned 7: yield gp.Mess"):
        Simulation(app, on_error="skip").run()


def test_record_given_again_is_processed_like_any_other() -> None:
    bench = Bench(Echo).open().run()
    bench.answers.clear()

    bench.runner.inject(encode_value(("a", 1)), 20)
    bench.send("b")
    bench.ask()
    bench.run()

    assert bench.target.messages == [Message(("a", 1), 20), Message("b", 0)]
    assert bench.runner.clock().records_in == 2
    assert [(ack.seq, ack.received) for ack in bench.answers] == [(1, 1)]


def test_record_given_again_may_stand_at_the_output() -> None:
    fixed: list[int] = []
    key_by = GroupByPartitioner(lambda value: value if fixed else inverse(value))
    bench = Bench(Echo, targets=(2,), partitioner=key_by, on_error="quarantine").open()
    bench.send(0)
    bench.run()
    fixed.append(1)

    bench.runner.inject(bench.runner.rejected[0].value, 0)
    bench.run()

    assert [value for target in bench.targets.values() for value in target.values] == [0]
    assert bench.runner.clock().records_in == 1


def test_record_that_cannot_be_decoded_goes_back() -> None:
    bench = Bench(Echo, on_error="quarantine").open()

    bench.runner.inject(b"\xc1", 20)
    bench.run()

    (record,) = bench.runner.rejected
    assert (record.value, record.event_time_ms) == (b"\xc1", 20)
    assert "malformed value" in record.error.cause


class RemindsAndRefuses(gp.Task):
    def on_next(self, message: Message) -> None:
        self.context.output(message)
        if message.value == 2:
            raise ValueError(message.value)
        self.context.state.timers.event_time(message.timestamp + 15)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[Message]:
        yield Message(-timer.at_ms, timer.at_ms)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("records_max", [1, 1000])
def test_timers_before_a_bad_record_have_their_output(policy: OnError, records_max: int) -> None:
    """Only what the record itself has put out is taken back."""
    app, results = gp.StreamApp("reminders", parallelism=1), list[int]()
    records = [gp.Message(each, each * 10) for each in range(4)]
    app.read(gp.collection(records)).key_by(lambda each: each).process(RemindsAndRefuses).write(
        gp.to_list(results)
    )
    settings = {"application.on-error": policy, "streaming.batch-max-records": records_max}

    gp.run(app, config=gp.load_config(overrides=settings))

    assert results == [0, 1, -15, -25, 3, -45]
