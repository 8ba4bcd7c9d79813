"""The answers of a master to questions that change nothing."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, assert_never, get_args

import msgspec
from msgspec.structs import replace

from gearpy.cluster.master.last_answers import LastAnswers
from gearpy.cluster.master.programs import NeededPrograms
from gearpy.core.master.app_masters import AppMasters
from gearpy.core.master.registry import TERMINAL
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.state import MasterState
from gearpy.distribution import program
from gearpy.ids import ActorPath, AppId, WorkerId, address_of
from gearpy.messages.client import (
    ApplicationList,
    ClusterSummary,
    GetAddresses,
    GetApplication,
    GetCluster,
    GetDemand,
    GetSubmission,
    ListApplications,
    ListQuarantined,
    ListWorkers,
    QuarantinedList,
    Refused,
    RoleAddresses,
    SlotDemand,
    Submission,
    WorkerAddress,
    WorkerList,
)
from gearpy.messages.cluster import GetLastAnswer
from gearpy.messages.metrics import GetHistory, GetProcessMetrics, GetWorkerAddress
from gearpy.messages.summaries import ApplicationStatus, ApplicationSummary, WorkerSummary
from gearpy.metrics.history import ProcessHistory

_IDS_SHOWN_MAX: Final = 20
_TEXT_CHARS_MAX: Final = 300
#: Of a list; a control message has 1 MiB.
_LIST_BYTES_MAX: Final = 900_000
#: All of them are told, also with none: a series that begins with a failure shows no change.
_STATUSES: Final[tuple[ApplicationStatus, ...]] = get_args(ApplicationStatus)

MasterLookup: TypeAlias = (
    GetCluster
    | ListApplications
    | GetApplication
    | ListWorkers
    | GetDemand
    | ListQuarantined
    | GetAddresses
    | GetWorkerAddress
    | GetSubmission
    | GetLastAnswer
    | NeededPrograms
)


class MasterQueries:
    """Answers questions from the state of a `MasterActor`. Runs on: the master's turns."""

    def __init__(
        self,
        state: MasterState,
        app_masters: AppMasters,
        scheduler: SlotScheduler,
        workers: Mapping[WorkerId, ActorPath],
        *,
        aside_until_ms: Mapping[WorkerId, int],
        versions: Mapping[WorkerId, str],
        process: ProcessHistory,
        last_answers: LastAnswers,
        wall_ms: Callable[[], int],
    ) -> None:
        self._state = state
        self._app_masters = app_masters
        self._scheduler = scheduler
        self._workers, self._aside_until_ms = workers, aside_until_ms
        self._versions = versions
        self._process = process
        self._last_answers = last_answers
        self._wall_ms = wall_ms
        self._grows = False  # Somebody starts workers as slots are missing.

    def answer(self, message: MasterLookup) -> object:  # noqa: C901, PLR0911 - an arm each
        match message:
            case GetCluster():
                return ClusterSummary(cluster_id=self._state.cluster_id)
            case ListApplications():
                return self._list(message.first)
            case GetApplication():
                known = self._state.get(message.app_id)
                return self._told(known) if known else self.unknown(message.app_id)
            case ListWorkers():
                return self._worker_list()
            case GetDemand():
                self._grows = True
                return SlotDemand(slots=self._scheduler.missing(message.worker_slots))
            case ListQuarantined():
                app_id = message.app_id
                if self._state.get(app_id) is None:
                    return self.unknown(app_id)
                return QuarantinedList(app_id=app_id, records=self._state.quarantined(app_id))
            case GetWorkerAddress(worker_id=worker_id):
                if (path := self._workers.get(worker_id)) is not None:
                    return WorkerAddress(worker_id=worker_id, worker=path)
                there = ", ".join(map(str, sorted(self._workers))) or "none"
                return Refused(reason=f"no worker has id {worker_id}; there are: {there}")
            case GetAddresses():
                app_id = message.app_id
                request = self._state.request_of(app_id)
                if request is None:
                    return self.unknown(app_id)
                return RoleAddresses(
                    app_id=app_id,
                    app_master=self._app_masters.path(app_id),
                    workers=tuple(
                        WorkerAddress(worker_id=worker_id, worker=path)
                        for worker_id, path in sorted(self._workers.items())
                    ),
                    artifact=request.artifact,
                )
            case GetLastAnswer():
                return self._last_answers.answer(message)
            case GetSubmission():
                app_id = message.app_id
                request = self._state.request_of(app_id)
                if request is None:
                    return self.unknown(app_id)
                return Submission(
                    app_id=app_id,
                    filename=request.artifact.filename or request.artifact.location,
                    args=request.artifact.args,
                    executors=request.executors,
                    config=request.config,
                    artifact=request.artifact,
                    restarts_with=self._state.program_again(app_id),
                )
            case NeededPrograms():
                return self._state.needed_programs(ended_after_ms=message.ended_after_ms)
            case _:
                assert_never(message)

    def measured(self, message: GetProcessMetrics | GetHistory) -> object:
        if isinstance(message, GetHistory):
            return self._process.answer(message, self._wall_ms())
        workers = self._scheduler.workers().values()
        statuses = Counter(each.status for each in self._state.summaries())
        gauges = {  # `metrics.catalogue` has the names.
            "gearpy_workers": float(len(workers)),
            "gearpy_slots": float(sum(each.total for each in workers)),
            "gearpy_free_slots": float(sum(each.free for each in workers)),
            **{f"gearpy_applications.{each}": float(statuses[each]) for each in _STATUSES},
        }
        return self._process.latest(self._wall_ms(), gauges)

    def unknown(self, app_id: AppId) -> Refused:
        ids = [str(each.app_id) for each in self._state.summaries()]
        shown = ", ".join(ids[-_IDS_SHOWN_MAX:]) or "none"
        which = "ids known" if len(ids) <= _IDS_SHOWN_MAX else "newest ids known"
        return Refused(reason=f"no application has id {app_id}; {which}: {shown}")

    def _list(self, first: int) -> ApplicationList:
        listed, size = list[ApplicationSummary](), 0
        for each in self._state.summaries_from(first):
            summary = self._told(each)
            stall, cause = summary.progress.stall, summary.cause
            if len(stall) > _TEXT_CHARS_MAX:
                progress = replace(summary.progress, stall=stall[:_TEXT_CHARS_MAX])
                summary = replace(summary, progress=progress)
            if cause is not None:
                brief = replace(
                    cause,
                    cause=cause.cause[:_TEXT_CHARS_MAX],
                    source_line=cause.source_line[:_TEXT_CHARS_MAX],
                    record=cause.record[:_TEXT_CHARS_MAX],
                    traceback="",
                )
                summary = replace(summary, cause=brief)
            size += len(msgspec.msgpack.encode(summary))
            if size > _LIST_BYTES_MAX and listed:
                return ApplicationList(applications=tuple(listed), more_from=each.app_id)
            listed.append(summary)
        return ApplicationList(applications=tuple(listed))

    def _told(self, summary: ApplicationSummary) -> ApplicationSummary:
        launch, path = self._state.newest_launch(summary.app_id), None
        if summary.status not in TERMINAL:
            path = self._app_masters.path(summary.app_id)
        summary = replace(
            summary,
            app_master=str(path) if path else "",
            worker_id=launch.worker_id if launch else None,
        )
        waits_for = None
        if summary.status not in TERMINAL:
            waits_for = self._scheduler.why_waiting(summary.app_id)
        if waits_for is None:
            return summary
        if not self._workers:
            waits_for = f"there is no worker: start one with {program('worker')}"
        progress = replace(summary.progress, stall=f"waits for slots: {waits_for}")
        return replace(summary, progress=progress)

    def _worker_list(self) -> WorkerList:
        return WorkerList(
            workers=tuple(
                WorkerSummary(
                    worker_id=worker_id,
                    slots=each.total,
                    free_slots=each.free,
                    address=address_of(self._workers[worker_id].node),
                    executors=each.executors,
                    hosts=each.place.names,
                    rack=each.place.rack,
                    is_leaving=each.is_leaving,
                    aside_until_ms=self._aside_until_ms.get(worker_id, 0),
                    version=self._versions.get(worker_id, ""),
                )
                for worker_id, each in self._scheduler.workers().items()
            ),
            grows=self._grows,
        )
