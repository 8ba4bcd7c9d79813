"""The page about the REST API lists the routes that there are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from gearpy.services.application import ROUTERS
from gearpy.services.deps import Action
from gearpy.services.security.guard import API, OPEN_PATHS

PAGE = Path(__file__).parents[2] / "docs" / "rest.md"
_HEAD = "| route | answer | scope |\n|---|---|---|\n"


def rows() -> Iterator[str]:
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIWebSocketRoute):
                says = (route.endpoint.__doc__ or "").partition("\n")[0].rstrip(".")
                yield f"| WebSocket `{route.path[1:]}` | {says} | read |\n"
                continue
            assert isinstance(route, APIRoute)
            calls = [each.call for each in route.dependant.dependencies]
            needed = [each.scope.text for each in calls if isinstance(each, Action)]
            says = (route.description or "").partition("\n")[0].rstrip(".").replace("|", "\\|")
            path = route.path.replace("{app_id}", "ID").replace("{worker_id}", "ID")
            path = path.replace("{executor_id}", "EID").replace("{processor_id}", "PID")
            method = min(route.methods or {"GET"})
            scope = "none" if API + route.path in OPEN_PATHS else "".join(needed) or "read"
            yield f"| `{method} {path[1:]}` | {says} | {scope} |\n"


def test_the_page_lists_every_route(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before = text[: text.index("## Routes")]
    note = text[len(before) :].partition("-->")[0] + "-->\n\n"
    wanted = before + note + _HEAD + "".join(rows())

    if request.config.getoption("--rewrite"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted
