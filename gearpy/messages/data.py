"""Messages between tasks, on the links that join them.

A link is one (source task, target task) pair within one session of the source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from sys import getsizeof
from typing import Any, Final, Generic, NamedTuple, TypeAlias

from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.late_time import OrderedTimes
from gearpy.messages.table import ROWS_PER_CREDIT, Table, credit_of
from gearpy.messages.type_variables import T, T_co


class Message(NamedTuple, Generic[T_co]):
    """One record: a value and its event time in ms since the epoch. Immutable by contract.

    Gearpump: `Message`. The default time is the Unix epoch, as there.
    """

    value: T_co
    timestamp: int = 0


#: Makes a `Message` of a ``(value, timestamp)`` pair at the speed of a tuple.
_message_of = partial(tuple.__new__, Message)


class Origin(NamedTuple):
    """The partition that all records of a batch were read from, and where in it.

    Steps that give something for each record pass it on; behind others nobody knows it.

    Attributes:
        source: number of the processor that reads; -1 if nobody knows.
        partition: number of the partition, among all of the source.
        offset: how many records were read from it before; only grows.
        is_sorted: its records come by their place in event time, and so does all that follows.
        is_by_arrival: their event times say no more than when they came, so that this is the only
            order that they have.
        is_split: other records of the partition went to other tasks. What follows from all of them
            may meet again in any order: nobody behind this task is told the partition.
    """

    source: int = -1
    partition: int = -1
    offset: int = 0
    is_alone: bool = False
    is_sorted: bool = False
    is_by_arrival: bool = False
    is_split: bool = False

    def at(self, offset: int) -> "Origin":
        return Origin(*self[:2], offset, *self[3:])

    @property
    def rank(self) -> tuple[int, ...]:
        return () if self.source < 0 else (self.source, self.partition, self.offset)


NOWHERE: Final = Origin()


class Promise(NamedTuple):
    """What the partition of a batch has promised around it.

    Attributes:
        before_ms: promised before the first record: none is older, late ones excepted.
        after_ms: promised behind the last one.
        out_of_order_ms: the promise is the newest event time less this. None: it has moved at
            the end, as far as is known.
        aside: of a table, for each row whether it is for the side output, as a
            `pyarrow.BooleanArray`; None if none is. Other records are wrapped.
    """

    before_ms: int
    after_ms: int
    out_of_order_ms: int | None = None
    aside: Any = None


#: The promise of a batch around which nobody knows of any.
NO_PROMISE: Final = Promise(MIN_MS, MIN_MS)


@dataclass(slots=True)
class Batch(Generic[T]):
    """Records in order: ``values[i]`` happened at ``timestamps[i]`` (ms since the epoch).

    Both lists have the same length. On the columnar path they are a `Table` and its `Times`.
    Immutable by contract once it was handed over. The records in it are the receiver's own: of
    what others have, and could change, it has copies (`gearpy.core.base.copies`).
    """

    values: list[T]
    timestamps: list[int]
    has_late: bool = False  #: Some times may be a `LateTime`; where it is false, none is.
    origin: Origin = NOWHERE
    #: Told where it was read, and nowhere else.
    promise: Promise = field(default=NO_PROMISE, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def giving(self, values: list[Any], timestamps: list[int]) -> "Batch[Any]":
        """Return the results of a step for its records: late as they are, and of their origin."""
        return Batch(values, timestamps, self.has_late, self.origin)

    def part(self, start: int, stop: int) -> "Batch[T]":
        """Return the records from one place to another."""
        times = self.timestamps[start:stop]
        if type(self.timestamps) is OrderedTimes:
            times = OrderedTimes(times)
        return Batch(self.values[start:stop], times, self.has_late, self.origin)

    @property
    def credit(self) -> int:
        """The credit that its records take in flow control."""
        values = self.values  # Rows, which are the rule, are asked for often.
        return len(values) if type(values) is list else credit_of(values)

    def messages(self) -> Iterator[Message[T]]:
        """Iterate over the records as `Message`s; a row of a table is a dict."""
        return map(_message_of, zip(self.values, self.timestamps, strict=True))

    @classmethod
    def of(cls, *messages: Message[T]) -> "Batch[T]":
        """Make a batch of messages."""
        return cls([m.value for m in messages], [m.timestamp for m in messages])


@dataclass(slots=True)
class EncodedBatch:
    """A batch as it came off the wire; decoded by the task that gets it, in its own thread."""

    count: int
    body: bytes | memoryview
    is_table: bool = False
    origin: Origin = NOWHERE

    def __len__(self) -> int:
        return self.count

    @property
    def credit(self) -> int:
        return -(-self.count // ROWS_PER_CREDIT) if self.is_table else self.count


@dataclass(slots=True)
class DataMessage:
    """Records of one link, with the promises of the sender about the link from here on.

    ``seq`` numbers the data messages of the link in this session, from 1, without a gap.
    ``watermark_ms``: no later record of this link is older (late ones excepted). ``idle``: the
    link pins no clock until the next data message that is not idle. ``epoch``: what the records
    belong to; it never falls on a link, and the first message of a later one says that the link
    has ended those before. An empty batch is a punctuation: it carries only the promises.
    """

    session: SessionId
    source: TaskId
    target: TaskId
    seq: int
    batch: Batch | EncodedBatch
    watermark_ms: int = MIN_MS
    idle: bool = False
    epoch: int = 0
    size_bytes: int = 0  #: As flow control counted it; an estimate on the row path.

    @property
    def counted(self) -> int:
        return self.batch.credit or 1


@dataclass(slots=True, frozen=True)
class InitialAckRequest:
    """Opens a link: the receiver starts to count at zero. Gearpump: `InitialAckRequest`."""

    session: SessionId
    source: TaskId
    target: TaskId


@dataclass(slots=True, frozen=True)
class AckRequest:
    """Ask how many records the target has processed. Queued behind the data it asks about.

    ``seq`` is the number of records sent on the link in this session. Gearpump: `AckRequest`.
    """

    session: SessionId
    source: TaskId
    target: TaskId
    seq: int


@dataclass(slots=True, frozen=True)
class Ack:
    """Answer to `AckRequest`: ``received`` of the ``seq`` records asked about were processed.

    ``session`` is that of the asker; ``source`` is the task that answers. Gearpump: `Ack`.
    ``room``: so many records of this sender are its work of about a second; 0: it
    does not say.
    """

    session: SessionId
    source: TaskId
    target: TaskId
    seq: int
    received: int
    room: int = 0


@dataclass(slots=True, frozen=True)
class LatencyProbe:
    """Measures the time from send to processing on one link. ``sent_ns`` is wall time."""

    session: SessionId
    source: TaskId
    target: TaskId
    sent_ns: int


@dataclass(slots=True, frozen=True)
class Unmanaged:
    """A value outside flow control: not counted, not acknowledged, not replayed."""

    session: SessionId
    source: TaskId
    target: TaskId
    value: Any = field(default=None)


LinkMessage: TypeAlias = (
    DataMessage | InitialAckRequest | AckRequest | Ack | LatencyProbe | Unmanaged
)


# -- the size of a batch -----------------------------------------------------------------------

_SAMPLES: Final = 3
_TIME_BYTES: Final = 8
_ITEMS_MAX: Final = 16
_DEPTH_MAX: Final = 4
#: Have nothing inside; nearly all that records are made of.
_ATOMS: Final = frozenset({str, bytes, int, float, bool, type(None)})


def estimate_bytes(values: Sequence[Any]) -> int:
    """Return about how many bytes the values take together; of a table, with its times, exactly.

    Flow control counts bytes so that big records fill a window before small ones do. An exact
    figure would cost more than sending them; a few samples of a batch are enough for a limit.
    """
    if type(values) is Table:
        return values.size_bytes + _TIME_BYTES * len(values)
    count = len(values)
    if count <= _SAMPLES:
        return sum(_size(value, _DEPTH_MAX) for value in values)
    picked = (values[0], values[count // 2], values[-1])
    if type(picked[0]) is type(picked[1]) is type(picked[2]) is str:
        return sum(map(getsizeof, picked)) * count // _SAMPLES
    return sum([_size(value, _DEPTH_MAX) for value in picked]) * count // _SAMPLES


def _size(value: Any, depth: int) -> int:
    if type(value) in _ATOMS:
        return getsizeof(value)
    own = getsizeof(value, 64)
    if depth == 0 or isinstance(value, (str, bytes, int, float)):
        return own
    if isinstance(value, dict):
        return (
            own
            + _sampled(value.keys(), len(value), depth)
            + _sampled(value.values(), len(value), depth)
        )
    if isinstance(value, (list, tuple, set, frozenset)):
        return own + _sampled(value, len(value), depth)
    held = list(vars(value).values()) if hasattr(value, "__dict__") else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        held += [getattr(value, name) for name in names if hasattr(value, name)]
    return own + _sampled(held, len(held), depth)


def _sampled(items: Any, count: int, depth: int) -> int:
    sample = items if count <= _ITEMS_MAX else [*islice(items, _ITEMS_MAX)]
    if not count:
        return 0
    if _ATOMS.issuperset(map(type, sample)):
        return sum(map(getsizeof, sample)) * count // len(sample)
    return sum([_size(item, depth - 1) for item in sample]) * count // len(sample)
