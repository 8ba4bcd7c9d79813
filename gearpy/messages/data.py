"""Task to task: what travels on a link between two tasks.

A link is one (source task, target task) pair within one session of the source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.table import ROWS_PER_CREDIT, credit_of

__all__ = [
    "Ack",
    "AckRequest",
    "Batch",
    "DataMessage",
    "EncodedBatch",
    "InitialAckRequest",
    "LatencyProbe",
    "LinkMessage",
    "Message",
    "Unmanaged",
]


class Message(NamedTuple):
    """One record: a value and its event time in ms since the epoch. Immutable by contract.

    Gearpump: `Message`. The default time is the Unix epoch, as there.
    """

    value: Any
    timestamp: int = 0


#: Makes a `Message` of a ``(value, timestamp)`` pair at the speed of a tuple.
_message_of = partial(tuple.__new__, Message)


@dataclass(slots=True)
class Batch:
    """Records in order: ``values[i]`` happened at ``timestamps[i]`` (ms since the epoch).

    Both lists have the same length. On the columnar path they are a `Table` and its `Times`.
    Immutable by contract once it was handed over, and so are the records in it: tasks of one
    process share it, and steps keep records and store them beside the task.
    """

    values: list[Any]
    timestamps: list[int]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def credit(self) -> int:
        """What its records count for flow control."""
        values = self.values  # Rows, which are the rule, are asked for often.
        return len(values) if type(values) is list else credit_of(values)

    def messages(self) -> Iterator[Message]:
        """Iterate over the records as `Message`s; a row of a table is a dict."""
        return map(_message_of, zip(self.values, self.timestamps, strict=True))

    @classmethod
    def of(cls, *messages: Message) -> "Batch":
        """Make a batch of messages."""
        return cls([m.value for m in messages], [m.timestamp for m in messages])


@dataclass(slots=True)
class EncodedBatch:
    """A batch as it came off the wire; decoded by the task that gets it, in its own thread."""

    count: int
    body: bytes | memoryview
    is_table: bool = False

    def __len__(self) -> int:
        return self.count

    @property
    def credit(self) -> int:
        """What its records count for flow control, as it was where it came from."""
        return -(-self.count // ROWS_PER_CREDIT) if self.is_table else self.count


@dataclass(slots=True)
class DataMessage:
    """Records of one link, with what the sender promises about the link from here on.

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
        """What flow control counts for it: its records; a punctuation as one, lest it get lost."""
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
    """

    session: SessionId
    source: TaskId
    target: TaskId
    seq: int
    received: int


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
