"""The state of an application, as the master and people are told."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from gearpy.cluster.app.connections import MasterLink
from gearpy.cluster.app.describe import detail_of, long_turns_of, path_lines
from gearpy.cluster.programs.outline import ProgramOutline
from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.clock import progress_of
from gearpy.errors import trouble_of
from gearpy.ids import ActorPath, ExecutorId
from gearpy.messages.app import EpochStored, EpochUnstored
from gearpy.messages.cluster import ApplicationStatusChanged, LaunchExecutor
from gearpy.messages.summaries import (
    STORE,
    ApplicationDetail,
    ApplicationProgress,
    ApplicationStatus,
    ChangeSummary,
    ErrorCard,
    Failure,
    ScaledStep,
)

_log = logging.getLogger(__name__)
_FAILURES_KEPT: Final = 20
_RECENT: Final = 3
_TEXT_CHARS_MAX: Final = 300
#: A status that stays the same is told this often.
_TELL_AGAIN_MS: Final = 1000


class AppStatus:
    """Keeps how an application is, and tells its master."""

    def __init__(
        self,
        launch: LaunchExecutor,
        master: MasterLink,
        *,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        stored_ms: Callable[[int, int], int],
        has_savepoints: bool,
        under_way: Callable[[ApplicationCore], ChangeSummary | None],
    ) -> None:
        self._app_id = launch.app_id
        self._launch = launch.launch
        self._master = master
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._stored_ms = stored_ms
        self._has_savepoints = has_savepoints
        self._under_way = under_way
        self._failures: list[Failure] = []
        self._unstored: dict[ExecutorId, EpochUnstored] = {}
        #: To whom, what and when.
        self._told: tuple[tuple[ActorPath, ApplicationStatusChanged] | None, int] = None, 0
        self._store = ""  # Why the coordinator log cannot be used at present.
        self._guarantees: tuple[str, ...] = ()
        self.plan = ""  #: As JSON.
        self.status: ApplicationStatus = "pending"
        self.cause: ErrorCard | None = None
        self.savepoint = ""  #: The name that its last epoch has got.
        self.scaled: tuple[ScaledStep, ...] = ()  #: The steps that autoscale may scale.
        self.fallbacks = Counter[int]()  #: By region: it went back behind its newest epoch.

    def on_program(self, outline: ProgramOutline) -> None:
        self._guarantees, self.plan = path_lines(outline.paths), outline.plan
        self.fallbacks.clear()

    def note(self, what: str, error: ErrorCard) -> None:
        self._failures.append(Failure(at_ms=self._wall_ms(), what=what, error=error))
        del self._failures[:-_FAILURES_KEPT]

    def on_epoch(self, message: EpochStored | EpochUnstored) -> None:
        """Note why an executor cannot store an epoch, until it has stored one."""
        if isinstance(message, EpochUnstored):
            self._unstored[message.executor_id] = message
        else:
            self._unstored.pop(message.executor_id, None)

    def on_store(self, trouble: Exception | None) -> None:
        """Note why the coordinator log cannot be used, with a line of the log; None: it can."""
        before = self._store
        self._store = "" if trouble is None else trouble_of(trouble.__cause__ or trouble)
        if self._store not in {"", before}:
            _log.warning("application %s waits for its store: %s", self._app_id, trouble)

    def waits_for(self, core: ApplicationCore | None) -> str:
        found = (self._store, core.away if core else "", *self._why_unstored(core))
        return next((f"{STORE}{each}" for each in found if each), "")

    def _why_unstored(self, core: ApplicationCore | None) -> tuple[str, ...]:
        running = {} if core is None else core.executors.running
        return tuple(
            f"executor {number}: {each.reason}"
            for number, each in sorted(self._unstored.items())
            if number in running
        )

    def detail(self, core: ApplicationCore | None) -> ApplicationDetail:
        detail = detail_of(
            self._app_id,
            core,
            self._failures,
            now_ms=self._now_ms(),
            guarantees=self._guarantees,
            fallbacks=self.fallbacks,
            scaled=self.scaled,
            stored_ms=self._stored_ms,
        )
        return replace(
            detail,
            has_savepoints=self._has_savepoints,
            unstored=self._why_unstored(core),
            change=None if core is None else self._under_way(core),
        )

    @property
    def is_due(self) -> bool:
        before, told_ms = self._told
        is_told = before is not None and before[1].status == self.status
        return not is_told or self._now_ms() - told_ms >= _TELL_AGAIN_MS

    def tell(self, core: ApplicationCore | None) -> None:
        if not self._master.is_there:
            self._told = None, 0  # The next one knows nothing.
            return
        progress, store = ApplicationProgress(), self.waits_for(core)
        last_failure = ""
        if self.status == "pending" and self._failures:
            recent = self._failures[-_RECENT:]  # One of user code says more than a lost executor.
            failure = next((each for each in reversed(recent) if each.error.operator), recent[-1])
            cause = failure.error.cause.partition("\n")[0]
            last_failure = f"{failure.what} failed: {cause}"[:_TEXT_CHARS_MAX]
        if core is not None:  # Also without reports: a stall is told then, too.
            progress = replace(
                progress_of(core.dag, core.reports, stall=self._stall(core)),
                restarts=core.restarts,
                epoch=core.epoch,
                drained=core.is_drained,
                caught_up=core.has_caught_up,
                records_before=core.read_before,
                savepoint=self.savepoint,
                last_failure=last_failure,
            )
            store = store or progress.waits_for or core.call_of_drain()
        told = ApplicationStatusChanged(
            app_id=self._app_id,
            launch=self._launch,
            status=self.status,
            progress=replace(progress, waits_for=store),
            cause=self.cause,
        )
        now_ms, news, (before, told_ms) = self._now_ms(), (self._master.path, told), self._told
        if news != before or now_ms - told_ms >= _TELL_AGAIN_MS:
            self._told = news, now_ms
            self._master.tell(told)

    def _stall(self, core: ApplicationCore) -> str:
        stall = core.clock.check_stall(self._now_ms())
        if stall is None:
            return ""
        if long_turns := long_turns_of(core):
            turn = long_turns[0]
            at = f", at {turn.source}" if turn.source else ""
            return f"{turn.step} (task {turn.task}) in one call for {turn.lasts_ms // 1000} s{at}"
        chain = " <- ".join(
            f"{link.name} (task {link.task_id}): {link.waits_for}"
            for link in reversed(core.clock.why())
        )
        return f"clock at rest for {stall.stalled_for_ms // 1000} s: {chain}"
