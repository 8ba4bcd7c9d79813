"""An application that has nothing to read: what it does meanwhile, counted in virtual time."""

from collections.abc import Iterator

import gearpy as gp
from tests.world.cluster import ClusterSimulation


class _OnceSpoken(gp.SimpleSource[int]):
    """Gives one record, and then nothing for as long as it is asked."""

    pause = "10ms"
    asked = 0

    def read(self, position: None) -> Iterator[tuple[int, None] | None]:
        yield 1, None
        while True:
            type(self).asked += 1
            yield None


def test_an_application_with_a_silent_source_does_little() -> None:
    app = gp.StreamApp("idle")
    app.read(_OnceSpoken()).key_by(lambda _: 0).count().write(gp.to_list([]))
    cluster = ClusterSimulation(7, idle_poll_ms=100)
    running = cluster.submit(lambda: app, executors=1)
    cluster.world.run(lambda: _OnceSpoken.asked > 50, within_ms=60_000)
    acts, asked = 0, _OnceSpoken.asked

    def count() -> None:
        nonlocal acts
        acts += 1

    cluster.world.on_act = count
    until_ms = cluster.world.elapsed_ms + 10_000
    cluster.world.run(lambda: cluster.world.elapsed_ms >= until_ms, within_ms=20_000)

    found = cluster.summary(running.app_id)
    assert found is not None
    assert found.status == "active"
    assert 50 <= _OnceSpoken.asked - asked <= 100
    assert acts < 1750  # Most are ticks of the master, the app master and the executor.
