"""A task that does not wait for links that are behind: its records, its output, its snapshots."""

from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import Task, TaskContext, TaskLimits
from gearpy.task.api.snapshots import TaskState
from tests.task.build import EPOCH_STEPS, Bench, some_limits, take_epochs


class Split(Task):
    """Adds up per epoch; sends what it gets with the epoch it came in."""

    aligned: ClassVar[bool] = False

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.sums: dict[int, int] = {}

    def on_start(self, start_time_ms: int) -> None:
        if self.context.resume is not None:
            self.sums = {0: self.context.resume}

    def on_next(self, message: Message) -> None:
        epoch = self.context.epoch
        self.sums[epoch] = self.sums.get(epoch, 0) + message.value
        self.context.output(Message((epoch, message.value), message.timestamp))

    def snapshot(self) -> int:
        return sum(total for epoch, total in self.sums.items() if epoch <= self.context.epoch)


def kept(bench: Bench) -> dict[int, int]:
    snapshots = bench.runner.snapshots
    return {each.epoch: TaskState.decode(each.head).task for each in snapshots}


def test_records_of_a_later_epoch_are_processed_at_once() -> None:
    bench = Bench(Split, upstream=2).open()

    bench.send(1, source=0, epoch=2)
    bench.ask(source=0)
    bench.run()
    early = (bench.target.values, [ack.received for ack in bench.answers[-1:]])
    bench.send(10, source=1)
    bench.send(100, source=1, epoch=2)
    bench.run()

    assert early == ([], [1])
    assert kept(bench) == {1: 10}
    assert bench.target.epochs == [(1, [(1, 10)]), (2, [(2, 1), (2, 100)])]


def test_watermark_does_not_overtake_what_waits() -> None:
    bench = Bench(Split, upstream=2).open()

    bench.send(Message(1, 5), source=0, epoch=2, watermark_ms=50)
    bench.send(Message(2, 40), source=1, watermark_ms=50)
    bench.run()
    bench.pass_time(10)
    bench.run()
    before = (bench.target.watermark_ms, bench.runner.clock().clock_ms)
    bench.send(source=1, epoch=2, watermark_ms=50)
    bench.run()
    bench.pass_time(10)
    bench.run()

    assert before == (MIN_MS, MIN_MS)
    assert bench.target.late == []
    assert bench.target.watermark_ms == 50


@settings(max_examples=80)
@given(EPOCH_STEPS, st.integers(1, 4), st.integers(0, 5))
def test_output_and_snapshots_agree_on_every_epoch(
    steps: list[tuple[Any, ...]], interval: int, more: int
) -> None:
    """Property: whatever the order of inputs and acks, each record counts in its own epoch."""
    limits = some_limits(window=interval + more, interval=interval, batch=2)
    bench = Bench(Split, upstream=2, limits=limits).open()

    one, other = take_epochs(bench, steps)

    sent = {epoch: one[epoch] + other[epoch] for epoch in one}
    out = {epoch: records for epoch, records in bench.target.epochs if records}
    assert {epoch: sorted(v for _, v in records) for epoch, records in out.items()} == {
        epoch: sorted(numbers) for epoch, numbers in sent.items() if numbers
    }
    assert all(at == epoch for epoch, records in out.items() for at, _ in records)
    assert all(
        total == sum(sum(numbers) for at, numbers in sent.items() if at <= epoch)
        for epoch, total in kept(bench).items()
    )


def test_too_much_output_that_waits_lets_links_wait() -> None:
    """They get no more credit, so memory is bounded; in the end nothing is lost."""
    bench = Bench(Split, upstream=2, task_limits=TaskLimits(held_records_max=3)).open()

    for value in range(1, 5):
        bench.send(value, source=0, epoch=2)
    bench.run()
    bench.send(5, source=0, epoch=2)
    bench.ask(source=0)
    bench.send(10, source=1)
    bench.run()
    early = (bench.target.values, [ack.seq for ack in bench.answers])
    bench.send(source=1, epoch=2)
    bench.run()
    bench.send(6, source=0, epoch=3)
    bench.ask(source=0)
    bench.run()

    assert early == ([(1, 10)], [0, 0])  # To the openings of the links.
    assert kept(bench) == {1: 10}
    assert bench.target.epochs == [(1, [(1, 10)]), (2, [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5)])]
    assert [ack.received for ack in bench.answers] == [0, 0, 5, 6]
