"""A client of a cluster for programs: submit, list, describe, wait, replay, stop."""

import getpass
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from gearpy.cluster.client.changes import AskedChange
from gearpy.cluster.client.questions import ClusterQuestions
from gearpy.config.hidden import shown_args
from gearpy.config.load import Overrides, as_texts
from gearpy.config.schema import Config
from gearpy.core.base.times import EventTime, event_time_in, event_time_ms
from gearpy.core.scaling.bounds import tasks_and_bounds
from gearpy.errors import (
    ApplicationFailed,
    AskTimeout,
    ConfigError,
    ConnectionLost,
    GearpyError,
    LeadershipLost,
    OperatorError,
    SubmitRefused,
)
from gearpy.ids import AppId, WorkerId
from gearpy.messages.actor_app import AskAppMaster
from gearpy.messages.client import (
    AlertList,
    Artifact,
    Asker,
    ChangeMasters,
    DescribeApplication,
    DrainApplication,
    DrainWorker,
    GetApplication,
    GetEpochs,
    GetVersions,
    MakeSavepoint,
    ProgramLoading,
    QuarantinedRecord,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    ShutdownApplication,
    SilenceAlert,
    SubmitApplication,
    UpdateApplication,
    UpdatePlanned,
    VersionSummary,
)
from gearpy.messages.masters import GetMasters, MasterList
from gearpy.messages.metrics import MetricsData
from gearpy.messages.summaries import ApplicationDetail, ApplicationSummary, ErrorCard
from gearpy.wire.values.payload import decode_value, encode_value
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from gearpy.cluster.programs.outline import ProgramOutline
    from gearpy.cluster.states.stored import StoredStates
    from gearpy.storage.checkpoints import Checkpoints

#: Which moment a table of state is of: a stored epoch, or one that is ended for it.
StateAt: TypeAlias = Literal["epoch", "now"]

_EPOCH_S: Final = 20.0
MasterChange: TypeAlias = Literal["transfer", "add", "remove"]
_MASTERS_S: Final = 15.0
_POLL_S: Final = 0.05
_SLOW_POLL_S: Final = 0.5
#: One who has waited for long asks so many times, at most, in as long as that.
_POLLS: Final = 40
_LIVING: Final = {"pending", "active"}


class _Tries:
    """Tells whether there is time to ask once more; None: there always is."""

    def __init__(self, timeout_s: float | None) -> None:
        self._began_s = time.monotonic()
        self._until_s = math.inf if timeout_s is None else self._began_s + timeout_s

    def may_go_on(self) -> bool:
        """Tell whether the time is not up, after a pause in that case."""
        now_s = time.monotonic()
        if now_s >= self._until_s:
            return False
        time.sleep(min(max(_POLL_S, (now_s - self._began_s) / _POLLS), _SLOW_POLL_S))
        return True


