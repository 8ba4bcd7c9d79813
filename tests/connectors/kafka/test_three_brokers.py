"""Three brokers with three replicas of each topic, of which one is killed."""

import json
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

import gearpy as gp
from gearpy.config.load import from_overrides
from tests.connectors.kafka.topic_build import wait_for_commits
from tests.connectors.kafka.writing.reading import values
from tests.eventually import eventually
from tests.servers.kafka import Kafka
from tests.servers.recipes import Unavailable

PARTITIONS: Final = 3
RECORDS: Final = 2000  # Of each partition.
KEYS: Final = 7
_WAIT_S: Final = 150


def send(producer: Producer, numbers: range) -> None:
    for n in numbers:
        for partition in range(PARTITIONS):
            producer.produce("in", json.dumps([partition, n]), partition=partition)
        producer.poll(0)
    assert producer.flush(_WAIT_S) == 0


@pytest.mark.long
def test_results_are_there_once_when_one_of_three_brokers_dies(tmp_path: Path) -> None:
    try:
        cluster = Kafka(tmp_path / "kafka", brokers=3)
    except Unavailable as error:
        pytest.skip(str(error))
    with cluster:
        servers = cluster.address.plain
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(name, PARTITIONS) for name in ("in", "out")]
        for made in admin.create_topics(topics).values():
            made.result(_WAIT_S)
        producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 0}
        )
        send(producer, range(RECORDS // 2))

        app = gp.StreamApp("three", parallelism=2)
        ends = {f"in/{partition}": RECORDS for partition in range(PARTITIONS)}
        source = gp.kafka("in", servers=servers, value="json", until=ends)
        keyed = app.read(source).key_by(lambda each: f"{each[0]}-{each[1] % KEYS}")
        counted = keyed.map_with_state(lambda seen, each: (seen + 1, [*each, seen]), initial=0)
        counted.write(gp.kafka_sink("out", servers=servers, key=lambda each: str(each[1] % KEYS)))
        config = from_overrides({"checkpoint.interval-ms": "200"})
        with gp.start(app, config=config, checkpoint=tmp_path / "checkpoint") as run:
            eventually(lambda: values(servers, "out"), within_s=_WAIT_S)
            leader = admin.list_topics("out", timeout=60).topics["out"].partitions[0].leader
            cluster.brokers[leader - 1].kill()
            send(producer, range(RECORDS // 2, RECORDS))
            assert run.wait(_WAIT_S).status == "succeeded"
        wait_for_commits(servers, "out")
        found = [json.loads(value) for value in values(servers, "out")]

    assert sorted(found) == [
        [partition, n, n // KEYS] for partition in range(PARTITIONS) for n in range(RECORDS)
    ]
    by_key: dict[tuple[int, int], list[int]] = {}
    for partition, n, _ in found:
        by_key.setdefault((partition, n % KEYS), []).append(n)
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
