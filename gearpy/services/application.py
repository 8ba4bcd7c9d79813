"""All routes with their guard, as one ASGI application."""

from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from gearpy import __version__
from gearpy.services.deps import PROBLEMS, Deps
from gearpy.services.problems import add_problem_handlers
from gearpy.services.routes import (
    applications,
    cluster,
    earlier,
    events,
    inside,
    measurements,
    prometheus,
    session,
    states,
    submitting,
    versions,
    views,
)
from gearpy.services.security.guard import API, PAGE, Guard
from gearpy.services.static import page_routes

_GZIP_LEVEL: Final = 5
_GZIP_BYTES_MIN: Final = 1000
#: All routes below the API.
ROUTERS: Final[tuple[APIRouter, ...]] = (
    cluster.router,
    applications.router,
    inside.router,
    versions.router,
    states.router,
    views.router,
    measurements.router,
    prometheus.targets_router,
    submitting.router,
    events.router,
    session.router,
    earlier.router,
)


def routes_app(deps: Deps | None = None) -> FastAPI:
    """Return all routes, without a guard; without ``deps`` only their schema is of use."""
    app = FastAPI(
        title="gearpy",
        version=__version__,
        description="The services of a cluster: Gearpump's REST API and more.",
        docs_url=None,  # Their scripts are on other hosts.
        redoc_url=None,
        responses=PROBLEMS,
    )
    app.state.deps = deps
    add_problem_handlers(app)
    for each in ROUTERS:
        app.include_router(each, prefix=API)
    app.include_router(session.open_router)
    app.include_router(prometheus.router)
    app.router.routes += [Route(PAGE, session.open_page, methods=["GET"]), *page_routes()]
    return app


def services_app(deps: Deps) -> ASGIApp:
    app = routes_app(deps)
    guarded = Guard(app, settings=deps.guard, logins=deps.logins)
    return GZipMiddleware(guarded, minimum_size=_GZIP_BYTES_MIN, compresslevel=_GZIP_LEVEL)
