"""The transactions of one task: a producer with a transactional id, and the markers it leaves."""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, starmap
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final

from gearpy.clocks import monotonic_ms
from gearpy.connectors.kafka.client import (
    ClientState,
    failure,
    lacking,
    lasting_cause,
    make_consumer,
    make_producer,
)
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.writing.outgoing import Outgoing, OutgoingEpoch
from gearpy.connectors.kafka.writing.topics import SinkTopics
from gearpy.core.handover.transactions import EpochMarker
from gearpy.errors import GearpyError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

#: The topic of markers has at least so many partitions; an id belongs to one of these for ever.
MARKER_PARTITIONS: Final = 8
MARKER_SETTINGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",  # Small ones, as the newest is never compacted.
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
}
_SLICE_S: Final = 0.5  # Calls of the client last no longer, so that the end of the task is seen.
_ABORT_S: Final = 2.0
_LOOK_MS: Final = 5_000
_POLL_S: Final = 0.1
_READ_RECORDS: Final = 10_000
_READ_S: Final = 0.02
#: So many records are handed over before another thread may go on: in about half a millisecond.
_TOGETHER: Final = 1024
#: After so many writes that failed the client tells for each record what became of it. That takes
#: as long as to send the record, so it is not asked for where brokers were away for a moment.
_ASKED_AFTER: Final = 2


#: A thread of the client looks for room all the time while a request cannot be sent, or while a
#: batch is ready that may not follow the one before: that is full, or older than it may linger.
#: So few requests are under way, and the client keeps less than two batches of a partition, the
#: later one of which may linger. None waits longer for that: an epoch is flushed at its end.
_USUAL: Final[Mapping[tuple[str, ...], int]] = {
    ("max.in.flight", "max.in.flight.requests.per.connection"): 2,
    ("linger.ms", "queue.buffering.max.ms"): 200,
    ("queue.buffering.max.messages",): 600_000,
}
_BATCHES_KEPT: Final = 1.75
_BATCH_RECORDS: Final = 10_000  # The client has so many, unless the user says otherwise.
#: With many partitions no more is kept, and some batches linger instead.
_KEPT_RECORDS_MAX: Final = 500_000
_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
_ROOM_S: Final = 0.02

#: These errors name no topic: the brokers are asked for each before the next try.
_NO_TOPIC: Final = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")


class TransactionTrouble(GearpyError):
    """A transaction that came to no known end; a new producer settles it."""


#: A reader of markers has no group; its client asks for the coordinator of one all the same.
_NO_GROUP: Final = "GROUP_AUTHORIZATION_FAILED"


class _TransactionState(ClientState):
    """Leaves alone that a producer is of no more use, as another one is made then."""

    def on_error(self, error: "KafkaError") -> None:
        if lasting_cause(error) or not error.fatal():
            super().on_error(error)


