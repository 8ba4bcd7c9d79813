"""Asks a cluster for all that it measures."""

from collections.abc import Collection, Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import GearpyError
from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.client import DescribeApplication, DescribeWorker, ListWorkers
from gearpy.messages.metrics import GetProcessMetrics, MetricsData, ProcessMetricsData
from gearpy.metrics.samples import ClusterSample


class ProcessPage(Struct, frozen=True, kw_only=True):
    """A page of metrics that one process of a cluster has: of a worker, or of an executor.

    Attributes:
        app: the name of the application of an executor.
    """

    address: str
    worker_id: WorkerId
    app_id: AppId | None = None
    app: str = ""
    executor_id: ExecutorId | None = None

    @property
    def process(self) -> str:
        if self.executor_id is None:
            return f"worker{self.worker_id}"
        return f"executor{self.executor_id}"


def cluster_sample(client: ClusterClient, *, beside: Collection[ProcessPage] = ()) -> ClusterSample:
    """Return the measurements of all applications that run, of the master and of the workers.

    A process that does not answer is left out: a page of metrics with a gap is better than none.
    """
    return ClusterSample(
        applications=tuple(_applications(client, {(p.app_id, p.executor_id) for p in beside})),
        processes=tuple(_processes(client, {p.worker_id for p in beside if p.executor_id is None})),
    )


def process_pages(client: ClusterClient) -> Iterator[ProcessPage]:
    with suppress(GearpyError):
        for worker in client.ask(ListWorkers()).workers:
            with suppress(GearpyError):
                if address := client.ask(
                    DescribeWorker(worker_id=worker.worker_id)
                ).process.metrics_address:
                    yield ProcessPage(address=address, worker_id=worker.worker_id)
    with suppress(GearpyError):
        for summary in client.applications():
            if summary.status == "active":
                with suppress(GearpyError):
                    for each in client.ask(DescribeApplication(app_id=summary.app_id)).executors:
                        if each.metrics_address:
                            yield ProcessPage(
                                address=each.metrics_address,
                                worker_id=each.worker_id,
                                app_id=summary.app_id,
                                app=summary.name,
                                executor_id=each.executor_id,
                            )


def _applications(
    client: ClusterClient, left_out: Collection[tuple[AppId | None, ExecutorId | None]]
) -> Iterator[tuple[str, MetricsData]]:
    with suppress(GearpyError):
        for each in client.applications():
            if each.status == "active":
                with suppress(GearpyError):  # It has just ended, or its app master is away.
                    yield each.name, _without(client.metrics(each.app_id), left_out)


def _without(
    data: MetricsData, left_out: Collection[tuple[AppId | None, ExecutorId | None]]
) -> MetricsData:
    return replace(
        data,
        tasks=tuple(t for t in data.tasks if (data.app_id, t.executor_id) not in left_out),
        executors=tuple(e for e in data.executors if (data.app_id, e.executor_id) not in left_out),
    )


def _processes(
    client: ClusterClient, left_out: Collection[WorkerId]
) -> Iterator[ProcessMetricsData]:
    with suppress(GearpyError):
        yield client.ask(GetProcessMetrics())
        for each in client.ask(ListWorkers()).workers:
            if each.worker_id not in left_out:
                with suppress(GearpyError):
                    yield client.ask(GetProcessMetrics(worker_id=each.worker_id))
