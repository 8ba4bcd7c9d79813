"""What a task manager may decide."""

from dataclasses import is_dataclass
from typing import get_args

from gearpy.core import decisions


def test_every_decision_is_a_command() -> None:
    """A shell that has an arm for each command does all that is decided."""
    commands = get_args(decisions.Command)
    classes = [getattr(decisions, name) for name in decisions.__all__]

    made = {each for each in classes if is_dataclass(each)} - {decisions.RecoveryLimits}

    assert made <= set(commands)
    assert all(each.__dataclass_params__.frozen for each in commands)
