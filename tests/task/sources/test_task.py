"""The task that reads a source: partitions, watermark, late records, silence."""

from typing import Any

import pytest

from gearpy.core.window.windows import TumblingWindows
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.api.sides import Side
from gearpy.task.api.window_result import WindowResult
from gearpy.task.sources.task import SourceTask, source_states
from gearpy.task.stages.sink import SinkStage
from gearpy.task.time.late import SourceLate
from tests.task.build import Bench, a_context, some_limits
from tests.task.stage_build import (
    BoundedSource,
    NotedSink,
    Scripted,
    ScriptedSource,
    a_source_bench,
)

COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)

# -- reading ---------------------------------------------------------------------------------


def test_source_is_opened_read_and_closed() -> None:
    """In this order; a partition that has finished is closed at once."""
    source = ScriptedSource(a=[[("x", 1)], [("y", 2)], "end"])

    bench = a_source_bench(source).run()
    bench.runner.stop(completed=True)

    assert source.calls == ["open a", "read a", "read a", "close a"]
    assert bench.target.values == ["x", "y"]
    assert bench.target.watermark_ms == MAX_MS


def test_partitions_are_dealt_to_the_tasks() -> None:
    """Partition k belongs to task k modulo parallelism, by the order of their names."""
    opened = []

    for index in (0, 1):
        source = ScriptedSource(a=["end"], b=["end"], c=["end"])
        task = SourceTask(a_context(task_index=index, parallelism=2), source, lambda _: [])
        task.on_start(MIN_MS)
        opened.append(source.calls)

    assert opened == [["open a", "open c"], ["open b"]]


def test_task_without_partitions_ends_at_once() -> None:
    """It must not hold the clock."""
    bench = a_source_bench(ScriptedSource())

    bench.run()

    assert bench.target.watermark_ms == MAX_MS


def test_empty_partition_that_is_finished_is_not_read() -> None:
    """That is the contract of a reader."""
    reader = Scripted([], [], "a")
    reader.finished = True

    bench = a_source_bench(ScriptedSource(a=reader)).run()

    assert bench.target.watermark_ms == MAX_MS
    assert reader.calls == ["close a"]


def test_partition_furthest_behind_is_read_first() -> None:
    """Otherwise windows fill while one partition runs ahead."""
    source = ScriptedSource(
        a=[[("a1", 1)], 100, [("a2", 101)], "end"], b=[[("b1", 1)], 50, [("b2", 51)], 150, "end"]
    )

    bench = a_source_bench(source).run()

    assert bench.target.values == ["a1", "b1", "b2", "a2"]
    assert bench.target.late == []


def test_partitions_without_a_watermark_take_turns() -> None:
    """The first one would else be the only one that is read, for ever."""
    source = ScriptedSource(
        a=[[("a1", 0)], [("a2", 0)], [("a3", 0)], "end"],
        b=[[("b1", 0)], [("b2", 0)], [("b3", 0)], "end"],
    )

    bench = a_source_bench(source).run()

    assert bench.target.values == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_watermark_is_the_least_of_the_partitions() -> None:
    """As with links."""
    source = ScriptedSource(a=[[("a", 10)], 10], b=[[("b", 20)], 20])

    bench = a_source_bench(source).run()

    assert bench.runner.clock().watermark_ms == 10


def test_idle_partition_holds_nothing_back() -> None:
    """The others' watermark goes on."""
    source = ScriptedSource(a=["idle"], b=[[("b", 20)], 20])

    bench = a_source_bench(source).run()

    assert bench.runner.clock().watermark_ms == 20
    assert not bench.runner.clock().idle


def test_source_is_idle_when_all_its_partitions_are() -> None:
    """The flag goes with the first record that comes again."""
    source = ScriptedSource(a=["idle", [("a", 20)], 20])

    bench = a_source_bench(source).run()
    idle = bench.target.idle
    bench.pass_time(10)
    bench.run()

    assert idle
    assert [data.idle for data in bench.target.data if len(data.batch)] == [False]
    assert not bench.target.idle


@pytest.mark.parametrize("pauses", [0, 1, 2])
def test_partitions_that_become_idle_at_once_do_so_one_by_one(pauses: int) -> None:
    """Whether one look finds that or several: the slowest holds nobody back once it is idle."""
    source = ScriptedSource(
        a=[[("a", 10)], 10, "idle", *["idle"] * 3],
        b=[[("b", 50)], 50, *[None] * pauses, *["idle"] * 3],
        c=["idle"] * 5,
    )

    bench = a_source_bench(source).run()
    for _ in range(pauses):
        bench.pass_time(10)
        bench.run()

    assert (bench.target.watermark_ms, bench.target.idle) == (50, True)
    assert bench.target.late == []


