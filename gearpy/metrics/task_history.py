"""Measurements of tasks by Gearpump's names, in few bytes, since many points of them are kept."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp
from typing import Final, Literal, NamedTuple, TypeAlias

from gearpy.ids import SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import HistogramSample, HistoryItem, TaskLoad
from gearpy.metrics.histogram import mean_of, quantile_of, stddev_of

#: All values of one task at one time.
Values: TypeAlias = "array[float]"

#: Tasks of which the past is kept; an application may have very many.
TASKS_MAX: Final = 300

_MINUTE_MS: Final = 60_000
_METER: Final = ("count", "meanRate", "m1")
_HISTOGRAM: Final = ("mean", "stddev", "median", "p95", "p99", "p999")
_EMPTY: Final = HistogramSample()


class _Field(NamedTuple):
    """One measurement of a task by its name, and the place of its values."""

    name: str
    kind: Literal["histogram", "meter"]
    fields: tuple[str, ...]
    at: int


_FIELDS: Final = (
    _Field("receiveThroughput", "meter", _METER, 0),
    _Field("sendThroughput", "meter", _METER, 3),
    _Field("receiveLatency", "histogram", _HISTOGRAM, 6),
    _Field("processTime", "histogram", _HISTOGRAM, 12),
)


@dataclass(slots=True)
class _Meter:
    """Counts of a task, and their rates of the last minute."""

    session: SessionId
    began_ms: int
    at_ms: int
    records_in: int
    records_out: int
    in_per_s: float = 0.0
    out_per_s: float = 0.0

    def on_clock(self, at_ms: int, clock: TaskClock) -> None:
        """Take newer counts; an older rate counts less the longer ago it was."""
        lasting_ms = at_ms - self.at_ms
        if lasting_ms <= 0:
            return
        weight = 1 - exp(-lasting_ms / _MINUTE_MS)
        taken, sent = clock.records_in - self.records_in, clock.records_out - self.records_out
        self.in_per_s += weight * (taken * 1000 / lasting_ms - self.in_per_s)
        self.out_per_s += weight * (sent * 1000 / lasting_ms - self.out_per_s)
        self.at_ms, self.records_in, self.records_out = at_ms, clock.records_in, clock.records_out


class TaskMeters:
    """Rates of tasks over a minute. Gearpump: `Meter`, of the Metrics library."""

    def __init__(self) -> None:
        self._meters: dict[TaskId, _Meter] = {}

    def on_tick(self, at_ms: int, clocks: Mapping[TaskId, TaskClock]) -> None:
        for task, clock in clocks.items():
            meter = self._meters.get(task)
            if meter is not None and meter.session == clock.session:
                meter.on_clock(at_ms, clock)
            elif meter is not None or len(self._meters) < TASKS_MAX:
                self._meters[task] = _Meter(
                    clock.session, at_ms, at_ms, clock.records_in, clock.records_out
                )

    def point(self, loads: Mapping[TaskId, TaskLoad]) -> dict[TaskId, Values]:
        found: dict[TaskId, Values] = {}
        for task, meter in self._meters.items():
            load, age_s = loads.get(task), max(1, meter.at_ms - meter.began_ms) / 1000
            values = found[task] = array("d")
            values.extend((meter.records_in, meter.records_in / age_s, meter.in_per_s))
            values.extend((meter.records_out, meter.records_out / age_s, meter.out_per_s))
            values.extend(_stats_ms(load.latency if load else _EMPTY))
            values.extend(_stats_ms(load.processing if load else _EMPTY))
        return found


def task_items(app: str, at_ms: int, point: Mapping[TaskId, Values]) -> Iterator[HistoryItem]:
    for task, values in sorted(point.items()):
        prefix = f"{app}.processor{task.processor}.task{task.task_index}"
        for name, kind, fields, at in _FIELDS:
            parts = values[at : at + len(fields)]
            yield HistoryItem(
                at_ms=at_ms,
                name=f"{prefix}:{name}",
                kind=kind,
                values=dict(zip(fields, parts, strict=True)),
            )


def _stats_ms(sample: HistogramSample) -> Iterator[float]:
    """Yield Gearpump's figures of a distribution, in ms; zeros if there is nothing in it."""
    yield (mean_of(sample) or 0.0) * 1000
    yield (stddev_of(sample) or 0.0) * 1000
    for share in (0.5, 0.95, 0.99, 0.999):
        yield (quantile_of(sample, share) or 0.0) * 1000
