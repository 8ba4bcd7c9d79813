"""Gateway: answers clients for the whole cluster, where the master's listener is."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from gearpy.cluster.checkpoints.remote import StoreReader
from gearpy.cluster.client.client import user_at_hand
from gearpy.core.master.registry import TERMINAL
from gearpy.core.master.rights import why_no_admin, why_not
from gearpy.errors import ActorStopped, AskTimeout, ConnectionLost
from gearpy.ids import ActorPath, AppId, WorkerId
from gearpy.messages.actor_app import AskAppMaster
from gearpy.messages.client import (
    CLIENT_MESSAGES,
    AlertList,
    ApplicationChange,
    Artifact,
    Asker,
    ChangeMasters,
    DescribeApplication,
    DescribeWorker,
    DrainApplication,
    DrainWorker,
    EpochList,
    GetAddresses,
    GetAlerts,
    GetApplication,
    GetArtifactPart,
    GetDemand,
    GetEpochs,
    GetMaster,
    GetPlan,
    GetStoredNames,
    GetStoredPart,
    GetSubmission,
    GetVersions,
    ListQuarantined,
    LogText,
    MakeSavepoint,
    PlanText,
    ProcessDetail,
    ProgramLoading,
    QuarantinedList,
    QuarantinedRecord,
    ReadLog,
    Refused,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    RoleAddresses,
    ShutdownApplication,
    SilenceAlert,
    Submission,
    SubmitApplication,
    Submitted,
    UpdateApplication,
    VersionList,
    WorkerAddress,
    WorkerDrains,
)
from gearpy.messages.cluster import GetLastAnswer, LastAnswer
from gearpy.messages.masters import GetMasters, MasterDisk, MasterList, MasterSummary
from gearpy.messages.metrics import (
    GetHistory,
    GetMetrics,
    GetProcessMetrics,
    GetSeries,
    GetWorkerAddress,
    HistoryPoints,
    MetricsData,
    SeriesData,
)
from gearpy.messages.summaries import ApplicationDetail, ApplicationSummary
from gearpy.metrics.past import history_of, series_since
from gearpy.storage.artifacts import ARTIFACT_QUESTIONS
from gearpy.storage.checkpoints import Checkpoints
from gearpy.wire.codec import decode_control, encode_control
from gearpy.wire.connection.keys import CLUSTER, Principal

#: What the master actor answers itself.
_OF_MASTER: Final = (*CLIENT_MESSAGES, GetDemand, GetSubmission, RestartApplication)
#: What an application may ask about itself.
_OF_APPLICATIONS: Final = (
    GetApplication,
    DescribeApplication,
    GetHistory,
    GetMetrics,
    GetSeries,
    ListQuarantined,
    ReadLog,
)

#: What a client gets of records, and an app master at a time: both must fit a control frame.
_RECORDS_BYTES_MAX: Final = 512 * 1024
_TEXT_CHARS_MAX: Final = 200
_NUMBERS_MAX: Final = 20  # In an error text.
_SHARE: Final = 0.8  # The rest of the client's time is for telling that it was not enough.
_ENDING_MS: Final = 5_000  # From the last answers to the end that is noted.
_NO_APP_MASTER: Final = (
    "application {} has no app master at present: it is being started, or waits for a worker"
)
_RESTART_WITHOUT: Final = (
    "application {0} cannot be started again: {1}. The program of an application that has ended is "
    "kept for artifact.keep-ended hours; with the program, this goes on from its newest epoch: "
    "gear app submit --from-checkpoint {0} PROGRAM"
)
_LOG_TIMEOUT_S: Final = 2.0  # One worker that hangs must not hide the others.


#: What an app master leaves behind, by the question that it answers.
_LEFT_BEHIND: Final[Mapping[type, type]] = {
    DescribeApplication: ApplicationDetail,
    GetEpochs: EpochList,
    GetPlan: PlanText,
    GetVersions: VersionList,
    GetMetrics: MetricsData,
    GetSeries: SeriesData,
    GetHistory: HistoryPoints,
}


#: Changes by the commands of ``gear``, for the audit log.
_ACTIONS: Final[Mapping[type, str]] = {
    ShutdownApplication: "app kill",
    DrainApplication: "app drain",
    MakeSavepoint: "app savepoint",
    RestartApplication: "app restart",
    ReplayNow: "app replay",
    ReplayQuarantined: "quarantine replay",
    SilenceAlert: "alert silence",
}


class AsksActors(Protocol):
    """Asks actors by path: `cluster.net.post.Post`."""

    def ask(self, path: ActorPath, message: Any, timeout_s: float, /) -> Any: ...


class AnswersArtifacts(Protocol):
    """Keeps artifacts, and answers questions about them."""

    @property
    def why_not(self) -> Callable[[Artifact], str]: ...

    def answer(self, message: Any, /) -> object: ...


class Gateway:
    """Passes questions of clients to the master, an app master, workers or the artifacts.

    Args:
        admins: users who may change the applications of others, beside the one who runs this.
        note_action: notes a change that was asked for: user, command, target, address, outcome.
        checkpoints: the store of a cluster in this process; others are opened where they are.
        timeout_s: how long clients wait; who is asked for them has most of that time.

    Runs on: any thread, several at once; blocks until there is an answer.
    """

    def __init__(
        self,
        ask_master: Callable[[Any], Any],
        post: AsksActors,
        *,
        artifacts: AnswersArtifacts | None = None,
        read_log: Callable[[ReadLog], LogText | Refused] | None = None,
        about: ProcessDetail | None = None,
        disk: Callable[[], MasterDisk] | None = None,
        admins: Iterable[str] = (),
        alerts: Callable[[GetAlerts | SilenceAlert], AlertList | Refused] = (
            lambda _: AlertList(alerts=())
        ),
        note_action: Callable[[str, str, str, str, str], None] = lambda *_: None,
        checkpoints: Checkpoints | None = None,
        timeout_s: float = 12.5,
    ) -> None:
        timeout_s *= _SHARE
        self.ask_master = ask_master  #: See above.
        self._post = post
        self._artifacts = artifacts
        self._about, self._disk = about, disk
        self._admins = {*admins, user_at_hand()} - {""}
        self._alerts, self._note_action = alerts, note_action
        self._logs = _Logs(post, read_log, timeout_s)
        self._stored = StoreReader(self._answer, checkpoints)
        self._timeout_s = timeout_s
        self._replaying = threading.Lock()

    @staticmethod
    def allows(principal: Principal, message: object) -> bool:
        """Tell whether a principal may ask this; an application may ask about itself only."""
        if principal == CLUSTER:
            return True
        if isinstance(message, _OF_APPLICATIONS):
            return message.app_id == principal.application
        return isinstance(message, GetArtifactPart)

    def answer(self, message: object, principal: Principal = CLUSTER) -> object:
        if not self.allows(principal, message):
            return Refused(reason=f"{principal} may not ask this {type(message).__name__}")
        if isinstance(message, ApplicationChange):
            answer = (
                self._forbidden(message) or self._without_program(message) or self._answer(message)
            )
            if not isinstance(answer, ProgramLoading):  # The client will ask again.
                self._note(_action_of(message), f"app_id={message.app_id}", message.by, answer)
            return answer
        if isinstance(message, SubmitApplication):
            answer = self._without_program(message) or self._answer(message)
            app_id = f" app_id={answer.app_id}" if isinstance(answer, Submitted) else ""
            self._note(
                "app submit", f"name={message.name}{app_id}", Asker(user=message.user), answer
            )
            return answer
        return self._answer(message)

    def _forbidden(self, change: ApplicationChange) -> Refused | None:
        known = self.ask_master(GetApplication(app_id=change.app_id))
        if not isinstance(known, ApplicationSummary):
            return None  # There is none of this id, as the answer will say.
        reason = why_not(change.by, known.user, self._admins)
        if not reason:
            return None
        action = _action_of(change)
        return Refused(
            reason=f"{action} of application {change.app_id}: {reason}", is_forbidden=True
        )

    def _without_program(self, message: object) -> Refused | None:
        match message:
            case SubmitApplication() | UpdateApplication():
                artifact, advice = message.artifact, "{}"
            case RestartApplication():
                known = self.ask_master(GetSubmission(app_id=message.app_id))
                if not isinstance(known, Submission):
                    return None  # There is none of this id, as the answer will say.
                artifact, advice = known.artifact, _RESTART_WITHOUT.format(message.app_id, "{}")
                if not message.from_beginning:
                    artifact = known.restarts_with or artifact
            case _:
                return None
        if artifact is None or self._artifacts is None:
            return None
        reason = self._artifacts.why_not(artifact)
        return Refused(reason=advice.format(reason)) if reason else None

    def _note(self, action: str, target: str, by: Asker, answer: object) -> None:
        refused = f"refused: {answer.reason}" if isinstance(answer, Refused) else ""
        self._note_action(by.user, action, target, by.address, refused or "done")

    def _answer(self, message: object) -> object:
        match message:
            case (
                DescribeApplication()
                | DrainApplication()
                | MakeSavepoint()
                | GetEpochs()
                | GetPlan()
                | GetVersions()
                | UpdateApplication()
                | ReplayNow()
                | GetMetrics()
                | GetSeries()
                | AskAppMaster()
            ):
                return self._ask_app_master(message.app_id, message)
            case ListQuarantined():
                return self._list_quarantined(message)
            case ReplayQuarantined():
                return self._replay_quarantined(message)
            case DrainWorker():
                return self._drain_worker(message)
            case ReadLog():
                places = self.ask_master(GetAddresses(app_id=message.app_id))
                return places if isinstance(places, Refused) else self._logs.read(message, places)
            case GetStoredNames() | GetStoredPart():
                return self._stored.answer(message)
            case GetAlerts() | SilenceAlert():
                return self._alerts(message)
            case _:
                return self._answer_other(message)

    def _answer_other(self, message: object) -> object:
        if isinstance(message, DescribeWorker):
            return self._ask_worker(message.worker_id, message)
        if isinstance(message, GetMaster | GetMasters | ChangeMasters):
            return self._of_masters(message)
        if isinstance(message, _OF_MASTER):
            return self.ask_master(message)
        if isinstance(message, GetHistory | GetProcessMetrics):
            if isinstance(message, GetHistory) and message.app_id is not None:
                return self._ask_app_master(message.app_id, message)
            if message.worker_id is None:
                return self.ask_master(message)
            return self._ask_worker(message.worker_id, message)
        if isinstance(message, ARTIFACT_QUESTIONS):
            return self._artifacts.answer(message) if self._artifacts else _NO_ARTIFACTS
        return Refused(reason=f"{type(message).__name__} is not for clients")

    def _of_masters(self, message: GetMaster | GetMasters | ChangeMasters) -> object:
        """Answer for a master without others; those of several ask each other."""
        match message:
            case GetMaster():
                return self._about or Refused(reason="this master tells nothing about itself")
            case GetMasters():
                address = self._about.address if self._about else ""
                disk = self._disk() if self._disk is not None and message.with_disks else None
                return MasterList(
                    masters=(MasterSummary(address=address, role="leader", disk=disk),)
                )
            case ChangeMasters():
                return Refused(reason="this master has no others: name several in cluster.masters")

    # -- the app master --------------------------------------------------------------------

    def _ask_app_master(self, app_id: AppId, message: object) -> object:
        addresses: RoleAddresses | Refused = self.ask_master(GetAddresses(app_id=app_id))
        if isinstance(addresses, Refused):
            return addresses
        if addresses.app_master is None:
            return self._no_app_master(app_id, message, _NO_APP_MASTER.format(app_id))
        try:
            answer: object = self._post.ask(addresses.app_master, message, self._timeout_s)
        except (ActorStopped, ConnectionLost) as error:
            why = (
                f"the app master of application {app_id} has just gone ({error}); ask again in a "
                "moment"
            )
            if _or_last(message):
                return self._no_app_master(app_id, message, why)
            return Refused(reason=why)
        except AskTimeout as error:
            name = type(message).__name__
            text = f"the app master of application {app_id} did not answer {name}: {error}"
            raise AskTimeout(text) from error
        return answer

    def _ask_worker(
        self, worker_id: WorkerId, message: object, *, gone: object | None = None
    ) -> object:
        """Ask a worker; ``gone`` is the answer of one that has ended before it could answer."""
        found = self.ask_master(GetWorkerAddress(worker_id=worker_id))
        if not isinstance(found, WorkerAddress):
            return found
        try:
            return self._post.ask(found.worker, message, self._timeout_s)
        except (ActorStopped, ConnectionLost) as error:
            if gone is not None and isinstance(error, ActorStopped):
                return gone
            return Refused(reason=f"worker {worker_id} cannot be reached: {error}")

    def _drain_worker(self, message: DrainWorker) -> object:
        if message.worker_id is None:
            return Refused(reason="which worker is to end: worker_id is missing")
        answer: object
        if reason := why_no_admin(message.by, self._admins):
            answer = Refused(reason=f"worker drain: {reason}", is_forbidden=True)
        else:
            answer = self._ask_worker(message.worker_id, message, gone=WorkerDrains(executors=0))
        self._note("worker drain", f"worker_id={message.worker_id}", message.by, answer)
        return answer

    def _no_app_master(self, app_id: AppId, message: object, why: str) -> object:
        """Answer with what was left behind, if that is wanted; else tell why there is nothing."""
        known = self.ask_master(GetApplication(app_id=app_id))
        has_ended = isinstance(known, ApplicationSummary) and known.status in TERMINAL
        if (kind := _LEFT_BEHIND.get(type(message))) and (has_ended or _or_last(message)):
            part = message.part if isinstance(message, GetMetrics | GetSeries | GetHistory) else ""
            asked = GetLastAnswer(app_id=app_id, kind=kind.__name__, part=part)
            left = self.ask_master(asked)
            if isinstance(left, LastAnswer):
                return _answer_of(left, message, _known_ms(left, known))
            return left if has_ended else Refused(reason=why)
        if has_ended and isinstance(message, DrainApplication):
            return Refused(reason=f"application {app_id} is {known.outcome} already")
        if has_ended:
            return Refused(reason=f"application {app_id} is {known.status}: it must run for that")
        return Refused(reason=why)

    # -- quarantine ------------------------------------------------------------------------

    def _list_quarantined(self, message: ListQuarantined) -> object:
        listed = self._quarantined(message.app_id, message.numbers)
        if isinstance(listed, Refused):
            return listed
        shown = listed if message.numbers else tuple(map(_brief, listed))
        return _fitting(message.app_id, shown)

    def _replay_quarantined(self, message: ReplayQuarantined) -> object:
        if not self._replaying.acquire(blocking=False):
            return Refused(reason="records are being replayed for another client; ask again later")
        try:
            listed = self._quarantined(message.app_id, message.numbers)
            if isinstance(listed, Refused):
                return listed
            if not listed:
                return Refused(reason=f"application {message.app_id} has no record in quarantine")
            whole = [each for each in listed if each.value]
            lost = [each.number for each in listed if not each.value]
            if lost and (message.numbers or not whole):
                return Refused(
                    reason=f"{_listed(lost)} cannot be given back: so large a record is kept as "
                    "text alone; read it once more at its source"
                )
            return self._replay(message.app_id, whole)
        finally:
            self._replaying.release()

    def _replay(self, app_id: AppId, records: Sequence[QuarantinedRecord]) -> object:
        """Give records to the app master in parts; a crash may give some twice, and loses none."""
        given: list[QuarantinedRecord] = []
        for part in _parts(
            [replace(each, error=replace(each.error, traceback="")) for each in records]
        ):
            numbers = tuple(each.number for each in part)
            message = ReplayQuarantined(app_id=app_id, numbers=numbers, records=part)
            answer = self._ask_app_master(app_id, message)
            if not isinstance(answer, QuarantinedList):
                if not given or not isinstance(answer, Refused):
                    return answer
                before = _listed([each.number for each in given])
                return Refused(reason=f"{answer.reason}; given back before that: {before}")
            taken = {each.number for each in answer.records}
            given += [each for each in part if each.number in taken]
        if not given:
            return Refused(
                reason=f"no task of application {app_id} takes records at present: its tasks are "
                "being restarted; ask again in a moment"
            )
        return _fitting(app_id, tuple(map(_brief, given)))

    def _quarantined(
        self, app_id: AppId, numbers: tuple[int, ...]
    ) -> tuple[QuarantinedRecord, ...] | Refused:
        listed: QuarantinedList | Refused = self.ask_master(ListQuarantined(app_id=app_id))
        if isinstance(listed, Refused):
            return listed
        known = {each.number: each for each in listed.records}
        if unknown := sorted(set(numbers) - known.keys()):
            return Refused(
                reason=f"no record {_listed(unknown)} of application {app_id} is in quarantine; "
                f"there: {_listed(sorted(known)) or 'none'}"
            )
        return tuple(known[number] for number in sorted(set(numbers) or known))


class _Logs:
    """Finds the log of an executor among the workers that may have run it."""

    def __init__(
        self,
        post: AsksActors,
        read_here: Callable[[ReadLog], LogText | Refused] | None,
        timeout_s: float,
    ) -> None:
        self._post = post
        self._read_here = read_here
        self._timeout_s = timeout_s

    def read(self, question: ReadLog, addresses: RoleAddresses) -> LogText | Refused:
        found: list[LogText] = []
        refusals: dict[str, None] = {}  # In order; workers of one machine say the same.
        for answer in self._answers(question, addresses):
            if isinstance(answer, Refused):
                refusals[answer.reason] = None
            elif question.launch:
                return answer
            else:
                found.append(answer)
        if found:
            return max(found, key=lambda text: text.launch)
        return Refused(reason="; ".join(refusals) or "there is no worker that has logs")

    def _answers(self, question: ReadLog, addresses: RoleAddresses) -> Iterator[LogText | Refused]:
        if self._read_here is not None:
            yield self._read_here(question)
        left = max(1, int(self._timeout_s / _LOG_TIMEOUT_S))  # Time-outs that can be afforded.
        for each in addresses.workers:
            try:
                yield self._post.ask(each.worker, question, _LOG_TIMEOUT_S)
            except (ActorStopped, ConnectionLost, AskTimeout) as error:
                yield Refused(reason=f"worker {each.worker_id} does not answer: {error}")
                left -= isinstance(error, AskTimeout)
            if not left:
                return


def _action_of(change: ApplicationChange) -> str:
    if not isinstance(change, UpdateApplication):
        return _ACTIONS[type(change)]
    if change.calls_off:
        action = "app call-off"
    elif change.scale or change.bounds:
        action = "app scale"
    else:
        action = "app update" if change.version is None else "app rollback"
    return f"{action} --dry-run" if change.is_trial_run else action


def _or_last(message: object) -> bool:
    return isinstance(message, DescribeApplication | GetMetrics | GetSeries) and message.or_last


def _known_ms(left: LastAnswer, known: ApplicationSummary) -> int:
    """Return when an app master that went without a word knew this; 0 if it is about the end."""
    has_ended = known.status in TERMINAL
    is_of_end = left.is_last and has_ended and known.finished_ms - left.at_ms < _ENDING_MS
    return 0 if is_of_end else left.at_ms


def _answer_of(left: LastAnswer, message: object, known_ms: int) -> object:
    answer = decode_control(left.answer)
    if isinstance(answer, ApplicationDetail):
        return replace(answer, known_ms=known_ms)
    if isinstance(answer, SeriesData) and isinstance(message, GetSeries):
        return series_since(answer, message.since_ms)
    if isinstance(answer, HistoryPoints) and isinstance(message, GetHistory):
        return history_of(answer, message)
    return answer


_NO_ARTIFACTS: Final = Refused(reason="this cluster takes no uploads: programs run from their path")


def _brief(record: QuarantinedRecord) -> QuarantinedRecord:
    error = record.error
    short = replace(
        error,
        cause=error.cause.partition("\n")[0][:_TEXT_CHARS_MAX],
        record=error.record[:_TEXT_CHARS_MAX],
        source_line=error.source_line[:_TEXT_CHARS_MAX],
        traceback="",
    )
    return replace(record, value=b"", error=short)


def _fitting(app_id: AppId, records: tuple[QuarantinedRecord, ...]) -> QuarantinedList:
    fitting = next(_parts(records), ())
    if len(fitting) == 1 and len(encode_control(fitting[0])) > _RECORDS_BYTES_MAX:
        fitting = (_brief(fitting[0]),)
    total = len(records) if len(fitting) < len(records) else 0
    return QuarantinedList(app_id=app_id, records=fitting, total=total)


def _parts(records: Sequence[QuarantinedRecord]) -> Iterator[tuple[QuarantinedRecord, ...]]:
    """Split records into parts of a bounded size; one above the bound is a part of its own."""
    part: list[QuarantinedRecord] = []
    size = 0
    for record in records:
        more = len(encode_control(record))
        if part and size + more > _RECORDS_BYTES_MAX:
            yield tuple(part)
            part, size = [], 0
        part.append(record)
        size += more
    if part:
        yield tuple(part)


def _listed(numbers: Sequence[int]) -> str:
    more = ", ..." if len(numbers) > _NUMBERS_MAX else ""
    return ", ".join(map(str, numbers[:_NUMBERS_MAX])) + more
