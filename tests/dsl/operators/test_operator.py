"""A class of operator answers every question, or the program does not start."""

import pytest

from gearpy.dsl.operators.operator import (
    ActsInside,
    GivesNewRecords,
    IgnoresOrder,
    KeepsNothing,
    TakesRows,
    operator,
)


def test_a_forgotten_answer_is_an_error_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="operator Silent has no answer for: make_stages, twin"):

        @operator
        class Silent(TakesRows, GivesNewRecords, KeepsNothing, IgnoresOrder, ActsInside):
            """Answers the rest."""
