"""Who has the slots of each worker: executors that run there, and grants that none has used yet."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import RunningExecutor

__all__ = ["Grant", "SlotLedger", "WorkerSlots"]

_Key: TypeAlias = tuple[AppId, ExecutorId, int]


class Grant(NamedTuple):
    """Slots on one worker for one executor of one launch of an app master, or for itself."""

    app_id: AppId
    launch: int
    worker_id: WorkerId
    slots: int
    is_for_app_master: bool = False


@dataclass(frozen=True, slots=True)
class WorkerSlots:
    """The slots of one worker. Used may exceed total, see `SlotLedger`."""

    total: int
    used: int = 0
    executors: int = 0  # Those that run, and those that are granted.

    @property
    def free(self) -> int:
        """Slots that can be granted."""
        return max(0, self.total - self.used)


@dataclass(slots=True)
class _Outstanding:
    """A grant that no executor has used yet, and until when it counts."""

    grant: Grant
    until_ms: int


@dataclass(slots=True)
class _Account:
    total: int
    running: dict[_Key, RunningExecutor] = field(default_factory=dict)
    grants: list[_Outstanding] = field(default_factory=list)

    def summary(self) -> WorkerSlots:
        """Count anew: what is not kept cannot drift."""
        granted = sum(each.grant.slots for each in self.grants)
        running = sum(each.slots for each in self.running.values())
        return WorkerSlots(
            total=self.total,
            used=granted + running,
            executors=len(self.grants) + len(self.running),
        )


class SlotLedger:
    """Keeps account of the slots of workers by who has them.

    A grant is taken at once. It ends when a worker says that its executor runs or was refused,
    when it is given back, when the app master that has it is gone, or when nothing of it was heard
    for too long. What runs on a worker, only the worker tells, and always as a whole. So no slot
    can be given back twice, and whatever was lost on its way is made good by the worker's next
    word, or by time.

    An executor may begin with a grant that has ended: its launch was under way when its app
    master died. Its slots count from the worker's word on; until it ends more may be used than
    there is. The worker itself refuses what does not fit.

    Invariant: the used slots of a worker are those of its executors and of its grants.
    """

    def __init__(self, *, grant_timeout_ms: int) -> None:
        self._grant_timeout_ms = grant_timeout_ms
        self._accounts: dict[WorkerId, _Account] = {}
        self._summaries: dict[WorkerId, WorkerSlots] = {}

    # -- questions -------------------------------------------------------------------------

    @property
    def workers(self) -> Mapping[WorkerId, WorkerSlots]:
        """What is free and used on each worker; changes with them."""
        return MappingProxyType(self._summaries)

    @property
    def grants(self) -> list[Grant]:
        """What was granted, and neither used nor given back."""
        return [each.grant for account in self._accounts.values() for each in account.grants]

    @property
    def next_due_ms(self) -> int | None:
        """When `on_tick` has something to do."""
        outstanding = (each for account in self._accounts.values() for each in account.grants)
        return min((each.until_ms for each in outstanding), default=None)

    # -- workers ---------------------------------------------------------------------------

    def on_worker(
        self, worker_id: WorkerId, *, total: int, running: Iterable[RunningExecutor]
    ) -> None:
        """Take a worker, perhaps once more: how many slots it has, and what runs there.

        Of one that is known the grants stay: those who have them know where it is.
        """
        self._accounts.setdefault(worker_id, _Account(total)).total = total
        self.on_running(worker_id, running)

    def on_running(
        self, worker_id: WorkerId, running: Iterable[RunningExecutor]
    ) -> list[RunningExecutor]:
        """Take all that runs on a worker; return what is new. Of an unknown worker: nothing."""
        account = self._accounts.get(worker_id)
        if account is None:
            return []
        before, account.running = account.running, {_key(each): each for each in running}
        begun = [each for key, each in account.running.items() if key not in before]
        for each in begun:
            self._end_one(_grant_of(worker_id, each))
        self._count(worker_id)
        return begun

    def on_refused(self, worker_id: WorkerId, executor: RunningExecutor) -> None:
        """End the grant of an executor that was not started."""
        self.give_back(_grant_of(worker_id, executor))

    def on_worker_lost(self, worker_id: WorkerId) -> None:
        """Forget a worker and its slots."""
        self._accounts.pop(worker_id, None)
        self._summaries.pop(worker_id, None)

    # -- grants ----------------------------------------------------------------------------

    def on_granted(self, grant: Grant, now_ms: int) -> None:
        """Take the slots of a grant."""
        assert grant.slots <= self._summaries[grant.worker_id].free, grant
        until_ms = now_ms + self._grant_timeout_ms
        self._accounts[grant.worker_id].grants.append(_Outstanding(grant, until_ms))
        self._count(grant.worker_id)

    def give_back(self, grant: Grant) -> None:
        """End a grant that nobody uses; one that has ended already: nothing."""
        if self._end_one(grant):
            self._count(grant.worker_id)

    def on_app_master_over(self, app_id: AppId) -> None:
        """End the grants of an app master that is gone, or knows none of them.

        Not the one for itself: that its launch was under way, its worker knows.
        """
        self._end_all(lambda each: each.grant.app_id == app_id and not each.grant.is_for_app_master)

    def on_tick(self, now_ms: int) -> list[Grant]:
        """End the grants of which nothing was heard for too long; return them."""
        return self._end_all(lambda each: each.until_ms <= now_ms)

    # --------------------------------------------------------------------------------------

    def _end_one(self, grant: Grant) -> bool:
        """End the oldest of equal grants; return whether there was one."""
        account = self._accounts.get(grant.worker_id)
        grants = account.grants if account is not None else []
        found = next((each for each in grants if each.grant == grant), None)
        if found is None:
            return False
        grants.remove(found)
        return True

    def _end_all(self, is_over: Callable[[_Outstanding], bool]) -> list[Grant]:
        ended: list[Grant] = []
        for worker_id, account in self._accounts.items():
            over = [each for each in account.grants if is_over(each)]
            if over:
                account.grants = [each for each in account.grants if not is_over(each)]
                ended += [each.grant for each in over]
                self._count(worker_id)
        return ended

    def _count(self, worker_id: WorkerId) -> None:
        self._summaries[worker_id] = self._accounts[worker_id].summary()


def _key(executor: RunningExecutor) -> _Key:
    return executor.app_id, executor.executor_id, executor.launch


def _grant_of(worker_id: WorkerId, executor: RunningExecutor) -> Grant:
    """Return what an executor was granted, if it was launched with what its app master got."""
    is_app_master = executor.executor_id == MASTER_EXECUTOR
    return Grant(executor.app_id, executor.app_master, worker_id, executor.slots, is_app_master)
