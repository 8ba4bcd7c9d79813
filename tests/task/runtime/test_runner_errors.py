"""One task at work: what user code does wrong."""

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from gearpy.core.flow.partition import HashPartitioner
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, TaskId
from gearpy.messages.data import Batch, DataMessage, Message, Unmanaged
from gearpy.task.api.interfaces import Task
from tests.task.build import SESSION, TASK, Bench, Echo, on_next_of, source_of


class Raising(Task):
    where = ""

    def on_start(self, start_time_ms: int) -> None:
        self._raise("on_start")

    def on_next(self, message: Message) -> None:
        self._raise("on_next")

    def on_watermark(self, watermark_ms: int) -> None:
        self._raise("on_watermark")

    def on_timer(self, payload: object) -> None:
        self._raise("on_timer")

    def on_unmanaged(self, value: Any) -> None:
        self._raise("on_unmanaged")

    def on_stop(self, *, completed: bool) -> None:
        self._raise("on_stop")

    @property
    def hold_ms(self) -> int:
        self._raise("hold_ms")
        return MAX_MS

    def _raise(self, name: str) -> None:
        if name == self.where:
            raise ValueError(f"no {name}")


def drive_everything(bench: Bench) -> None:
    bench.open()
    bench.runner.context.schedule(1, None)
    bench.runner.receive(Unmanaged(SESSION, TaskId(0, 0), TASK, "x"))
    bench.send(Message("record", 42), watermark_ms=50)
    bench.pass_time(1)
    bench.runner.clock()
    bench.runner.stop(completed=False)


@pytest.mark.parametrize(
    "where",
    ["on_start", "on_next", "on_watermark", "on_timer", "on_unmanaged", "on_stop", "hold_ms"],
)
def test_whatever_user_code_raises_names_operator_and_line(where: str) -> None:
    """Nothing else may leave the runner: its owner tells failures of user code by the type."""
    kind = type("Failing", (Raising,), {"where": where})

    with pytest.raises(OperatorError, match=f"ValueError: no {where}") as raised:
        drive_everything(Bench(kind))

    error = raised.value
    assert error.operator == "bench"
    assert error.source.startswith(f"{__file__}:")
    assert error.source_line == 'raise ValueError(f"no {name}")'
    assert "Traceback" in error.traceback
    assert isinstance(error.__cause__, ValueError)


def test_record_to_blame_is_shown_with_its_time() -> None:
    def refuse_three(message: Message) -> None:
        if message.value == 3:
            raise ValueError

    bench = Bench(on_next_of(refuse_three)).open()
    bench.send(*(Message(number, 10 * number) for number in range(5)))

    with pytest.raises(OperatorError) as raised:
        bench.turn()

    assert (raised.value.record, raised.value.event_time_ms) == ("3", 30)
    assert raised.value.cause == "ValueError"


def test_lazy_answer_that_raises_blames_its_record() -> None:
    def divide(message: Message) -> Iterator[Message]:
        yield Message(1 // message.value)

    bench = Bench(on_next_of(divide)).open()
    bench.send(Message(1, 1), Message(0, 2))

    with pytest.raises(OperatorError, match="ZeroDivisionError") as raised:
        bench.turn()

    assert (raised.value.record, raised.value.event_time_ms) == ("0", 2)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("abc", r"output takes Message\(value, timestamp\), got str"),
        (("a", 1), r"got tuple"),
        (Batch([1], [1]), r"got Batch"),
        (Message("a", 1.5), r"timestamp 1.5 is no int: give ms since the epoch"),  # type: ignore[arg-type]
        (Message("a", None), r"timestamp None is no int"),  # type: ignore[arg-type]
    ],
    ids=["text", "tuple", "batch", "seconds", "none"],
)
def test_wrong_output_is_told_clearly(output: Any, text: str) -> None:
    bench = Bench(on_next_of(lambda _: [output])).open()
    bench.send(1)

    with pytest.raises(OperatorError, match=text):
        bench.turn()


@pytest.mark.parametrize(
    ("yielded", "text"),
    [
        (Message("a"), r"yield Batch\(values, timestamps\), not Message"),
        ([1], r"not list"),
        (Batch([1, 2], [0]), r"a batch has 2 values but 1 timestamps"),
    ],
    ids=["message", "list", "ragged"],
)
def test_wrong_batch_is_told_clearly(yielded: Any, text: str) -> None:
    """A ragged one would lose records silently."""

    class Wrong(Task):
        def on_batch(self, batch: Batch) -> Iterator[Batch]:
            yield yielded

    bench = Bench(Wrong).open()
    bench.send(1)

    with pytest.raises(OperatorError, match=text):
        bench.turn()


def forgetful(task: Task) -> Generator[Batch, None, None]:
    yield Batch([1], [0])


@pytest.mark.parametrize(
    "produce", [lambda _: None, forgetful, lambda _: 1.5], ids=["none", "forgot", "float"]
)
def test_wrong_answer_of_produce_is_told_clearly(produce: Callable[[Task], Any]) -> None:
    bench = Bench(source_of(produce), upstream=0).open()

    with pytest.raises(OperatorError, match="return 0, ms to wait, or FINISHED"):
        bench.run()


def test_task_without_on_next_says_so() -> None:
    bench = Bench(Task).open()
    bench.send(1)

    with pytest.raises(OperatorError, match="Task has inputs but no on_next or on_batch"):
        bench.turn()


def test_key_that_has_no_stable_hash_is_refused_with_advice() -> None:
    """Lists change; what they hashed to would be forgotten."""
    bench = Bench(on_next_of(lambda _: [Message([1])]), targets=(2,), partitioner=HashPartitioner())
    bench.open()
    bench.send("a")

    with pytest.raises(OperatorError, match="make it a tuple"):
        bench.turn()


def test_stale_and_doubled_messages_are_dropped() -> None:
    bench = Bench(Echo).open()
    message = DataMessage(
        session=SESSION, source=TaskId(0, 0), target=TASK, seq=1, batch=Batch([1], [0])
    )

    bench.runner.receive(message)
    bench.send(2)
    bench.run()

    assert bench.target.values == [2]
