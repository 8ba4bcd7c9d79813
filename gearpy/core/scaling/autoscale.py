"""Autoscale: decides how many tasks the steps of an application should have, and says why.

After DS2 ("Three steps is all you need", OSDI 2018): the tasks of a step can do its present rate
over the share of time that this takes them. All steps would get as much more as the sources would
give if nothing held them back. So one decision is enough for most loads.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import Final, NamedTuple

from msgspec import Struct

from gearpy.core.dag.graph import Dag, ProcessorSpec
from gearpy.ids import ProcessorId
from gearpy.messages.summaries import ScaleBounds, ScaledStep

#: The user in whose name it changes an application.
AUTOSCALE: Final = "autoscale"
#: A source that is held back has so many times as much to read, at most.
_GROWTH_MAX: Final = 4.0
#: While it catches up it has less to do than it does; so much counts at least, and tasks stay.
_CATCHING_UP: Final = 0.8
#: They do not if that would take so many cool-downs.
_COOLDOWNS_TO_CATCH_UP: Final = 10
#: After a change that was refused, or has failed, it waits for so many cool-downs.
_COOLDOWNS_AFTER_TROUBLE: Final = 10
#: The place of the executors among the steps.
_EXECUTORS: Final = ProcessorId(-1)


#: Slices of a cool-down: to grow, the last ones must agree; to shrink, all of them.
SLICES: Final = 6
_TO_GROW: Final = 2
#: Work that is above what fits by so little is not worth a task.
_ROUNDING: Final = 0.02


class Demand:
    """The work of one step, in tasks that would be busy all the time, by slices of a cool-down.

    Growing is quick and shrinking slow, so that noise does not make tasks come and go: more tasks
    if the last two slices ask for them, fewer only if all slices would be content.
    """

    def __init__(self, slice_ms: int) -> None:
        self._slice_ms = slice_ms
        self._slices: deque[float] = deque(maxlen=SLICES)
        self._began_ms: int | None = None
        self._total, self._count = 0.0, 0

    def add(self, work: float, now_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = now_ms
        self._total += work
        self._count += 1
        if now_ms - self._began_ms >= self._slice_ms:
            self._slices.append(self._total / self._count)
            self._began_ms, self._total, self._count = now_ms, 0.0, 0

    def clear(self) -> None:
        self._slices.clear()
        self._began_ms, self._total, self._count = None, 0.0, 0

    @property
    def newest(self) -> float | None:
        return self._slices[-1] if self._slices else None

    def wanted(self, tasks: int, bounds: ScaleBounds) -> int:
        if not bounds.least <= tasks <= bounds.most:
            return min(max(tasks, bounds.least), bounds.most)
        slices = [*self._slices]
        lately = slices[-_TO_GROW:]
        too_busy = tasks * (bounds.busy + 1) / 2
        of_one = bounds.busy * (1 + _ROUNDING)
        if len(lately) == _TO_GROW and min(lately) > too_busy:
            return min(max(1, ceil(min(lately) / of_one)), bounds.most)
        if len(slices) == SLICES:
            return max(min(max(1, ceil(max(slices) / of_one)), tasks), bounds.least)
        return tasks


class StepLoad(NamedTuple):
    """The flow through a processor lately: records per second, and shares of its tasks' time."""

    rate: float | None
    out_rate: float | None
    busy: float | None
    backpressured: float | None


class AppLoad(NamedTuple):
    """The load of an application lately.

    ``executors`` is how many there are, ``lag_ms`` how far the oldest watermark is behind the wall
    clock, ``free_slots`` how many more tasks there is room for; None if nobody knows.
    """

    steps: Mapping[ProcessorId, StepLoad]
    executors: int
    lag_ms: float | None = None
    free_slots: float | None = inf


class ScaleDecision(Struct, frozen=True, kw_only=True):
    """Give steps, by id, so many tasks, which so many executors share; ``reason`` says why.

    With 0 executors there are as many as it takes with none growing.
    """

    tasks: Mapping[str, int]
    executors: int
    reason: str


class _Scaled(NamedTuple):
    """A processor whose tasks are chosen here, and its steps that say so."""

    steps: tuple[str, ...]
    tasks: int
    bounds: ScaleBounds


