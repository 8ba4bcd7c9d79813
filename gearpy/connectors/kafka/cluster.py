"""A Kafka cluster to connect to: addresses, security, settings of the client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from gearpy.errors import ConfigError

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"]

#: The login by Kerberos, which has a ticket in place of user and password.
KERBEROS: Final = "GSSAPI"

#: Settings that decide what is read or written once; gearpy sets them itself.
_OWNED: Final = {
    "acks": "is all",
    "auto.offset.reset": "give out_of_range= to kafka()",
    "bootstrap.servers": "give the addresses as the first argument",
    "enable.auto.commit": "offsets are committed when an epoch is complete",
    "enable.auto.offset.store": "offsets are committed when an epoch is complete",
    "enable.idempotence": "is always on",
    "enable.partition.eof": "is how the source knows the end of a partition",
    "group.id": "give group= to kafka()",
    "isolation.level": "is read_committed",
    "partition.assignment.strategy": "partitions are assigned, not subscribed",
    "transactional.id": "is made of the names of application and sink",
}
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """Addresses of Kafka brokers, the user to log in as, and settings of the client.

    Args:
        servers: ``host:port`` of some brokers, with commas between; the others are found by them.
        user: name to log in by SASL; None: no login.
        password: of the user; take it from `os.environ` rather than write it into the program.
        mechanism: of the login: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512". "GSSAPI" is Kerberos,
            without user and password; it needs a client library that was built with it, and
            ``sasl.kerberos.principal``, ``sasl.kerberos.keytab`` in the settings.
        tls: whether connections are encrypted.
        ca: file with the certificates that those of the brokers are checked by; None: the system's.
        certificate: file with a certificate of this client, if the brokers want one.
        key: file with the private key of that.
        rack: of this machine; a replica of the same rack is read, if the brokers allow it.
        settings: more settings of librdkafka, such as ``{"fetch.max.bytes": 1_000_000}``. Those on
            which exactly-once rests are refused.

    Raises:
        ConfigError: an address is none, a setting is gearpy's own, or the login is half given.

    Example:
        >>> import gearpy as gp
        >>> cluster = gp.KafkaCluster("a:9092,b:9092", user="ann", password="secret", tls=True)
        >>> cluster.servers
        'a:9092,b:9092'
    """

    servers: str
    user: str | None = field(default=None, kw_only=True)
    password: str | None = field(default=None, kw_only=True, repr=False)
    mechanism: Mechanism = field(default="PLAIN", kw_only=True)
    tls: bool = field(default=False, kw_only=True)
    ca: str | None = field(default=None, kw_only=True)
    certificate: str | None = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    rack: str | None = field(default=None, kw_only=True)
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        mistakes = []
        for address in map(str.strip, self.servers.split(",")):
            host, _, port = address.rpartition(":")
            is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX
            if not (host and is_port):
                mistakes.append(
                    f"KafkaCluster: {address!r} is no address of a broker: write host:port, such "
                    "as 'localhost:9092'"
                )
        mistakes += [
            f"KafkaCluster: setting {name!r} is gearpy's own: {_OWNED[name]}"
            for name in self.settings
            if name in _OWNED
        ]
        if (self.user is None) != (self.password is None):
            missing = "password" if self.password is None else "user"
            mistakes.append(
                f"KafkaCluster: a login needs user= and password=: {missing}= is missing"
            )
        if self.mechanism == KERBEROS and self.user is not None:
            mistakes.append(
                "KafkaCluster: with mechanism GSSAPI the ticket says who logs in: leave out user= "
                "and password=, and give settings={'sasl.kerberos.principal': ...}"
            )
        if self.mechanism not in get_args(Mechanism):
            mistakes.append(
                f"KafkaCluster: mechanism is {self.mechanism!r}, must be one of "
                f"{', '.join(get_args(Mechanism))}"
            )
        if not self.tls and (self.ca or self.certificate or self.key):
            mistakes.append("KafkaCluster: ca=, certificate= and key= are for TLS: add tls=True")
        if mistakes:
            raise ConfigError(*mistakes)

    @property
    def principal(self) -> str:
        """The name of the user for the brokers' rights; empty if it is not known."""
        return self.user or str(self.settings.get("sasl.kerberos.principal", "")).partition("@")[0]

    def client_settings(self) -> dict[str, Any]:
        """Return the settings of librdkafka that all clients of this cluster have."""
        logs_in = self.user is not None or self.mechanism == KERBEROS
        security = ("SASL_" if logs_in else "") + ("SSL" if self.tls else "PLAINTEXT")
        given = {
            "sasl.mechanism": self.mechanism if logs_in else None,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": self.certificate,
            "ssl.key.location": self.key,
            "client.rack": self.rack,
        }
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": security,
            **{key: value for key, value in given.items() if value is not None},
            **self.settings,
        }


def cluster_of(operator: str, servers: "str | KafkaCluster") -> KafkaCluster:
    if isinstance(servers, KafkaCluster):
        return servers
    if not isinstance(servers, str):
        raise ConfigError(
            f"{operator}: servers is {servers!r:.100}, need a text such as 'localhost:9092', or a "
            "gp.KafkaCluster"
        )
    return KafkaCluster(servers)
