"""Asks a cluster for all that it measures."""

from collections.abc import Iterator
from contextlib import suppress

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import GearpyError
from gearpy.messages.metrics import MetricsData, ProcessMetricsData
from gearpy.metrics.samples import ClusterSample


def cluster_sample(client: ClusterClient) -> ClusterSample:
    """Return the measurements of all applications that run, of the master and of the workers.

    Whoever does not answer is left out: a page of metrics with a gap is better than none.
    """
    return ClusterSample(
        applications=tuple(_applications(client)), processes=tuple(_processes(client))
    )


def _applications(client: ClusterClient) -> Iterator[tuple[str, MetricsData]]:
    with suppress(GearpyError):
        for each in client.applications():
            if each.status == "active":
                with suppress(GearpyError):  # It has just ended, or its app master is away.
                    yield each.name, client.metrics(each.app_id)


def _processes(client: ClusterClient) -> Iterator[ProcessMetricsData]:
    with suppress(GearpyError):
        yield client.process_metrics()
        for each in client.workers():
            with suppress(GearpyError):
                yield client.process_metrics(each.worker_id)
