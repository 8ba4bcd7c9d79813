"""Records on their way to topics, as columns, and the functions that make them of results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from gearpy.columns.results import pair_keys, result_columns
from gearpy.connectors.files.stamps import each
from gearpy.connectors.kafka.writing.values import RecordValues
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS
from gearpy.messages.table import Table, newest_of, oldest_of
from gearpy.task.api.failure import operator_error
from gearpy.task.api.window_result import rows_in
from gearpy.wire.values.payload import decode_value
from gearpy.wire.values.pieces import Encoded, Pieces, Scattered, encode_pieces, joined

if TYPE_CHECKING:
    from gearpy.columns.row_schema import RowSchema

#: The headers of a record: texts and bytes by name, or pairs of these, as a name may come twice.
Headers: TypeAlias = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
_Header: TypeAlias = tuple[str, bytes | None]

_ANY_PARTITION: Final = -1
#: More than all that a record and a batch of one record have besides key, value and headers.
_RECORD_BYTES: Final = 128
_HEADER_BYTES: Final = 10
#: Encoded, so many are larger than what is copied into a snapshot once more.
_PORTION_RECORDS: Final = 8192


class TopicFacts(NamedTuple):
    """The bounds of a topic: a record beyond them is refused by the brokers."""

    partitions: int
    record_bytes_max: int  #: ``max.message.bytes``.
    ahead_ms_max: int  #: A timestamp may be so far ahead of the clock.


class Addressed(NamedTuple):
    """Results of a stream, and where they go."""

    results: Sequence[Any]  #: May be a table.
    rows: Sequence[Any]  #: The same, as rows unless columns do.
    topics: list[str]  #: One for each, or one that all have.


@dataclass(slots=True)
class Outgoing:
    """Records on their way to topics, column by column; a column that says nothing is empty.

    Attributes:
        topics: one for each record, or one that all have.
        values: None is a tombstone.
        times: in ms since the epoch; 0 is when the client sends it.
        partitions: empty if the partitioner decides.
        size_bytes: of all values, keys and headers.
    """

    topics: list[str] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    headers: list[list[_Header]] = field(default_factory=list)
    size_bytes: int = 0
    _encoded: Pieces | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, more: "Outgoing") -> None:
        assert self._encoded is None, "they are in a checkpoint"
        if len(self.topics) != 1 or self.topics != more.topics:
            self.topics = self.each_topic()
            self.topics += more.each_topic()
        self.values += more.values
        self.times += more.times
        self.keys += more.keys
        self.partitions += more.partitions
        self.headers += more.headers
        self.size_bytes += more.size_bytes

    def each_topic(self) -> list[str]:
        return self.topics * len(self) if len(self.topics) == 1 else self.topics

    def encoded(self) -> Pieces:
        """Return the records as bytes, made once: checkpoints have them until they are sent."""
        if self._encoded is None:
            encoded = encode_pieces(
                {
                    "topics": self.topics,
                    "values": Scattered(self.values),
                    "times": self.times,
                    "keys": Scattered(self.keys),
                    "partitions": self.partitions,
                    "headers": self.headers,
                    "bytes": self.size_bytes,
                }
            )
            self._encoded = encoded if isinstance(encoded, Pieces) else Pieces([encoded])
        return self._encoded

    @classmethod
    def decoded(cls, encoded: Encoded) -> Self:
        body = joined(encoded)
        plain = decode_value(body)
        return cls(
            topics=list(plain["topics"]),
            values=list(plain["values"]),
            times=list(plain["times"]),
            keys=list(plain["keys"]),
            partitions=list(plain["partitions"]),
            headers=[[(name, value) for name, value in each] for each in plain["headers"]],
            size_bytes=plain["bytes"],
            _encoded=Pieces([body]),
        )

    def sends(self, values: Iterable[bytes | None] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `confluent_kafka.Producer.produce`, in its order.

        That is not the one which its documentation says: behind the partition it has two names for
        the function that is told of each delivery. Such a function costs more than the record.
        The caller sees by the iterator of values how far this one has come.
        """
        columns: list[Iterable[Any]] = [
            self.topics if len(self.topics) == len(self) else repeat(self.topics[0]),
            values or self.values,
            self.keys or repeat(None),
            self.partitions or repeat(_ANY_PARTITION),
            repeat(None),
            repeat(None),
            self.times,
        ]
        if self.headers:
            columns.append(self.headers)
        return zip(*columns, strict=False)


