"""Routes of the views that the page draws, and of series of measurements."""

from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, Path, Query

from gearpy.clocks import wall_ms
from gearpy.messages.client import AlertList, GetAlerts
from gearpy.services.deps import ID_MAX, Action, AppIdInPath, Client, Deps, deps_of
from gearpy.services.problems import ProblemRaised
from gearpy.services.push.watching import Watching
from gearpy.transport.security.tokens import TokenScope
from gearpy.views.model import AppView, OverviewView, ProcessorView

router: Final = APIRouter(tags=["views"])

_RULE_CHARS_MAX: Final = 63
_MINUTES_MAX: Final = 30 * 24 * 60
_Silences: TypeAlias = Annotated[object, Depends(Action("alert silence", TokenScope.SUBMIT))]


def _watching_of(deps: Annotated[Deps, Depends(deps_of)]) -> Watching:
    return deps.watching


_Looking: TypeAlias = Annotated[Watching, Depends(_watching_of)]


@router.get("/overview")
def get_overview(watching: _Looking) -> OverviewView:
    """Return the cluster: masters, workers, applications, and what needs attention."""
    return watching.overview()


@router.get("/alerts")
def get_alerts(client: Client) -> AlertList:
    """Return alerts that fire, the rules with their limits, and what has fired lately."""
    return client.ask(GetAlerts())


@router.post("/appmaster/{app_id}/alerts/{rule}/silence")
def silence_alert(
    client: Client,
    app_id: AppIdInPath,
    rule: Annotated[str, Path(max_length=_RULE_CHARS_MAX)],
    _: _Silences,
    *,
    minutes: Annotated[int, Query(ge=0, le=_MINUTES_MAX, description="0 ends it.")] = 60,
) -> AlertList:
    """Tell nobody of an alert of an application for a while; return alerts and silences."""
    return client.silence(app_id, rule, wall_ms() + 60_000 * minutes if minutes else 0)


@router.get("/appmaster/{app_id}/view")
def get_view(watching: _Looking, app_id: AppIdInPath) -> AppView:
    """Return an application as the page draws it."""
    return watching.application(app_id)


@router.get("/appmaster/{app_id}/processor/{processor_id}")
def get_processor(
    watching: _Looking, app_id: AppIdInPath, processor_id: Annotated[int, Path(ge=0, le=ID_MAX)]
) -> ProcessorView:
    """Return a processor with its tasks."""
    view = watching.processor(app_id, processor_id)
    if view is None:
        raise ProblemRaised(404, f"application {app_id} has no processor {processor_id} at present")
    return view
