"""A simulation tells which of its crashes could find anything, and refuses a recipe without one."""

from itertools import count
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.testing import MemoryTransactions, Simulation


class Forgets(gp.Task):
    count = 0

    def on_next(self, message: gp.Message) -> list[gp.Message]:
        self.count += 1
        return [gp.Message(self.count, message.timestamp)]


def run(seed: int, *, records: int = 600, **crashes: Any) -> tuple[Simulation, list[Any]]:
    app, sink = gp.StreamApp("forgets"), MemoryTransactions()
    app.read(gp.collection(range(records))).key_by(lambda _: 0).process(Forgets).write(sink)
    return Simulation(app, seed=seed, **crashes).run(), sorted(sink.values)


@pytest.mark.parametrize("seed", range(10))
def test_crashes_after_epochs_find_a_step_that_forgets(seed: int) -> None:
    simulation, values = run(seed, cut_every_ms=10, crashes_after_epochs=2)

    assert 1 <= simulation.restored <= simulation.crashes
    assert values != list(range(1, 601))
    assert repr(simulation) == (
        f"<Simulation of 'forgets', seed {seed}: {simulation.crashes} crashes, "
        f"{simulation.restored} of them back to a stored epoch>"
    )


@pytest.mark.parametrize(
    "crashes",
    [
        {"crash_at_ms": [30]},  # There are no epochs.
        {"crash_at_ms": [1], "cut_every_ms": 10},  # None is stored yet.
        {"crash_at_ms": [10**6], "cut_every_ms": 10},  # It has ended before.
        {"crashes_after_epochs": 1},
    ],
    ids=["no epochs", "too early", "too late", "never"],
)
def test_a_recipe_whose_crashes_find_nothing_is_refused(crashes: dict[str, Any]) -> None:
    """Else a step that forgets would pass for right; who knows better says so."""
    with pytest.raises(ConfigError, match="crashes_after_epochs in place of crash_at_ms"):
        run(3, **crashes)

    simulation, values = run(3, **crashes, may_miss=True)

    assert simulation.restored == 0
    assert values == list(range(1, 601))


def test_what_a_program_keeps_beside_its_state_is_gone_where_it_is_renewed() -> None:
    shown: dict[bool, list[int]] = {}
    for renews in (False, True):
        sink = MemoryTransactions()

        def made(sink: MemoryTransactions = sink) -> gp.StreamApp:
            app, seen = gp.StreamApp("renewed"), count(1)
            numbers = app.read(gp.collection(range(600))).repartition(1)
            numbers.map(lambda _: next(seen)).repartition(2).write(sink)
            return app

        renewed = made if renews else None
        Simulation(made(), seed=1, cut_every_ms=10, crashes_after_epochs=2, renewed=renewed).run()
        shown[renews] = sorted(sink.values)

    assert max(shown[False]) > 600
    assert max(shown[True]) < 600
