"""Failures of an application: each is counted once, however it shows.

One lost executor is told by its worker, breaks the links of others, and makes their tasks miss
messages. Gearpump counts each of these.
"""

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from gearpy.core.base.pauses import pause_after
from gearpy.core.base.restart import RestartAfter, RestartBudget, RestartDecision, RestartPolicy
from gearpy.ids import ExecutorId
from gearpy.messages.app import LinkBroken
from gearpy.messages.summaries import ErrorCard

if TYPE_CHECKING:
    from random import Random

#: A broken link, or an executor that does not answer, may have died: its worker tells why in a
#: moment, and that is the better cause.
_GRACE_MS: Final = 500
#: All signs of one failure come within this time of the first.
_SAME_MS: Final = 2_000
_AWAY_FIRST_MS: Final = 500
_AWAY_MAX_MS: Final = 4_000


class Incidents:
    """Spends a restart budget, one restart for each failure.

    Invariant: as many restarts were spent as there were incidents, and an incident pays for each
    thing that it hits once.
    """

    def __init__(self, restarts: RestartPolicy, *, poison_attempts: int, rng: "Random") -> None:
        self._budget = RestartBudget(restarts)
        self._poison_attempts = poison_attempts
        self._rng = rng
        self._hit: set[str] = set()  # The present incident has hit these.
        self._began_ms = 0
        self._poison: Counter[tuple[str, str]] = Counter()
        #: By process: from which epochs of which regions something of it has gone on, and failed.
        self._failed_in: dict[ExecutorId, tuple[int, set[tuple[int, int]]]] = {}
        self.count = 0
        self.resume_at_ms = 0  #: When the pause of the present incident is over.

    def on_failure(
        self, hit: Collection[str], now_ms: int, *, is_known: bool = False
    ) -> RestartDecision:
        is_soon = now_ms - self._began_ms < _SAME_MS and self._hit.isdisjoint(hit)
        if self._hit and (is_known or is_soon):
            self._hit.update(hit)
            return RestartAfter(max(0, self.resume_at_ms - now_ms))
        decision = self._budget.on_failure(now_ms, self._rng)
        if isinstance(decision, RestartAfter):
            self.count += 1
            self._began_ms, self._hit = now_ms, set(hit)
            self.resume_at_ms = now_ms + decision.delay_ms
        return decision

    def on_planned(self, now_ms: int) -> None:
        """Begin an incident that is no failure, and costs nothing, unless one is going on."""
        if not self._hit or now_ms - self._began_ms >= _SAME_MS:
            self._began_ms, self._hit = now_ms, {"an end that was asked for"}

    def pause_ms(self, tries: int) -> int:
        return pause_after(tries, _AWAY_FIRST_MS, _AWAY_MAX_MS, self._rng)

    def is_poison(self, error: ErrorCard) -> bool:
        """Tell whether one record has made its operator raise too often; counts this time."""
        if not error.record:
            return False
        # The event time does not count: a record may be stamped anew when it is read again.
        record = (error.operator, error.record)
        self._poison[record] += 1
        return self._poison[record] >= self._poison_attempts

    def is_in_process(
        self, executor_id: ExecutorId, launch: int, *, region: int, epoch: int
    ) -> bool:
        """Tell whether a failure seems to lie in the process itself; counts this time.

        The same process has failed in this region before, and no epoch was completed since: it may
        have used up its files, memory or threads.
        """
        known, failed = self._failed_in.get(executor_id, (launch, set()))
        if known != launch:
            failed = set()
        has_failed = (region, epoch) in failed
        self._failed_in[executor_id] = (launch, failed | {(region, epoch)})
        return has_failed


class SilentExecutor(Struct, frozen=True):
    """A process does not answer."""

    executor_id: ExecutorId
    launch: int


class BrokenLink(Struct, frozen=True):
    """A link between two processes, each with its launch, that these attempts may have used.

    ``is_known``: the other end has said so a moment before.
    """

    cause: str
    ends: tuple[tuple[ExecutorId, int], ...]
    attempts: frozenset[int]
    is_known: bool = False

    @property
    def name(self) -> str:
        return f"link of executors {' and '.join(str(executor_id) for executor_id, _ in self.ends)}"


Suspicion: TypeAlias = SilentExecutor | BrokenLink


class Suspicions:
    """Keeps possible first signs of an executor's end, until its end would have been reported."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Suspicion]] = []

    def add(self, suspicion: Suspicion, now_ms: int) -> None:
        self._waiting.append((now_ms + _GRACE_MS, suspicion))

    def on_link_broken(
        self,
        message: LinkBroken,
        ends: tuple[tuple[ExecutorId, int], ...],
        attempts: frozenset[int],
        now_ms: int,
    ) -> None:
        cause = (
            f"the link from executor {message.executor_id} to {message.address} broke: "
            f"{message.reason}"
        )
        self.add(BrokenLink(cause, ends, attempts, is_known=self.is_broken(ends)), now_ms)

    def is_broken(self, ends: tuple[tuple[ExecutorId, int], ...]) -> bool:
        links = (each for _, each in self._waiting if isinstance(each, BrokenLink))
        return any(each.ends == ends for each in links)

    def due(self, now_ms: int) -> list[Suspicion]:
        due = [each for at_ms, each in self._waiting if at_ms <= now_ms]
        self._waiting = [each for each in self._waiting if each[0] > now_ms]
        return due
