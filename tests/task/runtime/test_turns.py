"""What a turn that lasts is doing: its step, its line, its stack."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gearpy.ids import TaskId
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import Task
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.chain.stage import Stage
from gearpy.task.runtime.turns import TurnBoard, Work
from tests.task.build import Bench
from tests.task.stage_build import Held, chained, mapped

TASK = TaskId(1, 0)


class Gate:
    def __init__(self) -> None:
        self.came, self.open = threading.Event(), threading.Event()

    def wait(self, value: Any) -> Any:
        self.came.set()
        self.open.wait(90)  # Here.
        return value


def work_in(make: Callable[[Any], Task], gate: Gate) -> Work:
    board, bench = TurnBoard(), Bench(make).open()
    bench.send(Message(1, 0), watermark_ms=5)

    def turn() -> None:
        board.begin(TASK, 7)
        try:
            bench.turn()
        finally:
            board.end(TASK)

    thread = threading.Thread(target=turn)
    thread.start()
    assert gate.came.wait(90)
    assert board.began_ms() == {TASK: 7}
    work = board.work_of(TASK)
    gate.open.set()
    thread.join()

    assert work is not None
    assert board.began_ms() == {}
    assert board.work_of(TASK) is None
    return work


def test_operator_of_a_fused_loop_is_named() -> None:
    gate = Gate()

    def held_up(value: int) -> int:
        return int(gate.wait(value))

    operators = [RowOperator("map", "text", str), RowOperator("map", "held up", held_up)]
    work = work_in(chained(mapped(int), FusedStage(operators, limit=4)), gate)

    assert work.step == "held up"
    assert "test_turns.py" in work.source
    assert work.source_line == "self.open.wait(90)  # Here."
    assert "held_up" in work.stack


@pytest.mark.parametrize("is_at_watermark", [False, True])
def test_stage_of_a_chain_is_named(is_at_watermark: bool) -> None:  # noqa: FBT001
    gate = Gate()

    class Slow(Held):
        name = "slow"

        def process(self, batch: Batch) -> Any:
            return super().process(batch if is_at_watermark else gate.wait(batch))

        def on_watermark(self, watermark_ms: int) -> Any:
            return super().on_watermark(gate.wait(watermark_ms) if is_at_watermark else 5)

    stages: list[Stage] = [Held(), Held(), Slow(), Held()]
    work = work_in(lambda context: ChainTask(context, lambda _: stages), gate)

    assert work.step == "slow"


def test_task_that_is_no_chain_has_no_step() -> None:
    gate = Gate()

    class Waiting(Task):
        def on_next(self, message: Message) -> None:
            gate.wait(message.value)

    work = work_in(Waiting, gate)

    assert work.step == ""
    assert work.source_line.startswith("self.open.wait")


def test_half_made_objects_of_libraries_are_left_alone() -> None:
    """SQLAlchemy has such, for a moment: a missing attribute is looked for in a missing one."""
    gate = Gate()

    class HalfMade:
        def __getattr__(self, name: str) -> Any:
            return self.missing

        def wait(self, value: int) -> Any:
            return gate.wait(value)

    work = work_in(chained(mapped(lambda value: HalfMade().wait(value))), gate)

    assert work.source_line.startswith("self.open.wait")
