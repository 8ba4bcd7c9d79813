"""The end of a chain that hands on what it shows, and makes the stream wait for who takes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.summaries import ConsumerReport
from gearpy.task.api.interfaces import FINISHED, PacedWriter, Sink, SinkContext, Task
from gearpy.task.api.snapshots import TaskResume, TaskState, decode_state, encode_state
from gearpy.task.chain.chain import STEPS, ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.sink import shared_states, sink_stage
from tests.task.build import Bench


class Desk(Sink, PacedWriter):
    """Hands on as much as it is told to; its own writer."""

    transactional = True
    paced = True
    has_room = True
    may_end_epoch = True
    is_delivered = True
    failure: BaseException | None = None

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.shown: list[Any] = []
        self.closed: list[bool] = []
        self.context: SinkContext | None = None
        self._open: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> "Desk":
        return self

    def begin(self, context: SinkContext) -> None:
        self.context = context

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        for each in prepared.values():
            self.shown += each

    def write_batch(self, batch: Batch) -> None:
        self.written += batch.values
        self._open += batch.values

    def prepare(self, epoch: int) -> list[Any] | None:
        records, self._open = self._open, []
        return records or None

    def commit(self, epoch: int, prepared: Any) -> None:
        self.shown += prepared

    def consumers(self) -> Sequence[ConsumerReport]:
        return (ConsumerReport(name="desk", batch_id=len(self.shown)),)

    def close(self, *, completed: bool) -> None:
        self.closed.append(completed)


def a_bench(desk: Sink, *before: Stage, **kwargs: Any) -> Bench:
    def make(context: Any) -> ChainTask:
        return ChainTask(context, lambda of: [*before, sink_stage(of, desk, "desk")])

    return Bench(make, targets=(), **kwargs).open()


def test_records_wait_while_there_is_no_room() -> None:
    desk = Desk()
    bench = a_bench(desk)
    bench.send("a")
    bench.run()

    desk.has_room = False
    bench.send("b")
    bench.send("c")
    waits = bench.turn()
    written = list(desk.written)
    desk.has_room = True
    bench.run()

    assert (written, waits) == (["a"], None)
    assert desk.written == ["a", "b", "c"]


def test_a_writer_that_has_to_ask_about_records_gets_them_when_it_has_the_answer() -> None:
    """The task waits in no call meanwhile; records that must not wait come unannounced."""

    class Asking(Desk):
        expected: Sequence[Any] = ()

        def expect(self, batch: Batch) -> None:
            self.expected = batch.values
            self.has_room = self.expected[0] in self.written

    desk = Asking()
    bench = a_bench(desk)
    bench.send("a")
    bench.send("b", epoch=2)
    waits = bench.turn()
    before = (desk.expected, [*desk.written], waits, [*bench.runner.snapshots])
    desk.has_room = True
    bench.turn()

    assert before == (["a"], [], None, [])
    assert desk.written == ["a"]


def test_what_was_prepared_is_shown_while_there_is_no_room() -> None:
    """Else the room that waits for it would never come."""
    desk = Desk()
    bench = a_bench(desk)
    bench.send("a")
    bench.send("b", epoch=2)
    bench.run()

    desk.has_room = False
    bench.send("c", epoch=2)
    bench.runner.commit(1)
    bench.turn()

    assert (desk.shown, bench.runner.committed) == (["a"], [1])


def test_an_epoch_without_records_ends_while_there_is_no_room() -> None:
    desk = Desk()
    bench = a_bench(desk)
    desk.has_room = False
    bench.ask()
    bench.send(watermark_ms=7)
    bench.send("a", epoch=2)
    bench.turn()
    bench.runner.commit(1)
    bench.turn()

    assert (desk.written, bench.runner.committed) == ([], [1])
    assert bench.answers[-1].received == 0
    assert bench.runner.clock().watermark_ms == 7


@pytest.mark.parametrize("epoch", [1, 2])
def test_records_and_what_is_behind_them_wait_for_room(epoch: int) -> None:
    desk = Desk()
    bench = a_bench(desk)
    desk.has_room = False
    bench.send("a")
    bench.send("b", watermark_ms=7, epoch=epoch)
    bench.turn()

    assert (desk.written, bench.runner.snapshots) == ([], [])
    assert bench.runner.clock().watermark_ms == MIN_MS


def test_end_that_may_not_come_waits_behind_a_question_too() -> None:
    desk = Desk()
    bench = a_bench(desk)
    desk.may_end_epoch = False
    bench.ask()
    bench.send("a", epoch=2)
    bench.turn()

    assert (desk.written, bench.runner.snapshots) == ([], [])


def test_end_of_an_epoch_waits_while_much_is_to_be_handed_over() -> None:
    """Records before it do not; the next snapshot has what was handed over meanwhile no more."""
    desk = Desk()
    bench = a_bench(desk)
    bench.send("a")
    bench.run()

    desk.may_end_epoch = False
    bench.send("b")
    bench.send("c", epoch=2)
    waits = bench.turn()
    before = (list(desk.written), len(bench.runner.snapshots), waits)
    desk.may_end_epoch = True
    bench.run()

    assert before == (["a", "b"], 0, None)
    assert (desk.written, len(bench.runner.snapshots)) == (["a", "b", "c"], 1)


def test_end_that_waits_comes_when_the_hand_over_fails() -> None:
    """Nobody would ever let it go on."""
    desk = Desk()
    bench = a_bench(desk)
    desk.may_end_epoch = False
    bench.send("a", epoch=2)
    bench.turn()

    desk.failure = ValueError("no such table")

    with pytest.raises(OperatorError, match="no such table"):
        bench.run()


def test_a_source_waits_with_the_end_of_its_epoch() -> None:
    class Waiting(Task):
        may_end_epoch = False
        sent = 0

        def produce(self) -> int:
            self.sent += 1
            return 0 if self.sent < 3 else FINISHED

    bench = Bench(Waiting, upstream=0, targets=()).open()
    task = bench.runner.task
    assert isinstance(task, Waiting)
    bench.runner.cut(1)
    waits = bench.turn()
    before = (task.sent, len(bench.runner.snapshots), waits)
    task.may_end_epoch = True
    bench.run()

    assert before == (0, 0, None)
    assert (task.sent, len(bench.runner.snapshots)) == (3, 1)


def test_failed_hand_over_fails_the_task() -> None:
    desk = Desk()
    bench = a_bench(desk)
    bench.run()

    desk.failure = ValueError("no such table")

    with pytest.raises(OperatorError, match="no such table") as caught:
        bench.turn()
    assert caught.value.operator == "desk"


def an_ended(desk: Desk, **kwargs: Any) -> Bench:
    """Return a chain whose stream has ended, and whose last epoch is complete."""
    bench = a_bench(desk, **kwargs)
    bench.send("a")
    bench.send(watermark_ms=MAX_MS)
    bench.send(epoch=2, watermark_ms=MAX_MS)
    bench.run()
    return bench


def test_end_of_the_stream_waits_until_all_is_handed_over() -> None:
    """The last commit is not answered before, however often it is asked for."""
    desk = Desk()
    bench = an_ended(desk)
    desk.is_delivered = False

    bench.runner.commit(1)
    bench.turn()
    bench.runner.commit(1)
    bench.turn()
    before = list(bench.runner.committed)
    desk.is_delivered = True
    bench.turn()
    bench.turn()

    assert (before, bench.runner.committed, desk.shown) == ([], [1], ["a"])


def test_hand_over_that_fails_at_the_end_fails_the_task() -> None:
    desk = Desk()
    bench = an_ended(desk)
    desk.is_delivered = False
    bench.runner.commit(1)
    bench.turn()

    desk.failure = ValueError("no such table")

    with pytest.raises(OperatorError, match="no such table"):
        bench.turn()


def test_restart_from_the_end_waits_too() -> None:
    """Nobody tells it again that the stream has ended: its snapshot does."""
    desk, again = Desk(), Desk()
    bench = an_ended(desk)
    again.is_delivered = False

    other = a_bench(again, epoch=2, resume=bench.snapshot(1))
    other.runner.commit(2)
    other.turn()
    before = list(other.runner.committed)
    again.is_delivered = True
    other.turn()

    assert (before, other.runner.committed) == ([], [2])
    assert again.shown == ["a"]


class Desks(Sink):
    transactional = True
    paced = True

    def __init__(self) -> None:
        self.of: dict[int, Desk] = {}

    def open(self, task_index: int, parallelism: int) -> Desk:
        assert task_index < parallelism
        return self.of.setdefault(task_index, Desk())


def shared(states: list[Any], parallelism: int) -> list[Any]:
    """Return the states of the tasks that there are now, of what each had prepared before."""
    return shared_states([{"epoch": 1, "prepared": {1: each}} for each in states], parallelism)


def resumed(state: Any) -> TaskResume:
    task = {STEPS: {"0": encode_state("desk", state)}}
    of_task = TaskState(task=task, counters={}, watermark_ms=0, clock_ms=0)
    return TaskResume(head=of_task.encode("desk"))


def kept(resume: TaskResume) -> Any:
    return decode_state(TaskState.decode(resume.head).task[STEPS]["0"])


def test_tasks_that_are_no_more_hand_over_what_they_had() -> None:
    desks = Desks()
    bench = a_bench(desks, epoch=2, resume=resumed(shared([["a"], ["b"]], 1)[0]))
    desks.of[1].is_delivered = False
    bench.send("c", epoch=3)
    bench.run()
    waiting = kept(bench.snapshot(2))

    desks.of[1].is_delivered = True
    bench.send("d", epoch=4)
    bench.run()
    after = kept(bench.snapshot(3))

    assert [desks.of[task].shown for task in (0, 1)] == [["a"], ["b"]]
    assert waiting["others"] == {1: {"epoch": 2, "prepared": {}, "kept": None}}
    assert (after.get("others"), desks.of[1].closed) == (None, [True])


def test_states_of_tasks_that_are_no_more_go_back_to_those_that_are_there_again() -> None:
    two = shared(["a", "b", "c", "d", "e"], 2)
    four = shared_states(two, 4)

    assert [sorted(each["others"]) for each in two] == [[2, 4], [3]]
    assert shared_states(four, 5) == shared_states(shared(["a", "b", "c", "d", "e"], 5), 5)
    assert shared_states(two, 1) == shared(["a", "b", "c", "d", "e"], 1)


def test_report_has_who_takes_what_was_shown() -> None:
    bench = an_ended(Desk())
    bench.runner.commit(1)
    bench.run()

    assert bench.runner.clock().consumers == (ConsumerReport(name="desk", batch_id=1),)


def test_close_reaches_the_writer() -> None:
    desk = Desk()
    a_bench(desk).runner.stop(completed=True)

    assert desk.closed == [True]


def test_tasks_wait_for_nobody_of_themselves() -> None:
    class Plain(Task):
        def produce(self) -> int:
            return FINISHED

    bench = Bench(Plain, upstream=0, targets=()).open()

    assert bench.runner.task is not None
    assert (bench.runner.task.is_delivered, bench.runner.clock().consumers) == (True, ())
