"""The page of the whole cluster that Prometheus reads."""

from typing import Final

from fastapi import APIRouter, Response

from gearpy.cluster.client.measured import cluster_sample
from gearpy.services.deps import Given

router: Final = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=Response)
def get_metrics(given: Given) -> Response:
    """Return all that is measured, in the text format of Prometheus."""
    from gearpy.metrics.prometheus import CONTENT_TYPE, page_of  # noqa: PLC0415 - who asks loads it

    return Response(page_of(cluster_sample(given.client)), media_type=CONTENT_TYPE)
