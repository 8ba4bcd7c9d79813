"""Routes of applications as Gearpump describes them; and to kill, restart and drain them."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Body, Depends, Query

from gearpy.clocks import wall_ms
from gearpy.cluster.app.config import application_config
from gearpy.cluster.checkpoints.reading import plain
from gearpy.cluster.states.columns import ShownClasses
from gearpy.config.load import from_overrides
from gearpy.errors import SubmitRefused
from gearpy.ids import MASTER_EXECUTOR, WorkerId
from gearpy.messages.client import (
    DescribeApplication,
    DescribeWorker,
    GetApplication,
    GetMaster,
    GetPlan,
    GetSubmission,
    ListWorkers,
)
from gearpy.messages.summaries import ApplicationDetail, ExecutorSummary
from gearpy.services.deps import Action, AppIdInPath, Client, ExecutorIdInPath
from gearpy.services.gearpump.answers import (
    app_master_data,
    app_master_summary,
    executor_data,
    last_failure,
    stalling_tasks,
)
from gearpy.services.gearpump.configuration import config_tables
from gearpy.services.gearpump.shapes import (
    AppMasterData,
    ExecutorSummaryShape,
    KillStatus,
    LastFailure,
    RestartStatus,
    StallingTasks,
    StreamAppMasterSummary,
)
from gearpy.services.problems import ProblemRaised
from gearpy.transport.security.tokens import TokenScope
from gearpy.wire.values.records import NO_CLASSES

router: Final = APIRouter(prefix="/appmaster/{app_id}", tags=["applications"])

_NAME_CHARS_MAX: Final = 63
_ANSWER_S: Final = 10.0  # A browser gives up after 15.
_ANSWER_MAX_S: Final = 60.0
_Kills: TypeAlias = Annotated[object, Depends(Action("app kill", TokenScope.SUBMIT))]
_Restarts: TypeAlias = Annotated[object, Depends(Action("app restart", TokenScope.SUBMIT))]
_Drains: TypeAlias = Annotated[object, Depends(Action("app drain", TokenScope.SUBMIT))]
_Asks: TypeAlias = Annotated[object, Depends(Action("app ask", TokenScope.SUBMIT))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppAnswer:
    """The answer of an application of actors to a question."""

    app_id: int
    answer: Any


@router.get("", response_model_exclude_none=True)
def get_application(
    client: Client,
    app_id: AppIdInPath,
    *,
    detail: Annotated[bool, Query(description="All that the app master knows.")] = False,
) -> AppMasterData | StreamAppMasterSummary:
    """Return an application, in brief or in full."""
    summary = client.ask(GetApplication(app_id=app_id))
    if not detail:
        return app_master_data(summary, client.ask(ListWorkers()).workers)
    plan: dict[str, Any] = json.loads(client.ask(GetPlan(app_id=app_id)).text)
    return app_master_summary(
        summary,
        client.ask(DescribeApplication(app_id=app_id)),
        plan,
        client.ask(GetMaster()),
        wall_ms(),
    )


@router.delete("")
def kill_application(client: Client, app_id: AppIdInPath, _: _Kills) -> KillStatus:
    """Stop an application; it becomes terminated."""
    client.shutdown(app_id)
    return KillStatus(status="success", info=None)


@router.post("/restart")
def restart_application(
    client: Client,
    app_id: AppIdInPath,
    _: _Restarts,
    *,
    from_beginning: Annotated[bool, Query(description="Not from its newest epoch.")] = False,
) -> RestartStatus:
    """Stop an application if it runs, and start it again under a new number."""
    running = client.restart(app_id, from_beginning=from_beginning)
    return RestartStatus(success=True, reason=None, app_id=running.app_id)


@router.post("/drain")
def drain_application(
    client: Client,
    app_id: AppIdInPath,
    _: _Drains,
    *,
    savepoint: Annotated[
        str, Query(max_length=_NAME_CHARS_MAX, description="The name that its last epoch gets.")
    ] = "",
) -> KillStatus:
    """Stop the sources; the application ends when all that they have read is committed."""
    client.drain(app_id, savepoint=savepoint)
    return KillStatus(status="success", info=None)


@router.post("/ask")
def ask_application(
    client: Client,
    app_id: AppIdInPath,
    _: _Asks,
    question: Annotated[Any, Body(embed=True, description="Any JSON.")],
    *,
    timeout_s: Annotated[float, Query(ge=0.1, le=_ANSWER_MAX_S)] = _ANSWER_S,
) -> AppAnswer:
    """Ask the app master of an application of actors, and return its answer."""
    answer = client.ask_application(app_id, question, timeout_s, classes=ShownClasses(NO_CLASSES))
    return AppAnswer(app_id=app_id, answer=plain(answer))


@router.get("/stallingtasks")
def get_stalling_tasks(client: Client, app_id: AppIdInPath) -> StallingTasks:
    """Return the tasks that hold the clock, if it has stood still for too long."""
    return stalling_tasks(
        client.ask(GetApplication(app_id=app_id)), client.ask(DescribeApplication(app_id=app_id))
    )


@router.get("/errors")
def get_last_failure(client: Client, app_id: AppIdInPath) -> LastFailure:
    """Return the last failure, survived or not."""
    summary, detail = client.ask(GetApplication(app_id=app_id)), None
    with suppress(SubmitRefused):
        detail = client.ask(DescribeApplication(app_id=app_id))
    return last_failure(summary, detail)


@router.get("/config")
def get_application_config(client: Client, app_id: AppIdInPath) -> dict[str, Any]:
    """Return the configuration of an application: its own keys over those of the master."""
    own = client.ask(GetSubmission(app_id=app_id)).config
    return config_tables(application_config(from_overrides(client.ask(GetMaster()).config), own))


@router.get("/executor/{executor_id}")
def get_executor(
    client: Client, app_id: AppIdInPath, executor_id: ExecutorIdInPath
) -> ExecutorSummaryShape:
    """Return an executor; -1 is the app master."""
    summary, detail = (
        client.ask(GetApplication(app_id=app_id)),
        client.ask(DescribeApplication(app_id=app_id)),
    )
    if executor_id == MASTER_EXECUTOR:
        assert summary.worker_id is not None, "an app master that answers was launched"
        worker = client.ask(DescribeWorker(worker_id=summary.worker_id)).process
        processes = {each.executor_id: each.process for each in client.metrics(app_id).executors}
        pid = processes[MASTER_EXECUTOR].pid
        return executor_data(summary, None, f"{pid}@{worker.host}", worker.log_folder)
    executor = _executor(detail, executor_id)
    worker = client.ask(DescribeWorker(worker_id=executor.worker_id)).process
    return executor_data(summary, executor, worker.host, worker.log_folder)


@router.get("/executor/{executor_id}/config")
def get_executor_config(
    client: Client, app_id: AppIdInPath, executor_id: ExecutorIdInPath
) -> dict[str, Any]:
    """Return the configuration of an executor: the application's keys over those of its worker."""
    worker_id: WorkerId | None = client.ask(GetApplication(app_id=app_id)).worker_id
    if executor_id != MASTER_EXECUTOR:
        worker_id = _executor(client.ask(DescribeApplication(app_id=app_id)), executor_id).worker_id
    if worker_id is None:
        raise ProblemRaised(409, f"application {app_id} has no app master yet")
    worker = from_overrides(client.ask(DescribeWorker(worker_id=worker_id)).process.config)
    return config_tables(
        application_config(worker, client.ask(GetSubmission(app_id=app_id)).config)
    )


def _executor(detail: ApplicationDetail, executor_id: int) -> ExecutorSummary:
    for each in detail.executors:
        if each.executor_id == executor_id:
            return each
    known = ", ".join(str(each.executor_id) for each in detail.executors) or "none"
    raise ProblemRaised(
        404, f"application {detail.app_id} has no executor {executor_id}; there are: {known}"
    )
