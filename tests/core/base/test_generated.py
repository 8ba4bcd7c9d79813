"""Generated functions."""

import traceback

import pytest

from gearpy.core.base.fields import compiled, indented


def test_lines_become_a_function() -> None:
    made = compiled(["def made(x):", *indented(["return x + one"], 1)], {"one": 1}, what="sum")

    assert made(2) == 3


def test_traceback_names_what_was_generated() -> None:
    made = compiled(["def made(x):", "    return x + nothing"], {}, what="sum")

    with pytest.raises(NameError) as raised:
        made(1)
    assert "<gearpy sum>" in "".join(traceback.format_exception(raised.value))


def test_indented_lines_are_inside_of_blocks() -> None:
    assert indented(["a", "b"], 2) == ["        a", "        b"]
