"""Programs in the stream language that are compared with what they mean, in many examples."""

import logging
import multiprocessing
from collections.abc import Iterator
from itertools import count, islice
from typing import Final

from tests.oracle.examples import KINDS, Outcome, run_examples

#: Examples of one kind and one seed.
EXAMPLES_EACH: Final = 25

_Job = tuple[str, int, int]


def compare(
    first: int, examples: int, *, processes: int, kinds: list[str] | None = None
) -> Iterator[Outcome]:
    """Run so many examples in several processes; gives what some of them came to, as they come.

    Args:
        first: the seed to begin with; each seed has `EXAMPLES_EACH` examples of each kind.
    """
    jobs = list(islice(_jobs(first, kinds or list(KINDS)), -(-examples // EXAMPLES_EACH)))
    if processes == 1:
        yield from map(_run, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_run, jobs)


def _jobs(first: int, kinds: list[str]) -> Iterator[_Job]:
    return ((kind, seed, EXAMPLES_EACH) for seed in count(first) for kind in kinds)


def _run(job: _Job) -> Outcome:
    logging.disable(logging.CRITICAL)  # Of crashes, which are meant.
    return run_examples(*job)
