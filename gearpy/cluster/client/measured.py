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
    """A page of metrics that one process of a cluster has: of a worker, or of an executor."""

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
    executors = {(p.app_id, p.executor_id) for p in beside}
    workers = {p.worker_id for p in beside if p.executor_id is None}
    applications, processes = list[tuple[str, MetricsData]](), list[ProcessMetricsData]()
    with suppress(GearpyError):
        for each in client.applications():
            if each.status == "active":
                with suppress(GearpyError):  # It has just ended, or its app master is away.
                    data = client.metrics(each.app_id)
                    tasks = (t for t in data.tasks if (data.app_id, t.executor_id) not in executors)
                    own = (
                        e for e in data.executors if (data.app_id, e.executor_id) not in executors
                    )
                    data = replace(data, tasks=tuple(tasks), executors=tuple(own))
                    applications.append((each.name, data))
    with suppress(GearpyError):
        processes.append(client.ask(GetProcessMetrics()))
        for worker in client.ask(ListWorkers()).workers:
            if worker.worker_id not in workers:
                with suppress(GearpyError):
                    processes.append(client.ask(GetProcessMetrics(worker_id=worker.worker_id)))
    return ClusterSample(applications=tuple(applications), processes=tuple(processes))


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