def test_source_that_is_idle_before_its_first_record_promises_nothing() -> None:
    """Its records may have any time."""
    source = ScriptedSource(a=["idle", [("a", -5)], -5], b=["idle"])
    bench = a_source_bench(source).run()
    before = (bench.target.watermark_ms, bench.target.idle)

    bench.pass_time(10)
    bench.run()

    assert before == (MIN_MS, True)
    assert bench.target.watermark_ms == -5
    assert bench.target.late == []


def test_source_without_records_is_asked_again_later() -> None:
    """It does not spin."""
    source = ScriptedSource(a=[None, [("a", 1)]])
    bench = a_source_bench(source, poll_ms=10)

    assert bench.turn() == 10
    bench.run()
    assert bench.target.values == []
    bench.pass_time(10)
    bench.run()
    assert bench.target.values == ["a"]


def test_progress_is_the_sum_of_the_partitions() -> None:
    """Also of those that have ended and are closed."""
    source = ScriptedSource(a=[[("a", 1), ("a", 1)], "end"], b=[[("b", 1)]])

    bench = a_source_bench(source).run()

    clock = bench.runner.clock()
    assert (clock.done, clock.total, clock.records_in) == (3, 20, 3)


def test_source_stops_reading_while_downstream_is_full() -> None:
    """Memory is bounded from the first step on."""
    source = ScriptedSource(a=[[(n, 0)] * 4 for n in range(100)])
    bench = a_source_bench(source, limits=some_limits(window=20, batch=4))

    for _ in range(10):
        bench.turn()

    assert source.calls.count("read a") <= 20 // 4 + 1


def test_window_behind_a_source_closes_with_its_watermark() -> None:
    """In one task; results come before the watermark does."""
    source = ScriptedSource(a=[[("x", 1), ("y", 2)], 12, [("z", 12)], "end"])

    bench = a_source_bench(
        source,
        stages=lambda context: [
            WindowFold(context, "count", TumblingWindows(10), None, COUNT, limit=4)
        ],
    ).run()

    assert bench.target.values == [WindowResult(None, 2, 0, 10), WindowResult(None, 1, 10, 20)]
    assert bench.target.late == []


def test_watermark_of_a_source_is_told_once_and_never_goes_back() -> None:
    """Also when a partition that was idle comes back from further behind."""
    sink = NotedSink()
    source = ScriptedSource(
        a=["idle", "idle", [("a", 5)], 5, [("a", 8)], "end"], b=[[("b", 20)], 20, [("b", 21)]]
    )

    bench = a_source_bench(source, stages=lambda context: [SinkStage(context, sink, "sink")])
    for _ in range(5):
        bench.run()
        bench.pass_time(10)

    assert [value for name, value in sink.calls if name == "watermark"] == [20]


def test_partition_that_cannot_be_opened_leaves_none_open() -> None:
    """Those before it are closed."""
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
    """It is user code, too."""
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
    """Whatever is read at a time."""
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

    assert bench.target.messages == [
        Message(Side("late", "b"), 5),
        Message(Side("late", "d"), 12),
    ]
    assert [call for call in sink.calls if call[0] == "write"] == [("write", ("a", "c"))]
    assert bench.runner.clock().late_records == 2


def test_batch_of_late_records_alone_is_no_pause() -> None:
    """The source goes on at once."""
    source = BoundedSource([("a", 20), ("b", 1), ("c", 2), ("d", 30)])

    bench = a_source_bench(source, late="drop", read=1, poll_ms=1000).run()

    assert bench.target.values == ["a", "d"]
    assert bench.target.watermark_ms == MAX_MS


def test_silent_partition_holds_nothing_back_after_a_while() -> None:
    """Until it gives again."""
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
    """Its watermark stays at the most that they promised, and holds nobody back."""
    source = ScriptedSource(a=[[("a1", 5)], 5], b=[[("b1", 50)], 50])
    bench = a_source_bench(source, idle_after_ms=30, poll_ms=10).run()

    for _ in range(4):
        bench.pass_time(10)
        bench.run()

    assert bench.target.idle
    assert bench.runner.clock().watermark_ms == 50


def test_without_a_time_silence_means_nothing() -> None:
    """The reader tells whether it is idle."""
    bench = a_source_bench(ScriptedSource(a=[[("a1", 5)], 5], b=[[("b1", 50)], 50])).run()

    for _ in range(100):
        bench.pass_time(1000)

    assert bench.runner.clock().watermark_ms == 5


def test_what_silence_has_promised_goes_to_whoever_reads_the_partition() -> None:
    """Also where there are more tasks after a restart, or fewer; else late records were in time."""
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
