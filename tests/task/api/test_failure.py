"""What people are told when user code raises."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gearpy
from gearpy.errors import MessageLost, OperatorError
from gearpy.task.api.failure import card_of, complete, operator_error, raised_by_user, source_of


class Unshown:
    """A record whose text cannot be had."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def error_of(function: Callable[[], Any]) -> Exception:
    """Return what a function raises."""
    try:
        function()
    except Exception as error:  # noqa: BLE001 - that is what is asked for
        return error
    raise AssertionError("it raised nothing")


def divide() -> float:
    """Raise."""
    return 1 / 0


def test_error_has_operator_cause_line_record_and_time() -> None:
    """Everything an error card shows."""
    error = operator_error("step", error_of(divide), record={"a": 1}, event_time_ms=5)

    assert str(error) == "operator 'step': ZeroDivisionError: division by zero"
    assert error.source.startswith(f"{__file__}:")
    assert error.source_line == "return 1 / 0"
    assert (error.record, error.event_time_ms) == ("{'a': 1}", 5)
    assert error.traceback.rstrip().endswith("ZeroDivisionError: division by zero")


def test_library_lines_are_passed_over_for_the_users_line() -> None:
    """People can change their own line only."""
    error = error_of(lambda: json.loads("{"))

    source, line = source_of(error.__traceback__)

    assert source.startswith(f"{__file__}:")
    assert "json.loads" in line


def test_library_that_calls_the_user_is_passed_over() -> None:
    """What it calls is further in, but the user's first line says what was done."""
    error = error_of(lambda: functools.reduce(lambda _, each: each // 0, [1, 2]))

    assert "each // 0" in source_of(error.__traceback__)[1]


def test_gearpys_own_lines_are_passed_over() -> None:
    """A builtin has no line at all."""
    error = error_of(lambda: card_of(None))  # type: ignore[arg-type]

    assert "card_of(None)" in source_of(error.__traceback__)[1]


def test_folder_that_begins_like_ours_is_the_users() -> None:
    """As in ``gearpy-jobs`` beside a checkout of gearpy."""
    path = f"{Path(gearpy.__file__).parent}-jobs/job.py"
    names: dict[str, Any] = {}
    exec(compile("def fail():\n    raise ValueError\n", path, "exec"), names)  # noqa: S102

    assert source_of(error_of(names["fail"]).__traceback__)[0] == f"{path}:2"


def test_error_that_says_everything_already_is_kept() -> None:
    """The inner operator knows best."""
    error = OperatorError(operator="inner", cause="ValueError: x")

    assert operator_error("outer", error) is error


def test_long_record_is_cut() -> None:
    """A card is for people."""
    error = operator_error("step", ValueError(), record="x" * 10_000)

    assert len(error.record) < 600
    assert error.record.endswith("...")


def test_record_that_cannot_be_shown_does_no_harm() -> None:
    """Its `__repr__` is user code, too."""
    error = operator_error("step", ValueError(), record=Unshown())

    assert error.record == "<Unshown whose repr raised RuntimeError>"


@pytest.mark.parametrize("record", [None, "", 0])
def test_record_may_be_nothing(record: object) -> None:
    """Which is not the same as no record."""
    assert operator_error("step", ValueError(), record=record).record == repr(record)
    assert operator_error("step", ValueError()).record == ""


def test_error_of_a_core_gets_the_users_line() -> None:
    """A core blames the record, but reads no source files."""
    error = OperatorError(operator="key_by(f)", cause="x", record="1")
    error.__cause__ = error_of(divide)

    complete(error)

    assert error.source_line == "return 1 / 0"
    assert "ZeroDivisionError" in error.traceback


def test_stop_iteration_is_found_behind_its_disguise() -> None:
    """Python turns it into a `RuntimeError` where it leaves a generator."""
    generator = (next(iter(())) for _ in "a")

    error = error_of(lambda: next(generator))

    assert isinstance(error, RuntimeError)
    assert isinstance(raised_by_user(error), StopIteration)


def test_card_of_user_code_has_all_fields() -> None:
    """It crosses processes; the exception does not."""
    error = operator_error("step", error_of(divide), record=3, event_time_ms=5)

    card = card_of(error, operator="chain", task="1.0")

    assert (card.operator, card.task, card.record, card.event_time_ms) == ("step", "1.0", "3", 5)
    assert (card.source, card.source_line) == (error.source, "return 1 / 0")


def test_card_of_anything_else_names_the_operator_given() -> None:
    """Message loss is nobody's line."""
    card = card_of(MessageLost("3 of 4"), operator="chain", task="1.0")

    assert (card.cause, card.operator) == ("MessageLost: 3 of 4", "chain")
    assert card.source == ""