class TransactionLane:
    """Writes the epochs of one task, and reads the records under its transactional id.

    Runs on: one thread, at most. Its calls raise `TransactionTrouble` for what passes,
    `OperatorError` for what stays, and `GearpyError` when ``goes_on`` has become false.
    """

    def __init__(
        self,
        operator: str,
        cluster: KafkaCluster,
        lane_id: str,
        *,
        marker_topic: str,
        settings: Mapping[str, Any],
        topics: SinkTopics,
        goes_on: Callable[[], bool],
    ) -> None:
        self.lane_id = lane_id
        self.state = _TransactionState(cluster, ignored=(_NO_GROUP,))
        self._operator = operator
        self._cluster = cluster
        self._marker = (marker_topic, zlib.crc32(lane_id.encode()) % MARKER_PARTITIONS)
        self._settings = settings
        self._topics = topics
        self._goes_on = goes_on
        self._producer: Producer | None = None
        self._batch_bytes = 0
        self._has_markers = False  # Whether their topic is there.
        self._failed_writes = 0  # One after the other.
        self._refused: tuple[str, KafkaError] | None = None  # A topic, and why.

    def open(self) -> None:
        self.drop()
        batch = batch_settings(self._topics.batch_bytes_max, self._cluster.settings)
        self._batch_bytes = batch["batch.size"]
        self._refused = None
        settings = {
            **self._settings,
            "transactional.id": self.lane_id,
            **batch,
            **transaction_settings(self._cluster.settings),
        }
        if self._failed_writes >= _ASKED_AFTER:
            settings |= {"on_delivery": self._on_delivery, "delivery.report.only.error": True}
        made = self._producer = make_producer(self._operator, self._cluster, self.state, settings)
        self._repeat(made, made.init_transactions, self._check)

    def look(self) -> EpochMarker | None:
        """Return the newest marker of this id; None if there is none.

        It waits for other tasks' transactions that were open when it began.
        """
        topic, partition = self._marker
        if not self._has_markers:
            self._topics.make(topic, MARKER_PARTITIONS, dict(MARKER_SETTINGS))
            self._has_markers = True
        end = self._topics.end_offset(topic, partition)
        found = None
        for message in self._read(topic, partition, end):
            if message.key() == self.lane_id.encode():
                told = json.loads(message.value() or b"{}")
                found = EpochMarker(**told)
        return found

    def write(self, records: OutgoingEpoch | None, marker: EpochMarker) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

        made = self._producer
        assert made is not None, "open() comes first"
        if self._topics.batch_bytes_max < self._batch_bytes:
            raise TransactionTrouble("a topic takes smaller batches than the producer makes")
        topic, partition = self._marker
        value = json.dumps(marker._asdict()).encode()
        self._failed_writes += 1
        topics = set() if records is None else records.topics
        look_ms = monotonic_ms() + _LOOK_MS

        # The client tries for as long as a transaction may last to write to a topic that is gone.
        def check() -> None:
            nonlocal look_ms
            self._check()
            if monotonic_ms() >= look_ms:
                for topic in topics:
                    self._topics.look_again(topic)
                look_ms = monotonic_ms() + _LOOK_MS

        batch = int(self._cluster.settings.get("batch.num.messages", _BATCH_RECORDS))
        try:
            made.begin_transaction()
            for portion in () if records is None else records.portions:
                partitions = self._topics.partitions_of(set(portion.topics))
                most = most_kept(portion, partitions, self._batch_bytes, batch)
                hand_over(made, portion, check, most)
            marked = Outgoing([topic], [value], [0], [self.lane_id.encode()], [partition])
            hand_over(made, marked, check)
        except KafkaException as error:
            raise self._trouble(error.args[0]) from error
        self._repeat(made, made.commit_transaction, check)
        self._failed_writes = 0
        self.state.on_answer()

    def drop(self) -> None:
        made, self._producer = self._producer, None
        if made is not None:
            made.purge()

    def abort(self) -> None:
        if self._producer is not None:
            with suppress(Exception):  # There may be no transaction.
                self._producer.purge()
                self._producer.abort_transaction(_ABORT_S)
        self.drop()

    # -- the client ------------------------------------------------------------------------

    def _read(self, topic: str, partition: int, end: int) -> "Iterator[Message]":
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition  # noqa: PLC0415 - an extra

        settings = {
            "group.id": "gearpy-markers",  # Nothing is committed to it.
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # The end of a partition is told of by an empty answer.
        }
        consumer = make_consumer(self._operator, self._cluster, self.state, settings)
        try:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            while True:
                for message in consumer.consume(_READ_RECORDS, _READ_S):
                    error = message.error()
                    if error is None:
                        yield message
                    elif error.name() == "_PARTITION_EOF":
                        if (message.offset() or 0) >= end:
                            return
                    elif error.name() != _NO_GROUP:
                        raise self._trouble(error, f"topic {topic!r}")
                self._check()
        finally:
            consumer.close()

    def _repeat(
        self, made: "Producer", call: Callable[[float], object], check: Callable[[], object]
    ) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

        while True:
            try:
                call(_SLICE_S)
            except KafkaException as error:
                told = error.args[0]
                if not told.retriable():
                    raise self._trouble(told) from error
                made.poll(0)  # Tells of brokers that are away.
            else:
                return
            check()

    def _check(self) -> None:
        self.state.check(self._operator)
        if not self._goes_on():
            raise GearpyError(f"{self._operator}: ended while it waited for Kafka")

    def _trouble(self, error: "KafkaError", what: str = "") -> Exception:
        if not what and self._refused is not None:
            topic, error = self._refused
            what = f"topic {topic!r}"
        if lasting_cause(error) and (what or error.name() not in _NO_TOPIC):
            if "TOPIC" in error.name():
                what = what or f"topic {self._marker[0]!r}, or one of the records,"
                resource = f"--topic {self._marker[0]}"
            else:
                what = what or f"transactional id {self.lane_id!r}"
                resource = "--transactional-id gearpy- --resource-pattern-type prefixed"
            lacks = lacking(self._cluster, "Write", resource)
            return failure(self._operator, f"{what} of {self._cluster.servers}", error, lacks=lacks)
        return TransactionTrouble(f"{error.str()} ({error.name()})")

    def _on_delivery(self, error: "KafkaError", message: "Message") -> None:
        if self._refused is None and lasting_cause(error):
            self._refused = message.topic() or "", error


def hand_over(
    producer: "Producer", records: Outgoing, check: Callable[[], object], most: int = 2**31
) -> None:
    """Hand records to a producer; wait while it has no room, or keeps more than so many.

    ``check`` is called while it waits, and raises to give up.
    """
    values = iter(records.values)
    sends = records.sends(values)
    while length_hint(values):  # The hint of a list is exact.
        while len(producer) > most:
            producer.poll(_ROOM_S)
            check()
        try:
            # Without a step of Python's for each record; it returns None.
            any(starmap(producer.produce, islice(sends, _TOGETHER)))
        except BufferError:
            place = len(records) - length_hint(values) - 1
            send = next(islice(records.sends(), place, None))
            is_taken = False
            while not is_taken:
                producer.poll(_POLL_S)
                check()
                with suppress(BufferError):
                    producer.produce(*send)
                    is_taken = True


def batch_settings(topic_bytes_max: int, given: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings by which no batch is larger than the smallest topic takes."""
    most = min(int(given.get("batch.size", 1_000_000)), topic_bytes_max)
    return {"message.max.bytes": 1_000_000_000, "batch.size": most}


def transaction_settings(given: Mapping[str, Any]) -> dict[str, int]:
    return {names[0]: usual for names, usual in _USUAL.items() if given.keys().isdisjoint(names)}


def most_kept(records: Outgoing, partitions: int, batch_bytes: int, batch_records: int) -> int:
    """Return how many records the client may keep: less than two batches for each partition.

    With one batch for each partition, at least one is full: the client has something to send.
    """
    record_bytes = max(1, records.size_bytes // max(1, len(records)))
    batch = max(1, min(batch_records, batch_bytes // record_bytes))
    most = min(_KEPT_RECORDS_MAX, _KEPT_BYTES_MAX // record_bytes)
    return max(1, min(most, int(partitions * batch * _BATCHES_KEPT)))
