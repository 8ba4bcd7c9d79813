"""Where the steps of a chain keep their state, with ids and without."""

from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.task.api.snapshots import encode_state
from gearpy.task.chain.chain import STEPS, ChainTask, StagesOfSteps
from gearpy.task.chain.stage import Stage
from tests.task.stages.test_stateful import a_bench


class Kept(Stage):
    name = "kept"

    def __init__(self) -> None:
        self.state: Any = None

    def snapshot(self) -> Any:
        return self.state

    def restore(self, state: Any) -> None:
        self.state = state


def a_chain(resume: Any, *ids: str) -> tuple[ChainTask, list[Any]]:
    context = a_bench(lambda last, _: (last, last)).runner.context
    context.resume, context.step_ids = resume, ()
    stages: list[Any] = [Kept() for _ in ids]
    chain = ChainTask(context, lambda _: StagesOfSteps(stages, ids))
    chain.on_start(0)
    return chain, stages


def test_each_step_finds_its_own() -> None:
    kept = {"a": encode_state("a", 1), "b": encode_state("b", 2)}

    chain, stages = a_chain({STEPS: kept}, "b", "new", "a")

    assert [stage.state for stage in stages] == [2, None, 1]
    assert chain.snapshot() == {STEPS: kept}


def test_a_snapshot_of_other_steps_is_refused() -> None:
    """It would be lost without a word."""
    with pytest.raises(ConfigError, match="of another program"):
        a_chain({STEPS: {"gone": b"x"}}, "a")