class ClusterClient(ClusterQuestions):
    """Talks to a master. Gearpump: `ClientContext`.

    Args:
        ask: sends a message and returns the answer; raises `GearpyError` when there is none.
        by: in whose name it asks for changes; the user of this process if not given.
        checkpoints: the store of a cluster in this process; others are opened where they are.
        config: has the limits of programs that are uploaded.
    """

    def __init__(
        self,
        ask: Callable[[Any], Any],
        by: Asker | None = None,
        *,
        checkpoints: "Checkpoints | None" = None,
        config: Config | None = None,
    ) -> None:
        super().__init__(ask)
        self._by = by or Asker(user=user_at_hand())
        self._checkpoints = checkpoints
        self._config = config or Config()

    def in_name_of(self, by: Asker) -> "ClusterClient":
        """Return a client of the same cluster that asks in the name of another user."""
        return ClusterClient(self._ask, by, checkpoints=self._checkpoints, config=self._config)

    # -- applications ----------------------------------------------------------------------

    def upload(self, target: str, args: Sequence[str] = ()) -> "tuple[Artifact, ProgramOutline]":
        """Upload a program; return it, and its outline: it is loaded in a process beside this one.

        Raises:
            ConfigError: there is no program, or it cannot run.
            OperatorError: the program itself raised, or ended its process, or did not end.
            SubmitRefused: the master does not take it.
        """
        from gearpy.cluster.processes.trial import tried_here
        from gearpy.cluster.programs.upload import packed, send

        with packed(target, self._config, args=args) as program:
            outline = tried_here(program, target, self._config)
            send(self._ask, program)
            return replace(program.artifact, runs=outline.runs), outline

    def upload_next(
        self, app_id: AppId, target: str, args: Sequence[str] | None = None
    ) -> "tuple[Artifact, ProgramOutline]":
        """Upload another program for an application, as `upload` does.

        Args:
            args: None: those of the program that runs.
        """
        from gearpy.cluster.programs.artifacts import ArgumentsRefused

        used = self.arguments(app_id) if args is None else args
        try:
            return self.upload(target, used)
        except ArgumentsRefused as error:
            if args is not None or not used:
                raise
            hint = (
                f"its arguments are those of the program that runs, {' '.join(shown_args(used))}: "
                "give others, or none by --no-args or args=[]"
            )
            raise ConfigError(*error.mistakes, hint) from error

    def submit(
        self,
        name: str,
        artifact: Artifact,
        *,
        executors: int = 0,
        config: Overrides | None = None,
        resume_from: str = "",
        checkpoints: str = "",
        launches: int = 0,
        user: str = "",
    ) -> "RunningApplication":
        """Start an application.

        Args:
            name: what no living application is called.
            artifact: the program.
            executors: how many share its tasks; 0 for as few as there is room for.
            config: its own settings, by key: numbers, texts, or lists of texts.
            resume_from: the checkpoint to begin with, as `resuming.resume_point` gives it; from
                the beginning if not given.
            checkpoints: below which name it stores what it goes on from; one of its own if not
                given. A run that was stored there goes on.
            launches: how often the app master of that run was launched.
            user: whose it is; the user of this process if not given.

        Raises:
            ConfigError: a setting has no such key, or cannot be so.
            SubmitRefused: the name is taken or malformed, or what it resumes from still runs.
        """
        message = SubmitApplication(
            name=name,
            artifact=artifact,
            executors=executors,
            config=as_texts(config or {}),
            user=user or self._by.user,
            resume_from=resume_from,
            checkpoints=checkpoints,
            launches=launches,
            key=secrets.token_hex(8),
        )
        submitted = self.ask(message)
        return RunningApplication(self, submitted.app_id, name)

    def running(self, ref: AppId | str) -> "RunningApplication":
        """Return an application that was submitted, maybe by another program.

        Args:
            ref: its id, or its name; see `find`.

        Raises:
            SubmitRefused: there is none with this id or name.
        """
        app_id = self.find(ref) if isinstance(ref, str) else ref
        return RunningApplication(self, app_id, self.ask(GetApplication(app_id=app_id)).name)

    def state(
        self,
        ref: AppId | str,
        step: str,
        state: str = "",
        *,
        epoch: int | None = None,
        at: StateAt = "epoch",
    ) -> "pa.Table":
        """Return the state of a step, as it was at the end of a stored epoch, as an Arrow table.

        It is read from the checkpoint store, through the cluster if this process does not see it:
        no task waits for it.
        Key and value, a namespace or window where there is one, and the key group are columns; the
        metadata say of which epoch it is.

        Args:
            ref: id or name of the application.
            step: its name, its id, or the number of its processor.
            state: which of its states; not needed where there is one.
            epoch: which of the stored epochs; the newest by default.
            at: "now" has an epoch ended for it first, so that all that was read before the question
                is in the table.

        Raises:
            SubmitRefused: see `describe`; or the master does not see the checkpoint store either.
            ConfigError: there is no such step, state or epoch.
            AskTimeout: no epoch has ended for a question about now.
            SnapshotDamaged: a file of the epoch is missing, or not what was stored.
        """
        return self.states(ref, at=at).table(step, state, epoch=epoch)

    def states(
        self, ref: AppId | str, *, at: StateAt = "epoch", classes: RecordRegistry = DEFAULT_REGISTRY
    ) -> "StoredStates":
        """Return a reader of the states of an application in its stored epochs; see `state`.

        Args:
            ref: id or name of the application.
            at: "now" has an epoch ended for it first.
            classes: of keys and values; fields of others have numbers.
        """
        from gearpy.cluster.states.stored import StoredStates

        app_id = self.find(ref) if isinstance(ref, str) else ref
        if at == "now":
            self._end_epochs(app_id)
        return StoredStates(*self.store(app_id), classes=classes)

    def store(self, app_id: AppId) -> "tuple[Checkpoints, str]":
        """Return the checkpoint store of an application, and the name below which its files are.

        Raises:
            SubmitRefused: see `describe`.
        """
        found = self.ask(GetEpochs(app_id=app_id))
        if self._checkpoints:
            return self._checkpoints, found.prefix
        from gearpy.cluster.checkpoints.reading import open_store
        from gearpy.cluster.checkpoints.remote import RemoteCheckpoints

        with suppress(GearpyError, OSError):
            store = open_store(found.place)
            if store.names(found.prefix):  # Another machine may have the same path.
                return store, found.prefix
        return RemoteCheckpoints(self.ask, app_id, found.place), found.prefix

    # -- applications of actors ------------------------------------------------------------

    def ask_application(
        self,
        app_id: AppId,
        question: Any,
        timeout_s: float = 60.0,
        *,
        classes: RecordRegistry = DEFAULT_REGISTRY,
    ) -> Any:
        """Ask the app master of an application of actors; return its `AppMaster.on_question`.

        One that is still being started is waited for.

        Args:
            app_id: of the application.
            question: any value that can travel.
            timeout_s: how long to wait for the answer, in seconds.
            classes: of values in the answer; fields of others have numbers.

        Raises:
            SubmitRefused: there is no such application, or its app master refuses the question.
            AskTimeout: no answer in time; the question is still handled.
            CannotTravel: a part of the question cannot be sent to another process.
        """
        tries = _Tries(timeout_s)
        body = encode_value(question, where="a question")
        message = AskAppMaster(app_id=app_id, question=body)
        while self.ask(GetApplication(app_id=app_id)).status == "pending" and tries.may_go_on():
            pass
        while (answer := self.ask(message)).number:
            if not tries.may_go_on():
                raise AskTimeout(f"application {app_id} has not answered for {timeout_s:g} s")
            message = AskAppMaster(app_id=app_id, number=answer.number)
        return decode_value(answer.answer, classes)

    # -- ends and restarts -----------------------------------------------------------------

    def shutdown(self, app_id: AppId) -> None:
        """Stop an application.

        Raises:
            SubmitRefused: there is none with this id, or it has ended.
        """
        self.ask(ShutdownApplication(app_id=app_id, by=self._by))

    def drain(self, app_id: AppId, *, savepoint: str = "") -> None:
        """Stop the sources of an application; it ends when all that they have read is committed.

        Windows that are open stay so in its last epoch, from which another one may go on.

        Args:
            app_id: of the application.
            savepoint: the name that its last epoch gets, if any; ``gear savepoint`` lists them.

        Raises:
            SubmitRefused: there is none with this id, it has no app master at present, or the name
                is none, or taken.
        """
        message = DrainApplication(app_id=app_id, savepoint=savepoint, by=self._by)
        self.ask(message)

    def savepoint(self, app_id: AppId, name: str, timeout_s: float = 60.0) -> dict[int, int]:
        """Give the next epoch of each region a name; return it by region. Nothing stops.

        It is kept until ``gear savepoint drop``, and another application may begin with it.

        Args:
            app_id: of the application.
            name: what no savepoint of it is called.
            timeout_s: how long to wait for the epoch, in seconds.

        Raises:
            SubmitRefused: there is none with this id, it has no app master at present, or the name
                is none, or taken.
            AskTimeout: no epoch has ended in time; it may still get the name.
        """
        tries = _Tries(timeout_s)
        message = MakeSavepoint(app_id=app_id, name=name, by=self._by)
        while not (made := self.ask(message)).epochs:
            if not tries.may_go_on():
                raise AskTimeout(
                    f"no epoch of application {app_id} has ended within {timeout_s:g} s: gear why "
                    f"{app_id} tells what holds it; the next one that ends is savepoint {name}"
                )
            message = replace(message, begins=False)
        return dict(made.epochs)

    def restart(
        self, app_id: AppId, *, from_beginning: bool = False, checkpoint_folder: str = ""
    ) -> "RunningApplication":
        """Stop an application if it runs, and start the same once more, under a new id.

        It goes on from its newest epoch; unless it has succeeded, or ``from_beginning`` is set.

        Args:
            app_id: of the application.
            from_beginning: as it was submitted, without what it has stored since.
            checkpoint_folder: the folder or URL, on all machines, that its checkpoints were moved
                to; empty: they are where they were.

        Raises:
            SubmitRefused: there is none with this id, or it cannot be started.
        """
        message = RestartApplication(
            app_id=app_id,
            from_beginning=from_beginning,
            by=self._by,
            checkpoint_folder=checkpoint_folder,
        )
        return self.running(self.ask(message).app_id)

    def change_masters(self, change: MasterChange, address: str) -> MasterList:
        """Have another master lead, or one more or one less be there; return how they are then.

        Raises:
            SubmitRefused: it cannot be done.
            AskTimeout: it was asked for, and is not done yet.
        """
        message = ChangeMasters(change=change, address=address, by=self._by)
        with suppress(LeadershipLost, ConnectionLost):  # A leader may go with its change.
            self.ask(message)
        tries = _Tries(_MASTERS_S)
        while True:
            found = self.ask(GetMasters())
            roles = {each.address: each.role for each in found.masters}
            is_wanted = {
                "transfer": roles.get(address) == "leader",
                "add": address in roles,
                "remove": address not in roles,
            }
            if is_wanted[change]:
                return found
            if not tries.may_go_on():
                raise AskTimeout(f"{change} {address} is not done yet: see 'gear master list'")

    def change(self, message: UpdateApplication) -> UpdatePlanned:
        """Put another version in place of one that runs; return the plan of that.

        Loading its program is waited for. It has begun then, unless the message asks only for
        the plan, or there is a ``refusal`` in it; `wait_for_version` tells what becomes of it.

        Raises:
            SubmitRefused: there is no such application, nothing can be changed now, or the version
                cannot be loaded.
        """
        message = replace(message, by=self._by, key=secrets.token_hex(8))
        while isinstance(answer := self._ask(message), ProgramLoading):
            time.sleep(min(1.0, _POLL_S + answer.lasts_ms / 10_000))
        return self._expected(message, answer)

    def call_off(self, app_id: AppId) -> int:
        """Give up the change that waits for its event time, or is being prepared; return which.

        Raises:
            SubmitRefused: there is no such application, or nothing that could be called off.
        """
        return self.change(UpdateApplication(app_id=app_id, calls_off=True)).version

    def wait_for_version(
        self, app_id: AppId, number: int, timeout_s: float | None = None
    ) -> VersionSummary:
        """Wait until a version stays or has failed; returns at the time-out, too.

        While the app master is started again it is waited for.

        Raises:
            SubmitRefused: the application has ended before that was decided.
            AskTimeout: the time is up, and there has been no trace of it.
        """
        tries, found, status = _Tries(timeout_s), None, "active"
        while True:
            with suppress(SubmitRefused):  # Its app master is being started again.
                listed = self.ask(GetVersions(app_id=app_id)).versions
                found = next((each for each in listed if each.number == number), found)
            if found is not None and found.state not in {"waiting", "preparing", "trial"}:
                return found
            if status not in _LIVING:
                raise SubmitRefused(
                    f"application {app_id} is {status}, before version {number} was in place for "
                    f"good: 'gear app history {app_id}' tells how far it came"
                )
            status = self.ask(GetApplication(app_id=app_id)).status
            if status in _LIVING and not tries.may_go_on():  # It leaves no last word.
                if found is None:
                    raise AskTimeout(f"application {app_id} has told nothing of version {number}")
                return found

    def replay(self, app_id: AppId) -> int:
        """Restart all its tasks from the newest epoch; return which (0: from the beginning).

        Raises:
            SubmitRefused: there is none with this id, or it does not run.
        """
        return self.ask(ReplayNow(app_id=app_id, by=self._by)).epoch

    def wait(self, app_id: AppId, timeout_s: float | None = None) -> ApplicationSummary:
        """Wait for its end; see `RunningApplication.wait`."""
        return self.running(app_id).wait(timeout_s)

    def silence(self, app_id: AppId, rule: str, until_ms: int) -> AlertList:
        """Tell nobody of an alert of an application until a time; one that has passed ends that.

        Raises:
            SubmitRefused: there is no such rule or application.
        """
        return self.ask(SilenceAlert(app_id=app_id, rule=rule, until_ms=until_ms, by=self._by))

    # -- records that were put aside -------------------------------------------------------

    def replay_quarantined(
        self, app_id: AppId, numbers: Sequence[int] = ()
    ) -> tuple[QuarantinedRecord, ...]:
        """Give records (all if none are named) back to their operators; return them.

        Raises:
            SubmitRefused: there is no such record, or the application does not run.
        """
        message = ReplayQuarantined(app_id=app_id, numbers=tuple(numbers), by=self._by)
        return self.ask(message).records

    # -- workers ---------------------------------------------------------------------------

    def drain_worker(self, worker_id: WorkerId, *, if_idle: bool = False) -> int:
        """Have a worker end after all that it runs was stopped, which goes on elsewhere.

        Args:
            worker_id: which.
            if_idle: only if nothing runs there.

        Returns:
            How many executors and app masters it still waits for.

        Raises:
            SubmitRefused: there is none with this id, it does not answer, or it is not idle.
        """
        message = DrainWorker(worker_id=worker_id, if_idle=if_idle, by=self._by)
        return self.ask(message).executors

    def _end_epochs(self, app_id: AppId) -> None:
        """Wait until an epoch has begun, and is complete, in each region that runs."""
        tries = _Tries(_EPOCH_S)
        question = GetEpochs(app_id=app_id, ends_one=True)
        asked = self.ask(question)
        # An older app master does not tell: the one behind the newest may have begun before.
        wanted = {each.region: each.epoch + 2 for each in asked.epochs}
        wanted |= dict(asked.next_to_end)
        question = replace(question, until=tuple(wanted.items()))
        while True:
            found = self.ask(question)
            now = {each.region: each.epoch for each in found.epochs}
            if now and all(epoch >= wanted.get(region, 2) for region, epoch in now.items()):
                return
            if not tries.may_go_on():
                raise AskTimeout(
                    f"no epoch of application {app_id} has ended within {_EPOCH_S:g} s: gear why "
                    f"{app_id} tells what holds it; the newest stored epoch can be looked at"
                )


