"""Routes of the master, of workers, of partitioners, and of the supervisor that is not there."""

from contextlib import suppress
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Depends, Path

from gearpy.clocks import wall_ms
from gearpy.config.load import from_overrides
from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    CoLocationPartitioner,
    HashPartitioner,
    ShuffleGroupingPartitioner,
    ShufflePartitioner,
)
from gearpy.errors import SubmitRefused
from gearpy.ids import WorkerId
from gearpy.messages.client import DescribeWorker, GetMaster, ListWorkers
from gearpy.services.deps import ID_MAX, Action, Client
from gearpy.services.gearpump.answers import (
    app_master_data,
    master_data,
    partitioner_names,
    worker_data,
)
from gearpy.services.gearpump.configuration import config_tables
from gearpy.services.gearpump.shapes import (
    AppMastersData,
    BuiltinPartitioners,
    MasterData,
    SupervisorPath,
    SupervisorStatus,
    WorkerSummaryShape,
)
from gearpy.services.problems import ProblemRaised
from gearpy.transport.security.tokens import TokenScope

router: Final = APIRouter(tags=["cluster"])

#: What a graph of JSON may name; Gearpump has the same five.
PARTITIONERS: Final = (
    BroadcastPartitioner,
    CoLocationPartitioner,
    HashPartitioner,
    ShuffleGroupingPartitioner,
    ShufflePartitioner,
)
_NO_SUPERVISOR: Final = "there is no supervisor that could add workers"
_ByAdmin: TypeAlias = Annotated[object, Depends(Action("worker", TokenScope.ADMIN))]
_Drains: TypeAlias = Annotated[object, Depends(Action("worker drain", TokenScope.ADMIN))]
WorkerIdInPath: TypeAlias = Annotated[WorkerId, Path(ge=0, le=ID_MAX)]


@router.get("/master")
def get_master(client: Client) -> MasterData:
    """Return the master: its address, how long it lives, its folders."""
    return master_data(client.ask(GetMaster()), wall_ms())


@router.get("/master/applist", response_model_exclude_none=True)
def list_applications(client: Client) -> AppMastersData:
    """Return all applications in brief, oldest first."""
    workers = client.ask(ListWorkers()).workers
    return AppMastersData(
        app_masters=[app_master_data(each, workers) for each in client.applications()]
    )


@router.get("/master/workerlist")
def list_workers(client: Client) -> list[WorkerSummaryShape]:
    """Return all workers with their slots and what runs on them."""
    found = []
    for each in client.ask(ListWorkers()).workers:
        with suppress(SubmitRefused):  # It may have gone meanwhile.
            detail = client.ask(DescribeWorker(worker_id=each.worker_id))
            found.append(worker_data(each, detail, wall_ms()))
    return found


@router.get("/master/config")
def get_master_config(client: Client) -> dict[str, Any]:
    """Return the configuration of the master."""
    return config_tables(from_overrides(client.ask(GetMaster()).config))


@router.get("/master/partitioners")
def list_partitioners() -> BuiltinPartitioners:
    """Return the partitioners that a graph of JSON may name."""
    return BuiltinPartitioners(partitioners=partitioner_names(PARTITIONERS))


@router.get("/worker/{worker_id}")
def get_worker(client: Client, worker_id: WorkerIdInPath) -> WorkerSummaryShape:
    """Return one worker."""
    detail = client.ask(DescribeWorker(worker_id=worker_id))
    for each in client.ask(ListWorkers()).workers:
        if each.worker_id == worker_id:
            return worker_data(each, detail, wall_ms())
    raise ProblemRaised(404, f"no worker has id {worker_id}: it has just gone")


@router.get("/worker/{worker_id}/config")
def get_worker_config(client: Client, worker_id: WorkerIdInPath) -> dict[str, Any]:
    """Return the configuration of a worker."""
    return config_tables(
        from_overrides(client.ask(DescribeWorker(worker_id=worker_id)).process.config)
    )


@router.get("/supervisor")
def get_supervisor() -> SupervisorPath:
    """Return no path: workers are started by hand, as in Gearpump without YARN."""
    return SupervisorPath(path=None)


@router.post("/supervisor/status")
def get_supervisor_status(_: _ByAdmin) -> SupervisorStatus:
    """Return that there is no supervisor."""
    return SupervisorStatus(enabled=False)


@router.post("/supervisor/addworker/{count}")
def add_workers(_: _ByAdmin, count: Annotated[int, Path(ge=1, le=1000)]) -> SupervisorStatus:
    """Refuse: there is no supervisor that could start workers."""
    raise ProblemRaised(409, _NO_SUPERVISOR, f"start {count} more yourself: gear worker")


@router.post("/supervisor/removeworker/{worker_id}")
def remove_worker(client: Client, _: _Drains, worker_id: WorkerIdInPath) -> SupervisorStatus:
    """Have a worker take nothing new, stop what runs there, which goes on elsewhere, and end."""
    client.drain_worker(worker_id)
    return SupervisorStatus(enabled=True)
