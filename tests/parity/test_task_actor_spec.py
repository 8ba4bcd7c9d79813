"""Promises of Gearpump's `TaskActorSpec`: data, acks, clocks; start-up is of `deployment`."""

from gearpy.ids import MIN_MS, TaskId
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import Task
from tests.task.build import UPSTREAM_SESSION, Bench


class Seen(Task):
    """Notes what it is called with."""

    def on_start(self, start_time_ms: int) -> None:
        """Begin with nothing."""
        self.seen: list[object] = [("start", start_time_ms)]

    def on_next(self, message: Message) -> None:
        """Note the message."""
        self.seen.append(message)

    def on_watermark(self, watermark_ms: int) -> None:
        """Note the watermark."""
        self.seen.append(watermark_ms)


def test_messages_are_handled_and_acknowledged_in_their_order() -> None:
    """`TaskActorSpec`: handle messages, answer ack requests after what came before them."""
    bench = Bench(Seen, targets=()).open()

    bench.send(Message("a", 1))
    bench.ask()
    bench.send(Message("b", 2), watermark_ms=3)
    bench.run()

    task = bench.runner.task
    assert isinstance(task, Seen)
    assert task.seen == [("start", MIN_MS), Message("a", 1), Message("b", 2), 3]
    opened, answer = bench.answers
    assert (opened.seq, opened.received) == (0, 0)
    assert (answer.seq, answer.received, answer.session) == (1, 1, UPSTREAM_SESSION)
    assert answer.target == TaskId(0, 0)


def test_clock_follows_the_upstream_clock() -> None:
    """`TaskActorSpec`: report the upstream clock as one's own when nothing is held back."""
    bench = Bench(Seen, targets=()).open()

    bench.send(watermark_ms=768)
    bench.run()

    assert bench.runner.clock().clock_ms == 768
