"""The whole state that tasks hand over when stored files are damaged is what changes made it."""

from collections import defaultdict
from typing import Any

import msgspec
import pytest

import gearpy as gp
from gearpy.ids import TaskId
from gearpy.state.stores.cells import runs_in
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.task.runtime.runner import TaskRunner
from gearpy.testing import EpochFaults, Simulation
from tests.sim.every_step import SOURCES, STEPS, Context

_RECORDS = 400


class Compared:
    """At some ends of epochs it has a task tell its changes, and then all, and compares."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.different: list[str] = []
        self._cells: dict[TaskId, dict[bytes, bytes]] = defaultdict(dict)
        snapshot = TaskRunner._snapshot  # noqa: SLF001

        def both(runner: TaskRunner, epoch: int) -> TaskSnapshot:
            is_whole, runner._is_to_be_whole = runner._is_to_be_whole, False  # noqa: SLF001
            changes = self._taken(runner, snapshot(runner, epoch))
            cells = self._cells[runner.info.task_id]
            self._apply(cells, changes)
            if not is_whole:
                return changes
            runner.tell_again()
            whole = self._taken(runner, snapshot(runner, epoch))
            again = dict[bytes, bytes]()
            self._apply(again, whole)
            self._compare(runner.info.operator, cells, again)
            self._cells[runner.info.task_id] = again
            return whole

        monkeypatch.setattr(TaskRunner, "_snapshot", both)

    def _taken(self, runner: TaskRunner, snapshot: TaskSnapshot) -> TaskSnapshot:
        for _ in runner._copying or ():  # noqa: SLF001
            pass
        runner._copying = None  # noqa: SLF001
        return snapshot

    def _apply(self, cells: dict[bytes, bytes], snapshot: TaskSnapshot) -> None:
        for section in snapshot.sections():
            for cell, value in msgspec.msgpack.decode(section.body, type=dict[bytes, Any]).items():
                if value is None:
                    cells.pop(cell, None)
                else:
                    cells[cell] = value

    def _compare(self, name: str, cells: dict[bytes, bytes], again: dict[bytes, bytes]) -> None:
        (logged, plain), (logged_again, plain_again) = _parted(cells), _parted(again)
        # Of records that event time has passed an as-of join knows nothing any more.
        is_left_out = logged_again < logged and name.startswith("join_asof")
        if plain != plain_again or not (logged == logged_again or is_left_out):
            self.different.append(f"{name}: {len(cells)} cells, told again {len(again)}")


def _parted(cells: dict[bytes, bytes]) -> tuple[int, dict[bytes, bytes]]:
    """Return how large the logs of records are, which name them anew, and all other cells."""
    logged, plain = 0, dict[bytes, bytes]()
    for run in runs_in(cells):
        if b"#bulk" in run.table and b"records" in run.table:
            logged += sum(len(msgspec.msgpack.decode(value)) for value in run.values if value)
        elif not (b"#bulk" in run.table and b"matched" in run.table):
            plain |= {cell: cells[cell] for cell in run.cells}
    return logged, plain


@pytest.mark.parametrize("name", STEPS)
def test_all_that_a_step_keeps_is_told_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Compared(monkeypatch)
    app = gp.StreamApp("told_again")
    context = Context(app, _RECORDS, 1)
    STEPS[name](context, SOURCES["rows"](context)).write(gp.to_list([]))
    faults = EpochFaults(told_again=0.6)

    Simulation(app, seed=1, cut_every_ms=8, faults=faults).run(steps_max=1_000_000)

    assert compared.different == []
