"""Checks each request before any route sees it, and adds headers to the answer."""

import asyncio
import re
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gearpy.clocks import wall_ms
from gearpy.cluster.host.audit import note_action
from gearpy.errors import ConfigError
from gearpy.services.problems import ProblemRaised, problem_answer
from gearpy.services.security.access import Caller
from gearpy.services.security.limits import RequestLimits, RequestRates
from gearpy.services.security.origins import SAFE_METHODS, is_own_host, origin_problem
from gearpy.services.security.sessions import Logins
from gearpy.transport.security.tokens import StoredToken, TokenFile, TokenScope, hash_of

#: Where all routes with data are.
API: Final = "/api/v1.0"
#: Where the page is; with a token behind it, it logs in.
PAGE: Final = "/"
#: What can be asked for without a token: enough to log in.
OPEN_PATHS: Final = frozenset(
    {f"{API}/session", f"{API}/login", f"{API}/logout", "/version", f"{API}/version"}
)
_GUARDED: Final = (API, "/metrics", "/openapi.json", "/supervisor-actor-path")
_STREAMS: Final = frozenset({f"{API}/events", f"{API}/websocket"})
_UPLOADS: Final = re.compile(
    rf"{re.escape(API)}/(master/(submitapp|submitprogram|uploadjar)"
    r"|appmaster/[0-9]+/(update|dynamicdag))"
)

#: The beginnings of an answer, also of one that refuses a WebSocket.
_STARTS: Final = frozenset({"http.response.start", "websocket.http.response.start"})
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSettings:
    """The settings of a guard.

    Attributes:
        tokens: of all who may come; as soon as there is one, everybody needs one.
        started: the one that was made when the services started, if there were none.
        needs_login: everybody needs one even if there is none.
        user: whom a request without a token comes from where none is needed.
        names: of this host, in lower case; addresses and localhost go without saying.
        cookie: the name of the login cookie.
        limits: for each client.
    """

    tokens: TokenFile
    started: StoredToken | None
    needs_login: bool
    user: str
    names: frozenset[str]
    cookie: str
    limits: RequestLimits

    def token_of(self, sha256: str) -> StoredToken | None:
        if self.started is not None and self.started.sha256 == sha256:
            return self.started
        return self.tokens.hashed(sha256)


@dataclass(slots=True)
class TakenAction:
    """An unsafe action that a route has begun: the command of ``gear``, and on what."""

    name: str
    target: str


