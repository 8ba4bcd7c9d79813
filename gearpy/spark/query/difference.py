"""Two answers to one question, compared as records in no order.

Floats are equal if they differ by less than a part of their size, since their sums depend on the
order of addition; everything else is exact. Items of a set or dict have no order either.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from gearpy.messages.data import Message
from gearpy.task.api.window_result import WindowResult

#: Floats that differ by less than this part of their size are equal.
TOLERANCE: Final = 1e-9

#: Stand in the place of floats, so that the rest of a record can be looked up.
_FLOAT: Final = ("float",)
_NAN: Final = ("nan",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference between two answers.

    Attributes:
        missing: records of the first one that the second one lacks.
        extra: records that only the second one has.
        different: pairs of results of the same key and window whose values differ.
    """

    same: int
    missing: Sequence[Message]
    extra: Sequence[Message]
    different: Sequence[tuple[Message, Message]]

    @property
    def is_empty(self) -> bool:
        return not (self.missing or self.extra or self.different)


def difference(
    wanted: Iterable[Message], got: Iterable[Message], *, tolerance: float = TOLERANCE
) -> Difference:
    """Compare two answers, each a number of records with their event times."""
    groups = _grouped(wanted)
    same = 0
    extra: list[Message] = []
    for exact, others in _grouped(got).items():
        mine = groups.pop(exact, [])
        left, right, equal = _paired(mine, others, tolerance)
        same += equal
        extra += right
        if left:
            groups[exact] = left
    missing = [message for left in groups.values() for _, message in left]

    # Pair missing and extra results that have the same key and window.
    by_window: dict[Any, list[Message]] = {}
    rest = []
    for message in extra:
        window = _window(message)
        if window is None:
            rest.append(message)
        else:
            by_window.setdefault(window, []).append(message)
    lacking, different = [], []
    for message in missing:
        found = by_window.get(_window(message))
        if found:
            different.append((message, found.pop()))
        else:
            lacking.append(message)
    rest += [message for found in by_window.values() for message in found]
    return Difference(same=same, missing=lacking, extra=rest, different=different)


_Floats = tuple[float, ...]
_Group = list[tuple[_Floats, Message]]


def _grouped(messages: Iterable[Message]) -> dict[Any, _Group]:
    groups: dict[Any, _Group] = {}
    for message in messages:
        floats: list[float] = []
        exact = (message.timestamp, _exact(message.value, floats))
        groups.setdefault(exact, []).append((tuple(floats), message))
    return groups


def _paired(mine: _Group, others: _Group, tolerance: float) -> tuple[_Group, list[Message], int]:
    """Return the records left over on both sides, and how many are equal."""
    if not mine or not mine[0][0]:  # They have no floats, so all are alike.
        equal = min(len(mine), len(others))
        return mine[equal:], [message for _, message in others[equal:]], equal
    mine, others = sorted(mine, key=itemgetter(0)), sorted(others, key=itemgetter(0))
    left: _Group = []
    right: list[Message] = []
    equal = 0
    while mine and others:
        pairs = zip(mine[-1][0], others[-1][0], strict=True)
        if all(math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) for a, b in pairs):
            mine.pop()
            others.pop()
            equal += 1
        elif mine[-1][0] > others[-1][0]:
            left.append(mine.pop())
        else:
            right.append(others.pop()[1])
    return left + mine, right + [message for _, message in others], equal


def _window(message: Message) -> Any:
    result = message.value
    if not isinstance(result, WindowResult):
        return None
    return (_exact(result.key, []), result.start, result.end, result.firing)


def _exact(value: Any, floats: list[float]) -> Any:
    """Return a hashable value of the exact parts of a value; add its floats to the list."""
    if type(value) is float:
        if value != value:  # noqa: PLR0124 - NaN
            return _NAN
        if math.isinf(value):
            return value
        floats.append(value)
        return _FLOAT
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda pair: repr(pair[0]))
        return ("dict", *((name, _exact(cell, floats)) for name, cell in fields))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(Counter(_exact(each, floats) for each in value).items()))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *(_exact(each, floats) for each in value))
    if dataclasses.is_dataclass(value):
        return (
            type(value).__name__,
            *(
                _exact(cell, floats)
                for cell in (getattr(value, each.name) for each in dataclasses.fields(value))
            ),
        )
    return value
