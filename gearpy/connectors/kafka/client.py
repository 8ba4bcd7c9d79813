"""Makes clients of a Kafka cluster, and tells errors that pass from those that stay."""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.errors import ConfigError, GearpyError, OperatorError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient


T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)

#: Errors that no waiting cures, by their names in librdkafka, and the cure of each.
_FINAL: Final = {
    "_AUTHENTICATION": "the login was refused: correct user=, password= and mechanism=",
    "SASL_AUTHENTICATION_FAILED": "the login was refused: correct user= and password=",
    "UNSUPPORTED_SASL_MECHANISM": "the brokers have no such login: correct mechanism=",
    "_SSL": "TLS failed: correct tls=, ca=, certificate= and key=",
    "TOPIC_AUTHORIZATION_FAILED": "the user has no right to the topic: have it granted",
    "GROUP_AUTHORIZATION_FAILED": "the user has no right to the group of group=: have it granted",
    "CLUSTER_AUTHORIZATION_FAILED": "the user lacks a right of the cluster: have it granted",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "the user has no right to the transactional id: have it granted for all that begin with "
        "gearpy-"
    ),
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic: correct its name, or make it",
    "_UNKNOWN_TOPIC": "there is no such topic: correct its name, or make it",
    "_UNKNOWN_PARTITION": "there is no such partition, or its topic was deleted",
    "TOPIC_EXCEPTION": "this is no name of a topic",
    "MSG_SIZE_TOO_LARGE": "the record is larger than the topic takes: max.message.bytes",
    "RECORD_LIST_TOO_LARGE": "the records are larger than the topic takes: max.message.bytes",
    "UNSUPPORTED_VERSION": "the brokers are too old",
}

_NO_RIGHT: Final = "_AUTHORIZATION_FAILED"
_NO_PROVIDER: Final = "No provider for SASL mechanism GSSAPI"
_NO_KERBEROS: Final = (
    "confluent-kafka as PyPI has it was built without Kerberos: build it against a librdkafka with "
    "libsasl2, by pip install --no-binary confluent-kafka confluent-kafka, on all machines"
)

_ALL_AWAY: Final = "_ALL_BROKERS_DOWN"
#: A broker that asks for a login hangs up on clients without one, and says nothing.
_NONE_STAYS: Final = (
    "no broker stays connected: look whether one runs there, and speaks {protocol}, as user=, "
    "mechanism= and tls= ask for"
)


def lasting_cause(error: "KafkaError") -> str:
    return _FINAL.get(error.name(), "")


def final_cause(error: "KafkaError") -> str:
    return lasting_cause(error) or ("the client cannot go on" if error.fatal() else "")


def lacking(cluster: KafkaCluster, operation: str, resource: str) -> str:
    """Return the cure if a user lacks a right to a resource, such as ``--topic orders``."""
    user = cluster.principal
    grant = f"--add --allow-principal User:{user or 'NAME'} --operation {operation} {resource}"
    who = f"user {user!r}" if user else "the user"
    return f"{who} lacks the right {operation}: have it granted, such as by kafka-acls.sh {grant}"


def failure(operator: str, what: str, error: "KafkaError", *, lacks: str = "") -> OperatorError:
    """Return the error that ends the task; ``lacks`` is the cure if it is about a right."""
    fix = lacks if lacks and error.name().endswith(_NO_RIGHT) else final_cause(error)
    return OperatorError(
        operator=operator,
        cause=": ".join(part for part in (what, fix, f"{error.str()} ({error.name()})") if part),
        is_final=bool(fix),
    )


#: librdkafka writes around an error which thread has seen it, and states of its own.
_AROUND: Final = re.compile(r"^\S+/(bootstrap|\d+): | \(after \d+ms in state .*\)$")


