"""Topics of a real broker that are read up to what is there, night after night."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

import gearpy as gp
from tests.connectors.kafka.topic_build import TopicBuild, wait_for_commits
from tests.servers.kafka import KafkaAddress


@pytest.fixture(scope="module")
def topics(kafka: KafkaAddress) -> TopicBuild:
    return TopicBuild(kafka.plain)


def test_three_nights_of_a_topic_read_each_record_once(topics: TopicBuild, tmp_path: Path) -> None:
    """Also of a partition that is new, and not those of a transaction that has not ended."""
    topic, group, run = topics.make(2), "nightly", tmp_path / "run"

    def nightly() -> list[str]:
        app, found = gp.StreamApp("nightly"), list[str]()
        source = gp.kafka(topic, servers=topics.servers, value="text", group=group)
        app.read(source).write(gp.to_list(found))
        assert gp.run(app, until="caught-up", checkpoint=run).outcome == "caught up"
        return sorted(found)

    topics.send(topic, ["a", "b"], 0)
    assert nightly() == ["a", "b"]
    assert nightly() == []

    topics.send(topic, ["c"], 0)
    topics.send(topic, ["d"], 1)
    topics.grow(topic, 3)
    topics.send(topic, ["e"], 2)
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": "left-open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"f", partition=1)
    producer.flush()
    assert nightly() == ["c", "d", "e"]
    assert topics.committed(group, topic, 3) == [3, 1, 1]

    producer.commit_transaction()
    wait_for_commits(topics.servers, topic)
    assert nightly() == ["f"]
