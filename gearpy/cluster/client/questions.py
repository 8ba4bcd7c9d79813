"""Questions about a cluster, which change nothing."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from gearpy.core.master.registry import TERMINAL
from gearpy.errors import (
    ChangeForbidden,
    ProtocolError,
    SubmitRefused,
)
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.client import (
    AlertList,
    ApplicationList,
    ClusterSummary,
    DescribeApplication,
    DescribeWorker,
    EpochList,
    FiringAlert,
    GetAlerts,
    GetApplication,
    GetCluster,
    GetDemand,
    GetEpochs,
    GetMaster,
    GetPlan,
    GetSubmission,
    GetVersions,
    ListApplications,
    ListQuarantined,
    ListWorkers,
    LogText,
    PlanText,
    ProcessDetail,
    QuarantinedList,
    ReadLog,
    Refused,
    SlotDemand,
    StoredEpoch,
    Submission,
    VersionList,
    VersionSummary,
    WorkerDetail,
    WorkerList,
)
from gearpy.messages.masters import GetMasters, MasterList
from gearpy.messages.metrics import (
    GetHistory,
    GetMetrics,
    GetProcessMetrics,
    GetSeries,
    HistoryData,
    MetricsData,
    ProcessMetricsData,
    SeriesData,
)
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationSummary,
    ClockHolderSummary,
    WorkerSummary,
)

_LOG_LINES: Final = 100
_NAMES_SHOWN_MAX: Final = 10
T = TypeVar("T")


class ClusterQuestions:
    """Asks a master, and those who the master knows.

    Args:
        ask: sends a message and returns the answer; raises `GearpyError` when there is none.
    """

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def ask(self, message: object) -> Any:
        """Send any message for clients and return its answer, a `Refused` too.

        Raises:
            GearpyError: there is no cluster, or no answer in time.
        """
        return self._ask(message)

    def cluster(self) -> ClusterSummary:
        """Return the summary of the cluster itself."""
        return self._expect(ClusterSummary, GetCluster())

    def master(self) -> ProcessDetail:
        """Return the details of the master's process."""
        return self._expect(ProcessDetail, GetMaster())

    # -- applications --------------------------------------------------------------------

    def applications(self) -> tuple[ApplicationSummary, ...]:
        """Return all applications, oldest first."""
        found = self._expect(ApplicationList, ListApplications())
        applications = found.applications
        while found.more_from:
            found = self._expect(ApplicationList, ListApplications(first=found.more_from))
            applications += found.applications
        return applications

    def application(self, app_id: AppId) -> ApplicationSummary:
        """Return one application.

        Raises:
            SubmitRefused: there is none with this id.
        """
        return self._expect(ApplicationSummary, GetApplication(app_id=app_id))

    def find(self, text: str) -> AppId:
        """Return the id that ``text`` is, or that of the application of this name.

        Of several with that name, the one that lives, or else the newest.

        Raises:
            SubmitRefused: there is none.
        """
        if text.isascii() and text.isdigit():
            return AppId(int(text))
        known = self.applications()
        named = [each for each in known if each.name == text]
        living = [each for each in named if each.status not in TERMINAL]
        if named:
            return (living or named)[-1].app_id
        raise SubmitRefused(_no_such_name(text, known))

    def describe(self, app_id: AppId, *, or_last: bool = False) -> ApplicationDetail:
        """Return the details that its app master knows: executors, processors, failures, waits.

        Args:
            app_id: of the application.
            or_last: if it has no app master at present, what was known last: `known_ms` says when.

        Raises:
            SubmitRefused: there is none with this id, or it has no app master at present.
        """
        question = DescribeApplication(app_id=app_id, or_last=or_last)
        return self._expect(ApplicationDetail, question)

    def submission(self, app_id: AppId) -> Submission:
        """Return the program of an application and its own settings, also after its end.

        Raises:
            SubmitRefused: there is none with this id.
        """
        return self._expect(Submission, GetSubmission(app_id=app_id))

    def arguments(self, app_id: AppId) -> tuple[str, ...]:
        """Return the arguments of the program that an application runs now.

        Raises:
            SubmitRefused: there is none with this id.
        """
        known = self.submission(app_id)
        running = known.restarts_with or known.artifact
        return known.args if running is None else running.args

    def epochs(self, app_id: AppId) -> tuple[StoredEpoch, ...]:
        """Return the epochs that an application could go back to, oldest first.

        Raises:
            SubmitRefused: see `describe`.
        """
        return self._expect(EpochList, GetEpochs(app_id=app_id)).epochs

    def plan(self, app_id: AppId) -> str:
        """Return the plan of an application, as ``gear plan --format json`` prints it.

        Raises:
            SubmitRefused: see `describe`.
        """
        return self._expect(PlanText, GetPlan(app_id=app_id)).text

    def why(self, app_id: AppId) -> tuple[ClockHolderSummary, ...]:
        """Return the chain of tasks, from a source to the one that holds the clock back.

        Raises:
            SubmitRefused: see `describe`.
        """
        return self.describe(app_id).why

    def versions(self, app_id: AppId) -> tuple[VersionSummary, ...]:
        """Return the versions of an application's program, the oldest first.

        Raises:
            SubmitRefused: there is none with this id, or it has no app master at present.
        """
        return self._expect(VersionList, GetVersions(app_id=app_id)).versions

    def alerts(self) -> tuple[FiringAlert, ...]:
        """Return the alerts that fire, of all applications.

        Raises:
            SubmitRefused: this master does not follow them.
        """
        return self._expect(AlertList, GetAlerts()).alerts

    def quarantined(self, app_id: AppId, numbers: Sequence[int] = ()) -> QuarantinedList:
        """Return the records in quarantine: those named whole, or all without their values.

        Raises:
            SubmitRefused: there is no such application, or no such record.
        """
        question = ListQuarantined(app_id=app_id, numbers=tuple(numbers))
        return self._expect(QuarantinedList, question)

    # -- measurements --------------------------------------------------------------------

    def metrics(self, app_id: AppId, *, or_last: bool = False) -> MetricsData:
        """Return the newest measurements of all tasks and executors, and the last events.

        Raises:
            SubmitRefused: see `describe`.
        """
        first = GetMetrics(app_id=app_id, or_last=or_last)
        data = self._expect(MetricsData, first)
        tasks, more_from = [*data.tasks], data.more_from
        while more_from:
            page = self._expect(MetricsData, replace(first, first=more_from))
            tasks += page.tasks
            more_from = page.more_from
        return replace(data, tasks=tuple(tasks), more_from=0)

    def series(self, app_id: AppId, since_ms: int = 0, *, or_last: bool = False) -> SeriesData:
        """Return the last ten minutes of an application, or the points after a wall time.

        Raises:
            SubmitRefused: see `describe`.
        """
        first = GetSeries(app_id=app_id, since_ms=since_ms, or_last=or_last)
        data = self._expect(SeriesData, first)
        processors, more_from = [*data.processors], data.more_from
        while more_from:
            page = self._expect(SeriesData, replace(first, first=more_from))
            if page.at_ms != data.at_ms:  # A point has come meanwhile.
                return self.series(app_id, since_ms, or_last=or_last)
            processors += page.processors
            more_from = page.more_from
        return replace(data, processors=tuple(processors), more_from=0)

    def history(self, question: GetHistory) -> HistoryData:
        """Return measurements by Gearpump's names: newest, of five minutes, or of three days.

        Raises:
            SubmitRefused: there is no such application or worker, or it is not there at present.
        """
        return self._expect(HistoryData, question)

    def process_metrics(self, worker_id: WorkerId | None = None) -> ProcessMetricsData:
        """Return the newest measurements of a worker; of the master if none is named.

        Raises:
            SubmitRefused: there is no such worker, or it is not there at present.
        """
        return self._expect(ProcessMetricsData, GetProcessMetrics(worker_id=worker_id))

    # -- workers and logs ----------------------------------------------------------------

    def masters(self, *, with_disks: bool = False) -> MasterList:
        """Return all masters, perhaps with the contents of their disks."""
        return self._expect(MasterList, GetMasters(with_disks=with_disks))

    def workers(self) -> tuple[WorkerSummary, ...]:
        """Return all workers."""
        return self._expect(WorkerList, ListWorkers()).workers

    def worker(self, worker_id: WorkerId) -> WorkerDetail:
        """Return the details of a worker, and the executors on it.

        Raises:
            SubmitRefused: there is none with this id, or it does not answer.
        """
        return self._expect(WorkerDetail, DescribeWorker(worker_id=worker_id))

    def demand(self, worker_slots: int) -> int:
        """Return the slots that applications wait for, and would get of more workers.

        Args:
            worker_slots: that each of those would have.
        """
        return self._expect(SlotDemand, GetDemand(worker_slots=worker_slots)).slots

    def log(
        self,
        app_id: AppId,
        executor_id: ExecutorId = MASTER_EXECUTOR,
        *,
        lines: int = _LOG_LINES,
        launch: int = 0,
        after: str = "",
    ) -> LogText:
        """Return the last lines of an executor's log, or of the app master's.

        Args:
            app_id: of the application; it may have ended.
            executor_id: whose log; that of the app master if not given.
            lines: how many.
            launch: number of the start; 0 is the newest.
            after: ``position`` of an earlier answer: return what was written since.

        Raises:
            SubmitRefused: there is no such log.
        """
        question = ReadLog(
            app_id=app_id, executor_id=executor_id, lines=lines, launch=launch, after=after
        )
        return self._expect(LogText, question)

    def _expect(self, kind: type[T], message: object) -> T:
        return self._expected(kind, message, self._ask(message))

    @staticmethod
    def _expected(kind: type[T], message: object, reply: object) -> T:
        if isinstance(reply, Refused):
            raise (ChangeForbidden if reply.is_forbidden else SubmitRefused)(reply.reason)
        if not isinstance(reply, kind):
            question, answer = type(message).__name__, type(reply).__name__
            raise ProtocolError(f"{question} was answered with {answer}: is this a master?")
        return reply


def _no_such_name(name: str, known: Sequence[ApplicationSummary]) -> str:
    there = [f"{each.name} ({each.app_id})" for each in known[-_NAMES_SHOWN_MAX:]]
    return f"no application is called {name!r}; there are: {', '.join(there) or 'none'}"
