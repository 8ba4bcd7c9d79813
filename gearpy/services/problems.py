"""Errors of gearpy as answers, each with its status, its text and the fix."""

import logging
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from gearpy.distribution import program
from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ChangeForbidden,
    ConfigError,
    ConnectionLost,
    GearpyError,
    GraphError,
    OperatorError,
    SubmitRefused,
)

_log = logging.getLogger(__name__)

_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_INTERNAL: Final = 500
_UNAVAILABLE: Final = 503
_MISTAKES_MAX: Final = 10
_NO_SUCH: Final = ("no application has id", "no application is called", "no worker has id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The answer to a request that was not carried out: why, and the fix, if there is one."""

    error: str
    fix: str | None = None


class ProblemRaised(HTTPException):
    """A request that cannot be carried out; ends its route."""

    def __init__(self, status: int, error: str, fix: str | None = None) -> None:
        super().__init__(status, error)
        self.problem = Problem(error=error, fix=fix)


def problem_answer(
    status: int, problem: Problem, headers: dict[str, str] | None = None
) -> JSONResponse:
    content = {"error": problem.error, "fix": problem.fix}
    return JSONResponse(content, status_code=status, headers=headers)


def add_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(GearpyError, _on_gearpy)
    app.add_exception_handler(Exception, _on_bug)


def _on_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if isinstance(error, ProblemRaised):
        request.state.refused = error
        return problem_answer(error.status_code, error.problem, headers)
    text = str(error.detail).lower()
    if error.status_code == _NOT_FOUND:
        text = f"there is nothing at {request.url.path}"
    return problem_answer(error.status_code, Problem(error=text), headers)


def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    mistakes = [
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
        for each in error.errors()[:_MISTAKES_MAX]
    ]
    return problem_answer(422, Problem(error="; ".join(mistakes)))


def answer_of(error: ProblemRaised | GearpyError) -> JSONResponse:
    if isinstance(error, ProblemRaised):
        return problem_answer(error.status_code, error.problem)
    fix = None
    match error:
        case ChangeForbidden():
            status = _FORBIDDEN
        case SubmitRefused():
            status = _NOT_FOUND if str(error).startswith(_NO_SUCH) else _CONFLICT
        case GraphError() | ConfigError() | OperatorError():
            status = _BAD_REQUEST
        case ConnectionLost() | AskTimeout() | AuthenticationFailed():
            status = _UNAVAILABLE
            fix = f"see whether the master runs ({program('master')}), and what its log says"
        case _:
            status = _INTERNAL
    return problem_answer(status, Problem(error=str(error), fix=fix))


def _on_gearpy(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, GearpyError)
    return answer_of(error)


def _on_bug(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    text = "this is a mistake in gearpy; its log has the traceback"
    return problem_answer(_INTERNAL, Problem(error=text))
