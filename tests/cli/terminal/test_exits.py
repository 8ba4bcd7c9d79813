"""Exit codes tell whose fault it was."""

import pytest

from gearpy.cli.terminal.exits import FAILED, NO_CLUSTER, WRONG_USE, exit_code_of
from gearpy.errors import (
    ApplicationFailed,
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GearpyError,
    GraphError,
    OperatorError,
    SubmitRefused,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no such file"), WRONG_USE),
        (GraphError("a cycle"), WRONG_USE),
        (SubmitRefused("name taken"), WRONG_USE),
        (ConnectionLost("no cluster"), NO_CLUSTER),
        (AuthenticationFailed("wrong secret"), NO_CLUSTER),
        (AskTimeout("no answer"), NO_CLUSTER),
        (OperatorError(operator="map", cause="KeyError: 1"), FAILED),
        (ApplicationFailed("app", "no slots"), FAILED),
    ],
)
def test_every_error_has_its_code(error: GearpyError, code: int) -> None:
    assert exit_code_of(error) == code
