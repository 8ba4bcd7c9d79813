"""One task at work: where its epochs end, what it is then, how it goes on from there."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import FINISHED, Task
from gearpy.task.api.snapshots import TaskResume, TaskSnapshot, TaskState
from tests.task.build import EPOCH_STEPS, Bench, Echo, Recorder, some_limits, take_epochs, task_of


class Sum(Task):
    def on_start(self, start_time_ms: int) -> None:
        self.total: int = self.context.resume or 0

    def on_next(self, message: Message) -> None:
        self.total += message.value
        self.context.output(Message(self.total, message.timestamp))

    def snapshot(self) -> int:
        return self.total


class Numbers(Task):
    """Sends 1, 2, 3, ... to a limit, one at a call; goes on where it was."""

    limit = 5
    wait_ms = 0

    def on_start(self, start_time_ms: int) -> None:
        self.sent: int = self.context.resume or 0

    def produce(self) -> int:
        if self.sent < self.limit:
            self.sent += 1
            self.context.output(Message(self.sent, self.sent))
            self.context.update_watermark(self.sent)
        return FINISHED if self.sent >= self.limit else self.wait_ms

    def snapshot(self) -> int:
        return self.sent


def kept(snapshot: TaskResume | TaskSnapshot) -> Any:
    return TaskState.decode(snapshot.head).task


# -- tasks with inputs -----------------------------------------------------------------------


def test_epoch_ends_when_all_inputs_have_ended_it() -> None:
    bench = Bench(Sum, upstream=2).open().run()
    bench.answers.clear()

    bench.send(1, source=0)
    bench.send(10, source=0, epoch=2)
    bench.ask(source=0)
    bench.send(100, source=1)
    bench.run()
    before = (bench.target.values, len(bench.runner.snapshots), len(bench.answers))
    bench.send(1000, source=1, epoch=2)
    bench.run()

    assert before == ([1, 101], 0, 0)
    assert kept(bench.snapshot(1)) == 101
    assert bench.target.epochs == [(1, [1, 101]), (2, [111, 1111])]
    assert [(ack.seq, ack.received) for ack in bench.answers] == [(2, 2)]


def test_what_gathers_at_the_end_of_an_epoch_belongs_to_it() -> None:
    """A batch that was not full goes out first, as far as there is credit, and is held else."""
    bench = Bench(Echo, limits=some_limits(window=2, interval=2, batch=16)).open()

    bench.send(1, 2, 3)
    bench.send(4, epoch=2)
    bench.run()

    assert bench.target.epochs == [(1, [1, 2, 3]), (2, [4])]


def test_inputs_alone_end_the_epochs_of_a_task_that_has_some() -> None:
    """The app master asks sources only; a mistake of its does no harm."""
    bench = Bench(Echo).open()

    bench.runner.cut(1)
    bench.run()

    assert bench.runner.snapshots == []


class Copied(Sum):
    """Sends what it gets; its state is copied in three steps that take long."""

    bench: Bench

    def on_start(self, start_time_ms: int) -> None:
        super().on_start(start_time_ms)
        self.bulk = self.context.state.bulk("pairs", operator="copied")
        self.copied: list[Any] = []

    def snapshot(self) -> int:
        copied: list[Any] = []
        self.bulk.put_all(["a", "b", "c"], copied, before=[])
        self.bulk.copies.add(self.copy(copied), self.late())
        return self.total

    def copy(self, copied: list[Any]) -> Iterator[None]:
        for number in range(3):
            copied.append(self.total if number == 0 else number)
            yield from self.late()

    def late(self) -> Iterator[None]:
        self.bench.now_ms += 10
        yield


def test_a_snapshot_is_handed_over_when_it_is_whole() -> None:
    bench = Bench(Copied, limits=some_limits(window=2, interval=2)).open().run()
    task_of(bench).bench = bench
    bench.send(1)
    bench.send(2, 3, 4, epoch=2)

    turns = [bench.turn() for _ in range(2)]
    is_settled = bench.runner.is_settled
    handed = []
    for _ in range(5):
        handed.append([each.epoch for each in bench.runner.snapshots])
        bench.turn()

    assert turns == [0, 0]
    assert not is_settled
    assert handed == [[], [], [], [1], [1]]
    assert bench.run().target.epochs == [(1, [1]), (2, [3, 6, 10])]
    delta = bench.runner.snapshots[0].delta
    assert delta is not None
    assert sum(section.body.count(b"\x00sa") for section in delta.sections()) == 1


def test_the_next_end_of_an_epoch_finishes_the_snapshot_before_it() -> None:
    bench = Bench(Copied, limits=some_limits(window=100)).open().run()
    task_of(bench).bench = bench
    bench.send(1)
    bench.send(10, epoch=2)
    bench.send(100, epoch=3)

    bench.turn()
    handed = [each.epoch for each in bench.runner.snapshots]
    bench.run()

    assert handed == [1]
    assert [(each.epoch, kept(each)) for each in bench.runner.snapshots] == [(1, 1), (2, 11)]
    assert bench.target.values == [1, 11, 111]


# -- tasks without inputs --------------------------------------------------------------------


def test_source_ends_the_epoch_where_it_is() -> None:
    bench = Bench(Numbers, upstream=0).open()
    task_of(bench).wait_ms = 10

    bench.run()
    bench.runner.cut(1)
    bench.runner.cut(1)
    bench.run()
    bench.pass_time(10)
    bench.runner.cut(1)
    bench.run()

    assert [(each.epoch, kept(each)) for each in bench.runner.snapshots] == [(1, 1)]
    assert bench.target.epochs == [(1, [1]), (2, [2])]


# -- restarts --------------------------------------------------------------------------------


def restarted(make: Any, bench: Bench, epoch: int = 1, **kwargs: Any) -> Bench:
    return Bench(make, epoch=epoch + 1, resume=bench.snapshot(epoch), **kwargs)


def test_task_goes_on_from_its_snapshot() -> None:
    """State, counts, watermark and clock; what came later is forgotten."""
    bench = Bench(Sum).open()
    bench.send(Message(1, 10), Message(2, 20), watermark_ms=15)
    bench.run()
    for _ in range(2):
        bench.pass_time(10)
        bench.run()
    clock = bench.runner.clock()
    bench.send(epoch=2, watermark_ms=15)
    bench.send(Message(100, 30), epoch=2, watermark_ms=25)
    bench.run()

    again = restarted(Sum, bench).open()
    first = again.runner.clock()
    again.run()
    again.send(Message(3, 20), epoch=2, watermark_ms=20)
    again.run()

    assert (first.records_in, first.records_out) == (clock.records_in, clock.records_out) == (2, 2)
    assert (first.clock_ms, first.watermark_ms) == (clock.clock_ms, clock.watermark_ms) == (15, 15)
    assert again.target.data[0].watermark_ms == 15
    assert again.target.epochs == [(2, [6])]
    assert again.runner.clock().records_in == 3
    untried = [each.untried for each in (clock, first, again.runner.clock())]
    assert untried == [False, True, False]


def test_watermark_comes_only_when_it_is_new() -> None:
    class Keeping(Recorder):
        def snapshot(self) -> str:
            return "kept"

    bench = Bench(Keeping).open()
    bench.send(watermark_ms=15)
    bench.send(epoch=2, watermark_ms=15)
    bench.run()

    again = restarted(Keeping, bench).open()
    for watermark_ms in (10, 15, 16):
        again.send(epoch=2, watermark_ms=watermark_ms)
    again.run()

    assert task_of(again).calls == [("start", MIN_MS), ("watermark", 16)]
    assert task_of(again).context.upstream_min_clock() == 16


class Waking(Recorder):
    keeps: Any = "something"

    def on_start(self, start_time_ms: int) -> None:
        super().on_start(start_time_ms)
        if self.context.resume is None:
            for delay_ms, payload in ((30, "c"), (10, "a"), (30, "d"), (20, object())):
                self.context.schedule(delay_ms, payload)

    def snapshot(self) -> Any:
        return self.keeps


def test_timers_that_are_not_due_come_after_a_restart() -> None:
    bench = Bench(Waking).open()
    bench.pass_time(15)
    bench.send(epoch=2)
    bench.run()

    again = restarted(Waking, bench).open()
    wakes = [again.turn()]
    again.pass_time(14)
    again.pass_time(1)

    assert wakes == [15]
    assert task_of(again).calls[1:] == [("timer", "c"), ("timer", "d")]


def test_snapshot_that_raises_or_is_no_plain_data_is_the_users_error() -> None:
    class Odd(Echo):
        def snapshot(self) -> Any:
            return iter(())

    class Raising(Echo):
        def snapshot(self) -> Any:
            raise ValueError("not now")

    for make, text in ((Odd, "class tuple_iterator"), (Raising, "ValueError: not now")):
        bench = Bench(make).open()
        bench.send(epoch=2)
        with pytest.raises(OperatorError, match=text) as raised:
            bench.turn()
        assert raised.value.operator == "bench"


def test_damaged_snapshot_is_told_clearly() -> None:
    with pytest.raises(OperatorError, match="ProtocolError: malformed value"):
        Bench(Echo, resume=TaskResume(head=b"\xc1")).open()


# -- all of it -------------------------------------------------------------------------------


class Exploding(Sum):
    """Answers lazily with as many copies as it got, and keeps how many came before."""

    def on_next(self, message: Message) -> Iterator[Message]:  # type: ignore[override] # lazily
        self.total += message.value
        for _ in range(message.value):
            yield Message(self.total, message.timestamp)


@settings(max_examples=80)
@given(EPOCH_STEPS, st.integers(1, 4), st.integers(0, 5))
def test_each_epoch_goes_out_with_what_was_processed_in_it(
    steps: list[tuple[Any, ...]], interval: int, more: int
) -> None:
    """Property: for any order of inputs and acks, snapshot and output agree on every epoch.

    The snapshot of an epoch holds the records of all links up to its end, and no other; what
    follows from them leaves in the same epoch.
    """
    limits = some_limits(window=interval + more, interval=interval, batch=2)
    bench = Bench(Exploding, upstream=2, limits=limits).open()

    one, other = take_epochs(bench, steps)

    of_epoch = {epoch: sum(one[epoch]) + sum(other[epoch]) for epoch in one}
    totals = dict(zip(of_epoch, itertools.accumulate(of_epoch.values()), strict=True))
    assert {each.epoch: kept(each) for each in bench.runner.snapshots} == totals
    got = dict(bench.target.epochs)
    assert {epoch: len(got.get(epoch, [])) for epoch in of_epoch} == of_epoch
    assert all(max(got.get(epoch) or [0]) <= totals[epoch] for epoch in of_epoch)


def test_task_hears_of_a_complete_epoch_once() -> None:
    told: list[int] = []

    class Told(Task):
        def on_commit(self, epoch: int) -> None:
            told.append(epoch)

    bench = Bench(Told).open()
    for epoch in (1, 1, 3, 2):
        bench.runner.commit(epoch)
        bench.run()

    assert told == [1, 3]
    assert bench.runner.committed == [1, 1, 3, 2]


# -- the last epoch, before the end of the stream --------------------------------------------


def test_a_source_produces_nothing_behind_the_last_epoch() -> None:
    bench = Bench(Numbers, upstream=0).open()
    task_of(bench).wait_ms = 10
    bench.run()

    for _ in range(3):
        bench.runner.cut(1, is_last=True)
        bench.run()
        bench.pass_time(10)
        bench.run()

    assert [(each.epoch, kept(each)) for each in bench.runner.snapshots] == [(1, 1)]
    assert bench.target.values == [1]
    assert bench.runner.clock().clock_ms < MAX_MS


def test_another_last_epoch_may_follow_on_the_last() -> None:
    """Something was in flight; or the epoch was given up."""
    bench = Bench(Numbers, upstream=0).open()
    task_of(bench).wait_ms = 10
    for epoch in (1, 2):
        bench.run()
        bench.runner.cut(epoch, is_last=True)
        bench.run()
        bench.pass_time(10)

    assert [(each.epoch, kept(each)) for each in bench.runner.snapshots] == [(1, 1), (2, 1)]


def test_a_source_waits_when_its_task_can_keep_no_more_of_an_epoch() -> None:
    """It goes on when the epoch has ended; its report asks for that in good time."""

    class Keeper(Numbers):
        limit = 100
        kept = 0

        @property
        def epoch_fill(self) -> float:
            return (self.sent - self.kept) / 10

        def before_snapshot(self) -> Iterator[Batch]:
            self.kept = self.sent
            yield from ()

    bench = Bench(Keeper, upstream=0).open().run()
    for _ in range(5):
        bench.pass_time(20)
        bench.run()
    assert (task_of(bench).sent, bench.runner.clock().wants_epoch) == (8, True)

    bench.runner.cut(1)
    bench.pass_time(20)
    bench.turn()

    assert task_of(bench).sent > 8
