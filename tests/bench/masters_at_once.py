"""All masters killed at once, again and again, also while they write snapshots."""

import random
import signal
import time
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

from tests.bench.history import problem_of
from tests.bench.masters import Clients, MastersResult, until
from tests.bench.process_cluster import ProcessCluster

_AT_MOST_S: Final = 1.0
_POLL_S: Final = 0.002
_SMALL_SNAPSHOTS: Final = "tests.bench.small_snapshots"


@dataclass(slots=True)
class AtOnceResult:
    acknowledged: int = 0
    lost: set[str] = field(default_factory=set)
    around_snapshots: int = 0  #: Rounds in which a master was writing one, or had just done so.
    back_s: list[float] = field(default_factory=list)
    problem: str = ""


def measure_at_once(folder: Path, *, rounds: int, seed: int = 0) -> AtOnceResult:
    """Kill all masters so many times, each time at another moment of their work."""
    result, seen, rng = AtOnceResult(), MastersResult(), random.Random(seed)
    cluster = ProcessCluster(folder, masters=3, workers=0, master_module=_SMALL_SNAPSHOTS)
    with cluster, Clients(cluster, seen) as clients:
        clients.is_eager = True
        clients.accepted_after(time.monotonic())
        for number in range(rounds):
            result.around_snapshots += _wait(folder, rng, for_snapshot=number % 2 == 0)
            for each in cluster.masters:
                each.signal(signal.SIGKILL)
            acknowledged = {each.name for each in list(seen.added) if each.end_s < inf}
            killed_s = time.monotonic()
            for each in cluster.masters:
                each.kill()
                each.start()
            names = until(lambda: {each.name for each in cluster.client.applications()})
            result.lost |= acknowledged - names
            clients.accepted_after(killed_s)
            result.back_s.append(time.monotonic() - killed_s)
    result.acknowledged = sum(each.end_s < inf for each in seen.added)
    result.problem = seen.problem or problem_of(seen.added, seen.seen)
    return result


def _wait(folder: Path, rng: random.Random, *, for_snapshot: bool) -> bool:
    """Let masters work for a while, or until one writes a snapshot; return whether one does."""
    before, until_s = _snapshots(folder), time.monotonic() + _AT_MOST_S * (1 + rng.random())
    if not for_snapshot:
        until_s -= _AT_MOST_S
    while time.monotonic() < until_s:
        time.sleep(_POLL_S)
        if for_snapshot and _snapshots(folder) != before:
            return True
    return False


def _snapshots(folder: Path) -> set[str]:
    return {str(each) for each in folder.glob("master*/members/*snapshot*")}
