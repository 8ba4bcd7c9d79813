"""Whether what clients of a cluster have seen fits one order of events: a set that grows.

Each name is added once, by one client, and reads tell which names are there. Such a history is
linearizable exactly if the rules of `problem_of` hold: ordered by inclusion, each read has its
place, and each name the one before the first read that has it.

These rules need only Python, so a benchmark can judge what it has seen on any machine, and a read
of all names at once is one operation. `tests/bench/linear_history` is for histories with kills and
values: it hands them, object by object, to a checker that others have written, built with Go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf


@dataclass(frozen=True, slots=True)
class Added:
    """A name that was added between two times; ``end_s`` is infinite if nobody knows whether."""

    name: str
    begin_s: float
    end_s: float = inf


@dataclass(frozen=True, slots=True)
class Seen:
    names: frozenset[str]
    begin_s: float
    end_s: float


def problem_of(added: Sequence[Added], seen: Sequence[Seen]) -> str:
    """Return the first thing that fits no order of events; empty if all fits one."""
    known = {each.name: each for each in added}
    problems = chain.from_iterable(_in_read(read, known) for read in seen)
    return next(problems, "") or next(_between_reads(seen), "")


def _in_read(read: Seen, known: Mapping[str, Added]) -> Iterator[str]:
    if strange := read.names - known.keys():
        yield f"nobody has added {min(strange)}"
        return
    newest_s = max((known[name].begin_s for name in read.names), default=-inf)
    if newest_s > read.end_s:
        late = next(name for name in read.names if known[name].begin_s > read.end_s)
        yield f"{late} is there before it was added"
    for name in sorted(known.keys() - read.names):
        end_s = known[name].end_s
        if end_s < read.begin_s:
            yield f"{name} was acknowledged, and is missing {read.begin_s - end_s:.3f} s later"
        if end_s < newest_s:
            yield f"{name} is missing, and one is there that was added behind it"


def _between_reads(seen: Sequence[Seen]) -> Iterator[str]:
    by_size = sorted(seen, key=lambda each: len(each.names))
    for one, other in pairwise(by_size):  # If each is in the next one, it is in all that follow.
        if not one.names <= other.names:
            yield f"two reads do not agree: {sorted(one.names ^ other.names)[:4]}"
    ended = sorted(seen, key=lambda each: each.end_s)
    largest, done = Seen(frozenset(), -inf, -inf), 0
    for read in sorted(seen, key=lambda each: each.begin_s):
        while ended[done].end_s < read.begin_s:
            largest = max(largest, ended[done], key=lambda each: len(each.names))
            done += 1
        if len(largest.names) > len(read.names):
            yield f"{min(largest.names - read.names)} was there, and is not any more"
