"""Routes about who asks: session, login, logout; and the version."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from gearpy import __version__
from gearpy.clocks import wall_ms
from gearpy.cluster.host.audit import note_action
from gearpy.messages.client import GetCluster
from gearpy.services.deps import Given, caller_of, deps_of
from gearpy.services.problems import ProblemRaised
from gearpy.services.security.guard import PAGE, TakenAction
from gearpy.services.security.sessions import LOGIN_LASTS_MS
from gearpy.services.static import index
from gearpy.transport.security.tokens import StoredToken, hash_of

router: Final = APIRouter(tags=["session"])
#: Routes that are not below the API.
open_router: Final = APIRouter(tags=["session"])
_TOKEN_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A caller and its scopes. ``user`` is null for somebody who must log in first.

    ``of_one_run``: the services end with one run, so that nothing else is started here.
    """

    user: str | None
    scopes: list[str]
    login_required: bool
    version: str
    cluster_id: str | None
    of_one_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """Answer of login and logout."""

    user: str | None


def _login_action(request: Request) -> None:
    request.state.action = TakenAction("login", "")


@router.get("/session")
def get_session(given: Given, request: Request) -> Session:
    """Return the caller, and the cluster."""
    caller, guard = caller_of(request), given.guard
    return Session(
        user=caller.name if caller else None,
        scopes=caller.scope.names if caller else [],
        login_required=guard.needs_login or bool(guard.tokens.tokens()),
        version=__version__,
        cluster_id=given.client.ask(GetCluster()).cluster_id if caller else None,
        of_one_run=given.of_one_run,
    )


@router.post("/login", response_model=LoggedIn, dependencies=[Depends(_login_action)])
def login(
    given: Given,
    request: Request,
    token: Annotated[str, Body(embed=True, max_length=_TOKEN_CHARS_MAX)],
) -> JSONResponse:
    """Log a browser in with a token; the answer has a cookie."""
    found = given.guard.token_of(hash_of(token.strip()))
    if found is None:
        raise ProblemRaised(401, "this token is not known", "ask for one: gear token add NAME")
    answer = JSONResponse({"user": found.name})
    _begin_login(request, answer, found)
    return answer


def open_page(request: Request) -> Response:
    """Return the page; a token behind its address logs in, and goes out of the address bar."""
    token = request.query_params.get("token")
    if token is None:
        return index(request)
    # Browsers take along what follows the # in the address.
    answer = RedirectResponse(PAGE, status_code=303, headers={"Cache-Control": "no-store"})
    found = deps_of(request).guard.token_of(hash_of(token.strip()))
    if found is not None:  # The page asks for one otherwise.
        _begin_login(request, answer, found)
    return answer


def _begin_login(request: Request, answer: Response, token: StoredToken) -> None:
    given, address = deps_of(request), request.client.host if request.client else ""
    note_action(token.name, "login", "", address, "done")
    answer.set_cookie(
        given.guard.cookie,
        given.logins.begin(token.sha256, wall_ms()),
        max_age=LOGIN_LASTS_MS // 1000,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


@router.post("/logout", response_model=LoggedIn)
def logout(given: Given, request: Request) -> JSONResponse:
    """End the login of a browser."""
    given.logins.end(request.cookies.get(given.guard.cookie, ""))
    answer = JSONResponse({"user": None})
    answer.delete_cookie(given.guard.cookie, httponly=True, samesite="strict")
    return answer


@open_router.get("/version", response_class=PlainTextResponse)
def get_version() -> str:
    """Return the version of gearpy, as text."""
    return __version__


@open_router.get("/supervisor-actor-path", response_class=PlainTextResponse)
def get_supervisor_path(request: Request) -> str:
    """Return the path of the supervisor: none."""
    deps_of(request)
    return ""