class Guard:
    """An ASGI application around all others. Runs on: the event loop of the services."""

    def __init__(self, app: ASGIApp, *, settings: GuardSettings, logins: Logins) -> None:
        limits = settings.limits
        self._app = app
        self._settings = settings
        self._logins = logins
        self._asks = RequestRates(limits.asks_per_s, limits.asks_burst)
        self._changes = RequestRates(limits.changes_per_s, limits.changes_burst)
        self._tries = RequestRates(limits.logins_per_s, limits.logins_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        request = _Seen(scope)
        answering = _Answering(send, request)
        try:
            state["caller"] = caller = self._admitted(request)
        except ProblemRaised as refused:
            answer = problem_answer(
                refused.status_code, refused.problem, dict(refused.headers or {})
            )
            await answer(scope, receive, answering)
            if request.is_unsafe:
                _note(None, TakenAction(f"{request.method} {request.path}", ""), request, refused)
            return
        is_socket = scope["type"] == "websocket"
        body = _Body(receive, self._settings.limits, request)
        await self._app(scope, receive if is_socket else body, answering)
        action, problem = state.get("action"), state.get("refused")
        if isinstance(action, TakenAction) and isinstance(problem, ProblemRaised):
            _note(caller, action, request, problem)

    def _admitted(self, request: "_Seen") -> Caller | None:
        """Return the caller; None for somebody unknown at a path that is open to all."""
        host = request.headers.get("host", "")
        if not is_own_host(host, self._settings.names):
            raise ProblemRaised(
                403,
                f"{host or 'no host'} is not a name of these services",
                "use an address, or start them with --name NAME",
            )
        now_s, client = time.monotonic(), request.client
        wait_s = self._asks.wait_s(client, now_s)
        if request.is_unsafe and not wait_s:
            wait_s = self._changes.wait_s(client, now_s)
        if (request.path == f"{API}/login" or request.shows_token) and not wait_s:
            wait_s = self._tries.wait_s(client, now_s)
        if wait_s:
            raise _too_often(wait_s)
        login = self._login_of(request)
        problem = origin_problem(
            request.method,
            request.headers,
            has_cookie=bool(login),
            is_stream=request.path in _STREAMS,
        )
        if problem:
            raise ProblemRaised(403, problem, "open the page by the address that the services tell")
        try:
            caller = self._caller(request, login)
        except ConfigError as error:
            raise ProblemRaised(503, str(error)) from error
        is_open = request.path in OPEN_PATHS or not request.path.startswith(_GUARDED)
        if caller is None and not is_open:
            raise ProblemRaised(
                401,
                "a token is needed",
                "log in, or send the header Authorization: Bearer TOKEN; 'gear token show' has "
                "those of services that you run on this machine",
            )
        return caller

    def _login_of(self, request: "_Seen") -> str:
        """Return the id in the login cookie, unless a token is shown as well."""
        if "authorization" in request.headers or "cookie" not in request.headers:
            return ""
        try:
            cookies = SimpleCookie(request.headers["cookie"])
        except CookieError:
            return ""
        found = cookies.get(self._settings.cookie)
        return found.value if found else ""

    def _caller(self, request: "_Seen", login: str) -> Caller | None:
        settings = self._settings
        header = request.headers.get("authorization")
        if header is not None:
            kind, _, secret = header.partition(" ")
            is_bearer = kind.lower() == "bearer"
            found = settings.token_of(hash_of(secret.strip())) if is_bearer else None
            if found is not None:
                return _caller_of(found, request.client)
            if wait_s := self._tries.wait_s(request.client, time.monotonic()):
                raise _too_often(wait_s)
            raise ProblemRaised(401, "this token is not known", "ask for one: gear token add NAME")
        if not settings.needs_login and not settings.tokens.tokens():
            return Caller(name=settings.user, scope=TokenScope.ADMIN, address=request.client)
        shown = self._logins.token_of(login, wall_ms()) if login else None
        token = settings.token_of(shown) if shown else None
        return _caller_of(token, request.client) if token else None


class _Seen:
    """The parts of a request that are looked at."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope.get("method", "GET")  # A WebSocket begins as one.
        self.path: str = scope["path"]
        self.headers = Headers(scope=scope)
        self.client: str = scope["client"][0] if scope.get("client") else "?"
        self.is_unsafe = self.method not in SAFE_METHODS
        self.shows_token = self.path == PAGE and bool(scope["query_string"])
        self.is_encrypted = scope.get("scheme") in {"https", "wss"}


class _Answering:
    """Sends an answer with the headers that all of them have, and remembers its status."""

    def __init__(self, send: Send, request: _Seen) -> None:
        self._send = send
        self._request = request
        self.status = 500  # Until it begins.

    async def __call__(self, message: Message) -> None:
        if message["type"] in _STARTS:
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if self._request.path.startswith(_GUARDED) and "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
            # It holds for a day: who switches TLS off again locks nobody out.
            if self._request.is_encrypted:
                headers["Strict-Transport-Security"] = "max-age=86400"
            if self.status == 401:  # noqa: PLR2004 - a status of HTTP
                headers["WWW-Authenticate"] = "Bearer"
        await self._send(message)


class _Body:
    """Receives the body of a request, if it is neither too large nor too slow."""

    def __init__(self, receive: Receive, limits: RequestLimits, request: _Seen) -> None:
        self._receive = receive
        self._limits = limits
        is_upload = _UPLOADS.fullmatch(request.path) is not None
        self._max = limits.upload_max_bytes if is_upload else limits.body_max_bytes
        self._since_s = time.monotonic()
        self._bytes = 0
        self._is_complete = False

    async def __call__(self) -> Message:
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout(self._limits.stall_s):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow() from None
        self._bytes += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._bytes > self._max:
            raise ProblemRaised(413, f"a body has at most {self._max} bytes here")
        allowed_s = self._limits.stall_s + self._bytes / self._limits.body_bytes_per_s
        if not self._is_complete and time.monotonic() - self._since_s > allowed_s:
            raise _too_slow()
        return message


def _note(
    caller: Caller | None, action: TakenAction, request: "_Seen", refused: ProblemRaised
) -> None:
    user, outcome = caller.name if caller else None, f"refused: {refused.problem.error}"
    note_action(user, action.name, action.target, request.client, outcome)


def _caller_of(token: StoredToken, address: str) -> Caller:
    return Caller(name=token.name, scope=token.scope, address=address)


def _too_often(wait_s: float) -> ProblemRaised:
    problem = ProblemRaised(429, "too many requests", f"ask again in {wait_s:.1f} s")
    problem.headers = {"Retry-After": str(int(wait_s) + 1)}
    return problem


def _too_slow() -> ProblemRaised:
    return ProblemRaised(408, "the body of the request did not come in time")
