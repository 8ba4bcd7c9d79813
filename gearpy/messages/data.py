"""Messages between tasks, on the links that join them.

A link is one (source task, target task) pair within one session of the source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias

from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.table import ROWS_PER_CREDIT, credit_of
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

    def __len__(self) -> int:
        return len(self.values)

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
    size_bytes: int = 0  #: What flow control counted for it; an estimate on the row path.

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