class ClientState:
    """The last trouble that a client has told of; it comes on the thread that polls the client."""

    def __init__(
        self, cluster: KafkaCluster, ignored: Collection[str] = (), lacks: str = ""
    ) -> None:
        self._ignored = ignored
        self._lacks = lacks
        self._servers = cluster.servers
        self._protocol = cluster.client_settings()["security.protocol"]
        self._trouble = ""
        self._final: KafkaError | None = None

    def on_error(self, error: "KafkaError") -> None:
        if error.name() in self._ignored:
            return
        if not self._trouble:  # The client tells of each attempt to connect.
            _LOG.warning("kafka %s: %s (%s)", self._servers, error.str(), error.name())
        if error.name() != _ALL_AWAY:
            self._trouble = _AROUND.sub("", error.str())
        elif not self._trouble:  # An error of one broker says more.
            self._trouble = _NONE_STAYS.format(protocol=self._protocol)
        if final_cause(error):
            self._final = error

    def on_answer(self) -> None:
        if self._trouble:
            _LOG.warning("kafka %s answers again", self._servers)
        self._trouble, self._final = "", None

    @property
    def waits_for(self) -> str:
        return f"kafka {self._servers}: {self._trouble}" if self._trouble else ""

    def check(self, operator: str) -> None:
        if self._final is not None:
            raise failure(operator, f"kafka {self._servers}", self._final, lacks=self._lacks)


def make_consumer(
    operator: str, cluster: KafkaCluster, state: ClientState, settings: Mapping[str, Any]
) -> "Consumer":
    """Make a consumer; it connects in the background. Settings of the cluster do not count."""
    from confluent_kafka import Consumer  # noqa: PLC0415 - an extra

    return _made(operator, Consumer, cluster, state, settings)


def make_admin(operator: str, cluster: KafkaCluster, state: ClientState) -> "AdminClient":
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an extra

    return _made(operator, AdminClient, cluster, state, {})


def make_producer(
    operator: str, cluster: KafkaCluster, state: ClientState, settings: Mapping[str, Any]
) -> "Producer":
    from confluent_kafka import Producer  # noqa: PLC0415 - an extra

    return _made(operator, Producer, cluster, state, settings)


def _made(
    operator: str,
    make: Callable[[dict[str, Any]], T],
    cluster: KafkaCluster,
    state: ClientState,
    settings: Mapping[str, Any],
) -> T:
    all_settings = {
        "client.id": "gearpy",
        **cluster.client_settings(),
        **settings,
        "error_cb": state.on_error,
        "logger": _CLIENT_LOG,
    }
    try:
        return make(all_settings)
    except Exception as error:  # KafkaException, ValueError and TypeError, by the setting.
        told = error.args[0] if error.args else error
        told = str(told.str()) if hasattr(told, "str") else str(told)
        fix = _NO_KERBEROS if _NO_PROVIDER in told else "correct settings= of the KafkaCluster"
        raise ConfigError(f"{operator}: the client refuses its settings: {told}: {fix}") from error


#: The client's own notes; what matters of them comes as an error, too.
_CLIENT_LOG: Final = logging.getLogger(f"{__name__}.librdkafka")
_CLIENT_LOG.setLevel(logging.CRITICAL + 1)

#: Returns what comes back; it may wait some seconds.
Errand: TypeAlias = Callable[[], Any]


class Errands:
    """Runs errands one after the other on a thread, so that the task need not wait for brokers."""

    def __init__(self, name: str) -> None:
        self._posted: SimpleQueue[Errand | None] = SimpleQueue()
        self._back: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, errand: Errand) -> None:
        self._posted.put(errand)

    def take(self) -> Any:
        return None if self._back.empty() else self._back.get()

    def close(self, last: Errand, timeout_s: float) -> None:
        """Run the errands that were posted and a last one; wait so long, then leave them to it."""
        self._posted.put(last)
        self._posted.put(None)
        self._thread.join(timeout_s)
        while (back := self.take()) is not None:
            if isinstance(back, Exception):
                # A question to brokers that failed since they are away matters to nobody any more.
                level = logging.WARNING if isinstance(back, GearpyError) else logging.INFO
                _LOG.log(level, "at the end: %s", back)

    def _run(self) -> None:
        while (errand := self._posted.get()) is not None:
            try:
                back = errand()
            except Exception as error:  # noqa: BLE001 - the task raises it, or tries again
                back = error
            if back is not None:
                self._back.put(back)
