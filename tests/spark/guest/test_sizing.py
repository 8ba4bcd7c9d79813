"""How many workers a cluster inside Spark has."""

from random import Random

import pytest

from gearpy.ids import WorkerId
from gearpy.spark.guest.sizing import PATIENCE_MS, WorkerCount

_IDLE_MS = 10_000


class Cluster:
    def __init__(self, at_least: int = 1, at_most: int = 5) -> None:
        self.count = WorkerCount(at_least, at_most, slots=4, idle_ms=_IDLE_MS)
        self.running: dict[WorkerId, int] = {}
        self.now_ms = self.serial = 0
        self.room = at_most  # Of Spark.
        self.come()

    def come(self) -> None:
        while len(self.running) < min(self.count.wanted, self.room):
            self.running[WorkerId(self.serial)] = 0
            self.serial += 1

    def look(self, demand: int = 0, after_ms: int = 0, *, obey: bool = True) -> list[int]:
        self.now_ms += after_ms
        drained = self.count.on_look(self.running, demand, self.now_ms)
        if obey:
            for each in drained:
                del self.running[each]
        return list(map(int, drained))


def test_slots_that_are_waited_for_bring_workers() -> None:
    cluster = Cluster()
    cluster.look(9)
    cluster.look(9, PATIENCE_MS - 1)
    assert cluster.count.wanted == 1
    cluster.look(9, 1)
    assert cluster.count.wanted == 4

    cluster.look(9, 10 * PATIENCE_MS)
    assert cluster.count.wanted == 4
    cluster.come()
    cluster.look(9, 1)
    cluster.look(9, PATIENCE_MS)
    assert cluster.count.wanted == 5


def test_a_moment_of_want_is_not_enough() -> None:
    cluster = Cluster(at_least=2)
    cluster.look(4)
    cluster.look(0, PATIENCE_MS - 1)
    cluster.look(4, 1)
    assert cluster.count.wanted == 2

    del cluster.running[WorkerId(0)]
    cluster.look(4, 10 * PATIENCE_MS)
    assert cluster.count.wanted == 2


def test_idle_workers_end_the_newest_first() -> None:
    """Down to the least; not while slots are waited for."""
    cluster = Cluster()
    cluster.look(16)
    cluster.look(16, PATIENCE_MS)
    cluster.come()
    cluster.look()
    cluster.running[WorkerId(2)] = 1

    assert cluster.look(0, _IDLE_MS - 1) == []
    assert cluster.look(1, 1) == []
    assert cluster.look() == []
    assert cluster.look(0, _IDLE_MS) == [4, 3, 1, 0]
    assert cluster.count.wanted == 1
    cluster.running[WorkerId(2)] = 0
    assert cluster.look(0, 1) == cluster.look(0, _IDLE_MS) == []


def test_a_worker_that_is_in_use_again_stays() -> None:
    cluster = Cluster(at_least=1, at_most=2)
    cluster.look(4)
    cluster.look(4, PATIENCE_MS)
    cluster.come()
    cluster.look()
    cluster.running = dict.fromkeys(cluster.running, 1)
    cluster.look(0, _IDLE_MS)
    cluster.running = dict.fromkeys(cluster.running, 0)
    assert cluster.look() == []

    assert cluster.look(0, _IDLE_MS, obey=False) == [1]
    assert cluster.count.wanted == 1
    assert cluster.look(0, _IDLE_MS) == []
    assert cluster.look(0, 6 * _IDLE_MS, obey=False) == [1]


def test_what_spark_has_no_room_for_is_given_up_when_nobody_needs_it() -> None:
    cluster = Cluster()
    cluster.room = 2
    cluster.look(40)
    cluster.look(40, PATIENCE_MS)
    cluster.come()
    assert cluster.count.wanted == 5
    cluster.running = dict.fromkeys(cluster.running, 1)

    cluster.look(40, _IDLE_MS)
    cluster.look()
    assert cluster.count.wanted == 5
    cluster.look(0, _IDLE_MS)
    assert cluster.count.wanted == 2


@pytest.mark.parametrize("seed", range(20))
def test_it_stays_within_its_bounds_and_finds_rest(seed: int) -> None:
    rng, cluster = Random(seed), Cluster(at_least=2, at_most=6)
    for _ in range(300):
        cluster.room = rng.randint(0, 6)
        if cluster.running and rng.random() < 0.2:
            del cluster.running[rng.choice(list(cluster.running))]
        if cluster.running and rng.random() < 0.4:
            cluster.running[rng.choice(list(cluster.running))] = rng.randint(0, 2)
        cluster.come()
        drained = cluster.look(rng.choice([0, 0, 3, 9]), rng.randint(0, 4000))
        assert 2 <= cluster.count.wanted <= 6
        assert not drained or len(cluster.running) >= 2
    cluster.room = 6
    for _ in range(20):
        cluster.come()
        cluster.look(0, _IDLE_MS)
    in_use = sum(map(bool, cluster.running.values()))
    assert len(cluster.running) == cluster.count.wanted == max(2, in_use)
