"""Records of Kafka that are left out undecoded, as to decode them ends the process."""

import json
from contextlib import closing
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.task.sources.place_text import place_text
from tests.connectors.kafka.topic_build import TopicBuild
from tests.eventually import eventually
from tests.servers.kafka import KafkaAddress


@pytest.fixture(scope="module")
def topics(kafka: KafkaAddress) -> TopicBuild:
    return TopicBuild(kafka.plain)


@pytest.mark.parametrize("schema", [None, {"n": int}])
def test_the_next_record_is_left_out(topics: TopicBuild, schema: Any) -> None:
    topic = topics.make(1, "")
    topics.send(topic, [json.dumps({"n": at}) for at in range(6)])
    source = gp.kafka(topic, servers=topics.servers, value="json", schema=schema, until="now")
    with closing(source.discover(0, 1, ())) as finder:
        ((name, place),) = eventually(lambda: dict(finder.find())).items()
        with closing(finder.open(name, place)) as reader:
            reader.read_little()
            read = list[int]()
            while len(read) < 2:
                batch = reader.read_batch(1)
                read += [row["n"] for row in (batch.values if batch is not None else ())]
            where = place_text(name, reader.snapshot())
            left_out = eventually(lambda: reader.step_over(all_of_file=False))
            with pytest.raises(ConfigError, match="not the record that ends the process"):
                reader.step_over(all_of_file=True)
            while not reader.finished:
                batch = reader.read_batch(2)
                read += [row["n"] for row in (batch.values if batch is not None else ())]

    assert where == f"{topic}/0, offset 2"
    assert left_out == "offset 2: b'{\"n\": 2}'"
    assert read == [0, 1, 3, 4, 5]
