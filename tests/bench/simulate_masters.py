"""Clusters with three or five masters in virtual time, with faults of their own for each seed.

Masters are killed, frozen and cut off, with everything else; applications are submitted meanwhile.
From seed 100,000 on links fail one way, too, or come and go, or are slow.
"""

import logging
import multiprocessing
import random
from collections.abc import Iterator
from typing import Final

import gearpy as gp
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from tests.bench.link_faults import LINK_FAULTS
from tests.bench.simulate import FAULTS, FaultSchedule, end_problem, slots_problem
from tests.bench.simulated_app import BRANCHES, SimulatedApp
from tests.world.cluster import ClusterSimulation

_WITHIN_MS: Final = 400_000
#: Of files that were stored: an answer may then be taken back.
_DAMAGES: Final = tuple(each for each in FAULTS if "damage" in each)
_AT_MASTERS: Final = ("master killed", "master killed", "process frozen")
#: Earlier seeds stay what they are: of those it is known what they find.
_AT_LINKS_FROM: Final = 100_000


def problem_of(seed: int) -> str:
    """Run an application to its end, and submit others meanwhile; say what is wrong then."""
    rng, faults = random.Random(seed), list[str]()
    app = SimulatedApp(rng.randrange(200, 1000), rng.sample(list(BRANCHES), 1))
    cluster = ClusterSimulation(seed, masters=rng.choice([3, 3, 3, 5]))
    assert cluster.several is not None
    running = cluster.submit(app.build, executors=3)
    acknowledged = {running.app_id}
    more = LINK_FAULTS if seed >= _AT_LINKS_FROM else {}
    FaultSchedule(cluster, faults, without=_DAMAGES, always=_AT_MASTERS, more=more)
    for _ in range(3):
        cluster.world.run(lambda: False, within_ms=rng.randrange(2000))
        acknowledged |= _submitted(cluster)
    summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)
    known = {each.app_id for each in cluster.client.applications()}
    found = (
        *cluster.promises.broken[:1],
        *cluster.several.problems[:1],
        end_problem(summary, "finish"),
        app.problem(),
        f"lost: {acknowledged - known}" if acknowledged - known else "",
        "" if len(set(cluster.several.terms)) == len(cluster.several.terms) else "two led a term",
        slots_problem(cluster),
    )
    return "; ".join((*filter(None, found), *(faults if any(found) else ())))


def _submitted(cluster: ClusterSimulation) -> set[AppId]:
    """Submit an application that waits for a machine; return its number if there is one."""
    name = f"waits{len(cluster.programs)}"

    def build() -> gp.StreamApp:
        app = gp.StreamApp(name)
        app.read(gp.collection([1])).write(gp.console())
        return app

    try:
        nowhere = {"application.hosts": "nowhere"}
        return {cluster.submit(build, executors=1, config=nowhere).app_id}
    except GearpyError:
        return set()


def run_masters_seeds(first: int, count: int, *, processes: int) -> Iterator[tuple[int, str]]:
    """Run many seeds in several processes; gives each seed and what was wrong, as they come."""
    seeds = range(first, first + count)
    if processes == 1:
        yield from map(_run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_run, seeds, chunksize=10)


def _run(seed: int) -> tuple[int, str]:
    logging.disable(logging.CRITICAL)  # Of failures, which are what this is about.
    try:
        return seed, problem_of(seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the seed
        return seed, f"{type(error).__name__}: {error}"
