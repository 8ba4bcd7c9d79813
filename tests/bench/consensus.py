"""Members that agree on a log, in virtual time, each seed with faults of its own."""

import multiprocessing
from collections.abc import Iterator
from functools import partial

from tests.core.consensus_world import ConsensusResult, run_consensus_seed


def run_consensus_seeds(
    first: int, count: int, events_max: int, *, processes: int
) -> Iterator[ConsensusResult]:
    """Run many seeds in several processes; gives results as they come."""
    seeds, run = (
        range(first, first + count),
        partial(run_consensus_seed, events_max=events_max or None),
    )
    if processes == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=50)