class OutgoingEpoch:
    """The records of one epoch, in portions, each encoded when it is full.

    While it is being made, a portion is in the caches of the processor: to encode all records at
    the end of an epoch takes twice as long.
    """

    __slots__ = ("portions", "size_bytes")

    def __init__(self, portions: Iterable[Outgoing] = ()) -> None:
        self.portions = list(portions)
        self.size_bytes = sum(each.size_bytes for each in self.portions)  #: See `Outgoing`.

    def __len__(self) -> int:
        return sum(map(len, self.portions))

    @property
    def topics(self) -> set[str]:
        return {topic for each in self.portions for topic in each.topics}

    def add(self, more: Outgoing) -> None:
        """Add records of the same form; none were asked for since."""
        if not more:
            return
        if self.portions and len(self.portions[-1]) < _PORTION_RECORDS:
            self.portions[-1].add(more)
        else:
            self.portions.append(more)
        self.size_bytes += more.size_bytes
        if len(self.portions[-1]) >= _PORTION_RECORDS:
            self.portions[-1].encoded()

    def encoded(self) -> list[Pieces]:
        return [each.encoded() for each in self.portions]

    @classmethod
    def decoded(cls, bodies: Sequence[Encoded]) -> Self:
        return cls(map(Outgoing.decoded, bodies))

    def sends(self) -> Iterator[tuple[Any, ...]]:
        return chain.from_iterable(each.sends() for each in self.portions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordForm:
    """The functions that make records for topics of the results of a stream; see `kafka_sink`."""

    operator: str
    topic: str | Callable[[Any], str]
    values: RecordValues
    key: str | Callable[[Any], bytes | str | None] | None = None
    headers: Callable[[Any], Headers | None] | None = None
    timestamp: Callable[[Any], int] | None = None
    partition: Callable[[Any], int] | None = None
    schema: "RowSchema | None" = None  #: Of the results.

    def addressed(self, results: Sequence[Any]) -> Addressed:
        rows = results if self._takes(results) else rows_in(results, self.schema)
        if isinstance(self.topic, str):
            topics = [self.topic] if len(rows) else []
        else:
            topics = each(self.operator, _checked("topic", self.topic, str), rows)
        return Addressed(results, rows, topics)

    def _takes(self, results: Sequence[Any]) -> bool:
        """Tell whether a table can stay one."""
        if type(results) is not Table or not self.takes_tables:
            return False
        schema = results.batch.schema
        columns = result_columns(schema)
        key = pair_keys(schema) if columns is None else columns.key
        names = schema.names if key is None else {*key} & {"key"}
        return self.key is None or self.key in names

    @property
    def takes_tables(self) -> bool:
        """Whether it makes records of columns, and not of each row by a function."""
        functions = (self.topic, self.key, self.headers, self.timestamp, self.partition)
        return self.values.take_tables and not any(map(callable, functions))

    def outgoing(
        self,
        addressed: Addressed,
        times: list[int],
        facts: Callable[[str], TopicFacts],
        now_ms: int,
    ) -> Outgoing:
        """Return the records; none if one of them would be refused."""
        _, rows, topics = addressed
        bounds: dict[str, TopicFacts] = {}
        for topic in dict.fromkeys(topics):
            try:
                bounds[topic] = facts(topic)
            except OperatorError as error:
                if isinstance(self.topic, str):
                    raise
                of, cause = rows[topics.index(topic)], ValueError(error.cause)
                raise operator_error(self.operator, cause, record=of) from error

        newest_ms = newest_of(times, 0)
        if self.timestamp is not None:
            times = each(self.operator, _checked("timestamp", self.timestamp, int), rows)
            newest_ms = max(times, default=0)
        elif oldest_of(times, 0) < 0 or newest_ms >= MAX_MS:
            times = [time if 0 <= time < MAX_MS else 0 for time in times]
            newest_ms = max(times)

        made = Outgoing(topics=topics, values=self.values.of(topics, rows), times=list(times))
        key, partition, headers = self.key, self.partition, self.headers
        if isinstance(key, str) and type(rows) is Table:
            made.keys = each(self.operator, _key_bytes, rows.batch.column(key).to_pylist())
        elif isinstance(key, str):
            made.keys = each(
                self.operator,
                lambda row: _key_bytes(row[key] if isinstance(row, Mapping) else getattr(row, key)),
                rows,
            )
        elif key is not None:
            made.keys = each(self.operator, lambda row: _key_bytes(key(row)), rows)
        if partition is not None:
            made.partitions = each(self.operator, _checked("partition", partition, int), rows)
        if headers is not None:
            made.headers = each(self.operator, lambda row: _headers(headers(row) or ()), rows)
        self._check(made, rows, bounds, newest_ms=newest_ms, now_ms=now_ms)
        return made

    # -- what brokers refuse ---------------------------------------------------------------

    def _check(
        self,
        made: Outgoing,
        results: Sequence[Any],
        bounds: Mapping[str, TopicFacts],
        *,
        newest_ms: int,
        now_ms: int,
    ) -> None:
        """Find what the brokers would refuse, and count the bytes."""
        made.size_bytes = sum(sum(column) for column in _size_columns(made))
        for topic, facts in bounds.items():
            most, latest_ms = facts.record_bytes_max - _RECORD_BYTES, now_ms + facts.ahead_ms_max
            if made.size_bytes <= most and newest_ms <= latest_ms and not made.partitions:
                continue
            sizes, *others = _size_columns(made)
            for column in others:
                sizes = [*map(add, sizes, column)]
            if max(sizes) <= most and newest_ms <= latest_ms and not made.partitions:
                continue
            for place, of_topic in enumerate(made.each_topic()):
                if of_topic == topic:
                    size = sizes[place]
                    refused = _refusal(
                        made, place, topic=topic, size=size, bounds=facts, now_ms=now_ms
                    )
                    if refused:
                        cause, of = ValueError(refused), results[place]
                        raise operator_error(self.operator, cause, record=of)


def _refusal(
    made: Outgoing, place: int, *, topic: str, size: int, bounds: TopicFacts, now_ms: int
) -> str:
    """Return why a record would be refused; empty if it would not."""
    if size + _RECORD_BYTES > bounds.record_bytes_max:
        return (
            f"the record has {size:,} bytes, and topic {topic!r} takes {bounds.record_bytes_max:,} "
            "with what Kafka adds: raise max.message.bytes of the topic, or send less"
        )
    ahead_ms = made.times[place] - now_ms
    if ahead_ms > bounds.ahead_ms_max:
        return (
            f"its timestamp is {ahead_ms:,} ms ahead of the clock, and topic {topic!r} takes "
            f"{bounds.ahead_ms_max:,}: give timestamp=, or raise message.timestamp.after.max.ms"
        )
    if made.partitions and not 0 <= made.partitions[place] < bounds.partitions:
        return (
            f"partition() has returned {made.partitions[place]}, and topic {topic!r} has "
            f"partitions 0 to {bounds.partitions - 1}"
        )
    return ""


def _size_columns(made: Outgoing) -> list[list[int]]:
    columns: list[list[int]] = []
    for column in filter(None, (made.values, made.keys)):
        try:
            columns.append([*map(len, column)])  # type: ignore[arg-type] # None raises.
        except TypeError:
            columns.append([0 if each is None else len(each) for each in column])
    if made.headers:
        columns.append(
            [
                sum(len(name) * 4 + len(value or b"") + _HEADER_BYTES for name, value in each)
                for each in made.headers
            ]
        )
    return columns


def _headers(given: Headers) -> list[_Header]:
    pairs = given.items() if isinstance(given, Mapping) else given
    return [(name, _bytes(f"header {name!r}", value)) for name, value in pairs]


def _checked(what: str, function: Callable[[Any], Any], kind: type) -> Callable[[Any], Any]:
    def call(row: Any) -> Any:
        found = function(row)
        if type(found) is not kind:
            raise TypeError(f"{what}() has returned {found!r:.100}, must be {kind.__name__}")
        return found

    return call


def _key_bytes(key: Any) -> bytes | None:
    return _bytes("the key", key)


def _bytes(what: str, given: Any) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    raise TypeError(f"{what} is {given!r:.100}: make bytes or text of it, such as by str()")
