"""The broker of tests is a real one: it keeps what it has after SIGKILL, and can be frozen."""

import struct
from contextlib import suppress
from socket import create_connection

import pytest

from tests.eventually import eventually
from tests.servers.kafka import Kafka, KafkaAddress

#: Length, then: ApiVersions, version 0, correlation 7, client "t".
_ASK_VERSIONS = struct.pack(">ihhih1s", 11, 18, 0, 7, 1, b"t")


def answers(address: str) -> bool:
    """Tell whether a broker answers the first question of every client."""
    host, _, port = address.partition(":")
    with suppress(OSError), create_connection((host, int(port)), 1) as connection:
        connection.settimeout(1)
        connection.sendall(_ASK_VERSIONS)
        answer = connection.recv(100)
        return struct.unpack_from(">ih", answer, 4) == (7, 0)
    return False


def test_a_shared_broker_answers_at_both_addresses(kafka: KafkaAddress) -> None:
    eventually(lambda: answers(kafka.plain))
    eventually(lambda: answers(kafka.sasl))


@pytest.mark.long
def test_a_broker_of_a_test_is_killed_frozen_and_started_again(own_kafka: Kafka) -> None:
    broker, address = own_kafka.broker, own_kafka.address.plain

    broker.kill()
    assert not answers(address)
    broker.restart()
    eventually(lambda: answers(address))
    broker.freeze()
    assert not answers(address)
    broker.thaw()
    eventually(lambda: answers(address))
