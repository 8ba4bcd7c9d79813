"""The paths of Gearpump 0.6 where 0.8 has others; the answers are those of today's routes."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from gearpy.services.deps import AppIdInPath, Client
from gearpy.services.gearpump.shapes import NumberedMetrics, SocketAddress
from gearpy.services.routes import applications, cluster, measurements, session
from gearpy.services.routes.events import SOCKET
from gearpy.services.security.guard import API

router: Final = APIRouter(tags=["gearpump 0.6"])

#: For each path the route of today.
_SAME: Final[dict[str, Any]] = {
    "/appmasters": cluster.list_applications,
    "/workers": cluster.list_workers,
    "/workers/{worker_id}": cluster.get_worker,
    "/config/master": cluster.get_master_config,
    "/config/worker/{worker_id}": cluster.get_worker_config,
    "/config/app/{app_id}": applications.get_application_config,
}
for _path, _route in _SAME.items():
    router.add_api_route(_path, _route, response_model_exclude_none=_path == "/appmasters")

router.add_api_route("/version", session.get_version, response_class=PlainTextResponse)


@router.get("/metrics/app/{app_id}/{path}", response_model_exclude_none=True)
def get_metrics(
    client: Client,
    app_id: AppIdInPath,
    path: measurements.MetricPath,
    option: measurements.MetricOption = "readLatest",
) -> NumberedMetrics:
    """Return measurements of tasks and executors, with the number of the application."""
    found = measurements.metrics_of(client, path, option, app_id=app_id)
    return NumberedMetrics(app_id=app_id, path=found.path, metrics=found.metrics)


@router.get("/websocket/url")
def get_socket(request: Request) -> SocketAddress:
    """Return the address of the WebSocket, which sends what the stream of events does."""
    scheme = "wss" if request.url.scheme == "https" else "ws"
    return SocketAddress(url=f"{scheme}://{request.headers['host']}{API}{SOCKET}")
