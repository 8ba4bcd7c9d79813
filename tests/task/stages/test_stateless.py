"""Stages that keep nothing: branches, and lines in the log."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.sides import Side
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.stateless import BranchStage, LogStage
from tests.task.build import Bench


def a_bench(make_stage: Callable[[TaskContext], Stage], **kwargs: Any) -> Bench:
    def make(context: TaskContext) -> ChainTask:
        return ChainTask(context, lambda c: [make_stage(c)])

    return Bench(make, **kwargs).open()


def branch(context: TaskContext) -> BranchStage:
    """Tell numbers below 10 and below 100 apart; above 1000 nobody reads them."""
    return BranchStage(
        context,
        "branch",
        [(lambda n: n < 10, "small@0"), (lambda n: n < 100, "middle@0"), (lambda n: n > 1000, "")],
        "rest@0",
    )


def test_a_record_goes_to_the_first_that_is_true_of_it() -> None:
    bench = a_bench(branch)

    bench.send(Message(5, 1), Message(50, 2), Message(500, 3), Message(5000, 4))
    bench.run()

    assert bench.target.messages == [
        Message(Side("small@0", 5), 1),
        Message(Side("middle@0", 50), 2),
        Message(Side("rest@0", 500), 3),
    ]


def test_the_rest_can_be_dropped() -> None:
    bench = a_bench(lambda c: BranchStage(c, "branch", [(lambda n: n < 10, "small")], ""))

    bench.send(5, 50)
    bench.run()

    assert bench.target.values == [Side("small", 5)]


def test_a_predicate_that_raises_is_the_users_error() -> None:
    bench = a_bench(branch)
    bench.send("x")

    with pytest.raises(OperatorError, match="TypeError") as raised:
        bench.turn()

    assert (raised.value.operator, raised.value.record) == ("branch", "'x'")


def test_branches_go_on_without_a_bad_record() -> None:
    bench = a_bench(branch, on_error="skip")

    bench.send(5, "x", 6)
    bench.run()

    assert bench.target.values == [Side("small@0", 5), Side("small@0", 6)]


@pytest.mark.parametrize(
    ("every", "level", "lines"),
    [(1, logging.INFO, 5), (2, logging.INFO, 3), (3, logging.ERROR, 2), (1, logging.DEBUG, 0)],
)
def test_lines_are_of_one_record_in_so_many(
    every: int, level: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = a_bench(lambda c: LogStage(c, "seen", level=level, every=every))

    bench.send(Message("a", 1), Message("b", 2))
    bench.send(Message("c", 3), Message("d", 4), Message("e", 5))
    bench.run()

    found = [record for record in caplog.records if record.getMessage().startswith("seen: ")]
    assert len(found) == lines
    assert bench.target.values == ["a", "b", "c", "d", "e"]


def test_a_line_has_the_record_and_its_event_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = a_bench(lambda c: LogStage(c, "seen", level=logging.INFO, every=1))

    bench.send(Message("x" * 10_000, 7))
    bench.run()

    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("seen: ")]
    assert line.startswith("seen: 'xxx")
    assert line.endswith("... at 7")
    assert len(line) < 1000
