"""Keeps account of app masters: those that run, are launched again, or are given up.

Gearpump: `AppManager`'s recovery, which has no pause, and no word with those that return.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from gearpy.core.base.restart import (
    GiveUp,
    RestartAfter,
    RestartBudget,
    RestartDecision,
    RestartPolicy,
)
from gearpy.core.master.registry import TERMINAL
from gearpy.core.master.state import MasterState
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, WorkerId
from gearpy.messages.cluster import RunningExecutor

if TYPE_CHECKING:
    from random import Random

#: ``launching``: sent to a worker. ``returning``: the master was away, the app master may be there.
#: ``leaving``: not reachable, its worker is asked. ``pausing``: before the next launch.
Phase: TypeAlias = Literal[
    "waiting-for-slot", "launching", "returning", "running", "leaving", "pausing"
]

#: Phases in which the newest launch may be alive.
_LAUNCHED: Final = frozenset({"launching", "returning", "running", "leaving"})
#: Phases in which an app master may register.
_EXPECTED: Final = frozenset({"launching", "returning", "running"})


class LaunchTimes(NamedTuple):
    """Now: monotonic for deadlines, wall time for stored times."""

    now_ms: int
    wall_ms: int


class AppMasterTimes(Struct, frozen=True, kw_only=True):
    """The times for which app masters are waited for."""

    start_timeout_ms: int  # A launched one has so long to register.
    return_timeout_ms: int  # Those of before the master was away have so long; 0: there are none.
    word_timeout_ms: int  # Its worker has so long to say what it was.


class RequestSlot(Struct, frozen=True):
    """An app master needs a slot; preferably not on the worker where it was lost."""

    app_id: AppId
    avoid: WorkerId | None


class Kill(Struct, frozen=True):
    """Have a worker end an app master that may still live."""

    app_id: AppId
    worker_id: WorkerId
    launch: int
    reason: str


class RecordLoss(Struct, frozen=True):
    """An app master is given up, and launched again: after a pause, unless it was planned."""

    app_id: AppId
    launch: int
    cause: str
    is_planned: bool = False


class EndApplication(Struct, frozen=True):
    """The restart budget of an app master is spent: its application fails."""

    app_id: AppId
    cause: str


KeeperAction: TypeAlias = RequestSlot | Kill | RecordLoss | EndApplication


class _Kept(Struct):
    """One living application. ``due_ms``: the deadline of its present phase, if it has one.

    Both it and the path stay while the phase does.
    """

    phase: Phase
    due_ms: int | None = None
    path: ActorPath | None = None
    avoid: WorkerId | None = None
    cause: str = ""  # Why it is leaving; of one that runs: why it will have ended, if it does.


class AppMasters:
    """Keeps one app master for each living application, as far as its budget allows.

    The shell applies what is returned, in order, before the next event. A launch that was given up
    once stays given up.

    Invariant: each living application is in exactly one phase; every phase but ``running`` and
    ``waiting-for-slot`` ends by itself.
    """

    def __init__(
        self,
        state: MasterState,
        policy_of: Callable[[AppId], RestartPolicy],
        times: AppMasterTimes,
        rng: "Random",
    ) -> None:
        self._state = state
        self._policy_of = policy_of
        self._times = times
        self._rng = rng
        self._kept: dict[AppId, _Kept] = {}
        self._by_path: dict[ActorPath, AppId] = {}
        self._dues: list[tuple[int, AppId]] = []  # A heap; with some that do not count any more.
        self._leaving: set[WorkerId] = set()

    def phase(self, app_id: AppId) -> Phase | None:
        kept = self._kept.get(app_id)
        return None if kept is None else kept.phase

    def path(self, app_id: AppId) -> ActorPath | None:
        kept = self._kept.get(app_id)
        return kept.path if kept is not None and kept.phase == "running" else None

    def of_path(self, path: ActorPath) -> AppId | None:
        return self._by_path.get(path)

    @property
    def next_due_ms(self) -> int | None:
        while self._dues:
            due_ms, app_id = self._dues[0]
            kept = self._kept.get(app_id)
            if kept is not None and kept.due_ms == due_ms:
                return due_ms
            heappop(self._dues)
        return None

    def is_current(self, app_id: AppId, launch: int) -> bool:
        return not self.is_over(app_id, launch)

    def is_over(self, app_id: AppId, launch: int) -> bool:
        newest = self._state.newest_launch(app_id)
        is_newest = newest is not None and newest.number == launch and not newest.is_lost
        return app_id not in self._kept or not is_newest

    def on_start(self, now: LaunchTimes) -> list[KeeperAction]:
        actions: list[KeeperAction] = []
        for summary in self._state.summaries():
            if summary.status in TERMINAL:
                continue
            newest = self._state.newest_launch(summary.app_id)
            if newest is None or newest.is_lost:
                avoid = None if newest is None else newest.worker_id
                actions += self._request(summary.app_id, avoid)
            else:
                due_ms = now.now_ms + self._times.return_timeout_ms
                self._keep(summary.app_id, _Kept("returning", due_ms))
        return actions

    def on_submitted(self, app_id: AppId) -> list[KeeperAction]:
        return self._request(app_id, None)

    def on_ended(self, app_id: AppId) -> None:
        self._leave_path(app_id)
        self._kept.pop(app_id, None)

    def on_launched(self, app_id: AppId, now: LaunchTimes) -> None:
        assert self._kept[app_id].phase == "waiting-for-slot", self._kept[app_id]
        due_ms = now.now_ms + self._times.start_timeout_ms
        self._keep(app_id, _Kept("launching", due_ms))

    def on_registered(self, app_id: AppId, launch: int, path: ActorPath) -> bool:
        if not self.is_current(app_id, launch) or self._kept[app_id].phase not in _EXPECTED:
            return False
        self._keep(app_id, _Kept("running", path=path))
        return True

    def on_gone(
        self, app_id: AppId, launch: int, cause: str, now: LaunchTimes
    ) -> list[KeeperAction]:
        newest, kept = self._state.newest_launch(app_id), self._kept.get(app_id)
        if kept is None or newest is None or newest.number != launch:
            return []
        return self._lose(app_id, cause or kept.cause or "it was stopped", now)

    def on_unreachable(self, app_id: AppId, cause: str, now: LaunchTimes) -> list[KeeperAction]:
        """An app master that runs is lost, or cut off: its worker shall end it and say why."""
        kept, newest = self._kept.get(app_id), self._state.newest_launch(app_id)
        if kept is None or newest is None or kept.phase != "running":
            return []
        if kept.cause:  # There is no worker to ask.
            return self._lose(app_id, kept.cause, now)
        due_ms = now.now_ms + self._times.word_timeout_ms
        self._keep(app_id, _Kept("leaving", due_ms, cause=cause))
        return [Kill(app_id, newest.worker_id, newest.number, cause)]

    def on_worker_leaving(self, worker_id: WorkerId) -> None:
        self._leaving.add(worker_id)

    def on_worker_lost(self, worker_id: WorkerId, now: LaunchTimes) -> list[KeeperAction]:
        """A worker is gone, with all that it has started.

        An app master that can still be reached ends in a moment, or the worker is merely frozen:
        another one beside it would do harm.
        """
        actions: list[KeeperAction] = []
        for app_id in self._on(worker_id):
            cause = f"worker {worker_id} is lost"
            if self._kept[app_id].phase == "running":
                self._kept[app_id].cause = cause
            else:
                actions += self._lose(app_id, cause, now)
        return actions

    def on_worker_again(
        self, worker_id: WorkerId, running: Iterable[RunningExecutor], now: LaunchTimes
    ) -> list[KeeperAction]:
        there = {
            (each.app_id, each.launch) for each in running if each.executor_id == MASTER_EXECUTOR
        }
        actions: list[KeeperAction] = []
        for app_id in self._on(worker_id):
            if self._kept[app_id].phase == "running":
                self._kept[app_id].cause = ""
            newest, kept = self._state.newest_launch(app_id), self._kept[app_id]
            assert newest is not None
            if (app_id, newest.number) not in there:
                if kept.phase != "running":  # One that runs is watched.
                    cause = kept.cause or f"worker {worker_id} does not have it"
                    actions += self._lose(app_id, cause, now)
            elif kept.phase == "returning":
                due_ms = now.now_ms + self._times.return_timeout_ms
                self._keep(app_id, _Kept("returning", due_ms, cause=kept.cause))
        return actions

    def on_tick(self, now: LaunchTimes) -> list[KeeperAction]:
        actions: list[KeeperAction] = []
        due = set[AppId]()
        while (due_ms := self.next_due_ms) is not None and due_ms <= now.now_ms:
            due.add(heappop(self._dues)[1])
        for app_id in sorted(due):
            kept, newest = self._kept[app_id], self._state.newest_launch(app_id)
            if kept.phase == "pausing":
                actions += self._request(app_id, kept.avoid)
                continue
            assert newest is not None, kept
            if kept.cause:
                cause = kept.cause
            elif kept.phase == "launching":
                cause = f"it did not register within {self._times.start_timeout_ms} ms"
            elif not self._times.return_timeout_ms:
                cause = "it has ended with the master"
            else:
                cause = (
                    f"it did not register within {self._times.return_timeout_ms} ms after the "
                    "master had come back"
                )
            kill = Kill(app_id, newest.worker_id, newest.number, cause)
            actions += [kill, *self._lose(app_id, cause, now)]
        return actions

    def _lose(self, app_id: AppId, cause: str, now: LaunchTimes) -> list[KeeperAction]:
        if self._kept[app_id].phase not in _LAUNCHED:
            return []
        launches = self._state.launches(app_id)
        newest, policy = launches[-1], self._policy_of(app_id)
        budget, time_ms = RestartBudget(policy), launches[0].at_ms
        for before, launch in pairwise(launches):  # The first is no restart.
            time_ms = max(time_ms, launch.at_ms)  # Wall time may have been set back.
            if not before.is_planned:
                budget.on_failure(time_ms, self._rng)
        is_planned = newest.worker_id in self._leaving
        decision: RestartDecision = RestartAfter(0)
        if not is_planned:
            decision = budget.on_failure(max(time_ms, now.wall_ms), self._rng)
        if isinstance(decision, GiveUp):
            text = f"the app master is gone: {cause}"
            if policy.max_restarts:
                text += (
                    f" (it was launched again {policy.max_restarts} times within "
                    f"{policy.window_ms // 1000} s, as often as application.total-retries allows)"
                )
            return [EndApplication(app_id, text)]
        due_ms = now.now_ms + decision.delay_ms
        self._keep(app_id, _Kept("pausing", due_ms, avoid=newest.worker_id))
        return [RecordLoss(app_id, newest.number, cause, is_planned)]

    def _request(self, app_id: AppId, avoid: WorkerId | None) -> list[KeeperAction]:
        self._keep(app_id, _Kept("waiting-for-slot"))
        return [RequestSlot(app_id, avoid)]

    def _keep(self, app_id: AppId, kept: _Kept) -> None:
        self._leave_path(app_id)
        self._kept[app_id] = kept
        if kept.path is not None:
            self._by_path[kept.path] = app_id
        if kept.due_ms is not None:
            heappush(self._dues, (kept.due_ms, app_id))

    def _leave_path(self, app_id: AppId) -> None:
        kept = self._kept.get(app_id)
        if kept is not None and kept.path is not None and self._by_path[kept.path] == app_id:
            del self._by_path[kept.path]

    def _on(self, worker_id: WorkerId) -> list[AppId]:
        return [
            app_id
            for app_id, kept in self._kept.items()
            if kept.phase in _LAUNCHED
            and (newest := self._state.newest_launch(app_id)) is not None
            and newest.worker_id == worker_id
        ]
