"""The answers that Prometheus reads: the page of the whole cluster, and where all pages are."""

from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from gearpy.cluster.client.measured import cluster_sample, process_pages
from gearpy.services.deps import Client, Given

router: Final = APIRouter(tags=["metrics"])
targets_router: Final = APIRouter(tags=["metrics"])

#: What the target of the services leaves out, as other targets show it.
_PAGES: Final = "pages"
_Except: TypeAlias = Annotated[
    Literal["", "pages"],
    Query(alias="except", description="Without what processes show on pages of their own."),
]


class TargetGroup(BaseModel):
    """Some targets with labels, as Prometheus' ``http_sd_configs`` takes them."""

    targets: list[str]
    labels: dict[str, str]


@router.get("/metrics", response_class=Response)
def get_metrics(given: Given, left_out: _Except = "") -> Response:
    """Return all that is measured, in the text format of Prometheus."""
    from gearpy.metrics.prometheus import CONTENT_TYPE, page_of  # noqa: PLC0415 - who asks loads it

    beside = tuple(process_pages(given.client)) if left_out == _PAGES else ()
    return Response(page_of(cluster_sample(given.client, beside=beside)), media_type=CONTENT_TYPE)


@targets_router.get("/prometheus/targets")
def list_targets(request: Request, given: Given, client: Client) -> list[TargetGroup]:
    """Return all that Prometheus should read: these services, workers and executors with a page."""
    whole = TargetGroup(
        targets=[request.headers["host"]],
        labels={
            "__scheme__": request.url.scheme,
            "__param_except": _PAGES,
            "__meta_gearpy_process": "services",
        },
    )
    # All processes of a cluster have TLS, or none: others could not speak with them.
    scheme = "https" if given.config.transport.tls == "on" else "http"
    found = [whole]
    for page in process_pages(client):
        labels = {
            "__scheme__": scheme,
            "__meta_gearpy_process": page.process,
            "__meta_gearpy_worker": str(page.worker_id),
        }
        if page.app_id is not None:
            labels |= {"__meta_gearpy_app": page.app, "__meta_gearpy_app_id": str(page.app_id)}
        found.append(TargetGroup(targets=[page.address], labels=labels))
    return found
