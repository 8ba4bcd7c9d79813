"""Restart budgets: how often, and after which pause, a failed thing may start again."""

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

#: Failures remembered without a limit on restarts; the pause has long reached its maximum then.
_REMEMBERED_MAX: Final = 64


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """At most ``max_restarts`` in any ``window_ms``, with growing pauses between them.

    A negative ``max_restarts`` is no limit. The pause starts at ``backoff_ms``, grows by
    ``factor`` with each restart in the window up to ``backoff_max_ms``, and is spread by
    plus or minus ``jitter`` of itself. Gearpump: `RestartPolicy`, which counts over the whole
    life and does not pause.
    """

    max_restarts: int
    window_ms: int = 60_000
    backoff_ms: int = 100
    backoff_max_ms: int = 5_000
    factor: float = 2.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        mistakes = []
        if self.window_ms <= 0:
            mistakes.append(f"window_ms is {self.window_ms}, must be above 0")
        if not 0 <= self.backoff_ms <= self.backoff_max_ms:
            mistakes.append(
                f"backoff_ms is {self.backoff_ms}, must be between 0 and backoff_max_ms, "
                f"{self.backoff_max_ms}"
            )
        if self.factor < 1:
            mistakes.append(f"factor is {self.factor}, must be at least 1")
        if not 0 <= self.jitter <= 1:
            mistakes.append(f"jitter is {self.jitter}, must be between 0 and 1")
        if mistakes:
            raise ConfigError(*(f"restart policy: {each}" for each in mistakes))


class RestartAfter(Struct, frozen=True):
    """Start again, ``delay_ms`` from now."""

    delay_ms: int


class GiveUp(Struct, frozen=True):
    """The budget is spent: stop and tell the parent."""


RestartDecision: TypeAlias = RestartAfter | GiveUp


class RestartBudget:
    """Counts the restarts of one thing and decides after each failure.

    Forgets restarts that are older than the window; a quiet window thus restores the whole
    budget and the first pause. Gearpump: `RestartPolicy.allowRestart`.

    Invariant: any window of ``window_ms`` holds at most ``max_restarts`` restarts, and each
    pause is between 0 and ``backoff_max_ms``.
    """

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._restarts: deque[int] = deque(maxlen=max(policy.max_restarts, _REMEMBERED_MAX))

    def on_failure(self, now_ms: int, rng: "Random") -> RestartDecision:
        start_ms = now_ms - self._policy.window_ms
        while self._restarts and self._restarts[0] <= start_ms:
            self._restarts.popleft()
        if 0 <= self._policy.max_restarts <= len(self._restarts):
            return GiveUp()
        self._restarts.append(now_ms)
        delay_ms = float(self._policy.backoff_ms)
        for _ in range(len(self._restarts) - 1):
            if delay_ms >= self._policy.backoff_max_ms:
                break
            delay_ms *= self._policy.factor
        spread = 1 + self._policy.jitter * (2 * rng.random() - 1)
        jittered = min(
            round(min(delay_ms, self._policy.backoff_max_ms) * spread), self._policy.backoff_max_ms
        )
        return RestartAfter(jittered)