class Autoscale:
    """Decides how many tasks steps should have, one change in a cool-down at most.

    Tasks of an executor share one thread, as Python does. So there must also be enough executors
    for the work of all tasks; there are never fewer than the application was started with.
    """

    def __init__(self, dag: Dag, *, executors: int, cooldown_ms: int, now_ms: int) -> None:
        self._executors_min = max(1, executors)
        self._executors = self._executors_min
        self._cooldown_ms = cooldown_ms
        self._lags: deque[tuple[int, float]] = deque()  # The lags of one slice, and their times.
        self._texts: dict[
            str, tuple[str, int]
        ] = {}  # The last decision of each step, and its time.
        self._trouble = ""
        #: More tasks would be right, and it depends on the slots that are free.
        self.asks_for_slots = False
        self._quiet_until_ms = now_ms
        self.on_version(dag, now_ms)

    def on_version(self, dag: Dag, now_ms: int) -> None:
        self._dag = dag
        self._scaled = {
            pid: found for pid in dag.order if (found := _scaled(dag.processors[pid])) is not None
        }
        self._shares_executors = not any(each.hosts for each in dag.processors.values())
        slice_ms = max(1, self._cooldown_ms // SLICES)
        self._demands = {pid: Demand(slice_ms) for pid in (*self._scaled, _EXECUTORS)}
        self._wait(now_ms, cooldowns=1)

    def on_trouble(self, reason: str, now_ms: int) -> None:
        """Learn that a change was refused, or has failed; it is not tried again for a while."""
        self._trouble = reason.partition("\n")[0]
        self._wait(now_ms, cooldowns=_COOLDOWNS_AFTER_TROUBLE)

    def on_pause(self) -> None:
        self._lags.clear()
        for demand in self._demands.values():
            demand.clear()

    def _wait(self, now_ms: int, *, cooldowns: int) -> None:
        self.on_pause()
        until_ms = now_ms + cooldowns * self._cooldown_ms
        self._quiet_until_ms = max(self._quiet_until_ms, until_ms)

    @property
    def is_on(self) -> bool:
        return bool(self._scaled)

    def on_load(self, load: AppLoad, now_ms: int, *, wall_ms: int) -> ScaleDecision | None:
        """Take the measurements since the last call; return the change to make now, if any.

        ``wall_ms`` is wall time, for people.
        """
        self._executors = load.executors
        # The work of each processor if nothing held the sources back, in tasks that would be busy
        # all the time; processors without a measurement are left out.
        behind = self._falling_behind(load.lag_ms, now_ms)
        growth: dict[ProcessorId, float] = {}
        works: dict[ProcessorId, float] = {}
        for pid in self._dag.order:
            step, before = load.steps.get(pid), self._dag.upstream(pid)
            rates = [(load.steps[e].out_rate if e in load.steps else None) or 0.0 for e in before]
            if not before:
                held_back = (step.backpressured if step else None) or 0.0
                most = 1 / max(1 - held_back, 1 / _GROWTH_MAX)
                growth[pid] = min(most, behind) if held_back else 1.0
            elif total := sum(rates):
                shares = zip(before, rates, strict=True)
                growth[pid] = sum(growth[each] * rate for each, rate in shares) / total
            else:
                growth[pid] = max(growth[each] for each in before)
            if step is not None and step.busy is not None:
                works[pid] = step.busy * self._dag.processors[pid].parallelism * growth[pid]
        for pid in self._scaled:
            if (work := works.get(pid)) is not None:
                self._demands[pid].add(work, now_ms)
        if works and self._shares_executors:
            self._demands[_EXECUTORS].add(sum(works.values()), now_ms)
        if now_ms < self._quiet_until_ms:
            return None
        decision = self._decision(wall_ms, load.free_slots)
        if decision is not None:
            self._trouble = ""
            self._wait(now_ms, cooldowns=1)
        return decision

    def shown(self) -> tuple[ScaledStep, ...]:
        if not self._scaled:
            return ()
        rows = [
            self._row(pid, each.steps[0], each.tasks, each.bounds)
            for pid, each in self._scaled.items()
        ]
        if not self._shares_executors:
            return tuple(rows)
        bounds = self._executor_bounds(self._dag.task_count)
        return (*rows, self._row(_EXECUTORS, "", self._executors, bounds))

    def _row(self, pid: ProcessorId, step: str, tasks: int, bounds: ScaleBounds) -> ScaledStep:
        text, at_ms = self._texts.get(step, ("", 0))
        return ScaledStep(
            step=step,
            tasks=tasks,
            bounds=bounds,
            work=self._demands[pid].newest,
            text=self._trouble or text,
            at_ms=at_ms,
        )

    def _falling_behind(self, lag_ms: float | None, now_ms: int) -> float:
        """Return how many times more comes in than is done, by how event time falls behind.

        Below 1 while it catches up.
        """
        if lag_ms is None:
            return _GROWTH_MAX
        self._lags.append((now_ms, lag_ms))
        slice_ms = self._cooldown_ms // SLICES
        while len(self._lags) > 1 and now_ms - self._lags[1][0] >= slice_ms:
            self._lags.popleft()
        since_ms, before_ms = self._lags[0]
        if since_ms == now_ms:
            return 1.0
        speed = 1 - (lag_ms - before_ms) / (now_ms - since_ms)
        if lag_ms > (speed - 1) * _COOLDOWNS_TO_CATCH_UP * self._cooldown_ms:
            return 1 / min(max(speed, 1 / _GROWTH_MAX), 1.0)
        return max(1 / speed, _CATCHING_UP)

    def _decision(self, wall_ms: int, free_slots: float | None) -> ScaleDecision | None:
        tasks: dict[str, int] = {}
        reasons: list[str] = []
        count = self._dag.task_count
        wants = {
            pid: self._demands[pid].wanted(each.tasks, each.bounds)
            for pid, each in self._scaled.items()
        }
        self.asks_for_slots = any(wants[pid] > each.tasks for pid, each in self._scaled.items())
        if self.asks_for_slots and free_slots is None:
            return None
        for pid, each in self._scaled.items():
            free = (free_slots or 0) + self._dag.task_count - count
            wanted = min(wants[pid], each.tasks + int(min(free, each.bounds.most)))
            if wanted < wants[pid]:
                name, change = (
                    each.steps[0],
                    f"{each.steps[0]} x{each.tasks} would be x{wants[pid]}",
                )
                only = "no free slot" if free < 1 else f"{free:.0f} free slots only"
                if self._texts.get(name, ("", 0))[0] != f"{only}: {change}":
                    self._texts[name] = f"{only}: {change}", wall_ms
            if wanted != each.tasks:
                tasks |= dict.fromkeys(each.steps, wanted)
                count += wanted - each.tasks
                reasons.append(self._reason(pid, each.steps[0], each.tasks, wanted, each.bounds))
                self._texts[each.steps[0]] = reasons[-1], wall_ms
        executors = 0
        if self._shares_executors:
            bounds = self._executor_bounds(count)
            executors = self._demands[_EXECUTORS].wanted(self._executors, bounds)
            if executors > self._executors:  # Fewer alone would free no slots.
                reasons.append(self._reason(_EXECUTORS, "", self._executors, executors, bounds))
                self._texts[""] = reasons[-1], wall_ms
        if not reasons:
            return None
        return ScaleDecision(tasks=tasks, executors=executors, reason="; ".join(reasons))

    def _reason(
        self, pid: ProcessorId, step: str, tasks: int, wanted: int, bounds: ScaleBounds
    ) -> str:
        work, change = self._demands[pid].newest, f"{step or 'executors'} x{tasks} to x{wanted}"
        if work is None or not bounds.least <= tasks <= bounds.most:
            return f"{change}: it is to be from x{bounds.least} to x{bounds.most}"
        return f"{change}: work for {work:.1f}, each is to be busy for {bounds.busy:.0%}"

    def _executor_bounds(self, tasks: int) -> ScaleBounds:
        busy = max((each.bounds.busy for each in self._scaled.values()), default=0.7)
        return ScaleBounds(least=min(self._executors_min, tasks), most=tasks, busy=busy)


def _scaled(spec: ProcessorSpec) -> _Scaled | None:
    """Return the bounds of a processor's tasks; of several steps of one, the bounds that suit all.

    None if there is nothing to choose.
    """
    found = [(step.id, step.bounds) for step in spec.steps if step.bounds is not None]
    if not found:
        return None
    bounds: Sequence[ScaleBounds] = [each for _, each in found]
    most = min(each.most for each in bounds)
    least = min(max(each.least for each in bounds), most)
    if least == most == spec.parallelism:
        return None
    return _Scaled(
        steps=tuple(step for step, _ in found),
        tasks=spec.parallelism,
        bounds=ScaleBounds(least=least, most=most, busy=min(each.busy for each in bounds)),
    )
