"""Clients of Kafka: which errors pass, which settings are refused. Nothing listens here."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from gearpy.connectors.kafka.client import (
    ClientState,
    failure,
    final_cause,
    make_admin,
    make_consumer,
    make_producer,
)
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.errors import ConfigError, OperatorError
from tests.eventually import eventually

NOWHERE = KafkaCluster("127.0.0.1:1")


@pytest.mark.parametrize(
    ("code", "is_final"),
    [
        (KafkaError._AUTHENTICATION, True),  # noqa: SLF001 - its name in the client
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, True),
        (KafkaError._ALL_BROKERS_DOWN, False),  # noqa: SLF001 - as above
        (KafkaError._TRANSPORT, False),  # noqa: SLF001 - as above
        (KafkaError.LEADER_NOT_AVAILABLE, False),
        (KafkaError.NOT_LEADER_FOR_PARTITION, False),
        (KafkaError.REQUEST_TIMED_OUT, False),
    ],
)
def test_an_error_passes_or_stays(*, code: int, is_final: bool) -> None:
    """A refusal stays; a broker that is away comes back."""
    error = KafkaError(code)
    assert bool(final_cause(error)) is is_final
    assert failure("kafka(a)", "topic 'a'", error).is_final is is_final


def test_a_fatal_error_stays() -> None:
    assert final_cause(KafkaError(KafkaError._FENCED, "newer", fatal=True))  # noqa: SLF001 - as above


def test_trouble_is_told_until_a_broker_answers() -> None:
    state = ClientState(NOWHERE)
    assert state.waits_for == ""
    state.on_error(KafkaError(KafkaError._TRANSPORT, "refused"))  # noqa: SLF001 - as above
    assert state.waits_for == "kafka 127.0.0.1:1: refused"
    state.check("kafka(a)")
    state.on_answer()
    assert state.waits_for == ""


def test_the_log_tells_of_trouble_once_and_of_its_end(caplog: pytest.LogCaptureFixture) -> None:
    state = ClientState(NOWHERE)
    for _ in range(3):
        state.on_error(KafkaError(KafkaError._TRANSPORT, "refused"))  # noqa: SLF001 - as above
    state.on_answer()
    state.on_answer()
    assert caplog.messages == [
        "kafka 127.0.0.1:1: refused (_TRANSPORT)",
        "kafka 127.0.0.1:1 answers again",
    ]


def test_clients_say_nothing_themselves_while_no_broker_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The library writes some lines a second to the error output, unless it is told where to."""
    state, told = ClientState(NOWHERE), list[Any]()
    state.on_error = told.append  # type: ignore[method-assign, assignment]
    consumer = make_consumer("kafka(a)", NOWHERE, state, {"group.id": "g"})
    producer = make_producer("kafka_sink(a)", NOWHERE, state, {})
    admin = make_admin("kafka_sink(a)", NOWHERE, state)

    def has_tried() -> bool:
        consumer.poll(0.01)
        producer.poll(0.01)
        admin.poll(0.01)
        return len(told) >= 6

    eventually(has_tried)
    consumer.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("more", ["", ", 3 identical error(s) suppressed"])
def test_trouble_is_told_without_the_client_s_own_states(more: str) -> None:
    told = "Connect to ipv4#127.0.0.1:1 failed: Connection refused"
    around = f"127.0.0.1:1/bootstrap: {told} (after 0ms in state CONNECT{more})"
    state = ClientState(NOWHERE)
    state.on_error(KafkaError(KafkaError._TRANSPORT, around))  # noqa: SLF001 - as above
    assert state.waits_for == f"kafka 127.0.0.1:1: {told}"


def test_that_all_brokers_are_away_hides_nothing_that_says_more() -> None:
    gone = KafkaError(KafkaError._ALL_BROKERS_DOWN, "0/2 brokers are down")  # noqa: SLF001 - as above
    state = ClientState(KafkaCluster("127.0.0.1:1", tls=True))
    state.on_error(gone)
    assert "look whether one runs there, and speaks SSL, as user=" in state.waits_for
    state.on_error(KafkaError(KafkaError._TRANSPORT, "refused"))  # noqa: SLF001 - as above
    state.on_error(gone)
    assert state.waits_for == "kafka 127.0.0.1:1: refused"


def test_a_refused_login_is_an_error_that_names_the_fix() -> None:
    state = ClientState(NOWHERE)
    state.on_error(KafkaError(KafkaError._AUTHENTICATION, "bad password"))  # noqa: SLF001 - as above
    with pytest.raises(OperatorError, match=r"127\.0\.0\.1:1: the login was refused: .*password="):
        state.check("kafka(a)")


def test_a_setting_that_the_client_does_not_know_is_refused() -> None:
    cluster = KafkaCluster("127.0.0.1:1", settings={"no.such": 1})
    state = ClientState(cluster)
    with pytest.raises(ConfigError, match=r'kafka\(a\): the client refuses .*"no\.such"'):
        make_consumer("kafka(a)", cluster, state, {"group.id": "g"})
    with pytest.raises(ConfigError, match=r'"no\.such"'):
        make_producer("kafka_sink(a)", cluster, state, {})


def test_clients_are_made_without_a_broker() -> None:
    state = ClientState(NOWHERE)
    make_consumer("kafka(a)", NOWHERE, state, {"group.id": "g"}).close()
    assert make_producer("kafka_sink(a)", NOWHERE, state, {}) is not None


def test_a_client_without_kerberos_is_told_of() -> None:
    """The wheels of PyPI are; what has to be built is named."""
    cluster = KafkaCluster("127.0.0.1:1", mechanism="GSSAPI")
    with pytest.raises(ConfigError, match="built without Kerberos: build it against a librdkafka"):
        make_producer("kafka_sink(a)", cluster, ClientState(cluster), {})
