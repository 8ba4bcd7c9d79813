"""Measurements of a task: what its turns take, what waits, how old records are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.partition import BroadcastPartitioner
from gearpy.ids import TaskId
from gearpy.messages.data import LatencyProbe, Message
from gearpy.messages.metrics import TaskLoad
from gearpy.metrics.histogram import count_of
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext
from gearpy.task.runtime.metering import MeterSettings
from tests.task.build import SESSION, TASK, Bench, Echo, some_limits

_NS_PER_MS = 1_000_000


class Clocks:
    def __init__(self) -> None:
        self.ns = 1
        self.wall_ns = 1_000_000 * _NS_PER_MS

    def settings(self) -> MeterSettings:
        return MeterSettings(clock_ns=lambda: self.ns, wall_ns=lambda: self.wall_ns)

    def pass_ms(self, ms: int) -> None:
        self.ns += ms * _NS_PER_MS
        self.wall_ns += ms * _NS_PER_MS


CLOCKS = Clocks()


class Slow(Echo):
    def on_next(self, message: Message) -> None:
        CLOCKS.pass_ms(5)
        super().on_next(message)


class Reader(Task):
    """A source of three records at a time, which takes 6 ms for them."""

    def produce(self) -> int:
        CLOCKS.pass_ms(6)
        for _ in range(3):
            self.context.output(Message("read"))
        return 100


def a_bench(make: Any = Slow, **options: Any) -> Bench:
    return Bench(make, metering=CLOCKS.settings(), **options).open()


def load_of(bench: Bench) -> TaskLoad:
    load = bench.runner.load()
    assert load is not None
    return load


def test_a_task_that_is_not_measured_has_no_load() -> None:
    assert Bench(Echo).open().runner.load() is None


def test_turns_are_busy_time_and_the_processing_time_of_their_records() -> None:
    bench = a_bench()

    bench.send(1, 2, 3, 4)
    bench.run()
    CLOCKS.pass_ms(1000)

    load = load_of(bench)
    assert load.busy_ms == 20
    assert count_of(load.processing) == 4
    assert 0.0199 < load.processing.total < 0.0201


def test_waiting_for_room_is_back_pressured_time() -> None:
    bench = a_bench(limits=some_limits(window=2, interval=1))
    bench.run()
    bench.send(1, 2, 3, 4, 5)
    bench.turn()
    bench.send(6, 7)
    assert bench.runner.is_blocked

    CLOCKS.pass_ms(70)

    load = load_of(bench)
    assert load.backpressured_ms == 70
    assert load.pending_records == 2
    assert load.queue_records == 2


def test_a_long_turn_counts_while_it_lasts() -> None:
    """Else a call that does not come back would look idle."""
    bench = a_bench()
    told = list[int]()

    class Watched(Slow):
        def on_next(self, message: Message) -> None:
            super().on_next(message)
            told.append(load_of(bench).busy_ms)

    bench = a_bench(Watched)
    bench.send(1, 2)
    bench.run()

    assert told == [5, 10]
    assert load_of(bench).busy_ms == 10


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(1, 9)),
            st.tuples(st.just("turn"), st.just(0)),
            st.tuples(st.just("pass"), st.integers(0, 50)),
            st.tuples(st.just("take"), st.integers(1, 9)),
        ),
        max_size=40,
    )
)
def test_busy_and_back_pressured_time_are_never_more_than_all_time(
    acts: list[tuple[str, int]],
) -> None:
    """The invariant; and neither of them ever falls."""
    bench = a_bench(limits=some_limits(window=4, interval=2))
    began_ns, before = CLOCKS.ns, load_of(bench)
    for act, number in acts:
        match act:
            case "send":
                bench.send(*range(number))
            case "turn":
                bench.turn()
            case "pass":
                CLOCKS.pass_ms(number)
            case _:
                bench.consume(TaskId(2, 0), number)
        load = load_of(bench)
        assert load.busy_ms + load.backpressured_ms <= (CLOCKS.ns - began_ns) // _NS_PER_MS
        assert load.busy_ms >= before.busy_ms
        assert load.backpressured_ms >= before.backpressured_ms
        before = load


def test_counts_that_were_restored_are_told() -> None:
    first = a_bench()
    first.send(1, 2, 3)
    first.send(epoch=2)
    first.run()

    bench = a_bench(resume=first.snapshot(1), epoch=2)

    assert load_of(first).restored == (0, 0, 0, 0, 0, 0)
    assert load_of(bench).restored == (3, 3, 0, 0, 0, 0)


# -- probes ----------------------------------------------------------------------------------


def a_probe(age_ms: int) -> LatencyProbe:
    return LatencyProbe(SESSION, TaskId(0, 0), TASK, CLOCKS.wall_ns - age_ms * _NS_PER_MS)


def test_a_probe_tells_the_latency_and_is_passed_on_as_it_was() -> None:
    bench = a_bench(targets=(2,))
    probe = a_probe(40)

    bench.runner.receive(probe)
    bench.run()

    load = load_of(bench)
    assert count_of(load.latency) == 1
    assert 0.0399 < load.latency.total < 0.0401
    assert [(each.target, each.sent_ns) for each in bench.probes] == [
        (TaskId(2, 0), probe.sent_ns),
        (TaskId(2, 1), probe.sent_ns),
    ]


def test_a_probe_stands_behind_the_records_that_came_before_it() -> None:
    """It has waited as long as they have: 2 records at 5 ms, and 40 ms before that."""
    bench = a_bench()

    bench.send(1, 2)
    bench.runner.receive(a_probe(40))
    bench.run()

    assert 0.0499 < load_of(bench).latency.total < 0.0501


def test_many_probes_at_once_are_not_passed_on() -> None:
    """Behind each task with many inputs there would be more of them."""
    bench = a_bench(upstream=3)

    for _ in range(5):
        bench.runner.receive(a_probe(1))
    bench.run()
    bench.pass_time(600)
    bench.runner.receive(a_probe(1))
    bench.run()

    assert count_of(load_of(bench).latency) == 6
    assert len(bench.probes) == 2


def test_a_probe_waits_behind_records_that_have_no_room() -> None:
    bench = a_bench(limits=some_limits(window=2, interval=1))
    bench.run()
    bench.send(1, 2, 3)
    bench.runner.receive(a_probe(1))
    bench.turn()
    assert (bench.runner.is_blocked, bench.probes) == (True, [])

    bench.run()

    assert len(bench.probes) == 1
    assert bench.target.messages == [Message(1), Message(2), Message(3)]


def test_a_source_sends_a_probe_about_every_second() -> None:
    bench = a_bench(Reader, upstream=0)
    for _ in range(31):
        bench.pass_time(100)
        bench.run()

    assert len(bench.probes) in {3, 4}
    assert count_of(load_of(bench).processing) == len(bench.target.messages)
    assert load_of(bench).latency.counts == ()


def test_a_source_that_drops_all_is_measured() -> None:
    class Dropping(Task):
        def produce(self) -> int:
            CLOCKS.pass_ms(8)
            self.context.counters.records_in += 4
            return 100

    bench = a_bench(Dropping, upstream=0)
    bench.run()

    assert count_of(load_of(bench).processing) == 4
    assert len(bench.probes) == 1


def test_a_source_that_is_a_sink_has_the_latency_of_its_turns() -> None:
    class Once(Reader):
        def produce(self) -> int:
            super().produce()
            return FINISHED

    bench = a_bench(Once, upstream=0, targets=())
    bench.run()

    assert 0.0059 < load_of(bench).latency.total < 0.0061


def test_of_very_many_links_some_get_a_probe_at_a_time() -> None:
    bench = a_bench(targets=(40,), partitioner=BroadcastPartitioner())
    for _ in range(3):
        bench.runner.receive(a_probe(1))
        bench.run()
        bench.pass_time(600)

    assert len(bench.probes) == 48
    assert {each.target.task_index for each in bench.probes} == set(range(40))


def test_bytes_and_metrics_of_the_program_are_told() -> None:
    class Counting(Echo):
        def __init__(self, context: TaskContext) -> None:
            super().__init__(context)
            self.seen = context.metrics.counter("seen")

        def on_next(self, message: Message) -> None:
            self.seen.add()
            super().on_next(message)

    bench = a_bench(Counting)
    bench.send("some text", "more text")
    bench.run()

    load = load_of(bench)
    assert load.bytes_out > 18
    assert [(each.name, each.value) for each in load.user] == [("seen", 2.0)]
