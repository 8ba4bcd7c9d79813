"""Records that the broker itself removes while an application reads: by age, size and key."""

import re
import threading
from typing import Any, Final

import pytest

import gearpy as gp
from tests.connectors.kafka.topic_build import TopicBuild
from tests.connectors.kafka.writing import reading
from tests.eventually import eventually
from tests.servers.kafka import KafkaAddress

pytestmark = pytest.mark.long  # A broker looks half a minute after its start, and then in turns.

_LONG_S: Final = 180
_SMALL: Final = {"segment.bytes": "1048576", "file.delete.delay.ms": "1000"}
#: So the client has few records that are no more there.
_FEW: Final = {"queued.max.messages.kbytes": 100, "fetch.max.bytes": 100_000}
_BODY: Final = "x" * 992


@pytest.fixture(scope="module")
def topics(kafka: KafkaAddress) -> TopicBuild:
    return TopicBuild(kafka.plain)


def kept(topics: TopicBuild, topic: str) -> list[int]:
    return [each.offset() or 0 for each in reading.read(topics.servers, topic)]


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_an_application_that_is_behind_counts_what_was_removed(
    topics: TopicBuild, caplog: pytest.LogCaptureFixture, policy: Any
) -> None:
    topic = topics.make(1, "", **_SMALL, **{"retention.bytes": "1048576"})
    topics.send(topic, [f"{at:08}{_BODY}" for at in range(500)])
    begun, may_go_on, found = threading.Event(), threading.Event(), list[int]()

    def look(value: str) -> int:
        begun.set()
        may_go_on.wait(_LONG_S)
        return int(value[:8])

    cluster = gp.KafkaCluster(
        topics.servers, settings=_FEW | {"message.max.bytes": 100_000, "queued.min.messages": 50}
    )
    app = gp.StreamApp("behind")
    source = gp.kafka(
        topic, servers=cluster, value="text", out_of_range=policy, until={f"{topic}/0": 4500}
    )
    app.read(source).map(look).write(gp.to_list(found))
    with gp.start(app) as run:
        assert begun.wait(_LONG_S)
        topics.send(topic, [f"{at:08}{_BODY}" for at in range(500, 4500)])
        oldest = eventually(lambda: (kept(topics, topic) or [4500])[0], within_s=_LONG_S)
        may_go_on.set()
        run.wait(_LONG_S)

    left_out = sum(map(int, re.findall(r"; (\d+) records are left out", caplog.text)))
    assert oldest > len(found) > 0
    assert len(found) + left_out == 4500
    assert found == sorted({*found})


def test_records_that_later_ones_of_their_key_replace_are_no_loss(
    topics: TopicBuild, caplog: pytest.LogCaptureFixture
) -> None:
    quick = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000", "delete.retention.ms": "0"}
    topic = topics.make(1, "", **_SMALL, **quick, **{"cleanup.policy": "compact"})
    for key in ("a", "b", "a"):
        topics.send(topic, [f"{at}{_BODY}" for at in range(1500)], key=key)
    eventually(lambda: kept(topics, topic)[0] > 0, within_s=_LONG_S, every_s=1)

    def offsets(**options: Any) -> list[int]:
        found, app = list[int](), gp.StreamApp("compacted")
        source = gp.kafka(topic, servers=topics.servers, records=True, **options)
        app.read(source).map(lambda record: record.offset).write(gp.to_list(found))
        gp.run(app)
        return found

    before = {*kept(topics, topic)}
    from_begin = offsets(until="now")
    from_gap = offsets(start={f"{topic}/0": 1}, until="now")
    assert offsets(until={f"{topic}/0": 1}) == []
    for found in (from_begin, from_gap):
        assert found == sorted({*found})
        assert {*kept(topics, topic)} <= {*found} <= before  # It may go on to remove some.
    assert "left out" not in caplog.text
