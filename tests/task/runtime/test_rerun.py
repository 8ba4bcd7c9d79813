"""A task that runs again over what was recorded does the same again, or it is told where not."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.window.windows import TumblingWindows
from gearpy.errors import OperatorError, ProtocolError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.task.aggregates.fold import WindowFold
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.runtime.digest import OutputDigest
from gearpy.task.runtime.recording import InputRecorder, Recording
from gearpy.task.runtime.rerun import Rerun, RerunClock
from tests.task.aggregates.test_fold import COUNT
from tests.task.build import Bench


class Totals(Task[int, Any]):
    """Adds up by key; tells the sums when event time has come to the next ten."""

    def on_start(self, start_time_ms: int) -> None:
        self.sums = self.context.state.value("sum", default=0)

    def on_next(self, message: Message[int]) -> Iterable[Message[Any]]:
        if message.value == 13:
            raise ValueError("13")
        self.sums.set(self.sums.get() + message.value)
        self.context.state.timers.event_time(message.timestamp // 10 * 10 + 10)
        yield Message((message.value % 3, self.sums.get()), message.timestamp)

    def on_key_timer(self, timer: Any) -> Iterable[Message[Any]]:
        yield Message(("sum", timer.key, self.sums.get()), timer.at_ms)


def bench(
    make: Callable[[TaskContext], Task] = Totals,
    *,
    bytes_max: int = 1 << 20,
    every: int = 1,
    wall_ms: Callable[[], int] = lambda: 5,
    clock_ns: Callable[[], int] = lambda: 0,
    **options: Any,
) -> Bench:
    recorder = partial(
        InputRecorder, bytes_max=bytes_max, wall_ms=wall_ms, every=every, clock_ns=clock_ns
    )
    return Bench(make, key=lambda n: n % 3, recorder=recorder, **options).open()


class BenchClock(RerunClock):
    def __init__(self, bench: Bench) -> None:
        super().__init__(lambda: bench.now_ms)
        self._bench = bench

    def reach(self, at_ms: int) -> None:
        self._bench.now_ms = max(self._bench.now_ms, at_ms)


def again(
    recordings: list[Recording],
    make: Callable[[TaskContext], Task] = Totals,
    *,
    resume: TaskResume | None = None,
    upstream: int = 1,
) -> Rerun:
    bench = Bench(
        make,
        key=lambda n: n % 3,
        epoch=recordings[0].first,
        resume=resume,
        upstream=upstream,
    )
    rerun = Rerun(bench.runner, output=OutputDigest(), clock=BenchClock(bench))
    rerun.open()
    rerun.run([Recording.decode(each.encode()) for each in recordings])
    return rerun


def recorded(task: Bench) -> list[Recording]:
    return task.runner.ports.recorded


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 60)), max_size=4),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(first=STEPS, second=STEPS, third=STEPS)
def test_the_same_comes_of_the_same(first: Any, second: Any, third: Any) -> None:
    task = bench(upstream=2)
    marks = [MIN_MS, MIN_MS]
    for epoch, steps in enumerate((first, second, third), 1):
        for source, records, ahead, idle in steps:
            marks[source] = max(marks[source], 0) + ahead
            task.send(
                *(Message(value, time) for value, time in records),
                watermark_ms=marks[source],
                idle=idle and not records,
                source=source,
                epoch=epoch,
            )
            task.run()
        for source in (0, 1):
            task.send(watermark_ms=marks[source], source=source, epoch=epoch + 1)
        task.run()
    recordings = recorded(task)
    assert [each.epoch for each in recordings] == [1, 2, 3]
    assert recordings[0].starts
    for number in range(3):
        resume = task.snapshot(number) if number else None
        rerun = again(recordings[number:], resume=resume, upstream=2)
        assert rerun.difference is None
        assert rerun.compared == sum(len(each.entries) for each in recordings[number:])


def window_counts(context: TaskContext) -> Task:
    def stages(context: TaskContext) -> list[Stage]:
        return [WindowFold(context, "fold", TumblingWindows(20), lambda n: n, COUNT, limit=100)]

    return ChainTask(context, stages)


def test_results_of_a_window_that_was_open_may_come_in_another_order() -> None:
    task = bench(window_counts)
    task.send(*(Message(n, 3) for n in range(50)), watermark_ms=3)
    task.run()
    task.send(*(Message(n, 9) for n in range(20, 40)), watermark_ms=15, epoch=2)
    task.send(watermark_ms=30, epoch=2)
    task.run()
    task.send(watermark_ms=30, epoch=3)
    task.run()
    recordings = recorded(task)

    rerun = again(recordings[1:], window_counts, resume=task.snapshot(1))

    assert rerun.outputs == 50
    assert rerun.difference is None


def test_other_code_gives_another_output() -> None:
    task = bench()
    for value in (1, 2, 3):
        task.send(value)
        task.run()
    task.send(epoch=2)
    task.run()

    class Doubled(Totals):
        def on_next(self, message: Message[int]) -> Iterable[Message[Any]]:
            more = [*super().on_next(message)]
            return more * 2 if message.value == 2 else more

    class Wrong(Totals):
        def on_next(self, message: Message[int]) -> Iterable[Message[Any]]:
            return [Message("wrong", each.timestamp) for each in super().on_next(message)]

    difference = again(recorded(task), Doubled).difference
    assert difference is not None
    assert (difference.epoch, difference.place) == (1, 2)
    assert (difference.then, difference.now) == (1, 2)
    difference = again(recorded(task), Wrong).difference
    assert difference is not None
    assert (difference.place, difference.then, difference.now) == (1, 1, 1)


def test_messages_of_one_turn_are_compared_together() -> None:
    """No output is sent earlier for the recording; other code is found all the same."""
    task = bench()
    for value in (1, 2, 3, 4):
        task.send(value)
    task.run()
    task.send(epoch=2)
    task.run()
    (recording,) = recorded(task)
    *entries, last = recording.entries
    assert [each.is_joined for each in entries] == [True, True, True, False]
    assert entries[-1].outputs == 4
    assert (last.records, last.outputs) == (0, 0), "it has ended the epoch"
    rerun = again([recording])
    assert (rerun.difference, rerun.compared, rerun.outputs) == (None, 5, 4)

    class Wrong(Totals):
        def on_next(self, message: Message[int]) -> Iterable[Message[Any]]:
            value = 0 if message.value == 2 else message.value
            return super().on_next(Message(value, message.timestamp))

    difference = again([recording], Wrong).difference
    assert difference is not None
    assert (difference.place, difference.then, difference.now) == (4, 4, 4)


def test_of_several_epochs_one_is_recorded() -> None:
    task = bench(every=3)
    for epoch in range(1, 8):
        task.send(epoch, epoch=epoch)
        task.run()
        task.send(epoch=epoch + 1)
        task.run()
    recordings = recorded(task)
    assert [(each.first, each.epoch, each.starts) for each in recordings] == [
        (3, 3, False),
        (6, 6, False),
    ]
    rerun = again([recordings[1]], resume=task.snapshot(5))
    assert (rerun.difference, rerun.records, rerun.outputs) == (None, 1, 1)


def test_what_costs_much_is_recorded_seldom() -> None:
    spent_ns = itertools.count(step=10_000_000)  # Each look at the clock is 10 ms later.
    epoch = 1
    task = bench(every=0, wall_ms=lambda: epoch * 1000, clock_ns=lambda: next(spent_ns))
    for epoch in range(1, 80):
        looked = next(spent_ns)
        task.send(1, epoch=epoch)
        task.run()
        is_recorded = epoch <= 11 or epoch % 8 == 0
        assert (next(spent_ns) - looked > 10_000_000) == is_recorded
        task.send(epoch=epoch + 1)
        task.run()
    assert [each.epoch for each in recorded(task)] == [*range(1, 12), *range(16, 80, 8)]


def test_only_what_follows_a_stored_epoch_without_a_gap_leads_to_a_failure() -> None:
    """Else there is no state from which it could be repeated."""
    task = bench(every=3)
    recorder = task.runner.recorder
    assert recorder is not None
    led: list[int] = []
    for epoch in range(1, 8):
        led += [epoch] if recorder.leads_here else []
        task.send(epoch=epoch + 1)
        task.run()
        if epoch != 5:  # That one is not stored.
            task.runner.commit(epoch)
            task.run()
    assert led == [3]

    whole = bench().runner.recorder
    assert whole is not None
    assert whole.leads_here  # It goes on from where the task has started.


def test_it_raises_where_it_raised() -> None:
    task = bench()
    task.send(1)
    task.run()
    task.send(epoch=2)
    task.run()
    kept = task.snapshot(1)
    task.send(2, 13, epoch=2)
    with pytest.raises(OperatorError) as then:
        task.run()
    assert task.runner.recorder is not None
    task.runner.recorder.fail(2, then.value.cause)
    _, failed = recorded(task)
    assert (failed.failed, failed.epoch, failed.starts) == ("ValueError: 13", 2, False)
    with pytest.raises(OperatorError) as now:
        again([failed], resume=kept)
    assert (now.value.cause, now.value.record) == (then.value.cause, then.value.record)


def test_a_start_that_raises_is_recorded() -> None:
    def raises(context: TaskContext) -> Task:
        raise ValueError("no such table")

    recorder = partial(InputRecorder, bytes_max=100, wall_ms=lambda: 0)
    task = Bench(raises, recorder=recorder)
    with pytest.raises(OperatorError, match="no such table"):
        task.open()
    assert task.runner.recorder is not None
    assert task.runner.recorder.leads_here
    task.runner.recorder.fail(1, "no such table")
    (recording,) = recorded(task)
    assert (recording.starts, recording.entries, recording.failed) == (True, (), "no such table")


def test_a_quarantined_record_is_given_again() -> None:
    task = bench(on_error="quarantine")
    task.send(1, 13)
    task.run()
    (rejected,) = task.runner.rejected
    assert rejected.error.epoch == 1
    task.runner.inject(gp_encoded(4), 7)
    task.run()
    task.send(epoch=2)
    task.run()
    (recording,) = recorded(task)
    assert [each.kind for each in recording.entries] == ["link", "injected", "link"]
    with pytest.raises(OperatorError, match="13"):
        again([recording])


def gp_encoded(value: Any) -> bytes:
    from gearpy.wire.values.payload import encode_value  # noqa: PLC0415

    return encode_value(value)


def test_what_has_no_room_is_left_out_and_asks_for_the_end_of_the_epoch() -> None:
    task = bench(bytes_max=500)
    assert not task.runner.clock().wants_epoch
    for value in range(10):
        task.send(value)
        task.run()
    assert task.runner.clock().wants_epoch
    task.send(epoch=2)
    task.run()
    (recording,) = recorded(task)
    assert 1 < len(recording.entries) < 10
    assert recording.cut == "500 bytes were full"
    rerun = again([recording])
    assert rerun.difference is None
    assert rerun.records == len(recording.entries)
    assert not task.runner.clock().wants_epoch


def test_a_task_with_one_state_for_all_epochs_is_not_recorded() -> None:
    class Sum(gp.PersistentTask[Any]):
        def persistent_state(self) -> Any:
            return gp.NonWindowState(gp.SumGroup(), gp.ValueSerializer())

        def process_message(self, state: Any, message: Any) -> None:
            state.update(message.timestamp, message.value)

    recorder = partial(InputRecorder, bytes_max=100, wall_ms=lambda: 0)
    assert Bench(Sum, recorder=recorder).open().runner.recorder is None


def test_damaged_recordings_are_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed recording"):
        Recording.decode(b"nonsense")
