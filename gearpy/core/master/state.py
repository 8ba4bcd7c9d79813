"""The durable state of a master: a state machine that replays a log."""

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Any, Final, assert_never

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from gearpy.core.base.versions import MASTERS
from gearpy.core.master.checkpoint_names import (
    OPENED_KEY,
    PROGRAM_KEY,
    PROGRAMS_KEY,
    RESTART,
    ResumePoint,
)
from gearpy.core.master.commands import (
    AddQuarantined,
    AddWorker,
    ChangeStatus,
    ForgetEnded,
    LaunchAppMaster,
    LoseAppMaster,
    MasterCommand,
    NameCluster,
    RemoveQuarantined,
    StoreValue,
    Submit,
)
from gearpy.core.master.registry import TERMINAL, Registry
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import Artifact, QuarantinedRecord, SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationSummary

#: Launches of one application that are remembered, for its restart budget.
LAUNCHES_MAX: Final = 1000
#: Keys that one application may store values under.
VALUES_MAX: Final = 10_000


class AppMasterLaunch(Struct, frozen=True, kw_only=True):
    """One launch of an app master. ``number`` counts those of an application, from 1.

    If its end was planned, the next launch is no restart.
    """

    number: int
    worker_id: WorkerId
    at_ms: int
    is_lost: bool = False
    is_planned: bool = False


class _Application(Struct, kw_only=True):
    """The stored part of an application, beside its summary."""

    request: SubmitApplication
    launches: list[AppMasterLaunch] = field(default_factory=list)
    values: dict[str, bytes] = field(default_factory=dict)
    quarantined: dict[int, QuarantinedRecord] = field(default_factory=dict)
    next_quarantined: int = 1
    restarts: int = 0  # Regions began again under app masters that were lost.


class _Snapshot(Struct, frozen=True, kw_only=True):
    next_app: int
    next_worker: int
    applications: list[tuple[ApplicationSummary, _Application]]
    cluster_id: str = ""


_ENVELOPE: Final = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_DECODER: Final = msgspec.msgpack.Decoder(_Snapshot)


