"""The hand-over of epochs to the client, and the settings that it has for them."""

from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

import gearpy as gp
from gearpy.connectors.kafka.client import ClientState
from gearpy.connectors.kafka.writing import lane
from gearpy.connectors.kafka.writing.lane import TransactionLane
from gearpy.connectors.kafka.writing.outgoing import Outgoing, OutgoingEpoch
from gearpy.connectors.kafka.writing.topics import SinkTopics
from gearpy.core.handover.transactions import EpochMarker
from gearpy.errors import GearpyError, OperatorError
from tests.bench.process_cluster import free_port
from tests.servers.kafka import KafkaAddress


@pytest.mark.parametrize("name", ["max.in.flight", "max.in.flight.requests.per.connection"])
def test_settings_for_whole_epochs_are_those_of_the_user_if_there_are_any(name: str) -> None:
    usual = lane.transaction_settings({})
    given = lane.transaction_settings({name: 5, "queue.buffering.max.ms": 1})
    assert usual["max.in.flight"] == 2
    assert usual.keys() - given.keys() == {"max.in.flight", "linger.ms"}


def test_no_more_is_handed_over_than_the_client_may_keep() -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{free_port()}"})

    def check() -> None:
        raise GearpyError("enough")

    with pytest.raises(GearpyError, match="enough"):
        lane.hand_over(producer, Outgoing(["t"], [b"x"] * 5000, [0] * 5000), check, most=2000)
    assert len(producer) == 2048
    producer.purge()


@pytest.mark.parametrize(
    ("partitions", "record_bytes", "most"),
    [
        (1, 10, 17_500),
        (4, 10, 70_000),
        (4, 1_000, 7_000),
        (4, 10_000_000, 6),
        (1000, 10, 500_000),
        (1000, 1_000, 67_108),
    ],
)
def test_the_client_keeps_less_than_two_batches_of_a_partition(
    partitions: int, record_bytes: int, most: int
) -> None:
    """A batch has 10,000 records, or a megabyte; of many partitions some batches are not full."""
    records = Outgoing(["t"], [b""] * 3, [0] * 3, size_bytes=3 * record_bytes)
    assert lane.most_kept(records, partitions, 1_000_000, 10_000) == most


class Stuck:
    """A producer whose transaction does not come to its end; it is asked so many times."""

    asked = 0

    def __init__(self, kept: int) -> None:
        self.kept = kept

    def __len__(self) -> int:
        return self.kept

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def commit_transaction(self, _: float) -> None:
        self.asked += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "slow", False, True))  # noqa: SLF001 - of the client


@pytest.mark.parametrize("kept", [0, 1_000_000])
def test_a_topic_that_is_gone_is_told_while_its_transaction_waits(
    kafka: KafkaAddress, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """The client tries for as long as a transaction may last: to end it, or to have room."""
    stuck, cluster, topic = Stuck(kept), gp.KafkaCluster(kafka.plain), f"t-{uuid4().hex}"
    monkeypatch.setattr(lane, "_LOOK_MS", 0)
    monkeypatch.setattr(lane, "make_producer", lambda *_: stuck)

    def goes_on() -> bool:
        return stuck.asked < 3

    topics = SinkTopics("sink", cluster, ClientState(cluster), goes_on, lambda _: None)
    made = TransactionLane(
        "sink",
        cluster,
        "id",
        marker_topic="gearpy-markers",
        settings={},
        topics=topics,
        goes_on=goes_on,
    )
    made.open()
    records = OutgoingEpoch([Outgoing([topic], [b"a"], [1])])
    with pytest.raises(OperatorError, match=f"topic '{topic}' of {kafka.plain} does not exist"):
        made.write(records, EpochMarker(1, 1))
