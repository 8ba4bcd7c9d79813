"""The records of one task's partitions, off one consumer."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gearpy.connectors.kafka.client import ClientState, final_cause
from gearpy.connectors.kafka.reading.positions import name_of, topic_of
from gearpy.connectors.kafka.reading.raw import Raw, RawColumns

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

#: Some records of a partition, or the offset where it ends at present, or an error of it.
Item: TypeAlias = "Raw | int | KafkaError"

#: So many are taken off the client at a time: more do not fit the cache of a processor.
_CHUNK: Final = 1000
#: A partition with more than this, unread, is paused; its share of the client's queue is let go.
_WAITING_MAX: Final = 20_000
_WAITING_BYTES_MAX: Final = 32_000_000


class Feed:
    """Takes records off a consumer, and keeps those of partitions that are read later.

    What is kept is bounded: a partition with much of it is paused, and the client's own queue has a
    limit, behind which the brokers are not asked. Used by one task, in its thread.
    """

    def __init__(
        self, consumer: "Consumer", state: ClientState, operator: str, columns: RawColumns
    ) -> None:
        from confluent_kafka import KafkaError, Message, TopicPartition  # noqa: PLC0415 - an extra

        self._consumer = consumer
        self._state = state
        self._operator = operator
        self._columns = columns
        self._partition: Callable[[str, int], TopicPartition] = lambda name, offset: TopicPartition(
            *topic_of(name), offset
        )
        self._error_of = Message.error
        self._end, self._gone = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - names of the client
        self._items: dict[str, deque[Item]] = {}
        self._waiting: dict[str, list[int]] = {}  # Records and bytes.
        self._paused: set[str] = set()
        self._known: set[str] = set()  # Also partitions that were removed; and topics of all.
        self._topics: set[str] = set()

    def add(self, name: str, offset: int) -> None:
        self._items[name], self._waiting[name] = deque(), [0, 0]
        self._known.add(name)
        self._topics.add(topic_of(name)[0])
        self._consumer.incremental_assign([self._partition(name, offset)])

    def remove(self, name: str) -> None:
        if self._items.pop(name, None) is not None:
            del self._waiting[name]
            self._paused.discard(name)
            self._consumer.incremental_unassign([self._partition(name, 0)])

    def put_back(self, name: str, error: "KafkaError") -> None:
        self._items[name].appendleft(error)

    def listen(self) -> None:
        """Hear the client's news while there is no partition."""
        self._fill()

    def take(self, name: str) -> "Item | None":
        """Return the next records of a partition; None: nothing at present. Never waits."""
        items = self._items[name]
        if not items:
            self._fill()
        if not items:
            return None
        item = items.popleft()
        if isinstance(item, Raw):
            self._note(name, item, -1)
        return item

    def reads_ahead(self) -> bool:
        """Take records that are asked for later; False: there are none, or enough of them."""
        waiting = self._waiting.values()
        if any(
            records + _CHUNK > _WAITING_MAX or size > _WAITING_BYTES_MAX // 2
            for records, size in waiting
        ):
            return False
        return self._fill()

    def _fill(self) -> bool:
        """Deal out what the client has; False if it has nothing."""
        messages = self._consumer.consume(_CHUNK, 0)
        self._state.check(self._operator)
        if not messages:
            return False
        self._state.on_answer()
        if any(map(self._error_of, messages)):
            begin = 0
            for at, message in enumerate(messages):
                error = message.error()
                if error is None:
                    continue
                self._deal(messages[begin:at])
                begin = at + 1
                topic, number = message.topic(), message.partition()
                name = None if topic is None or number is None else name_of(topic, number)
                # It is the client's as a whole, or that of a partition that was removed.
                if name not in self._items:
                    self._state.on_error(error)
                    self._state.check(self._operator)
                elif error.code() == self._end:
                    self._items[name].append(message.offset() or 0)
                elif error.code() == self._gone or final_cause(error):
                    self._items[name].append(error)
                else:
                    self._state.on_error(error)
            self._deal(messages[begin:])
        else:
            self._deal(messages)
        return True

    def _deal(self, messages: "list[Message]") -> None:
        if not messages:
            return
        kind = type(messages[0])
        if len(self._known) == 1:
            (name,) = self._known
            self._put(name, messages)
            return
        numbers: list[Any] = list(map(kind.partition, messages))
        if len(self._topics) == 1 and numbers.count(numbers[0]) == len(numbers):
            (topic,) = self._topics
            self._put(name_of(topic, numbers[0]), messages)
            return
        dealt: dict[str, list[Message]] = {}
        whose = map(name_of, map(kind.topic, messages), numbers)  # type: ignore[arg-type] # All have one.
        for name, message in zip(whose, messages, strict=True):
            dealt.setdefault(name, []).append(message)
        for name, its in dealt.items():
            self._put(name, its)

    def _put(self, name: str, messages: "list[Message]") -> None:
        if name not in self._items:  # Still in the client's queue when it was removed.
            return
        raw = Raw.of(messages, self._columns)
        self._items[name].append(raw)
        self._note(name, raw, 1)

    def _note(self, name: str, raw: Raw, sign: int) -> None:
        waiting = self._waiting[name]
        waiting[0] += sign * len(raw)
        waiting[1] += sign * raw.size_bytes
        is_much = waiting[0] > _WAITING_MAX or waiting[1] > _WAITING_BYTES_MAX
        if is_much and name not in self._paused:
            self._paused.add(name)
            self._consumer.pause([self._partition(name, 0)])
        elif not self._items[name] and name in self._paused:
            self._paused.discard(name)
            self._consumer.resume([self._partition(name, 0)])
