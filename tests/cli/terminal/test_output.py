"""Errors and tables say what, where and what to do, and take no text for markup."""

import json

import pytest

from gearpy.cli.terminal.output import error_lines, hint_if_cut_off, print_error, table
from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GraphError,
    OperatorError,
)


def an_operator_error(*, cause: str = "ZeroDivisionError: division by zero") -> OperatorError:
    return OperatorError(
        operator="map(divide)",
        cause=cause,
        source="/home/ada/app.py:7",
        source_line="return 10 // n",
        record="0",
        event_time_ms=1_767_225_600_000,
        traceback="Traceback (most recent call last):\n  the user's frames",
    )


def test_one_mistake_is_one_line() -> None:
    assert list(error_lines(ConfigError("no such file: app.py"))) == ["error: no such file: app.py"]


def test_all_mistakes_are_listed() -> None:
    lines = list(error_lines(ConfigError("a is 1", "b is 2")))

    assert lines == ["error: there are 2 mistakes", "  - a is 1", "  - b is 2"]


def test_mistakes_in_a_graph_are_called_so() -> None:
    assert next(error_lines(GraphError("a", "b"))) == "error: the graph has 2 mistakes"


def test_an_operator_error_is_a_card() -> None:
    assert list(error_lines(an_operator_error())) == [
        "error: ZeroDivisionError: division by zero",
        "  in      map(divide)",
        "  at      /home/ada/app.py:7",
        "            return 10 // n",
        "  record  0",
        "  time    2026-01-01T00:00:00Z (1767225600000 ms)",
        "  more    with --verbose",
    ]


def test_a_card_has_no_empty_lines() -> None:
    error = OperatorError(operator="import app.py", cause="KeyError: 'x'")

    assert list(error_lines(error)) == ["error: KeyError: 'x'", "  in      import app.py"]


def test_verbose_adds_the_traceback() -> None:
    lines = list(error_lines(an_operator_error(), verbose=True))

    assert lines[-2:] == ["  Traceback (most recent call last):", "    the user's frames"]


def test_no_cluster_tells_how_to_get_one() -> None:
    *_, fix = error_lines(ConnectionLost("no cluster at 127.0.0.1:3000"))

    assert fix == "fix: start a cluster with bin/local, or name another with --master host:port"


def test_a_wrong_secret_tells_how_to_name_the_right_one() -> None:
    *_, fix = error_lines(AuthenticationFailed("another secret"))

    assert "--set transport.secret-file=FILE" in fix


def test_text_of_users_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(an_operator_error(cause="ValueError: [bold]x[/bold] :smile: \x1b[31m"))
    table("t", ("name",), [["[red]a[/red]"]])

    printed = capsys.readouterr()
    assert "error: ValueError: [bold]x[/bold] :smile: \\x1b[31m\n" in printed.err
    assert "[red]a[/red]" in printed.out


def test_long_lines_stay_whole_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """`gear info | grep` must find a name however long it is."""
    long = "x" * 500

    table("t", ("name", "#number"), [[long, "1"]])
    print_error(ConfigError(long))

    printed = capsys.readouterr()
    assert long in printed.out
    assert long in printed.err


def test_an_error_as_json_has_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(an_operator_error(), as_json=True)

    error = json.loads(capsys.readouterr().err)
    assert "__notes__" not in error
    assert (error["error"], error["operator"], error["record"], error["event_time_ms"]) == (
        "OperatorError",
        "map(divide)",
        "0",
        1_767_225_600_000,
    )


@pytest.mark.parametrize("ends", [KeyboardInterrupt(), ConnectionLost("gone"), AskTimeout("late")])
def test_who_is_cut_off_hears_what_goes_on(
    ends: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(ends)), hint_if_cut_off("the drain goes on"):
        raise ends

    assert capsys.readouterr().err == "hint: the drain goes on\n"
