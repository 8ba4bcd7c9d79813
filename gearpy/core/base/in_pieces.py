"""Long work in pieces, between which others may go on."""

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import pairwise
from typing import Any, Final, TypeVar

#: Things that are looked at in one piece, which is over in some 3 ms.
LOOKED_AT_ONCE: Final = 1 << 10
#: Things that are sorted in one piece.
SORTED_AT_ONCE: Final = 1 << 13

ThingT = TypeVar("ThingT")


def emptied(kept: dict[Any, Any] | list[Any]) -> Iterator[None]:
    """Take all out of a dict or list, which frees it; yields between pieces.

    To free a million lists or tuples in one go takes some 100 ms.
    """
    while kept:
        if isinstance(kept, list):
            del kept[-LOOKED_AT_ONCE:]
        else:
            for _ in range(min(len(kept), LOOKED_AT_ONCE)):
                kept.popitem()
        if kept:
            yield


def in_order(things: list[ThingT], key: Callable[[ThingT], Any]) -> Iterator[ThingT | None]:
    """Yield things in the order of their keys, equal ones as they are; None between pieces."""
    runs: list[list[ThingT]] = []  # The last one first.
    while things:
        run = things[-SORTED_AT_ONCE:]
        del things[-SORTED_AT_ONCE:]
        run.sort(key=key)
        runs.append(run)
        if things:
            yield None
    if all(key(run[0]) >= key(before[-1]) for run, before in pairwise(runs)):
        while runs:
            yield from runs.pop()
    else:
        yield from merge(*map(_taken, reversed(runs)), key=key)


def _taken(run: list[ThingT]) -> Iterator[ThingT]:
    run.reverse()
    while run:
        yield run.pop()
