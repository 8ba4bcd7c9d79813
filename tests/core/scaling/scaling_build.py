"""A pipeline of a source and two steps, which follow the load that comes in and are measured."""

from pathlib import Path
from random import Random
from typing import Final

from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, StepSpec
from gearpy.core.scaling.autoscale import AppLoad, Autoscale, StepLoad
from gearpy.ids import ProcessorId
from gearpy.messages.summaries import ScaleBounds

READ, COUNT, WRITE = (ProcessorId(each) for each in range(3))
COOLDOWN_MS: Final = 60_000
POINT_MS: Final = 2_000
BOUNDS: Final = ScaleBounds(least=1, most=16)


def recorded_load() -> list[float]:
    """Return the records per second of a run, as the series of its application had them."""
    lines = Path(__file__).with_name("recorded_load.txt").read_text(encoding="ascii").splitlines()
    return [float(line) for line in lines if not line.startswith("#")]


def a_dag(count: int = 1, bounds: ScaleBounds | None = BOUNDS) -> Dag:
    specs = [
        ProcessorSpec(id=READ, name="read", steps=(StepSpec(id="read"),)),
        ProcessorSpec(
            id=COUNT,
            name="count",
            parallelism=count,
            steps=(StepSpec(id="count-1", name="count", bounds=bounds),),
        ),
        ProcessorSpec(id=WRITE, name="write", steps=(StepSpec(id="write"),)),
    ]
    edges = [EdgeSpec(source=READ, target=COUNT), EdgeSpec(source=COUNT, target=WRITE)]
    return Dag.build(specs, edges)


class Pipeline:
    """A simulated application whose count step does 100 records a second in each task.

    A record that cannot be read at once waits outside. A source that could read more than those
    behind it take is held back for as long as that takes. A change takes one point, in which
    nothing is done.
    """

    def __init__(self, *, tasks: int = 1, seed: int = 0, knows_lag: bool = True) -> None:
        self.tasks, self.executors = tasks, 1
        self.now_ms = 0
        self.changes: list[tuple[int, int]] = []  # When, and to how many tasks.
        self._rng = Random(seed)
        self._knows_lag = knows_lag
        self.waiting = 0.0
        self._read_ms = 0.0  # Event time up to which all is read.
        self.scaler = Autoscale(a_dag(tasks), executors=1, cooldown_ms=COOLDOWN_MS, now_ms=0)

    def run(self, duration_ms: int, rate: float, *, noise: float = 0.0) -> None:
        """Let so many records a second come in, more or less by a share of them."""
        for _ in range(duration_ms // POINT_MS):
            self._step(rate * (1 + self._rng.uniform(-noise, noise)))

    def _step(self, rate: float) -> None:
        self.now_ms += POINT_MS
        seconds = POINT_MS / 1000
        self.waiting += rate * seconds
        capacity = 100.0 * self.tasks * seconds
        done = min(self.waiting, capacity)
        came_ms = self._read_ms + (self.now_ms - self._read_ms) * done / self.waiting
        self.waiting -= done
        self._read_ms = came_ms
        could_read = 1_000.0 * seconds
        held_back = max(0.0, 1 - done / could_read) if self.waiting > 1 else 0.0
        flow = done / seconds
        steps = {
            READ: StepLoad(flow, flow, flow / 1_000, held_back),
            COUNT: StepLoad(flow, flow, done / capacity, 0.0),
            WRITE: StepLoad(flow, flow, flow / 10_000, 0.0),
        }
        lag_ms = self.now_ms - came_ms if self._knows_lag else None
        load = AppLoad(steps, self.executors, lag_ms)
        decision = self.scaler.on_load(load, self.now_ms, wall_ms=self.now_ms)
        if decision is not None:
            self.tasks = decision.tasks.get("count-1", self.tasks)
            self.executors = decision.executors
            self.changes.append((self.now_ms, self.tasks))
            self.now_ms += POINT_MS
            self.waiting += rate * POINT_MS / 1000
            self.scaler.on_version(a_dag(self.tasks), self.now_ms)
