"""Faults at chosen points inside the tasks of an application, with executors that are threads."""

import threading
from collections import deque
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import gearpy as gp
from gearpy.actor.api import ActorSystem
from gearpy.task.api.interfaces import Batch, Sink, TransactionalWriter

#: Where in a task something may happen: before and after each step of the commit in two phases.
Point: TypeAlias = Literal[
    "step", "write", "prepare", "prepared", "commit", "committed", "recover", "recovered"
]
#: What may happen there.
Act: TypeAlias = Literal["raise", "stop executor", "stop app master"]

POINTS: Final[tuple[Point, ...]] = get_args(Point)
ACTS: Final[tuple[Act, ...]] = get_args(Act)
#: Executors of the application.
EXECUTORS: Final = 2
_LAUNCHES_MAX: Final = 200
#: So many epochs are shown by some task before the next fault; those of a recovery come at once.
_QUIET_COMMITS: Final = 6


class Faults:
    """Does one thing after the other, each at its point, while an application runs."""

    def __init__(self, plan: list[tuple[Point, Act]], system: ActorSystem) -> None:
        self._plan = deque(plan)
        self._system = system
        self._lock = threading.Lock()
        self._commits = 0
        self.done: list[tuple[Point, Act]] = []

    @property
    def are_over(self) -> bool:
        return not self._plan

    def at(self, point: Point) -> None:
        with self._lock:
            self._commits += point == "committed"
            in_recovery = point in {"recover", "recovered"}
            if not self._plan or self._plan[0][0] != point:
                return
            if self._commits < _QUIET_COMMITS and not (in_recovery and self.done):
                return
            self._commits = 0
            self.done.append(self._plan.popleft())
        self._do(self.done[-1][1])

    def _do(self, act: Act) -> None:
        if act == "raise":
            raise ValueError("something failed")
        roles = ["appmaster"]
        if act == "stop executor":
            roles = [f"executor{number}" for number in range(EXECUTORS)]
        for role, launch in product(roles, range(1, _LAUNCHES_MAX)):
            if (ref := self._system.resolve(f"app1-{role}-{launch}")) is not None:
                self._system.stop(ref)
                return

    def step(self, record: Any) -> Any:
        self.at("step")
        return record

    def sink(self, folder: Path) -> Sink:
        return _FaultySink(gp.jsonl_folder(folder), self)


class _FaultySink(Sink):
    transactional = True

    def __init__(self, sink: Sink, faults: Faults) -> None:
        self._sink = sink
        self._faults = faults

    @property
    def description(self) -> str:
        return self._sink.description

    def open(self, task_index: int, parallelism: int) -> TransactionalWriter:
        writer = self._sink.open(task_index, parallelism)
        assert isinstance(writer, TransactionalWriter)
        return _FaultyWriter(writer, self._faults)


class _FaultyWriter(TransactionalWriter):
    def __init__(self, writer: TransactionalWriter, faults: Faults) -> None:
        self._writer = writer
        self._faults = faults

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        self._faults.at("recover")
        self._writer.recover(prepared, epoch=epoch, run=run, incarnation=incarnation)
        self._faults.at("recovered")

    def write_batch(self, batch: Batch) -> None:
        self._writer.write_batch(batch)
        self._faults.at("write")

    def prepare(self, epoch: int) -> Any:
        self._faults.at("prepare")
        prepared = self._writer.prepare(epoch)
        self._faults.at("prepared")
        return prepared

    def commit(self, epoch: int, prepared: Any) -> None:
        self._faults.at("commit")
        self._writer.commit(epoch, prepared)
        self._faults.at("committed")

    def close(self, *, completed: bool) -> None:
        self._writer.close(completed=completed)
