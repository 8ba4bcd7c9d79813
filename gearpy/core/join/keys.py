"""Keys of the two sides of a join: whether one side's can ever equal the other's."""

from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any, Final

from gearpy.core.join.sides import LEFT, RIGHT, SIDES
from gearpy.core.join.table import family_of

_LOOKED_AT_MAX: Final = 1000  # Keys of each side; what comes behind them costs nothing.
_SURE_FROM: Final = 20  # Of fewer keys a task may have those of one kind by chance.


class KeysOfSides:
    """The kinds of keys that have come on each side of a join, such as numbers and text.

    Keys of different kinds never meet, which nothing else would tell: no pair comes out. It is
    judged by many keys of both sides, or by all if there are fewer; so streams whose keys are of
    several kinds are not blamed for the first of them.
    """

    def __init__(self) -> None:
        self._kinds: tuple[dict[str, Any], ...] = ({}, {})  # With the first key of each.
        self._room = [_LOOKED_AT_MAX, _LOOKED_AT_MAX]

    @property
    def is_settled(self) -> bool:
        return not any(self._room)

    @property
    def is_sure(self) -> bool:
        return max(self._room) <= _LOOKED_AT_MAX - _SURE_FROM

    def take(self, records: Sequence[tuple[int, Any, Any]]) -> None:
        """Look at the keys of records, ``(side, key, value)``.

        Raises:
            TypeError: enough keys have come, and none of one side can equal one of the other.
        """
        for side in SIDES:
            if self._room[side]:
                keys = [key for of, key, _ in records if of == side][: self._room[side]]
                self._room[side] -= len(keys)
                for key in keys:
                    self._kinds[side].setdefault(family_of(key), key)
        if self.is_settled:
            self.check()
        elif not self._kinds[LEFT].keys().isdisjoint(self._kinds[RIGHT]):
            self._room = [0, 0]

    def check(self) -> None:
        """Refuse keys of which none can equal one of the other side.

        Raises:
            TypeError: they are so.
        """
        left, right = self._kinds
        is_known = left and right and "" not in left and "" not in right
        if not is_known or not left.keys().isdisjoint(right):
            return
        raise TypeError(
            f"keys of the left stream are {_told(left)}, and those of the right {_told(right)}, "
            "so no two records can ever meet: convert one of them in key_by, as by "
            "key_by(lambda record: int(record['id']))"
        )


def _told(kinds: dict[str, Any]) -> str:
    return " or ".join(f"{kind}, such as {short_repr(key)}" for kind, key in sorted(kinds.items()))
