"""Topics for tests, and what a reader outside of gearpy sees in them."""

import time
from typing import Final
from uuid import uuid4

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.connectors.kafka.topic_build import wait_for_topic

_WAIT_S: Final = 120.0
_QUICK: Final = {"fetch.wait.max.ms": 10, "enable.partition.eof": True}


def make_topic(servers: str, *, partitions: int = 1, **settings: str) -> str:
    """Make a topic with a name of its own; its records stay, though they are of 1970."""
    name = f"t-{uuid4().hex[:12]}"
    given = {key.replace("_", "."): value for key, value in settings.items()}
    given.setdefault("retention.ms", "-1")
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions, config=given)])[name].result(_WAIT_S)
    wait_for_topic(admin, name, partitions)
    return name


def read(servers: str, topic: str, *, level: str = "read_committed") -> list[Message]:
    """Return all records that a reader sees now, partition by partition."""
    settings = {"bootstrap.servers": servers, "group.id": "test", "isolation.level": level}
    consumer = Consumer({**settings, **_QUICK})
    try:
        places = [
            TopicPartition(topic, partition, 0)
            for partition in consumer.list_topics(topic, timeout=_WAIT_S).topics[topic].partitions
        ]
        consumer.assign(places)
        found: list[Message] = []
        ends, until_s = 0, time.monotonic() + _WAIT_S
        while ends < len(places):
            assert time.monotonic() < until_s, f"{topic} is not read to its end"
            for message in consumer.consume(1000, 0.02):
                if message.error() is None:
                    found.append(message)
                else:
                    ends += 1
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition() or 0, each.offset() or 0))


def values(servers: str, topic: str) -> list[str]:
    """Return the values that a `read_committed` reader sees, as text."""
    return [(message.value() or b"").decode() for message in read(servers, topic)]
