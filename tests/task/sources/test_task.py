"""The task that reads a source: partitions, watermark, late records, silence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.host.task_limits import task_limits
from gearpy.config.schema import Config
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, DataMessage, Message
from gearpy.task.api.interfaces import FINISHED
from gearpy.task.api.sides import BadRecord, Side
from gearpy.task.sources.task import SourceTask, source_states
from gearpy.task.stages.sink import SinkStage
from gearpy.task.time.late import SourceLate
from tests.task.build import TARGET, Bench, a_context, some_limits
from tests.task.stage_build import (
    Bounded,
    BoundedSource,
    NotedSink,
    Scripted,
    ScriptedSource,
    a_source_bench,
    mapped,
)

# -- reading ---------------------------------------------------------------------------------


def test_source_is_opened_read_and_closed() -> None:
    source = ScriptedSource(a=[[("x", 1)], [("y", 2)], "end"])

    bench = a_source_bench(source).run()
    bench.runner.stop(completed=True)

    assert source.calls == ["open a", "read a", "read a", "close a"]
    assert bench.target.values == ["x", "y"]
    assert bench.target.watermark_ms == MAX_MS


def test_partitions_are_dealt_to_the_tasks() -> None:
    opened = []

    for index in (0, 1):
        source = ScriptedSource(a=["end"], b=["end"], c=["end"])
        task = SourceTask(a_context(task_index=index, parallelism=2), source, lambda _: [])
        task.on_start(MIN_MS)
        opened.append(source.calls)

    assert opened == [["open a", "open c"], ["open b"]]


def test_partition_furthest_behind_is_read_first() -> None:
    """Otherwise windows fill while one partition runs ahead."""
    source = ScriptedSource(
        a=[[("a1", 1)], 100, [("a2", 101)], "end"], b=[[("b1", 1)], 50, [("b2", 51)], 150, "end"]
    )

    bench = a_source_bench(source).run()

    assert bench.target.values == ["a1", "b1", "b2", "a2"]
    assert bench.target.late == []


def test_watermark_is_the_least_of_the_partitions() -> None:
    source = ScriptedSource(a=[[("a", 10)], 10], b=[[("b", 20)], 20])

    bench = a_source_bench(source).run()

    assert bench.runner.clock().watermark_ms == 10


def test_small_batches_of_a_source_go_out_as_one() -> None:
    source = ScriptedSource(a=[*([(f"a{at}", at)] for at in range(1, 7)), "end"])
    bench = a_source_bench(source)

    for _ in range(6):
        bench.turn()

    sent = [message for message in bench.target.queue if isinstance(message, DataMessage)]
    assert [len(message.batch) for message in sent] == [1, 2, 2, 1, 0]


def test_what_a_program_gave_is_sent_before_it_is_asked_for_more() -> None:
    """It may wait then."""
    unsent = list[int]()

    def numbers() -> Iterator[int]:
        for number in range(100):
            unsent.append(number - len(bench.target.values))
            yield number

    source = gp.generate(numbers)
    bench = a_source_bench(source, read=1)
    for _ in range(200):
        bench.turn()
        bench.consume(TARGET, len(bench.target.queue))

    assert bench.target.values == [*range(100)]
    assert set(unsent) == {0}


@pytest.mark.parametrize("records", [1, 4])
def test_what_a_program_gave_is_promised_before_it_is_asked_for_more(records: int) -> None:
    """Windows that end with it need not wait for the next record."""
    promised = list[int]()

    def numbers() -> Iterator[int]:
        for number in range(100):
            sent = bench.target.watermark_ms if number else 0
            promised.append(number - sent)
            yield number

    bench = a_source_bench(gp.generate(numbers, timestamp=lambda number: number), read=records)
    for _ in range(200):
        bench.turn()
        bench.consume(TARGET, len(bench.target.queue))

    assert bench.target.late == []
    assert max(promised) <= records, "what was read in an earlier turn is promised"


def test_no_read_takes_long_though_each_record_does() -> None:
    def slow(value: int) -> int:
        bench.now_ms += 50
        return value

    source = BoundedSource([(at, at) for at in range(1000)])
    bench = a_source_bench(source, read=1024, stages=lambda _: [mapped(slow)], turn_ms=10)
    ended_ms = [0]
    while len(bench.target.messages) < 500:
        bench.turn()
        bench.consume(TARGET, len(bench.target.queue))
        ended_ms.append(bench.now_ms)

    assert max(after - before for before, after in pairwise(ended_ms)) <= 1000


def test_records_that_a_cut_holds_back_count_when_they_are_worked_on() -> None:
    """They cost nothing when they are read; with cuts a read was soon half a minute of work."""

    def slow(value: int) -> int:
        bench.now_ms += 50
        return value

    reader = Bounded([(at, at - at % 2 * 50) for at in range(10_000)], out_of_order_ms=50)
    source = ScriptedSource(p=reader)
    bench = a_source_bench(source, read=1024, stages=lambda _: [mapped(slow)], turn_ms=10)
    task, cut_at_ms, longest_ms = bench.runner.task, 1000, 0
    assert isinstance(task, SourceTask)
    is_cut = False
    while bench.now_ms < 60_000:
        began_ms = bench.now_ms
        bench.turn()
        bench.consume(TARGET, len(bench.target.queue))
        longest_ms = max(longest_ms, bench.now_ms - began_ms)
        bench.now_ms = max(bench.now_ms, began_ms + 1)
        if not is_cut and bench.now_ms >= cut_at_ms:
            is_cut = task.begin_cut(max(each.timestamp for each in bench.target.messages) + 5)
        elif is_cut and task.is_cut:
            task.end_cut()
            is_cut, cut_at_ms = False, bench.now_ms + 1000

    assert longest_ms <= 1000


def test_a_source_reads_little_in_front_of_a_slow_task() -> None:
    reader = Bounded([(at, at) for at in range(5000)])
    limits = some_limits(window=5000, interval=500, batch=1024, least=1024)
    bench = a_source_bench(ScriptedSource(p=reader), read=1024, turn_ms=10, limits=limits)
    behind = []
    while reader.at < 400:
        bench.turn()
        message = bench.target.queue.popleft()
        if isinstance(message, DataMessage):
            bench.now_ms += 50 * len(message.batch)
        if (answer := bench.target.take(message)) is not None:
            bench.runner.receive(replace(answer, room=20))
        behind.append(reader.at - len(bench.target.messages))

    assert max(behind) <= 60


def test_a_source_is_asked_less_the_longer_it_is_silent() -> None:
    """What comes waits for an eighth of the silence up to 10 ms, then a twentieth, up to 100."""
    limits, reader = task_limits(Config()), Scripted([[("a1", 5)]], [], "a")
    poll_ms, brisk_poll_ms = limits.idle_poll_ms, limits.brisk_poll_ms
    source = ScriptedSource(a=reader)
    bench = a_source_bench(source, poll_ms=poll_ms, brisk_poll_ms=brisk_poll_ms).run()
    asked_ms = [0]

    for at_ms in range(1, 10_001):
        asked = len(reader.calls)
        bench.pass_time(1)
        if len(reader.calls) > asked:
            asked_ms.append(at_ms)

    pauses = [later - sooner for sooner, later in pairwise(asked_ms)]
    bounds = [max(1, min(at // 8, 10), at // 20) for at in asked_ms[1:]]
    assert all(pause <= bound for bound, pause in zip(bounds, pauses, strict=True))
    assert pauses[:8] == [1] * 8
    assert max(pauses) == 100
    assert len(asked_ms) < 220


def test_source_that_says_when_it_gives_again_is_asked_no_sooner() -> None:
    reader = Scripted([[("a1", 5)]], [], "a")
    reader.pause_ms = 7
    bench = a_source_bench(ScriptedSource(a=reader), poll_ms=10, brisk_poll_ms=1).run()
    asked = len(reader.calls)

    bench.pass_time(6)
    before = len(reader.calls)
    bench.pass_time(1)

    assert (before - asked, len(reader.calls) - asked) == (0, 1)


class _Calls(Scripted):
    """Says when there is more, until it is told not to."""

    tells = True

    def __init__(self) -> None:
        super().__init__([[("a1", 5)]], [], "a")
        self.wakes: list[Callable[[], object]] = []

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        self.wakes.append(wake)
        return self.tells


def a_calling_bench(reader: _Calls, **options: Any) -> Bench:
    bench = a_source_bench(
        ScriptedSource(a=reader), poll_ms=100, brisk_poll_ms=1, woken_poll_ms=2000, **options
    )
    bench.runner.context.wake = bench.runner.wake
    return bench.run()


def asked_within(bench: Bench, reader: Scripted, time_ms: int) -> int:
    asked = len(reader.calls)
    for _ in range(time_ms):
        bench.pass_time(1)
    return len(reader.calls) - asked


def test_source_that_calls_is_left_alone_until_it_does() -> None:
    reader = _Calls()
    bench = a_calling_bench(reader)
    assert not reader.wakes, "one that gives a little all the time does not call"
    assert asked_within(bench, reader, 40) < 32
    assert len(reader.wakes) == 1

    assert asked_within(bench, reader, 1900) == 0
    reader.script = [[("a2", 6)]]
    reader.wakes[0]()
    bench.run()
    assert bench.target.values == ["a1", "a2"]
    assert asked_within(bench, reader, 40) > 8
    assert asked_within(bench, reader, 4000) == 2, "what calls may be wrong"


def test_source_that_calls_no_more_is_asked_as_others_are() -> None:
    reader = _Calls()
    reader.tells = False
    bench = a_calling_bench(reader)
    asked_within(bench, reader, 3000)

    assert asked_within(bench, reader, 1000) == 10


def test_source_whose_silence_counts_is_asked_all_the_same() -> None:
    reader = _Calls()
    bench = a_calling_bench(reader, idle_after_ms=500)
    asked_within(bench, reader, 3000)

    assert asked_within(bench, reader, 1000) == 10


def test_source_is_not_called_for_what_a_cut_holds_back() -> None:
    reader = _Calls()
    bench = a_calling_bench(reader)
    assert isinstance(bench.runner.task, SourceTask)
    bench.runner.task.begin_cut(10)
    asked_within(bench, reader, 1000)

    assert not reader.wakes


def test_source_is_idle_when_all_its_partitions_are() -> None:
    source = ScriptedSource(a=["idle", [("a", 20)], 20])

    bench = a_source_bench(source).run()
    idle = bench.target.idle
    bench.pass_time(10)
    bench.run()

    assert idle
    assert [data.idle for data in bench.target.data if len(data.batch)] == [False]
    assert not bench.target.idle


def test_progress_is_the_sum_of_the_partitions() -> None:
    source = ScriptedSource(a=[[("a", 1), ("a", 1)], "end"], b=[[("b", 1)]])

    bench = a_source_bench(source).run()

    clock = bench.runner.clock()
    assert (clock.done, clock.total, clock.records_in) == (3, 20, 3)


def test_a_partition_without_an_end_has_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "progress", property(lambda self: (self.read, 0)))

    bench = a_source_bench(ScriptedSource(a=[[("a", 1), ("a", 1)], "end"], b=[[("b", 1)]])).run()

    clock = bench.runner.clock()
    assert (clock.done, clock.total, clock.records_in) == (0, 0, 3)


def test_partition_that_cannot_be_opened_leaves_none_open() -> None:
    source = ScriptedSource(a=[], b=["broken"])

    bench = Bench(lambda context: SourceTask(context, source, lambda _: []), upstream=0)
    with pytest.raises(OperatorError, match="OSError: no partition b"):
        bench.open()
    bench.runner.stop(completed=False)

    assert source.calls == ["open a", "open b", "close a"]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ([OSError("disk is gone")], "OSError: disk is gone"),
        ([[("a", 1.5)]], "timestamp 1.5 is no int"),
    ],
    ids=["raises", "seconds"],
)
def test_source_that_fails_is_named(script: list[Any], text: str) -> None:
    bench = a_source_bench(ScriptedSource(a=script))

    with pytest.raises(OperatorError, match=text) as raised:
        bench.run()

    assert raised.value.operator == "bench"


def test_ragged_batch_of_a_source_loses_nothing_silently() -> None:
    """Values without a time would be left out by the first loop."""

    class Ragged(Scripted):
        def read_batch(self, max_records: int) -> Batch | None:
            return Batch([1, 2, 3], [0])

    bench = a_source_bench(ScriptedSource(a=Ragged([], [], "a")))

    with pytest.raises(OperatorError, match="ScriptedSource gave 3 values but 1 timestamps"):
        bench.run()


# -- late records and silence ----------------------------------------------------------------

LATE_RECORDS = [("a", 20), ("b", 5), ("c", 30), ("d", 12)]


@pytest.mark.parametrize(
    ("late", "messages", "counted"),
    [
        ("keep", [("a", 20), ("b", 5), ("c", 30), ("d", 12)], 0),
        ("drop", [("a", 20), ("c", 30)], 2),
        ("restamp", [("a", 20), ("b", 18), ("c", 30), ("d", 28)], 2),
    ],
)
@pytest.mark.parametrize("read", [1, 2, 4])
def test_late_records_by_policy(
    late: SourceLate, messages: list[tuple[str, int]], counted: int, read: int
) -> None:
    source = BoundedSource(LATE_RECORDS, out_of_order_ms=2)

    bench = a_source_bench(source, late=late, read=read).run()

    assert [(m.value, m.timestamp) for m in bench.target.messages] == messages
    assert bench.runner.clock().late_records == counted
    assert bench.runner.clock().records_in == 4


def test_late_records_go_around_the_chain() -> None:
    """Its steps are not for them; edges tell them by their tag."""
    sink = NotedSink()
    source = BoundedSource(LATE_RECORDS, out_of_order_ms=2)

    bench = a_source_bench(
        source, late="side", stages=lambda context: [SinkStage(context, sink, "out")]
    ).run()

    assert bench.target.messages == [Message(Side("late", "b"), 5), Message(Side("late", "d"), 12)]
    written = [values for call, values in sink.calls if call == "write"]
    assert [value for values in written for value in values] == ["a", "c"]
    assert bench.runner.clock().late_records == 2


def test_silent_partition_holds_nothing_back_after_a_while() -> None:
    often = [step for at in range(9) for step in ([(f"b{at}", 50 + at)], 50 + at, None)]
    source = ScriptedSource(a=[[("a1", 5)], 5, *[None] * 8, [("a2", 60)], 60], b=often)
    bench = a_source_bench(source, idle_after_ms=30, poll_ms=10).run()

    reached = [bench.runner.clock().watermark_ms]
    for _ in range(6):
        bench.pass_time(10)
        bench.run()
        reached.append(bench.runner.clock().watermark_ms)

    assert reached[:3] == [5, 5, 5]
    assert reached[4] > 50
    assert bench.target.late == []


def test_source_is_idle_when_all_its_partitions_are_silent() -> None:
    source = ScriptedSource(a=[[("a1", 5)], 5], b=[[("b1", 50)], 50])
    bench = a_source_bench(source, idle_after_ms=30, poll_ms=10).run()

    for _ in range(4):
        bench.pass_time(10)
        bench.run()

    assert bench.target.idle
    assert bench.runner.clock().watermark_ms == 50


def test_what_silence_has_promised_goes_to_whoever_reads_the_partition() -> None:
    kept = {
        "open": {"a": 1, "b": 2},
        "finished": [],
        "progress": (0, 0),
        "watermark": 5,
        "sent": 5,
        "waiting": {},
        "floors": {"b": 7},
    }

    first, second = source_states([kept], ["a", "b"], 2)

    assert (first["floors"], second["floors"]) == ({}, {"b": 7})
    assert source_states([first, second], ["a", "b"], 1)[0]["floors"] == {"b": 7}


# -- bad records -----------------------------------------------------------------------------


class ScriptedBad(Scripted):
    def read_batch(self, max_records: int) -> Batch | None:
        self.bad: list[BadRecord] = []
        while self.script and isinstance(self.script[0], set):
            self.bad += [BadRecord(text, "", "", "") for text in sorted(self.script.pop(0))]
        return super().read_batch(max_records)

    def take_bad(self) -> list[BadRecord]:
        return self.bad


def aside_of(*script: Any, cut_ms: int | None = None, tag: str = "errors@0") -> list[Any]:
    """Return what a task sends of a partition: values, records set aside, and their times."""
    source = ScriptedSource(p=ScriptedBad(script, [], "p"))
    source.sets_bad_aside = True
    task = SourceTask(a_context(), source, lambda _: [], bad_tag=tag, name="numbers")
    task.on_start(MIN_MS)
    if cut_ms is not None:
        task.begin_cut(cut_ms)
    sent: list[Any] = []
    ended = False
    while not ended:
        turn = task.produce()
        try:
            while True:
                if (batch := next(turn)) is not None:
                    sent += zip(batch.values, batch.timestamps, strict=True)
        except StopIteration as stop:
            ended = stop.value == FINISHED or (cut_ms is not None and stop.value > 0)
    return sent


def bad(text: str) -> Side:
    return Side("errors@0", BadRecord(text, "numbers", "", ""))


def test_bad_records_go_out_with_the_read_that_met_them() -> None:
    assert aside_of({"a"}, [("x", 7)], 5, {"b", "c"}, None, 20, {"d"}, [("y", 30)], "end") == [
        (bad("a"), 7),
        ("x", 7),
        (bad("b"), 5),
        (bad("c"), 5),
        (bad("d"), 20),
        ("y", 30),
    ]
    assert aside_of({"a"}, None, "end") == [(bad("a"), 0)]


def test_bad_records_belong_to_the_epoch_of_the_place_behind_them() -> None:
    """Though the good ones beside them wait for the next: their reader does not meet them again."""
    assert aside_of({"a"}, [("x", 70)], 60, cut_ms=50) == [(bad("a"), 49)]


def test_bad_records_that_nobody_reads_are_forgotten() -> None:
    assert aside_of({"a"}, [("x", 7)], "end", tag="") == [("x", 7)]
