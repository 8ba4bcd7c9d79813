"""A Kafka cluster: addresses, login, settings that are refused."""

import pytest

from gearpy.connectors.kafka.cluster import KafkaCluster, cluster_of
from gearpy.errors import ConfigError


def test_an_address_is_enough() -> None:
    assert KafkaCluster("a:9092, b:9092").client_settings() == {
        "bootstrap.servers": "a:9092, b:9092",
        "security.protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize(
    ("tls", "user", "protocol"),
    [
        (False, None, "PLAINTEXT"),
        (True, None, "SSL"),
        (False, "ann", "SASL_PLAINTEXT"),
        (True, "ann", "SASL_SSL"),
    ],
)
def test_login_and_tls_make_the_protocol(*, tls: bool, user: str | None, protocol: str) -> None:
    cluster = KafkaCluster("a:1", tls=tls, user=user, password=user)
    assert cluster.client_settings()["security.protocol"] == protocol


def test_all_that_is_given_reaches_the_client() -> None:
    """Each argument becomes a setting; settings of the user come last."""
    cluster = KafkaCluster(
        "a:1",
        user="ann",
        password="secret",
        mechanism="SCRAM-SHA-256",
        tls=True,
        ca="ca.pem",
        certificate="me.pem",
        key="me.key",
        rack="r1",
        settings={"fetch.max.bytes": 5, "security.protocol": "sasl_ssl"},
    )
    assert cluster.client_settings() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ann",
        "sasl.password": "secret",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.key",
        "client.rack": "r1",
        "fetch.max.bytes": 5,
    }


def test_kerberos_has_a_ticket_and_no_password() -> None:
    settings = {"sasl.kerberos.principal": "ann@EXAMPLE.ORG"}
    assert KafkaCluster("a:1", mechanism="GSSAPI", settings=settings).client_settings() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        **settings,
    }
    with pytest.raises(ConfigError, match="the ticket says who logs in: leave out user="):
        KafkaCluster("a:1", user="ann", password="secret", mechanism="GSSAPI")


def test_nothing_secret_is_shown() -> None:
    cluster = KafkaCluster(
        "a:1", user="ann", password="secret", settings={"sasl.password": "secret"}
    )
    assert "secret" not in repr(cluster)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        KafkaCluster(
            "a,b:0,c:9",
            user="ann",
            mechanism="NTLM",  # type: ignore[arg-type]
            ca="ca.pem",
            settings={"isolation.level": "read_uncommitted", "client.id": "x"},
        )
    assert list(caught.value.mistakes) == [
        "KafkaCluster: 'a' is no address of a broker: write host:port, such as 'localhost:9092'",
        "KafkaCluster: 'b:0' is no address of a broker: write host:port, such as 'localhost:9092'",
        "KafkaCluster: setting 'isolation.level' is gearpy's own: is read_committed",
        "KafkaCluster: a login needs user= and password=: password= is missing",
        (
            "KafkaCluster: mechanism is 'NTLM', must be one of PLAIN, SCRAM-SHA-256, "
            "SCRAM-SHA-512, GSSAPI"
        ),
        "KafkaCluster: ca=, certificate= and key= are for TLS: add tls=True",
    ]


def test_servers_are_addresses_or_a_cluster() -> None:
    """A text is a cluster without a login; anything else is refused."""
    cluster = KafkaCluster("a:1")
    assert cluster_of("kafka", cluster) is cluster
    assert cluster_of("kafka", "a:1") == cluster
    with pytest.raises(ConfigError, match="kafka: servers is 9092, need a text"):
        cluster_of("kafka", 9092)  # type: ignore[arg-type]
