"""Topics of a real broker for tests, and applications that read them."""

import itertools
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

import gearpy as gp
from tests.eventually import eventually

#: While a broker that has just begun makes the topic of groups.
_NO_COORDINATOR_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}

_NUMBERS = itertools.count()


class TopicBuild:
    def __init__(self, servers: str, sasl: str = "") -> None:
        self.servers = servers
        self.sasl = sasl
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._producer: Producer | None = None

    def make(self, partitions: int = 1, name: str = "", **settings: str) -> str:
        """Return the name of a new topic; its records stay, though they are of 1970."""
        topic = f"{name or 't'}-{os.getpid()}-{next(_NUMBERS)}"
        new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"} | settings)
        self.admin.create_topics([new])[topic].result(60)
        wait_for_topic(self.admin, topic, partitions)
        return topic

    def make_again(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(60)

        def is_made() -> bool:  # It is refused while the one before is being deleted.
            new = NewTopic(topic, 1, 1, config={"retention.ms": "-1"})
            return self.admin.create_topics([new])[topic].exception(60) is None

        eventually(is_made, f"{topic} is there again")
        wait_for_topic(self.admin, topic, 1)
        self._producer = None  # It knows the one before.

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)
        wait_for_topic(self.admin, topic, partitions)
        self._producer = None  # It does not know them.

    def allow(
        self,
        user: str,
        name: str,
        *rights: AclOperation,
        kind: ResourceType = ResourceType.TOPIC,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        """Give a user rights to a topic, or to something else; by default that to read."""
        for each in rights or (AclOperation.READ,):
            given = (kind, name, pattern, f"User:{user}", "*", each, AclPermissionType.ALLOW)
            right = AclBinding(*given)
            self.admin.create_acls([right])[right].result(60)
            eventually(partial(self._knows, AclBindingFilter(*given)), "the broker knows it")

    def _knows(self, right: AclBindingFilter) -> bool:
        return bool(self.admin.describe_acls(right).result(60))

    def send(self, topic: str, values: Iterable[Any], partition: int = 0, **given: Any) -> None:
        """Write values, bytes or text, to a partition; each has the time of its place in ms."""
        if self._producer is None:
            self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        time, errors = given.pop("timestamp", 1), list[Any]()
        given["on_delivery"] = lambda error, _: errors.append(error) if error else None
        for at, value in enumerate(values):
            self._producer.produce(topic, value, partition=partition, timestamp=time + at, **given)
        assert self._producer.flush(60) == 0
        assert not errors

    def forget(self, topic: str, before: int, partition: int = 0) -> None:
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(60)

    def committed(self, group: str, topic: str, partitions: int = 1) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        try:
            asked = [TopicPartition(topic, number) for number in range(partitions)]
            while True:
                try:
                    return [each.offset for each in consumer.committed(asked, timeout=60)]
                except KafkaException as error:
                    if error.args[0].code() not in _NO_COORDINATOR_YET:
                        raise
        finally:
            consumer.close()


def wait_for_topic(admin: AdminClient, topic: str, partitions: int) -> None:
    """Wait until the broker tells of a topic: it hears a moment later than who has made it."""

    def is_known() -> bool:
        told = admin.list_topics(topic, timeout=60).topics[topic]
        led = [each for each in told.partitions.values() if each.error is None and each.leader >= 0]
        return told.error is None and len(led) == partitions

    eventually(is_known, f"{partitions} partitions of {topic}")


def wait_for_commits(servers: str, topic: str) -> None:
    """Wait until readers see all that is there: what is committed is shown behind the answer."""
    admin = AdminClient({"bootstrap.servers": servers})
    partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
    newest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ask = {TopicPartition(topic, each): newest for each in partitions}

    def ends(level: IsolationLevel) -> list[int]:
        told = admin.list_offsets(ask, isolation_level=level)
        return [each.result(60).offset for each in told.values()]

    def are_shown() -> bool:
        return ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED)

    eventually(are_shown, f"no transaction is open in {topic}")


def read(*topics: str, config: Mapping[str, Any] | None = None, **options: Any) -> list[Any]:
    app, found = gp.StreamApp("reading"), list[Any]()
    options = {"until": "now"} | options
    app.read(gp.kafka(*topics, **options)).write(gp.to_list(found, messages=True))
    gp.run(app)
    return found


def values_of(*topics: str, **options: Any) -> list[Any]:
    return [message.value for message in read(*topics, **options)]
