"""One region at work: its attempts, one after the other, and the epochs they store."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from gearpy.core.app.decisions import RecoveryLimits
from gearpy.core.app.deployment import Command, Deployment, Send, StepAnswer
from gearpy.core.app.regions.region_epochs import RegionEpochs
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.history import EpochHistory
from gearpy.ids import MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import RegisterExecutor, SourceProbe, TaskOffsets

RegionState: TypeAlias = Literal["waiting", "deployed", "stopping", "done"]


class Region:
    """A connected part of an application, from its first attempt to its end.

    ``waiting`` for executors, the end of a pause, or an epoch to be stored; ``deployed``, starting,
    running, or closing; ``stopping``, to start again or to end; ``done``.

    Invariant: an attempt goes on from the newest complete epoch that is not damaged.
    """

    def __init__(
        self,
        *,
        number: int,
        tasks: Iterable[TaskId],
        placement: Mapping[TaskId, ExecutorId],
        version: int,
        limits: RecoveryLimits,
        manifests: Iterable[Manifest] = (),
        overrides: Iterable[TaskOffsets] = (),
        owns: Callable[[str], bool] = lambda _: True,
        first_epoch: int = 1,
    ) -> None:
        self.number = number
        self.placement = {task: placement[task] for task in tasks}
        self.executors = frozenset(self.placement.values())  #: Those that have a task of it.
        self.epochs = RegionEpochs(
            region=number,
            version=version,
            placement=self.placement,
            limits=limits,
            manifests=manifests,
            owns=owns,
            first_epoch=first_epoch,
        )
        self.state: RegionState = "waiting"
        self.resume_at_ms = 0
        self.is_completed = False  #: The stop that is under way is the good end.
        self.is_drained = False  #: It is the end of a drain, before the end of the streams.
        self.is_caught_up = False  #: The same, and all that was there had been read.
        self.is_hurt = False  # It was stopped by a failure, and has not begun again.
        self._version = version
        self._step_timeout_ms = limits.step_timeout_ms
        self._overrides = tuple(each for each in overrides if each.task_id in self.placement)
        self._overridden = self.history.newest  # The manifest whose places they replace.
        self._deployment: Deployment | None = None
        self.launches: Mapping[ExecutorId, int] = {}

    @property
    def history(self) -> EpochHistory:
        return self.epochs.history

    @property
    def sessions(self) -> Mapping[TaskId, SessionId]:
        return self._deployment.sessions if self._deployment else {}

    @property
    def attempt(self) -> int | None:
        return self._deployment.attempt if self._deployment else None

    @property
    def made_at_ms(self) -> int:
        return self._deployment.made_at_ms if self._deployment else 0

    @property
    def is_running(self) -> bool:
        return self._deployment is not None and self._deployment.state == "running"

    @property
    def is_at_work(self) -> bool:
        """Whether all tasks of the present attempt were started, and have reported since."""
        return self.is_running and self.epochs.have_all_reported

    @property
    def is_linked(self) -> bool:
        return (
            self._deployment is not None
            and self.state == "deployed"
            and self._deployment.state in {"locating", "starting", "running"}
        )

    @property
    def may_fail(self) -> bool:
        return self.state == "deployed" or (self.state == "stopping" and self.is_completed)

    def is_due(self, running: Collection[ExecutorId], now_ms: int) -> bool:
        return (
            self.state == "waiting"
            and now_ms >= self.resume_at_ms
            and self.executors.issubset(running)
            and self.history.unstored is None
        )

    def needs(self, executor_id: ExecutorId) -> bool:
        """Tell whether the region cannot come to its end without an executor."""
        if self.is_completed and self.state == "stopping" and self._deployment is not None:
            return self._deployment.awaits(executor_id)
        return self.state != "done" and executor_id in self.executors

    def place(self, placement: Mapping[TaskId, ExecutorId]) -> None:
        assert self.state == "waiting", self.state
        self.placement = {task: placement[task] for task in self.placement}
        self.executors = frozenset(self.placement.values())
        self.epochs.place(self.placement)

    def deploy(
        self,
        *,
        attempt: int,
        first_session: int,
        executors: Mapping[ExecutorId, RegisterExecutor],
        now_ms: int,
        probes: Sequence[SourceProbe] = (),
    ) -> list[Command]:
        """Begin an attempt from the newest complete epoch; its sources halt where epochs do."""
        assert self.state == "waiting", self.state
        epoch = self.epochs.next_epoch
        base = self.epochs.on_deploy(attempt)
        overridden = self._overridden.epoch if self._overridden else 0
        self._deployment = Deployment(
            version=self._version,
            region=self.number,
            attempt=attempt,
            placement=self.placement,
            addresses={each: executors[each].data_address for each in self.executors},
            first_session=first_session,
            step_timeout_ms=self._step_timeout_ms,
            epoch=epoch,
            snapshots=base.snapshots if base else (),
            overrides=self._overrides if base is None or base.epoch <= overridden else (),
            start_time_ms=base.clock_ms if base else MIN_MS,
            halt_ms=self.epochs.halt_ms,
            probes=probes,
        )
        self.launches = {each: executors[each].launch for each in self.executors}
        self.state, self.is_completed, self.is_hurt = "deployed", False, False
        return self._deployment.on_start(now_ms)

    def stop(self, *, completed: bool, now_ms: int) -> list[Command]:
        if self._deployment is None or self.state != "deployed":
            return []
        self.state, self.is_completed = "stopping", completed
        self.is_drained = completed and self.epochs.is_drained
        self.is_caught_up = self.is_drained and self.epochs.has_caught_up
        self.epochs.on_over()
        return self._deployment.stop(completed=completed, now_ms=now_ms)

    def drain(self, cut_time_ms: int | None = None) -> None:
        """End with one last epoch, or at once if none began.

        It ends where sources are, or at an event time at which they halt.
        """
        self.epochs.drain(cut_time_ms)
        if self._deployment is None and self.history.newest is None:
            self.state, self.is_drained = "done", True

    def go_on(self, now_ms: int) -> list[Command]:
        """Take a drain back: begin again where it is, unless its streams have ended meanwhile."""
        self.epochs.go_on()
        if self.state == "done" and not self.is_drained:
            return []
        if self.state == "stopping" and self.is_completed and not self.is_drained:
            return []
        if self.state == "done":
            self.state = "waiting"
        if self.state != "waiting":
            self.resume_at_ms = now_ms
        self.is_completed = self.is_drained = self.is_caught_up = False
        return self.stop(completed=False, now_ms=now_ms)

    def abandon(self) -> None:
        """End at once, as all of its processes are killed; nothing of it counts any more."""
        self.state, self._deployment = "done", None
        self.epochs.on_over()

    def restart(self, resume_at_ms: int, now_ms: int) -> list[Command]:
        self.resume_at_ms, self.is_hurt = resume_at_ms, True
        self.is_completed = False
        return self.stop(completed=False, now_ms=now_ms)

    def on_executor_lost(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        if self._deployment is None:
            return []
        return self._deployment.on_executor_lost(executor_id, now_ms)

    def on_answer(self, answer: StepAnswer, now_ms: int) -> list[Command]:
        assert self._deployment is not None
        return self._deployment.on_answer(answer, now_ms)

    def ask_again(self, executors: Collection[ExecutorId]) -> list[Send]:
        return self._deployment.ask_again(executors) if self._deployment else []

    def on_tick(self, now_ms: int) -> list[Command]:
        return self._deployment.on_tick(now_ms) if self._deployment else []
