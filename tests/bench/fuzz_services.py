"""Requests with bodies, odd and damaged, for all routes of the services that take them."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

import gearpy as gp
from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import SubmitRefused
from gearpy.services.application import ROUTERS, routes_app
from gearpy.services.deps import Deps
from gearpy.services.problems import add_problem_handlers
from gearpy.services.programs.submission import Submitting
from gearpy.services.programs.uploads import Uploads
from gearpy.services.push.topics import Topics
from gearpy.services.push.watching import Watching
from gearpy.services.security.guard import API, Guard, GuardSettings
from gearpy.services.security.limits import RequestLimits
from gearpy.services.security.sessions import Logins
from gearpy.transport.security.tokens import TokenFile
from gearpy.wire.codec import encode_control

_STATUS_BUG: Final = 500
_LIMIT: Final = 1e9
_BOUNDARY: Final = b"b0undary"
_HEADS: Final = (b"text/plain", b"application/json; charset=utf-16", b"multipart/form-data", b"")
_PROGRAMS: Final = (b"import gearpy\n", b"x = 1\n", b"(" * 300, b"\x00", b"PK\x03\x04", b"\xff\xfe")
_FILE_NAMES: Final = (
    "x.py",
    "x.zip",
    "x.whl",
    "x",
    "",
    "../x.py",
    "a\x00.py",
    "\u00e9.py",
    "x" * 300,
)
_TEXTS: Final = (
    "",
    "x",
    "1",
    "1..8",
    "-1",
    "a=b",
    "'",
    "\x00",
    "\u00e9",
    "2024-01-01T00:00Z",
    "9" * 5000,
)
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1, 1.5, 2**31, 2**63, 10**4000, 1e308, float("inf"), float("nan")),
    *("", "x", "1", "\x00", "\ud800", "\u00e9" * 400, [], {}, [1], {"x": 1}, {"\ud800": 1}),
)


class Route(NamedTuple):
    """A route that takes a body: its path, of which kind, and the schema of it."""

    path: str
    kind: str
    schema: Mapping[str, Any]
    query: tuple[str, ...]


def request(chance: random.Random, damaged: Callable[[bytes, random.Random], bytes]) -> bytes:
    """Return a request: route, path with query, type of content and body, a line each."""
    route = chance.choice(routes())
    path = route.path
    for name in ("app_id", "worker_id", "count"):
        path = path.replace(f"{{{name}}}", chance.choice(("0", "0", "0", "1", "x", "-1")))
    if route.query and chance.random() < 0.8:
        values = (chance.choice((*_TEXTS, json.dumps(_odd(chance)))) for _ in route.query)
        pairs = zip(route.query, values, strict=True)
        path += "?" + "&".join(f"{name}={quote(value, errors='replace')}" for name, value in pairs)
    if route.kind == "application/json":
        body = json.dumps(_made(route.schema, chance)).encode()
        if chance.random() < 0.05:
            depth = chance.choice((100, 900, 1100, 100_000))
            body = b'{"question":' + b"[" * depth + b"]" * depth + b"}"
        kind = b"application/json"
    else:
        body, kind = _form(route, chance), b"multipart/form-data; boundary=" + _BOUNDARY
    if chance.random() < 0.4:
        body = damaged(body, chance)
    if chance.random() < 0.03:
        kind = chance.choice(_HEADS)
    return b"\n".join([route.path.encode(), path.encode(), kind, body])


def answer(given: bytes, apps: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> int:
    route, path, kind, body = given.split(b"\n", 3)
    path, _, query = path.partition(b"?")
    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))]
    if kind:
        headers.append((b"content-type", kind))
    scope = {
        "type": "http", "method": "POST", "path": path.decode("utf-8", "replace"),
        "raw_path": path, "query_string": query, "headers": headers, "http_version": "1.1",
        "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 9), "root_path": "",
    }  # fmt: skip
    found: list[int] = []
    given_once = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(given_once, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    loop.run_until_complete(apps[route.decode()](scope, receive, send))
    return found[0]


def read(requests: list[bytes], folder: Path, _: random.Random) -> None:
    """Have requests answered; refuse an answer that says that gearpy is at fault."""
    apps, loop = _services(str(folder))
    for each in requests:
        status = answer(each, apps, loop)
        if status >= _STATUS_BUG:
            where = each.partition(b"\n")[0].decode()
            raise AssertionError(f"answered {status}: {where}")


@cache
def routes() -> list[Route]:
    """Return all routes that take a body, as the schema of the services has them."""
    schema = routes_app().openapi()
    models = schema["components"]["schemas"]
    found = []
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            query = tuple(e["name"] for e in operation.get("parameters", ()) if e["in"] == "query")
            content = operation.get("requestBody", {}).get("content", {})
            for kind, each in content.items():
                form = _resolved(each["schema"], models)
                found.append(Route(path, kind, form, query))
    return found


def _resolved(schema: Any, models: Mapping[str, Any], level: int = 0) -> Any:
    if isinstance(schema, list):
        return [_resolved(each, models, level + 1) for each in schema]
    if not isinstance(schema, dict) or level > 12:
        return schema
    if "$ref" in schema:
        return _resolved(models[schema["$ref"].rpartition("/")[2]], models, level + 1)
    return {name: _resolved(each, models, level + 1) for name, each in schema.items()}


def _odd(chance: random.Random) -> Any:
    return chance.choice(_ODD)


def _made(schema: Mapping[str, Any], chance: random.Random) -> Any:
    made = _odd(chance)
    if chance.random() < 0.06:
        return made
    for kinds in ("anyOf", "oneOf", "allOf"):
        if kinds in schema:
            return _made(chance.choice(schema[kinds]), chance)
    match schema.get("type"):
        case "object":
            made = _object(schema, chance)
        case "array" if "prefixItems" in schema:
            made = [_made(each, chance) for each in schema["prefixItems"]]
        case "array":
            made = [_made(schema.get("items", {}), chance) for _ in range(chance.randrange(4))]
        case "integer" | "number":
            made = chance.choice((0, 1, 2, schema.get("maximum", 7), schema.get("minimum", -7)))
        case "boolean":
            made = chance.random() < 0.5
        case "string":
            made = chance.choice(schema.get("enum", _TEXTS))
    return made


def _object(schema: Mapping[str, Any], chance: random.Random) -> dict[str, Any]:
    needed = schema.get("required", ())
    made = {
        name: _made(each, chance)
        for name, each in schema.get("properties", {}).items()
        if chance.random() < (0.95 if name in needed else 0.5)
    }
    if inner := schema.get("additionalProperties"):
        inner = inner if isinstance(inner, dict) else {}
        made |= {chance.choice(_TEXTS): _made(inner, chance) for _ in range(2)}
    return made


def _form(route: Route, chance: random.Random) -> bytes:
    parts = []
    for name, each in route.schema.get("properties", {}).items():
        is_needed = name in route.schema.get("required", ())
        if chance.random() > (0.95 if is_needed else 0.5):
            continue
        head = f'Content-Disposition: form-data; name="{name}"'.encode()
        if "binary" in str(each) or "octet-stream" in str(each):
            file_name = chance.choice(_FILE_NAMES).encode()
            parts.append(head + b'; filename="%s"\r\n\r\n' % file_name + chance.choice(_PROGRAMS))
        else:
            value = _made(each, chance)
            text = value if isinstance(value, str) else json.dumps(value)
            parts.append(head + b"\r\n\r\n" + text.encode("utf-8", "surrogatepass"))
    lines = b"".join(b"--" + _BOUNDARY + b"\r\n" + part + b"\r\n" for part in parts)
    return lines + b"--" + _BOUNDARY + b"--\r\n"


@cache
def _services(folder: str) -> tuple[dict[str, Any], asyncio.AbstractEventLoop]:
    """Return services of a cluster that refuses all that could be sent, and a loop for them.

    Each route is an application of its own, and runs in the thread of the loop: to look for it
    among all, and to start a thread, would take most of the time.
    """

    async def at_once(function: Any, *args: Any, **_: Any) -> Any:
        return function(*args)

    anyio.to_thread.run_sync = at_once  # type: ignore[assignment]

    def ask(message: object) -> object:
        encode_control(message)
        raise SubmitRefused("no application has id 0: there is none")

    place = Path(folder) / "services"
    place.mkdir(exist_ok=True)
    overrides = {
        "transport.secret-file": f"{place}/secret",
        "services.token-file": f"{place}/tokens",
        "log.folder": f"{place}/log",
    }
    config = gp.load_config(env={}, overrides=overrides)
    client = ClusterClient(ask)
    limits = RequestLimits(
        asks_per_s=_LIMIT, asks_burst=_LIMIT, changes_per_s=_LIMIT, changes_burst=_LIMIT,
        logins_per_s=_LIMIT, logins_burst=_LIMIT,
    )  # fmt: skip
    guard = GuardSettings(
        tokens=TokenFile(config.services.token_file),
        started=None,
        needs_login=False,
        user="ann",
        names=frozenset(),
        cookie="login",
        limits=limits,
    )
    uploads = Uploads(place, config.artifact.max_bytes)
    deps = Deps(
        client=client,
        config=config,
        guard=guard,
        logins=Logins(),
        watching=Watching(client),
        topics=Topics(viewers_max=1),
        uploads=uploads,
        submitting=Submitting(client, config, uploads),
    )
    apps = {}
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.body_field is not None:
                app, alone = FastAPI(), APIRouter()
                alone.routes.append(route)
                app.state.deps = deps
                add_problem_handlers(app)
                app.include_router(alone, prefix=API)
                apps[API + route.path] = Guard(app, settings=guard, logins=deps.logins)
    return apps, asyncio.new_event_loop()
