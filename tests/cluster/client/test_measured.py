"""Pages of metrics of processes, as a client finds them."""

from types import SimpleNamespace
from typing import Any, cast

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.measured import ProcessPage, process_pages
from gearpy.errors import AskTimeout
from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.client import DescribeApplication, DescribeWorker, ListWorkers


class Told:
    """A client of a cluster of three workers and three applications; one of each is silent."""

    def ask(self, question: object) -> Any:
        match question:
            case ListWorkers():
                workers = [SimpleNamespace(worker_id=WorkerId(number)) for number in range(3)]
                return SimpleNamespace(workers=workers)
            case DescribeWorker(worker_id=worker_id):
                return self._worker(worker_id)
            case DescribeApplication(app_id=app_id):
                return self._describe(app_id)

    def _worker(self, worker_id: WorkerId) -> Any:
        if worker_id == 0:
            raise AskTimeout("worker 0 does not answer")
        address = "a:9401" if worker_id == 1 else ""
        return SimpleNamespace(process=SimpleNamespace(metrics_address=address))

    def applications(self) -> list[Any]:
        statuses = {1: "active", 2: "active", 3: "succeeded"}
        return [
            SimpleNamespace(app_id=AppId(number), name=f"app {number}", status=status)
            for number, status in statuses.items()
        ]

    def _describe(self, app_id: AppId) -> Any:
        if app_id == 1:
            raise AskTimeout("application 1 does not answer")
        assert app_id == 2, "one that has ended has no executors"
        addresses = ("", "a:9500", "b:9500")
        executors = [
            SimpleNamespace(
                executor_id=ExecutorId(at), worker_id=WorkerId(at), metrics_address=each
            )
            for at, each in enumerate(addresses)
        ]
        return SimpleNamespace(executors=executors)


def test_pages_of_workers_and_executors_are_found() -> None:
    pages = list(process_pages(cast("ClusterClient", Told())))

    assert pages == [
        ProcessPage(address="a:9401", worker_id=WorkerId(1)),
        *(
            ProcessPage(
                address=address,
                worker_id=WorkerId(at),
                app_id=AppId(2),
                app="app 2",
                executor_id=ExecutorId(at),
            )
            for at, address in ((1, "a:9500"), (2, "b:9500"))
        ),
    ]
    assert [each.process for each in pages] == ["worker1", "executor1", "executor2"]
