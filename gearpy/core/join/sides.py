"""Joins of two streams by key: the common part of the cores of all kinds.

A record comes as ``(side, key, value)``, the two streams in any interleaving. A core is given
batches of them and watermarks, and yields pairs. Its state is bounded by time, and freed when
the watermark says that it is not needed any more; its changes are told as `CellChange`,
so that it comes back after a restart.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, Literal, Protocol, TypeAlias

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE
from gearpy.core.join.changes import CellChange

LEFT: Final = 0
RIGHT: Final = 1
#: A pair that was found already, ``(left, right, start, end)`` being the value; it is given again.
PAIR: Final = 2
SIDES: Final = (LEFT, RIGHT)

#: Which records without a partner come out too, None in its place.
How: TypeAlias = Literal["inner", "left", "right", "outer"]

#: Key, left, right, start and end.
Row: TypeAlias = tuple[Any, Any, Any, int, int]
#: Rows and their event times.
Rows: TypeAlias = tuple[list[Row], list[int]]
#: A key, and its values on the left and on the right.
Group: TypeAlias = tuple[Any, list[Any], list[Any]]


class Join(Protocol):
    """A join of two streams.

    Where its work takes long, portions without any rows let others go on.

    Calls come in this order: `load` for each namespace that was kept, `resume` once, then all else.
    """

    late_records: int  #: Records that came too late; they do not count.

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Take records, yield the pairs that are known now; to be pulled to its end."""
        ...

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        """Note that no older record will come; yield the results that waited for it."""
        ...

    def changes(self) -> Iterator[CellChange]:
        """Tell the changes of the state since the last call."""
        ...

    def tell_again(self) -> None:
        """Have `changes` tell all of the state, as if none had been told."""
        ...

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        """Load pairs of an earlier `CellChange`."""
        ...

    def held(self) -> Iterable[Collection[Any]]:
        """Return all that is kept, for its size: dicts by key, or records."""
        ...

    def resume(self, watermark_ms: int) -> None:
        """Go on from a watermark, and from the loaded pairs."""
        ...

    @property
    def hold_ms(self) -> int:
        """The earliest possible time of a result that comes from kept state alone, or `MAX_MS`."""
        ...


class Pairing:
    """Pairs all records of a key on the left with all on the right.

    Args:
        how: which of them come out alone if there are none on the other side.
        gathers: not pairs, but one row for each key with the lists of both sides.
        limit: of rows yielded at once; twice as many are possible.
    """

    def __init__(self, how: How, *, gathers: bool, limit: int) -> None:
        self._keeps_left = how in ("left", "outer")
        self._keeps_right = how in ("right", "outer")
        self._gathers = gathers
        self._limit = limit

    def rows(self, groups: Iterable[Group], start: int, end: int) -> Iterator[Rows]:
        """Yield the rows of a window, in the order of the groups; their time is its last ms."""
        out: list[Row] = []
        limit, gathers = self._limit, self._gathers
        for number, group in enumerate(groups, 1):
            key, lefts, rights = group
            if not gathers and lefts and rights and len(lefts) * len(rights) <= limit:
                out += [(key, left, right, start, end) for left in lefts for right in rights]
                parts: Iterable[list[Row]] = ([],)
            else:
                parts = self._of_group(group, start, end)
            for part in parts:
                out += part
                if len(out) >= self._limit:
                    yield out, [end - 1] * len(out)
                    out = []
            if number % LOOKED_AT_ONCE == 0:
                yield [], []
        if out:
            yield out, [end - 1] * len(out)

    def _of_group(self, group: Group, start: int, end: int) -> Iterator[list[Row]]:
        key, lefts, rights = group
        if self._gathers:
            yield [(key, lefts, rights, start, end)]
        elif lefts and rights:
            for left in lefts:
                for some in self._portions(rights):
                    yield [(key, left, right, start, end) for right in some]
        else:  # One side has none.
            for some in self._portions(lefts if self._keeps_left else []):
                yield [(key, left, None, start, end) for left in some]
            for some in self._portions(rights if self._keeps_right else []):
                yield [(key, None, right, start, end) for right in some]

    def _portions(self, values: list[Any]) -> Iterable[list[Any]]:
        limit = self._limit
        if len(values) <= limit:
            return (values,)
        return (values[at : at + limit] for at in range(0, len(values), limit))
