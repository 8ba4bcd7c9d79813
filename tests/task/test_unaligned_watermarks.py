"""How far event time is at the end of an epoch, where a task does not wait for links behind."""

from collections.abc import Iterator

from gearpy.core.gearpump.monoids import SumGroup
from gearpy.core.gearpump.window_state import Window, WindowState
from gearpy.messages.data import Message
from gearpy.task.api.persistent import PersistentTask, ValueSerializer
from gearpy.task.api.snapshots import TaskState
from tests.task.build import Bench


class Totals(PersistentTask[WindowState[int]]):
    def persistent_state(self) -> WindowState[int]:
        return WindowState(SumGroup(), ValueSerializer(), Window(10, 10))

    def process_message(self, state: WindowState[int], message: Message) -> None:
        state.update(message.timestamp, message.value)

    def process_watermark(self, state: WindowState[int], watermark_ms: int) -> Iterator[Message]:
        for window, total in state.closing(watermark_ms):
            yield Message(total, window.end_ms - 1)


def test_promise_of_a_later_epoch_counts_when_that_begins() -> None:
    """Else what is read again after a restart would be late, and its window gone."""
    bench = Bench(Totals, upstream=2).open()
    bench.send(Message(1, 5), source=0, watermark_ms=0)
    bench.send(Message(2, 5), source=0, epoch=2, watermark_ms=50)
    bench.send(Message(4, 5), source=1, watermark_ms=20)
    bench.run()
    before = bench.target.watermark_ms
    bench.send(source=1, epoch=2, watermark_ms=20)
    bench.run()

    again = Bench(Totals, upstream=2, epoch=2, resume=bench.snapshot(1)).open()
    again.send(Message(2, 5), source=0, epoch=2, watermark_ms=50)
    again.send(source=1, epoch=2, watermark_ms=20)
    again.run()

    assert before <= 0
    assert TaskState.decode(bench.snapshot(1).head).watermark_ms == 0
    assert bench.target.epochs == [(2, [7])]
    assert again.target.epochs == [(2, [7])]


def test_links_that_were_idle_ahead_are_counted_behind_those_that_were_not() -> None:
    """Else all would be idle for a moment, and event time further than the slowest that is not."""
    bench = Bench(Totals, upstream=3).open()
    bench.send(source=0, watermark_ms=0)
    bench.send(source=1, watermark_ms=50, idle=True)
    bench.send(source=2, watermark_ms=2, idle=True)
    bench.run()
    before = bench.target.watermark_ms
    bench.send(source=0, epoch=2)
    bench.send(source=0, epoch=2, watermark_ms=5, idle=True)
    bench.send(source=2, epoch=2, watermark_ms=2, idle=True)
    bench.send(source=2, epoch=2, watermark_ms=8)
    bench.send(source=1, epoch=2, watermark_ms=50, idle=True)
    bench.run()
    bench.pass_time(10)
    bench.run()

    assert before <= 0
    assert bench.target.watermark_ms == 8


def test_what_is_promised_with_the_end_of_an_epoch_counts_in_it() -> None:
    bench = Bench(Totals, upstream=2).open()
    bench.send(Message(1, 5), source=0)
    bench.send(source=0, epoch=2, watermark_ms=10)
    bench.send(source=1, epoch=2, watermark_ms=10)
    bench.run()

    assert bench.target.epochs == [(1, [1]), (2, [])]
