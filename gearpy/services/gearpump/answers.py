"""Makes the answers of Gearpump's routes of what a cluster tells. Pure: the time is given."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from gearpy.core.flow.partition import Partitioner
from gearpy.ids import MASTER_EXECUTOR, MAX_MS, MIN_MS
from gearpy.messages.client import ProcessDetail, WorkerDetail
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationSummary,
    ExecutorSummary,
    ProcessorSummary,
    WorkerSummary,
)
from gearpy.services.gearpump.shapes import (
    AppMasterData,
    DagShape,
    ExecutorBrief,
    ExecutorSlots,
    ExecutorSummaryShape,
    HistoryMetricsConfig,
    HostPort,
    LastFailure,
    LifeTime,
    MasterData,
    MasterDescription,
    ProcessorShape,
    StallingTasks,
    StreamAppMasterSummary,
    TaskCount,
    TaskIdShape,
    WorkerSummaryShape,
)
from gearpy.transport.api import split_address

#: For how long measurements are kept: see `metrics.history`.
HISTORY: Final = HistoryMetricsConfig(
    retain_history_data_hours=72,
    retain_history_data_interval_ms=3_600_000,
    retain_recent_data_seconds=300,
    retain_recent_data_interval_ms=15_000,
)
_NO_RESOURCE_MANAGER: Final = ""


def partitioner_names(kinds: Sequence[type[Partitioner]]) -> list[str]:
    return [f"{each.__module__}.{each.__name__}" for each in kinds]


def master_data(master: ProcessDetail, now_ms: int) -> MasterData:
    host, port = split_address(master.address)
    here = HostPort(host=host, port=port)
    return MasterData(
        master_description=MasterDescription(
            leader=here,
            cluster=[here],
            alive_for=max(0, now_ms - master.started_ms),
            log_file=master.log_folder,
            jar_store=f"{master.folder}/artifacts" if master.folder else "",
            master_status="synced",
            home_directory=master.folder,
            activities=[],
            jvm_name=f"{master.pid}@{master.host}",
            history_metrics_config=HISTORY,
        )
    )


def worker_data(summary: WorkerSummary, detail: WorkerDetail, now_ms: int) -> WorkerSummaryShape:
    return WorkerSummaryShape(
        worker_id=str(summary.worker_id),
        state="active",
        actor_path=worker_path(summary),
        alive_for=max(0, now_ms - detail.process.started_ms),
        log_file=detail.process.log_folder,
        executors=[
            ExecutorSlots(app_id=each.app_id, executor_id=each.executor_id, slots=each.slots)
            for each in detail.executors
        ],
        total_slots=summary.slots,
        available_slots=summary.free_slots,
        home_directory=detail.process.folder,
        jvm_name=f"{detail.process.pid}@{detail.process.host}",
        resource_manager_container_id=_NO_RESOURCE_MANAGER,
        history_metrics_config=HISTORY,
    )


def worker_path(worker: WorkerSummary) -> str:
    return f"{worker.address}/worker{worker.worker_id}"


def app_master_data(summary: ApplicationSummary, workers: Sequence[WorkerSummary]) -> AppMasterData:
    on = [each for each in workers if each.worker_id == summary.worker_id]
    return AppMasterData(
        status=summary.status,
        app_id=summary.app_id,
        app_name=summary.name,
        app_master_path=summary.app_master,
        worker_path=worker_path(on[0]) if on else "",
        submission_time=summary.submitted_ms,
        start_time=summary.started_ms,
        finish_time=summary.finished_ms or None,
        user=summary.user,
    )


def app_master_summary(
    summary: ApplicationSummary,
    detail: ApplicationDetail,
    plan: dict[str, Any],
    master: ProcessDetail,
    now_ms: int,
) -> StreamAppMasterSummary:
    """Answer ``appmaster/ID?detail=true``."""
    clocks = [each.clock_ms for each in detail.processors if each.clock_ms is not None]
    kinds = {each["number"]: each["kind"] for each in plan["processors"]}
    own = ExecutorBrief(
        executor_id=MASTER_EXECUTOR,
        executor=summary.app_master,
        worker_id=_worker_text(summary.worker_id),
        status="active",
    )
    return StreamAppMasterSummary(
        app_id=summary.app_id,
        app_name=summary.name,
        actor_path=summary.app_master,
        clock=min(clocks, default=None),
        start_time=summary.started_ms,
        uptime=max(0, now_ms - summary.started_ms) if summary.started_ms else 0,
        user=summary.user,
        home_directory=master.folder,
        log_file=master.log_folder,
        dag=DagShape(
            vertex_list=[each.processor_id for each in detail.processors],
            edge_list=[(each.source, each.partitioner, each.target) for each in detail.edges],
        ),
        executors=[
            *(
                ExecutorBrief(
                    executor_id=each.executor_id,
                    executor=_executor_path(each),
                    worker_id=str(each.worker_id),
                    status=_status(each),
                )
                for each in detail.executors
            ),
            own,
        ],
        processors=[
            (each.processor_id, _processor(each, detail, kinds[each.processor_id]))
            for each in detail.processors
        ],
        processor_levels=[(each["number"], each["level"]) for each in plan["processors"]],
        history_metrics_config=HISTORY,
    )


def executor_data(
    app: ApplicationSummary, executor: ExecutorSummary | None, host: str, log_file: str
) -> ExecutorSummaryShape:
    """Answer ``appmaster/ID/executor/EID``; without an executor it is the app master itself."""
    if executor is None:
        return ExecutorSummaryShape(
            id=MASTER_EXECUTOR,
            worker_id=_worker_text(app.worker_id),
            actor_path=app.app_master,
            log_file=log_file,
            status="active",
            task_count=0,
            tasks=[],
            jvm_name=host,
        )
    tasks = defaultdict[int, list[TaskIdShape]](list)
    for each in executor.tasks:
        task = _task(each)
        tasks[task.processor_id].append(task)
    return ExecutorSummaryShape(
        id=executor.executor_id,
        worker_id=str(executor.worker_id),
        actor_path=_executor_path(executor),
        log_file=log_file,
        status=_status(executor),
        task_count=len(executor.tasks),
        tasks=sorted(tasks.items()),
        jvm_name=f"{executor.pid}@{host}",
    )


def stalling_tasks(summary: ApplicationSummary, detail: ApplicationDetail) -> StallingTasks:
    """Answer ``stallingtasks``: who holds the clock, if it has stood still for too long."""
    tasks = [each.task for each in detail.long_turns]
    if summary.progress.stall and detail.why:
        tasks.append(detail.why[-1].task)
    return StallingTasks(tasks=[_task(each) for each in dict.fromkeys(tasks)])


def last_failure(summary: ApplicationSummary, detail: ApplicationDetail | None) -> LastFailure:
    if summary.cause is not None and summary.status == "failed":
        return LastFailure(time=summary.finished_ms, error=summary.cause.cause)
    if detail is None or not detail.failures:
        return LastFailure(time=0, error=None)
    newest = detail.failures[-1]
    return LastFailure(time=newest.at_ms, error=f"{newest.what}: {newest.error.cause}")


def _processor(processor: ProcessorSummary, detail: ApplicationDetail, kind: str) -> ProcessorShape:
    prefix = f"{processor.processor_id}."
    counts = Counter[int]()
    for each in detail.executors:
        if own := sum(task.startswith(prefix) for task in each.tasks):
            counts[each.executor_id] = own
    birth_ms = processor.birth_ms
    return ProcessorShape(
        id=processor.processor_id,
        task_class=kind,
        parallelism=processor.parallelism,
        description=", ".join(processor.steps) or processor.name,
        task_conf={},
        life=LifeTime(birth=MIN_MS if birth_ms is None else birth_ms, death=MAX_MS),
        executors=sorted(counts),
        task_count=[(each, TaskCount(count=counts[each])) for each in sorted(counts)],
    )


def _executor_path(executor: ExecutorSummary) -> str:
    return f"{executor.data_address}/executor{executor.executor_id}"


def _status(executor: ExecutorSummary) -> str:
    return "active" if executor.status == "running" else executor.status


def _task(text: str) -> TaskIdShape:
    processor, _, index = text.partition(".")
    return TaskIdShape(processor_id=int(processor), index=int(index))


def _worker_text(worker_id: int | None) -> str:
    return "" if worker_id is None else str(worker_id)
