"""Answers of brokers about partitions, through a consumer; each may wait for some seconds."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gearpy.connectors.kafka.client import ClientState, failure, lacking, make_admin
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.reading.positions import WantedTopics, topic_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_ANSWER_S: Final = 5
#: Brokers that are older than such ids give this one.
_NO_ID: Final = "A" * 22


class Brokers:
    """Asks brokers by a consumer that does nothing else; see `Offsets`."""

    def __init__(self, consumer: "Consumer", operator: str, cluster: KafkaCluster) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - an extra

        self._consumer = consumer
        self._operator = operator
        self._cluster = cluster
        self._make = TopicPartition

    def topics(self, wanted: WantedTopics) -> dict[str, int]:
        self._consumer.poll(0)  # It keeps news of connections without an end.
        found: dict[str, int] = {}
        for name in wanted.names or ("",):  # No name asks for all topics.
            topics = self._consumer.list_topics(name or None, timeout=_ANSWER_S).topics
            for topic, told in topics.items():
                if told.error is None:
                    found[topic] = len(told.partitions)
                elif topic in wanted.names:
                    what = f"topic {topic!r} of {self._cluster.servers}"
                    lacks = lacking(self._cluster, "Read", f"--topic {topic}")
                    raise failure(self._operator, what, told.error, lacks=lacks)
        return wanted.among(found)

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids of topics, where they are known: one that is made again has another.

        The client is made for this question, as it is a rare one, and another client cannot ask it.
        """
        from confluent_kafka import KafkaException, TopicCollection  # noqa: PLC0415 - an extra

        if not topics:
            return {}
        admin = make_admin(self._operator, self._cluster, ClientState(self._cluster))
        asked = admin.describe_topics(TopicCollection([*topics]), request_timeout=_ANSWER_S)
        found: dict[str, str] = {}
        for topic, answer in asked.items():
            try:
                found[topic] = str(answer.result().topic_id)
            except KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                    raise
        return {topic: known for topic, known in found.items() if known != _NO_ID}

    def low(self, name: str) -> int:
        return self.range(name)[0]

    def high(self, name: str) -> int:
        return self.range(name)[1]

    def range(self, name: str) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(
            self._make(*topic_of(name)), timeout=_ANSWER_S
        )
        return low, high

    def committed(self, names: Sequence[str]) -> Mapping[str, int]:
        asked = [self._make(*topic_of(name)) for name in names]
        return self._offsets(names, self._consumer.committed(asked, timeout=_ANSWER_S))

    def at_time(self, names: Sequence[str], time_ms: int) -> Mapping[str, int]:
        asked = [self._make(*topic_of(name), time_ms) for name in names]
        return self._offsets(names, self._consumer.offsets_for_times(asked, timeout=_ANSWER_S))

    def commit(self, offsets: Mapping[str, int]) -> None:
        places = [self._make(*topic_of(name), at) for name, at in offsets.items()]
        told = self._consumer.commit(offsets=places, asynchronous=False)
        for each in told or ():
            if each.error is not None:
                raise failure(
                    self._operator, f"commit of {each.topic}/{each.partition}", each.error
                )

    def close(self) -> None:
        self._consumer.close()

    def _offsets(self, names: Sequence[str], told: Sequence[Any]) -> dict[str, int]:
        for name, each in zip(names, told, strict=True):
            if each.error is not None:
                raise failure(self._operator, f"offset of {name}", each.error)
        return {name: at.offset for name, at in zip(names, told, strict=True) if at.offset >= 0}
