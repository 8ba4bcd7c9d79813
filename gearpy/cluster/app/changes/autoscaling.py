"""Autoscale of an application: what was measured goes in, requests for changes come out."""

import logging
from collections.abc import Callable

from gearpy.cluster.app.metrics import AppMetrics
from gearpy.core.app.application import ApplicationCore
from gearpy.core.dag.graph import Dag
from gearpy.core.scaling.autoscale import AUTOSCALE, AppLoad, Autoscale, StepLoad
from gearpy.ids import AppId, ProcessorId
from gearpy.messages.client import Asker, ProgramLoading, Refused, UpdateApplication, UpdatePlanned
from gearpy.messages.summaries import ScaledStep

_log = logging.getLogger(__name__)


class AppAutoscale:
    """Asks for changes of one application as its `Autoscale` decides."""

    def __init__(self, app_id: AppId, *, wall_ms: Callable[[], int]) -> None:
        self._app_id = app_id
        self._wall_ms = wall_ms
        self._scaler: Autoscale | None = None
        self._free_slots: float | None = None  # None: nobody has told lately.
        self._asked: UpdateApplication | None = None  # It is not answered yet.
        self._has_asked = False  # The change that is under way, or on trial, is its own.

    def begin(self, dag: Dag, *, executors: int, cooldown_ms: int, now_ms: int) -> None:
        """Go on with a version; without a cool-down nothing is ever changed."""
        if self._scaler is not None:
            self._scaler.on_version(dag, now_ms)
        elif cooldown_ms:
            self._scaler = Autoscale(
                dag, executors=executors, cooldown_ms=cooldown_ms, now_ms=now_ms
            )

    def on_tick(
        self, core: ApplicationCore, metrics: AppMetrics, now_ms: int
    ) -> UpdateApplication | None:
        if self._asked is not None:
            return self._asked
        scaler = self._scaler
        if scaler is None or not scaler.is_on:
            return None
        if core.why_unchangeable():
            scaler.on_pause()
            return None
        point = metrics.take_point()
        if point is None:
            return None
        load = AppLoad(
            steps={ProcessorId(pid): StepLoad(*flow) for pid, flow in point.flows.items()},
            executors=len(core.succession.slots),
            lag_ms=point.watermark_lag_ms,
            free_slots=self._free_slots,
        )
        self._free_slots = None
        decision = scaler.on_load(load, now_ms, wall_ms=self._wall_ms())
        if decision is None:
            return None
        self._has_asked = True
        _log.info("application %s: autoscale: %s", self._app_id, decision.reason)
        self._asked = UpdateApplication(
            app_id=self._app_id,
            scale=tuple(sorted(decision.tasks.items())),
            executors=decision.executors,
            reason=decision.reason,
            by=Asker(user=AUTOSCALE),
            key=f"{AUTOSCALE} {now_ms}",
        )
        return self._asked

    def on_answer(self, answer: UpdatePlanned | Refused | ProgramLoading, now_ms: int) -> None:
        if isinstance(answer, ProgramLoading):
            return
        self._asked = None
        if refusal := answer.reason if isinstance(answer, Refused) else answer.refusal:
            self.on_trouble(refusal, now_ms)

    @property
    def asks_for_slots(self) -> bool:
        return self._scaler is not None and self._scaler.asks_for_slots

    def on_free_slots(self, free: float) -> None:
        self._free_slots = free

    def on_stays(self) -> None:
        self._has_asked = False

    def on_trouble(self, reason: str, now_ms: int) -> None:
        if self._has_asked and self._scaler is not None:
            self._scaler.on_trouble(reason, now_ms)
        self._has_asked = False

    def shown(self) -> tuple[ScaledStep, ...]:
        return () if self._scaler is None else self._scaler.shown()
