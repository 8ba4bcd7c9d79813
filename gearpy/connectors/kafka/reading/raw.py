"""Records of one partition as they came, column by column: bytes and numbers, small to keep."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from confluent_kafka import Message

_TIME: Final = itemgetter(1)
_SAMPLED: Final = 20  #: The size of one record in so many is asked for.


@dataclass(frozen=True, slots=True)
class RawColumns:
    """Tells which columns are taken of records beside their values and offsets.

    Attributes:
        times: those of Kafka.
        rest: keys and headers.
    """

    times: bool
    rest: bool


@dataclass(slots=True)
class Raw:
    """Some records of a partition, in order; a column that was not asked for is empty.

    Attributes:
        offsets: a range, unless some are missing between.
    """

    bodies: list[bytes | None]
    offsets: Sequence[int]
    times: list[int]
    keys: list[Any]
    headers: list[Any]

    @classmethod
    def of(cls, messages: "list[Message]", columns: RawColumns) -> Self:
        """Return messages of the client, one or more; its objects are needed no more."""
        kind = type(messages[0])
        times = map(_TIME, map(kind.timestamp, messages)) if columns.times else ()
        keys = map(kind.key, messages) if columns.rest else ()
        headers = map(kind.headers, messages) if columns.rest else ()
        return cls(
            bodies=list(map(kind.value, messages)),
            offsets=_offsets(messages),
            times=list(times),
            keys=list(keys),
            headers=[tuple(each or ()) for each in headers],
        )

    @classmethod
    def none(cls) -> Self:
        """Return no records."""
        return cls([], range(0), [], [], [])

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def size_bytes(self) -> int:
        """The bytes of all values, by some of them."""
        return sum(map(len, filter(None, self.bodies[::_SAMPLED]))) * _SAMPLED

    def part(self, start: int, stop: int) -> "Raw":
        """Return some of them."""
        return Raw(
            self.bodies[start:stop],
            self.offsets[start:stop],
            self.times[start:stop],
            self.keys[start:stop],
            self.headers[start:stop],
        )

    def before(self, offset: int) -> "Raw":
        """Return the records before an offset."""
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
        self.bodies += more.bodies
        self.times += more.times
        self.keys += more.keys
        self.headers += more.headers
        return self


def _offsets(messages: "list[Message]") -> Sequence[int]:
    """Return the offsets of records of one partition; they grow from one to the next."""
    first, last = messages[0].offset() or 0, messages[-1].offset() or 0
    if last - first == len(messages) - 1:
        return range(first, last + 1)
    return [each.offset() or 0 for each in messages]
