"""Faults of single links in a simulated cluster: one way, again and again, or slow.

Masters are at one end of half of them, since those must agree whatever the links do.
"""

import random
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Final

from tests.world.cluster import ClusterSimulation, Process

_FOR_MS: Final = 12_000
_SHORT_MS: Final = (50, 400, 2000)  # Nobody is given up for so long.
_SLOW_MS: Final = (50, 300, 1500)  # The last is longer than masters wait for their leader.


def _cut_one_way(cluster: ClusterSimulation, rng: random.Random) -> bool:
    source, target = _two(cluster, rng)
    cluster.network.cut_one_way(source.nodes.node, target.nodes.node, rng.randrange(100, _FOR_MS))
    return True


def _cut_leader_one_way(cluster: ClusterSimulation, rng: random.Random) -> bool:
    """Let some masters not hear the one that leads, or let it not hear them."""
    leader, for_ms, is_mute = cluster.master, rng.randrange(100, _FOR_MS), rng.random() < 0.5
    others = [each for each in _masters(cluster) if each is not leader]
    for other in rng.sample(others, rng.randrange(1, len(others) + 1)):
        source, target = (leader, other) if is_mute else (other, leader)
        cluster.network.cut_one_way(source.nodes.node, target.nodes.node, for_ms)
    return True


def _flap(cluster: ClusterSimulation, rng: random.Random) -> bool:
    """Let a link break and come back again and again, each time one way or both."""
    one, other = (each.nodes.node for each in _two(cluster, rng))
    ways = rng.sample([cluster.network.cut, cluster.network.cut_one_way], rng.randrange(1, 3))
    down_ms, up_ms = rng.choice(_SHORT_MS), rng.choice(_SHORT_MS)
    until_ms = cluster.world.now_ms + rng.randrange(1000, _FOR_MS)

    def break_again() -> None:
        if cluster.world.now_ms < until_ms:
            for_ms = rng.randrange(1, down_ms)
            rng.choice(ways)(one, other, for_ms)
            cluster.world.later(for_ms + rng.randrange(1, up_ms), break_again)

    break_again()
    return True


def _slow(cluster: ClusterSimulation, rng: random.Random) -> bool:
    """Let messages of one process to another be late, or all between masters."""
    between_masters = [*permutations(_masters(cluster), 2)]
    ways = rng.choice([[_two(cluster, rng)], between_masters])
    most_ms, for_ms = rng.choice(_SLOW_MS), rng.randrange(500, _FOR_MS)
    for source, target in ways:
        cluster.network.slow(source.address, target.address, most_ms, for_ms)
    return True


#: What may happen, by name; returns whether it did.
LINK_FAULTS: Final[Mapping[str, Callable[[ClusterSimulation, random.Random], bool]]] = {
    "link cut one way": _cut_one_way,
    "leader cut one way": _cut_leader_one_way,
    "link comes and goes": _flap,
    "link slow": _slow,
}


def _masters(cluster: ClusterSimulation) -> list[Process]:
    assert cluster.several is not None
    return cluster.several.processes


def _two(cluster: ClusterSimulation, rng: random.Random) -> tuple[Process, Process]:
    masters = _masters(cluster)
    one = rng.choice(rng.choice([masters, cluster.processes]))
    other = rng.choice([each for each in masters + cluster.processes if each is not one])
    return (one, other) if rng.random() < 0.5 else (other, one)