class RunningApplication:
    """An application that was submitted. Gearpump: `RunningApplication`.

    Args:
        client: whom to ask about it.
        app_id: its id.
        name: its name.
    """

    def __init__(self, client: ClusterClient, app_id: AppId, name: str) -> None:
        self.client = client
        self.app_id = app_id
        self.name = name

    def __repr__(self) -> str:
        return f"<application {self.app_id} {self.name!r}>"

    def summary(self) -> ApplicationSummary:
        return self.client.ask(GetApplication(app_id=self.app_id))

    def describe(self) -> ApplicationDetail:
        return self.client.ask(DescribeApplication(app_id=self.app_id))

    def metrics(self) -> MetricsData:
        return self.client.metrics(self.app_id)

    def ask(self, question: Any, timeout_s: float = 60.0) -> Any:
        return self.client.ask_application(self.app_id, question, timeout_s)

    def state(
        self, step: str, state: str = "", *, epoch: int | None = None, at: StateAt = "epoch"
    ) -> "pa.Table":
        return self.client.state(self.app_id, step, state, epoch=epoch, at=at)

    def shutdown(self) -> None:
        self.client.shutdown(self.app_id)

    kill = shutdown

    def drain(self, *, savepoint: str = "") -> None:
        self.client.drain(self.app_id, savepoint=savepoint)

    def savepoint(self, name: str) -> dict[int, int]:
        return self.client.savepoint(self.app_id, name)

    def restart(self, *, from_beginning: bool = False) -> "RunningApplication":
        """Start the same once more, under a new id; see `ClusterClient.restart`."""
        return self.client.restart(self.app_id, from_beginning=from_beginning)

    # -- changes while it runs -------------------------------------------------------------

    def update(
        self,
        target: str,
        args: Sequence[str] | None = None,
        *,
        executors: int = 0,
        allow_drop: bool = False,
        dry_run: bool = False,
        at: EventTime | str | None = None,
    ) -> AskedChange:
        """Put another program in place of the one that runs, from where that one is.

        It is loaded here first, so that mistakes show at once. It has begun when this returns;
        `AskedChange.wait` tells whether it stays.

        Args:
            target: a ``.py`` file, a package folder, a ``.zip`` or a ``.whl``; ``:NAME`` behind it
                says which application or function in it.
            args: of the program; None: those of the one that runs.
            executors: how many share its tasks; 0: none gets more tasks than one has now.
            allow_drop: leave behind what the new version has no place for.
            dry_run: only plan it: nothing is changed.
            at: the event time from which on records are of the new version: a datetime with a time
                zone, text as ``"2026-01-01T12:00:00Z"``, or milliseconds. It waits until then.

        Raises:
            ConfigError: there is no program, it cannot run, or what a step keeps has no place in
                it.
            OperatorError: the program itself raised.
            SubmitRefused: the application cannot be changed now.
        """
        at_event_ms = _event_time(at)  # Before anything is uploaded.
        artifact, program = self.client.upload_next(self.app_id, target, args)
        program.check_stream("an update")
        return self._changed(
            UpdateApplication(
                app_id=self.app_id,
                artifact=artifact,
                executors=executors,
                allows_drop=allow_drop,
                is_trial_run=dry_run,
                at_event_ms=at_event_ms,
            )
        )

    def call_off(self) -> int:
        return self.client.call_off(self.app_id)

    def scale(
        self,
        steps: Mapping[str, int | str] | None = None,
        /,
        *,
        executors: int = 0,
        dry_run: bool = False,
        at: EventTime | str | None = None,
        **tasks: int | str,
    ) -> AskedChange:
        """Give steps another number of tasks: ``scale(count=8)``; keys move with their state.

        With bounds in place of a number, ``scale(count="1..8")``, autoscale chooses it from now on.

        Args:
            steps: the tasks of steps, by id or name; those that are no Python names.
            executors: how many share its tasks; 0: none gets more tasks than one has now.
            dry_run: only plan it: nothing is changed.
            at: the event time from which on records are of so many tasks; see `update`.
            tasks: the tasks of steps, by name.

        Raises:
            ConfigError: the state of a step cannot be shared so.
            SubmitRefused: there is no such step, or the application cannot be changed now.
        """
        scale, bounds = tasks_and_bounds({**(steps or {}), **tasks})
        return self._changed(
            UpdateApplication(
                app_id=self.app_id,
                scale=scale,
                bounds=bounds,
                executors=executors,
                is_trial_run=dry_run,
                at_event_ms=_event_time(at),
            )
        )

    def rollback(
        self,
        version: int,
        *,
        allow_drop: bool = False,
        dry_run: bool = False,
        at: EventTime | str | None = None,
    ) -> AskedChange:
        """Put an earlier program in place of the one that runs, with what is kept now.

        Args:
            version: a number of `history`.
            allow_drop: leave behind what that version has no place for.
            dry_run: only plan it: nothing is changed.
            at: the event time from which on records are of that version; see `update`.

        Raises:
            ConfigError: what a step keeps has no place in it.
            SubmitRefused: there is no such version, or the application cannot be changed now.
        """
        return self._changed(
            UpdateApplication(
                app_id=self.app_id,
                version=version,
                allows_drop=allow_drop,
                is_trial_run=dry_run,
                at_event_ms=_event_time(at),
            )
        )

    def history(self) -> tuple[VersionSummary, ...]:
        return self.client.ask(GetVersions(app_id=self.app_id)).versions

    def _changed(self, message: UpdateApplication) -> AskedChange:
        planned = self.client.change(message)
        if planned.refusal and not message.is_trial_run:
            raise ConfigError(planned.refusal)
        wait = None if message.is_trial_run else partial(self.client.wait_for_version, self.app_id)
        return AskedChange(self.name, planned, wait)

    # --------------------------------------------------------------------------------------

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        on_progress: Callable[[ApplicationSummary], None] | None = None,
    ) -> ApplicationSummary:
        """Wait for the end; returns at the time-out, too, with the status at that time.

        Raises:
            OperatorError: user code raised.
            ApplicationFailed: it failed in another way.
        """
        tries = _Tries(timeout_s)
        while True:
            summary = self.summary()
            if on_progress is not None:
                on_progress(summary)
            if summary.status == "failed":
                raise error_of(summary)
            if summary.status not in _LIVING or not tries.may_go_on():
                return summary


def error_of(summary: ApplicationSummary) -> GearpyError:
    """Return the exception that says why an application failed."""
    card = summary.cause or ErrorCard(cause="no cause is known")
    if not card.operator:
        return ApplicationFailed(summary.name, card.cause)
    return OperatorError(
        operator=card.operator,
        cause=card.cause,
        source=card.source,
        source_line=card.source_line,
        record=card.record,
        event_time_ms=card.event_time_ms,
        traceback=card.traceback,
    )


def _event_time(given: EventTime | str | None) -> int | None:
    if given is None:
        return None
    return event_time_in(given) if isinstance(given, str) else event_time_ms(given)


def user_at_hand() -> str:
    """Return the user who runs this process; empty if the system knows no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
