"""Compares the output of two versions of a step that took the same input, by epoch and key."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

#: Keys that differ are counted up to this; an endless stream may have very many.
_KEYS_MAX: Final = 100_000


class PutOut(NamedTuple):
    """A record that was put out.

    ``mark`` is equal for equal records, event time included; ``key`` is a text, empty for none.
    """

    mark: Hashable
    key: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentOutput:
    """One difference, as texts; ``then`` or ``now`` is empty where there is no such record."""

    epoch: int
    key: str
    then: str
    now: str


class OutputComparison:
    """Counts the records that only one version has put out, and keeps the first ones as examples.

    The order within an epoch does not matter. ``then`` and ``now`` count all records of the two
    versions, ``missing`` and ``added`` those that only one has.
    """

    def __init__(self, *, examples: int) -> None:
        self._examples_max = examples
        self.epochs = self.then = self.now = self.missing = self.added = 0
        self.keys = set[str]()
        self.examples: list[DifferentOutput] = []

    @property
    def is_same(self) -> bool:
        return not (self.missing or self.added)

    def add(self, epoch: int, then: Sequence[PutOut], now: Sequence[PutOut]) -> None:
        self.then += len(then)
        self.now += len(now)
        lacking, surplus = _only_in(then, now), _only_in(now, then)
        self.missing += len(lacking)
        self.added += len(surplus)
        sides: dict[str, tuple[list[PutOut], list[PutOut]]] = defaultdict(lambda: ([], []))
        for each in lacking:
            sides[each.key][0].append(each)
        for each in surplus:
            sides[each.key][1].append(each)
        for key, (only_then, only_now) in sides.items():
            if len(self.keys) < _KEYS_MAX:
                self.keys.add(key)
            left = self._examples_max - len(self.examples)
            for before, after in islice(zip_longest(only_then, only_now), left):
                self.examples.append(
                    DifferentOutput(
                        epoch=epoch,
                        key=key,
                        then="" if before is None else repr(before.value),
                        now="" if after is None else repr(after.value),
                    )
                )


def _only_in(these: Sequence[PutOut], others: Sequence[PutOut]) -> list[PutOut]:
    """Return the records that are more often among these than among the others, in order."""
    left = Counter(each.mark for each in others)
    only: list[PutOut] = []
    for each in these:
        if left[each.mark] > 0:
            left[each.mark] -= 1
        else:
            only.append(each)
    return only
