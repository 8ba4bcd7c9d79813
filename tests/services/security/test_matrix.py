"""Nobody does anything unsafe who must not: every unsafe route with everything that is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from gearpy.messages.client import GetApplication
from gearpy.services.application import ROUTERS
from gearpy.services.deps import Action
from gearpy.services.routes import session
from gearpy.services.security.guard import API, OPEN_PATHS
from gearpy.services.security.origins import SAFE_METHODS
from gearpy.services.server import Services
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.eventually import DEADLINE_S, eventually
from tests.services.conftest import PLENTY, Served, a_config

#: What every route takes that changes an application.
_CHANGE = {"numbers": [], "steps": {"check": 2}, "version": 0}
_REPLACED = '{"oldProcessorId": 0, "newProcessorDescription": {"parallelism": 3}}'
_IDS = {"app_id": "1", "rule": "failed", "worker_id": "0", "count": "1", "executor_id": "0"}
#: Made once: each request would read the authorities of this machine again.
_TLS = httpx.create_ssl_context()
_PROGRAM = b"""
import itertools
import gearpy as gp

app = gp.StreamApp("own")
app.read(gp.generate(itertools.count, rate=10)).write(gp.to_list([]))
"""


def unsafe_routes() -> list[tuple[str, str, APIRoute]]:
    found = []
    for router in (*ROUTERS, session.open_router):
        prefix = "" if router is session.open_router else API
        for route in router.routes:
            if not isinstance(route, APIRoute):
                continue  # A WebSocket changes nothing.
            methods = sorted((route.methods or set()) - SAFE_METHODS)
            found += [(method, prefix + route.path, route) for method in methods]
    return found


UNSAFE = unsafe_routes()
_NAMES = [f"{method} {path}" for method, path, _ in UNSAFE]


def action_of(route: APIRoute) -> Action | None:
    calls = [each.call for each in route.dependant.dependencies]
    return next((each for each in calls if isinstance(each, Action)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    url: str
    tokens: dict[str, str]
    audit: Path

    def ask(
        self,
        method: str,
        path: str,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        **sent: Any,
    ) -> httpx.Response:
        """Ask for something; underlines of headers are dashes."""
        shown = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        if token:
            shown["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        url = self.url + path.format_map(_IDS)
        return httpx.request(method, url, headers=shown, timeout=DEADLINE_S, verify=_TLS, **sent)


@pytest.fixture(scope="module")
def guarded(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    config = a_config(tmp_path_factory.mktemp("guarded"))
    file = TokenFile(config.services.token_file)
    tokens = {
        name: file.add(name, scope, now_ms=1)
        for name, scope in {
            "reader": TokenScope.READ,
            "ann": TokenScope.SUBMIT,
            "ben": TokenScope.SUBMIT,
            "root-of-all": TokenScope.ADMIN,
        }.items()
    }
    with Services(served.cluster.client, config, limits=PLENTY) as services:
        audit = Path(config.log.folder) / "audit.log"
        yield Guarded(url=services.url, tokens=tokens, audit=audit)


@pytest.mark.parametrize(("method", "path", "route"), UNSAFE, ids=_NAMES)
def test_every_unsafe_route_needs_a_right(method: str, path: str, route: APIRoute) -> None:
    """A submitter's or an admin's; but for logging in and out."""
    action = action_of(route)

    if path in OPEN_PATHS:
        assert action is None
    else:
        assert action is not None, f"{method} {path} has no Action"
        assert action.scope >= TokenScope.SUBMIT


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8090"},
        {"Host": "127.0.0.1:x"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("method", "path", "route"), UNSAFE, ids=_NAMES)
def test_another_site_can_do_nothing(
    guarded: Guarded, method: str, path: str, route: APIRoute, headers: dict[str, str]
) -> None:
    answer = guarded.ask(method, path, "root-of-all", headers)

    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]


@pytest.mark.parametrize("token", ["", "gear_unknown", "é"])
@pytest.mark.parametrize(("method", "path", "route"), UNSAFE, ids=_NAMES)
def test_without_a_token_nothing_is_done(
    guarded: Guarded, method: str, path: str, route: APIRoute, token: str
) -> None:
    if path in OPEN_PATHS and not token:
        return
    headers = {b"Authorization": f"Bearer {token}".encode()} if token else {}
    url = guarded.url + path.format_map(_IDS)

    answer = httpx.request(method, url, headers=headers, timeout=DEADLINE_S, verify=_TLS)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path", "route"), UNSAFE, ids=_NAMES)
def test_a_scope_does_what_it_says(
    guarded: Guarded, method: str, path: str, route: APIRoute
) -> None:
    """A reader nothing; a submitter changes neither applications of others nor the cluster."""
    action = action_of(route)
    if action is None:
        return
    assert guarded.ask(method, path, "reader").status_code == 403
    is_of_others = "{app_id}" in path and action.name != "app ask"
    if action.scope > TokenScope.SUBMIT or is_of_others:
        sent: dict[str, Any] = {"json": _CHANGE}
        if path.endswith("/update"):
            sent = {"files": {"file": ("own.py", _PROGRAM)}}
        elif path.endswith("/dynamicdag"):
            sent = {"params": {"args": _REPLACED}}
        refused = guarded.ask(method, path, "ann", **sent)
        assert refused.status_code == 403, refused.text
        assert refused.json()["error"]


def test_reading_needs_a_token_too(guarded: Guarded) -> None:
    """But the page and the session do not, else nobody could log in."""
    assert guarded.ask("GET", f"{API}/overview").status_code == 401
    assert guarded.ask("GET", "/openapi.json").status_code == 401
    assert guarded.ask("GET", f"{API}/events").status_code == 401
    assert guarded.ask("GET", f"{API}/overview", "reader").status_code == 200
    known = guarded.ask("GET", f"{API}/session").json()
    assert (known["user"], known["login_required"], known["cluster_id"]) == (None, True, None)


def test_own_applications_can_be_stopped(guarded: Guarded, served: Served) -> None:
    submitted = httpx.post(
        f"{guarded.url}{API}/master/submitprogram",
        files={"file": ("own.py", _PROGRAM)},
        data={"name": "own"},
        headers={"Authorization": f"Bearer {guarded.tokens['ann']}"},
        timeout=DEADLINE_S,
    )
    assert submitted.status_code == 200, submitted.text
    app_id = submitted.json()["appId"]
    path = f"{API}/appmaster/{app_id}"
    assert guarded.ask("GET", path, "reader").json()["user"] == "ann"
    eventually(lambda: served.cluster.client.ask(GetApplication(app_id=app_id)).status == "active")

    assert guarded.ask("DELETE", path, "ben").status_code == 403
    assert guarded.ask("DELETE", path, "ann").json() == {"status": "success", "info": None}
    assert guarded.ask("DELETE", path, "root-of-all").status_code == 409  # It has ended.

    eventually(lambda: "already terminated" in guarded.audit.read_text(encoding="utf-8"))
    noted = guarded.audit.read_text(encoding="utf-8").splitlines()
    lines = [line.partition(" gearpy.audit: ")[2] for line in noted][-4:]
    target = f'target="app_id={app_id}" from=127.0.0.1'
    named = f'target="name=own app_id={app_id}" from=-'
    assert lines[0] == f'user="ann" action="app submit" {named}: done'
    assert lines[1].startswith(f'user="ben" action="app kill" {target}: refused: app kill of ')
    assert lines[2] == f'user="ann" action="app kill" {target}: done'
    assert lines[3].startswith(f'user="root-of-all" action="app kill" {target}: refused: ')


def test_a_browser_logs_in_and_out(guarded: Guarded) -> None:
    with httpx.Client(base_url=guarded.url, timeout=DEADLINE_S) as browser:
        assert browser.post(f"{API}/login", json={"token": "wrong"}).status_code == 401
        answer = browser.post(f"{API}/login", json={"token": guarded.tokens["ann"]})
        assert answer.json() == {"user": "ann"}
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert guarded.tokens["ann"] not in cookie
        assert browser.get(f"{API}/session").json()["scopes"] == ["read", "submit"]
        origin = {"Origin": guarded.url}
        post = f"{API}/appmaster/1/drain"
        assert browser.post(post).json()["error"].startswith("a request with a cookie")
        refused = browser.post(post, headers=origin).json()["error"]
        assert refused.startswith("app drain of application 1: it is of ")
        assert browser.post(f"{API}/logout", headers=origin).status_code == 200
        browser.cookies.clear()
        browser.headers["Cookie"] = cookie.partition(";")[0]
        assert browser.get(f"{API}/overview").status_code == 401


def test_a_removed_token_counts_no_more(served: Served, tmp_path: Path) -> None:
    config = a_config(tmp_path)
    file = TokenFile(config.services.token_file)
    secret = file.add("guest", TokenScope.READ, now_ms=1)
    file.add("other", TokenScope.READ, now_ms=1)
    with (
        Services(served.cluster.client, config, limits=PLENTY) as services,
        httpx.Client(base_url=services.url, timeout=DEADLINE_S) as browser,
    ):
        browser.post(f"{API}/login", json={"token": secret})
        assert browser.get(f"{API}/master").status_code == 200

        file.remove("guest")

        assert browser.get(f"{API}/master").status_code == 401
        file.remove("other")
        assert browser.get(f"{API}/session").json()["scopes"] == []
        assert browser.get(f"{API}/master").status_code == 401


def test_headers_keep_the_page_to_itself(guarded: Guarded) -> None:
    """Scripts and styles of these services only; nobody may frame it."""
    headers = guarded.ask("GET", "/").headers

    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
