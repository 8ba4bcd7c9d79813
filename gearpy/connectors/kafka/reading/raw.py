"""Records of one partition as they came, column by column: bytes and numbers, small to keep."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Self, overload

if TYPE_CHECKING:
    from confluent_kafka import Message

_TIME: Final = itemgetter(1)
_SAMPLED: Final = 20  #: The size of one record in so many is asked for.
#: Blanks between objects of JSON that are one piece. What has the first of them is never in one.
BETWEEN: Final = b"\r\n\t\r\n"
_APART: Final = BETWEEN[:1]
_BOUNDARY: Final = b"}" + BETWEEN + b"{"


@dataclass(frozen=True, slots=True)
class RawColumns:
    """Tells which columns are taken of records beside their values and offsets."""

    times: bool
    rest: bool
    joins: bool = False


class JoinedBodies(Sequence[bytes]):
    """Objects of JSON that are kept in few pieces, with `BETWEEN` between them; see `are_apart`.

    They are joined while they are in the caches of the processor, and so is the memory that the
    next ones take: thousands of values that another thread joins later cost twice as much.
    """

    __slots__ = ("_count", "pieces")

    def __init__(self, pieces: list[bytes], count: int) -> None:
        self.pieces = pieces
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        return list(self)[at]

    def __iter__(self) -> Iterator[bytes]:
        return iter([body for piece in self.pieces for body in piece.split(BETWEEN)])


@dataclass(slots=True)
class Raw:
    """Some records of a partition, in order; a column that was not asked for is empty.

    Attributes:
        offsets: a range, unless some are missing between.
    """

    bodies: Sequence[bytes | None]
    offsets: Sequence[int]
    times: list[int]
    keys: list[Any]
    headers: list[Any]

    @classmethod
    def of(cls, messages: "list[Message]", columns: RawColumns) -> Self:
        """Return messages of the client, one or more; its objects are needed no more."""
        kind = type(messages[0])
        bodies: list[bytes | None] = list(map(kind.value, messages))
        times = map(_TIME, map(kind.timestamp, messages)) if columns.times else ()
        keys = map(kind.key, messages) if columns.rest else ()
        headers = map(kind.headers, messages) if columns.rest else ()
        first, last = messages[0].offset() or 0, messages[-1].offset() or 0
        offsets: Sequence[int] = range(first, last + 1)
        if len(offsets) != len(messages):
            offsets = [each.offset() or 0 for each in messages]
        return cls(
            bodies=_joined(bodies) if columns.joins else bodies,
            offsets=offsets,
            times=list(times),
            keys=list(keys),
            headers=[tuple(each or ()) for each in headers],
        )

    @classmethod
    def none(cls) -> Self:
        return cls([], range(0), [], [], [])

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def size_bytes(self) -> int:
        """The bytes of all values, estimated from some of them."""
        if isinstance(self.bodies, JoinedBodies):
            return sum(map(len, self.bodies.pieces))
        return sum(map(len, filter(None, self.bodies[::_SAMPLED]))) * _SAMPLED

    def part(self, start: int, stop: int) -> "Raw":
        return Raw(
            self.bodies[start:stop],
            self.offsets[start:stop],
            self.times[start:stop],
            self.keys[start:stop],
            self.headers[start:stop],
        )

    def before(self, offset: int) -> "Raw":
        if self.offsets[-1] < offset:
            return self
        return self.part(0, bisect_left(self.offsets, offset))

    def joined(self, more: "Raw") -> "Raw":
        """Return these and others behind them; these may be changed."""
        if not self:
            return more
        mine, others = self.offsets, more.offsets
        if isinstance(mine, range) and isinstance(others, range) and mine.stop == others.start:
            self.offsets = range(mine.start, others.stop)
        else:
            self.offsets = [*mine, *others]
        first, then = self.bodies, more.bodies
        if isinstance(first, JoinedBodies) and isinstance(then, JoinedBodies):
            pieces = [*first.pieces, *then.pieces]
            self.bodies = JoinedBodies(pieces, len(first) + len(then))
        else:
            listed: list[bytes | None] = first if isinstance(first, list) else list(first)
            listed += then
            self.bodies = listed
        self.times += more.times
        self.keys += more.keys
        self.headers += more.headers
        return self


def _joined(bodies: list[bytes | None]) -> Sequence[bytes | None]:
    """Return values in one piece, if all look like objects and can be had back from it."""
    if None in bodies:
        return bodies
    if _APART in b"".join(bodies):  # type: ignore[arg-type] # There is no None.
        return bodies
    piece = BETWEEN.join(bodies)  # type: ignore[arg-type] # There is none here, either.
    is_whole = piece.startswith(b"{") and piece.endswith(b"}") and are_apart(piece, len(bodies))
    return JoinedBodies([piece], len(bodies)) if is_whole else bodies


def are_apart(piece: bytes, count: int) -> bool:
    """Tell whether no object goes from one value into the next, in a piece of so many values.

    Between two objects there is never a comma, so where one value ends with a brace and the next
    begins with one, none does. As many rows as values are then one for each.
    """
    return piece.count(_BOUNDARY) == count - 1
