"""Records of topics on their way to and from Kafka's brokers: each step asks them once."""

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import uuid4

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as its manual has it
    AdminClient,
    NewPartitions,
    NewTopic,
)

_ANSWER_S: Final = 10.0
#: A record is stored by all brokers in sync within this, or it is an error.
_STORED_S: Final = 20.0
_COMPACTED: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
_USUAL: Final = {"client.id": "gearpy", "log_level": 0, "reconnect.backoff.max.ms": 500}
_MADE_BY_ANOTHER: Final = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS)


class TopicPlace(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class TopicRecord(NamedTuple):
    """A record as the brokers have it; without a value it removes its key."""

    offset: int
    time_ms: int
    key: str
    value: bytes | None


class TopicClient:
    """Clients of one process, each made when it is first needed.

    Runs on: one thread at a time. All calls raise `KafkaException` or `TimeoutError`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**_USUAL, **settings}

    # -- topics ------------------------------------------------------------------------------

    def partitions(self, topic: str) -> int:
        return _count(self._consumer, topic)

    def all_partitions(self) -> dict[str, int]:
        topics = self._consumer.list_topics(timeout=_ANSWER_S).topics
        return {name: len(each.partitions) for name, each in topics.items()}

    def make(self, place: TopicPlace) -> int:
        """Make a partition, and its topic, unless it is there; return how many there are.

        Another process may make it at the same time. The producer is asked itself: it refuses
        partitions that it has not heard of.
        """
        name, wanted = place.topic, place.partition + 1
        known = _count(self._producer, name)
        if known >= wanted:
            return known
        if known:
            futures = self._admin.create_partitions([NewPartitions(name, wanted)])
        else:
            futures = self._admin.create_topics([NewTopic(name, wanted, -1, config=_COMPACTED)])
        try:
            futures[name].result(_ANSWER_S)
        except KafkaException as error:
            if error.args[0].code() not in _MADE_BY_ANOTHER:
                raise
        while known < wanted:
            time.sleep(0.01)
            known = _count(self._producer, name)
        return known

    # -- records -----------------------------------------------------------------------------

    def send(self, place: TopicPlace, records: Mapping[str, bytes | None]) -> list[TopicRecord]:
        """Store records in order; return them when all brokers in sync have them."""
        errors: list[KafkaError] = []
        stored: list[TopicRecord] = []

        def on_answer(error: KafkaError | None, record: Any) -> None:
            if error is None:
                key = record.key().decode()
                stored.append(
                    TopicRecord(record.offset(), record.timestamp()[1], key, records[key])
                )
            else:
                errors.append(error)

        producer = self._producer
        for key, value in records.items():
            producer.produce(
                place.topic, value, key, partition=place.partition, on_delivery=on_answer
            )
            producer.poll(0)
        left = producer.flush(2 * _STORED_S)
        if errors or left:
            raise KafkaException(errors[0] if errors else KafkaError(KafkaError._MSG_TIMED_OUT))  # noqa: SLF001 - its name
        return stored

    def ends(self, places: Iterable[TopicPlace]) -> dict[TopicPlace, int]:
        """Return the ends of partitions, behind all that was stored before this call."""
        asked = [TopicPartition(*each, OFFSET_END) for each in places]
        found = self._consumer.offsets_for_times(asked, timeout=_ANSWER_S) if asked else []
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return {TopicPlace(each.topic, each.partition): each.offset for each in found}

    def records(self, place: TopicPlace, begin: int, end: int) -> Iterator[TopicRecord]:
        """Yield the records between two offsets; compaction may have taken some, also the last."""
        if begin >= end:
            return
        consumer = self._consumer
        consumer.assign([TopicPartition(*place, begin)])
        try:
            until_s = time.monotonic() + _ANSWER_S
            while time.monotonic() < until_s:
                record: Any = consumer.poll(0.2)
                if record is None:
                    continue
                until_s = time.monotonic() + _ANSWER_S
                error = record.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                    raise KafkaException(error)
                at = record.offset() + (error is None)
                if error is None and at <= end:
                    _, time_ms = record.timestamp()
                    key = record.key().decode()
                    yield TopicRecord(record.offset(), time_ms, key, record.value())
                if at >= end:
                    return
        finally:
            consumer.unassign()  # It would go on asking for more, a hundred times a second.
        raise TimeoutError(f"topic {place.topic} gave nothing for {_ANSWER_S} s")

    # -- clients -----------------------------------------------------------------------------

    @cached_property
    def _producer(self) -> Producer:
        return Producer(
            {
                **self._settings,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "delivery.timeout.ms": int(_STORED_S * 1000),
            }
        )

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._settings,
                "group.id": f"gearpy-{uuid4().hex}",  # Never used: partitions are assigned.
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,  # The end is known: nobody waits for more behind it.
            }
        )

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self._settings)


def _count(client: Producer | Consumer, topic: str) -> int:
    return len(client.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions)