class MasterState:
    """The cluster's id; applications with all that was stored of them; and worker ids.

    Not stored: workers, slots, and how far living applications are; they tell it again.

    Invariant: equal commands give equal states and results. The cluster keeps its first
    id; ids and numbers of all else are never used again. Values of an application end with it;
    all else of it when it is forgotten.
    """

    def __init__(self) -> None:
        self._registry = Registry()
        self._applications: dict[AppId, _Application] = {}
        self._by_key: dict[str, list[AppId]] = {}  # The key is that of a submission.
        self._next_worker = 0
        self.cluster_id = ""

    def apply(self, command: MasterCommand) -> Any:  # noqa: PLR0911 - an arm for each
        """Apply a command; its docstring tells the result.

        A command about an unknown or ended application changes nothing; its
        result is then None or false.
        """
        match command:
            case NameCluster():
                self.cluster_id = self.cluster_id or command.cluster_id
                return self.cluster_id
            case Submit():
                app_id = self._registry.submit(command.request, command.at_ms)
                self._add(app_id, _Application(request=command.request))
                return app_id
            case ChangeStatus():
                return self._change_status(command)
            case LaunchAppMaster():
                if not self.is_living(command.app_id):
                    return None
                launches = self._applications[command.app_id].launches
                number = self.next_launch(command.app_id)
                launches.append(
                    AppMasterLaunch(number=number, worker_id=command.worker_id, at_ms=command.at_ms)
                )
                del launches[:-LAUNCHES_MAX]
                return number
            case LoseAppMaster():
                newest = self.newest_launch(command.app_id)
                if newest is None or newest.number != command.launch or newest.is_lost:
                    return False
                application = self._applications[command.app_id]
                application.launches[-1] = replace(
                    newest, is_lost=True, is_planned=command.is_planned
                )
                application.restarts = max(application.restarts, command.restarts)
                self._registry.on_status(command.app_id, "pending", now_ms=command.at_ms)
                return True
            case StoreValue():
                if not self.is_living(command.app_id):
                    return False
                values = self._applications[command.app_id].values
                if command.key not in values and len(values) >= VALUES_MAX:
                    return False
                values[command.key] = command.value
                return True
            case AddQuarantined():
                return self._add_quarantined(command)
            case RemoveQuarantined():
                return self._remove_quarantined(command)
            case AddWorker():
                self._next_worker += 1
                return WorkerId(self._next_worker - 1)
            case ForgetEnded():
                return self._forget_ended(command.keep)
            case _:
                assert_never(command)

    def _change_status(self, command: ChangeStatus) -> bool:
        changed = self._registry.on_status(
            command.app_id,
            command.status,
            progress=command.progress,
            cause=command.cause,
            now_ms=command.at_ms,
        )
        if changed and command.status in TERMINAL:
            values = self._applications[command.app_id].values
            for key in values.keys() - {OPENED_KEY, PROGRAM_KEY}:  # A restart goes on from there.
                del values[key]
        return changed

    def on_progress(self, app_id: AppId, progress: ApplicationProgress) -> None:
        self._registry.on_progress(app_id, progress)

    def _add(self, app_id: AppId, application: _Application) -> None:
        self._applications[app_id] = application
        if key := application.request.key:
            self._by_key.setdefault(key, []).append(app_id)

    def _add_quarantined(self, command: AddQuarantined) -> int | None:
        if not self.is_living(command.app_id):
            return None
        application = self._applications[command.app_id]
        number = command.number or application.next_quarantined
        application.next_quarantined = max(application.next_quarantined, number + 1)
        application.quarantined[number] = QuarantinedRecord(
            number=number,
            processor_id=command.processor_id,
            value=command.value,
            event_time_ms=command.event_time_ms,
            error=command.error,
            at_ms=command.at_ms,
        )
        return number

    def _remove_quarantined(self, command: RemoveQuarantined) -> None:
        if application := self._applications.get(command.app_id):
            for number in command.numbers:
                application.quarantined.pop(number, None)

    def _forget_ended(self, keep: int) -> tuple[AppId, ...]:
        forgotten: list[AppId] = []
        for _ in range(self._registry.ended_count - keep):
            app_id = self._registry.oldest_ended()
            assert app_id is not None, "some have ended"
            self._registry.forget(app_id)
            if key := self._applications.pop(app_id).request.key:
                self._by_key[key].remove(app_id)
                if not self._by_key[key]:
                    del self._by_key[key]
            forgotten.append(app_id)
        return tuple(forgotten)

    def refusal_of(self, request: SubmitApplication, *, instead_of: AppId | None = None) -> str:
        """Return the reason to refuse an application, or an empty text."""
        text = f"{request.checkpoints}@" if request.checkpoints else request.resume_from
        refusal = self._registry.refusal_of(request, instead_of=instead_of)
        if refusal or not text:
            return refusal
        try:
            point = ResumePoint.parse(text)
        except ConfigError as error:
            return f"application {request.name!r}: {error}"
        is_ours = point.cluster_id == self.cluster_id and point.app_id != instead_of
        if is_ours and not point.savepoint and self.is_living(point.app_id):
            return (
                f"application {request.name!r} cannot begin with a checkpoint of application "
                f"{point.app_id} while that runs and replaces its checkpoints: stop it first, or "
                f"begin with a savepoint: gear app savepoint {point.app_id} NAME"
            )
        return ""

    def submitted_as(self, key: str) -> AppId | None:
        known = self._by_key.get(key)
        return known[0] if known else None

    def whole(self, app_id: AppId, reported: ApplicationProgress) -> ApplicationProgress:
        """Return the progress of an application, with the restarts under earlier app masters.

        An app master that has not read its log knows nothing; what was known before counts then.
        """
        known, summary = self._applications.get(app_id), self._registry.get(app_id)
        if known is None:
            return reported
        is_blind = replace(reported, waits_for="", stall="") == ApplicationProgress()
        if is_blind and summary is not None:
            return replace(
                summary.progress,
                restarts=max(known.restarts, summary.progress.restarts),
                waits_for=reported.waits_for,
                stall=reported.stall,
            )
        return replace(reported, restarts=known.restarts + reported.restarts)

    def get(self, app_id: AppId) -> ApplicationSummary | None:
        return self._registry.get(app_id)

    def is_living(self, app_id: AppId) -> bool:
        known = self._registry.get(app_id)
        return known is not None and known.status not in TERMINAL

    def summaries(self) -> tuple[ApplicationSummary, ...]:
        return self._registry.summaries()

    def summaries_from(self, first: int) -> Iterator[ApplicationSummary]:
        return dropwhile(lambda each: each.app_id < first, self._registry.summaries())

    @property
    def ended_count(self) -> int:
        return self._registry.ended_count

    def request_of(self, app_id: AppId) -> SubmitApplication | None:
        known = self._applications.get(app_id)
        return None if known is None else known.request

    def request_again(self, app_id: AppId, *, from_beginning: bool) -> SubmitApplication | None:
        """Return the submission that starts an application again; None if it is unknown.

        It goes on from where it is, if it has ever stored that, and is not done.
        """
        known, summary = self._applications.get(app_id), self._registry.get(app_id)
        if known is None or summary is None:
            return None
        request = known.request
        if from_beginning:
            is_restart = request.resume_from.endswith(RESTART)
            return replace(request, resume_from="") if is_restart else request
        if (program := self.program_again(app_id)) is not None:
            request = replace(request, artifact=program)
        if OPENED_KEY not in known.values or not summary.can_go_on:
            return request
        point = ResumePoint(cluster_id=self.cluster_id, app_id=app_id, is_restart=True)
        return replace(request, resume_from=str(point))

    def program_again(self, app_id: AppId) -> Artifact | None:
        known = self._applications.get(app_id)
        program = known.values.get(PROGRAM_KEY) if known is not None else None
        return None if program is None else msgspec.json.decode(program, type=Artifact)

    def needed_programs(self, *, ended_after_ms: int) -> dict[str, ApplicationSummary]:
        """Return the programs that may be needed again, each with the application that may.

        That is one that has not ended; or one that ended after a time, and can be restarted.
        """
        needed: dict[str, ApplicationSummary] = {}
        for each in self._registry.summaries():
            has_ended = each.status in TERMINAL
            if has_ended and each.finished_ms <= ended_after_ms:
                continue
            for name in _programs_of(self._applications[each.app_id]):
                if not has_ended or name not in needed:
                    needed[name] = each
        return needed

    def launches(self, app_id: AppId) -> Sequence[AppMasterLaunch]:
        known = self._applications.get(app_id)
        return () if known is None else tuple(known.launches)

    def next_launch(self, app_id: AppId) -> int:
        """Return the number of the next launch of an app master, of an application that is known.

        A run that goes on counts those that it had elsewhere.
        """
        newest, known = self.newest_launch(app_id), self._applications[app_id]
        return (known.request.launches if newest is None else newest.number) + 1

    def newest_launch(self, app_id: AppId) -> AppMasterLaunch | None:
        known = self._applications.get(app_id)
        return known.launches[-1] if known is not None and known.launches else None

    def values(self, app_id: AppId) -> dict[str, bytes]:
        known = self._applications.get(app_id)
        return {} if known is None else dict(known.values)

    def quarantined(self, app_id: AppId) -> tuple[QuarantinedRecord, ...]:
        known = self._applications.get(app_id)
        return () if known is None else tuple(known.quarantined.values())

    def is_given(self, worker_id: WorkerId) -> bool:
        return 0 <= worker_id < self._next_worker

    def to_bytes(self, version: int = MASTERS.newest) -> bytes:
        snapshot = _Snapshot(
            next_app=self._registry.next_id,
            next_worker=self._next_worker,
            applications=[
                (
                    each
                    if each.status in TERMINAL
                    else replace(each, progress=ApplicationProgress()),
                    self._applications[each.app_id],
                )
                for each in self.summaries()
            ],
            cluster_id=self.cluster_id,
        )
        return msgspec.msgpack.encode((version, snapshot))

    @classmethod
    def from_bytes(cls, data: bytes) -> "MasterState":
        try:
            version, fields = _ENVELOPE.decode(data)
            MASTERS.check(version, "the master's snapshot")
            snapshot = _DECODER.decode(fields)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(f"the master's snapshot is none: {error}") from error
        state = cls()
        summaries = [summary for summary, _ in snapshot.applications]
        state._registry = Registry(next_id=snapshot.next_app, applications=summaries)
        for summary, application in snapshot.applications:
            state._add(summary.app_id, application)
        state._next_worker = snapshot.next_worker
        state.cluster_id = snapshot.cluster_id
        return state


def _programs_of(application: _Application) -> Iterator[str]:
    if application.request.artifact.kind == "stored":
        yield application.request.artifact.location
    if (running := application.values.get(PROGRAM_KEY)) is not None:
        yield msgspec.json.decode(running, type=Artifact).location
    if (earlier := application.values.get(PROGRAMS_KEY)) is not None:
        yield from msgspec.json.decode(earlier, type=list[str])
