"""What people are told when user code raises."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import MessageLost
from gearpy.task.api.failure import card_of, operator_error, raised_by_user, source_of


class Unshown:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def error_of(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - that is what is asked for
        return error
    raise AssertionError("it raised nothing")


def divide() -> float:
    return 1 / 0


def test_a_key_that_is_none_is_told_with_the_cure() -> None:
    error = error_of(lambda: Counter[Any]([{}]))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next

    told = operator_error("count", error.with_traceback(trace))

    assert told.cause == (
        "TypeError: unhashable type: 'dict': choose a key of text, numbers or tuples of them"
    )


def test_error_has_operator_cause_line_record_and_time() -> None:
    error = operator_error("step", error_of(divide), record={"a": 1}, event_time_ms=5)

    assert str(error) == "operator 'step': ZeroDivisionError: division by zero"
    assert error.source.startswith(f"{__file__}:")
    assert error.source_line == "return 1 / 0"
    assert (error.record, error.event_time_ms) == ("{'a': 1}", 5)
    assert error.traceback.rstrip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("function", "argument", "advice"),
    [
        (gp.csv, "timestamp", ": did you mean time=?"),
        (gp.tumbling, "zzz", ": it takes size=, offset=, clock=, zone="),
        (gp.StreamApp, "nome", ": did you mean name=?"),
        (gp.Stream.map, "parallelism", ": it takes function=, on_error=, name="),
        (json.JSONDecodeError, "zzz", ""),
    ],
)
def test_an_argument_that_is_not_taken_is_answered_by_those_that_are(
    function: Callable[..., Any], argument: str, advice: str
) -> None:
    cause = operator_error("shop", error_of(lambda: function("1h", **{argument: 1}))).cause

    assert cause.partition("keyword argument")[2].partition("'")[2].partition("'")[2] == advice


def test_functions_of_the_program_are_not_taken_for_those_of_gearpy() -> None:
    def csv(*, path: str) -> str:
        return path

    error = operator_error("import shop", error_of(lambda: csv(timestamp="at")))  # type: ignore[call-arg]

    assert error.cause.endswith("'timestamp'")


def test_library_lines_are_passed_over_for_the_users_line() -> None:
    error = error_of(lambda: json.loads("{"))

    source, line = source_of(error.__traceback__)

    assert source.startswith(f"{__file__}:")
    assert "json.loads" in line


def test_gearpys_own_lines_are_passed_over() -> None:
    error = error_of(lambda: card_of(None))  # type: ignore[arg-type]

    assert "card_of(None)" in source_of(error.__traceback__)[1]


def test_record_that_cannot_be_shown_does_no_harm() -> None:
    error = operator_error("step", ValueError(), record=Unshown())

    assert error.record == "<Unshown whose repr raised RuntimeError>"


def test_stop_iteration_is_found_behind_its_disguise() -> None:
    """Python turns it into a `RuntimeError` where it leaves a generator."""
    generator = (next(iter(())) for _ in "a")

    error = error_of(lambda: next(generator))

    assert isinstance(error, RuntimeError)
    assert isinstance(raised_by_user(error), StopIteration)


def test_card_of_anything_else_names_the_operator_given() -> None:
    card = card_of(MessageLost("3 of 4"), operator="chain", task="1.0")

    assert (card.cause, card.operator) == ("MessageLost: 3 of 4", "chain")
    assert card.source == ""


def test_a_line_of_a_fetched_program_is_named_as_it_was_submitted() -> None:
    path = f"/var/lib/gearpy/fetched/{'0a' * 32}-shop.py/shop.py"
    function = eval(compile("lambda: 1 / 0", path, "eval"))  # noqa: S307 - a file of this name.

    assert source_of(error_of(function).__traceback__)[0] == "shop.py:1"
