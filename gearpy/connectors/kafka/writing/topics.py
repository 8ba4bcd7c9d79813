"""Topics that a sink writes: whether they are there, and the records that they take."""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from gearpy.connectors.kafka.client import (
    ClientState,
    Errands,
    failure,
    final_cause,
    lacking,
    make_admin,
)
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.registry import RegistryAway
from gearpy.connectors.kafka.writing.outgoing import TopicFacts
from gearpy.errors import GearpyError, OperatorError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger(__name__)

#: The defaults of brokers, for users without a right to read the settings of a topic.
_RECORD_BYTES_MAX: Final = 1_048_588
_AHEAD_MS_MAX: Final = 3_600_000
_TIMEOUT_S: Final = 5.0
_PAUSE_S: Final = 0.1
_SLICE_S: Final = 0.5
_REGISTRY_PAUSE_S: Final = 0.5


class SinkTopics:
    """Tells the known facts of topics; asks the brokers once for each. Runs on any thread.

    Args:
        goes_on: whether it should still wait for brokers that are away.
        prepare: called with each topic before anything is written there; see `ValueForm.prepare`.
    """

    def __init__(
        self,
        operator: str,
        cluster: KafkaCluster,
        state: ClientState,
        goes_on: Callable[[], bool],
        prepare: Callable[[str], object],
    ) -> None:
        self._operator = operator
        self._cluster = cluster
        self._state = state
        self._goes_on = goes_on
        self._prepare = prepare
        self.waits_for = ""  #: The schema registry, while it does not answer.
        self._admin: AdminClient | None = None
        self._known: dict[str, TopicFacts] = {}
        self._refused: dict[str, GearpyError] = {}  # By topics that `ask` was called with.
        self._errands: Errands | None = None
        self.is_asking = False  #: Whether an answer to `ask` is to come.

    def knows(self, topics: Iterable[str]) -> bool:
        return all(topic in self._known for topic in topics)

    @property
    def batch_bytes_max(self) -> int:
        return min((each.record_bytes_max for each in self._known.values()), default=2**30)

    def partitions_of(self, topics: Iterable[str]) -> int:
        known = self._known
        return sum(known[topic].partitions if topic in known else 1 for topic in topics)

    def ask(self, topics: Iterable[str], wake: Callable[[], object]) -> None:
        """Have `facts` know topics soon, or know why not; it need not wait for them then."""
        self._refused = {}
        unknown = set(topics) - self._known.keys()
        if not unknown:
            return
        self._errands = self._errands or Errands(f"kafka-topics-{self._operator}")
        self.is_asking = True
        self._errands.post(lambda: self._learn(unknown, wake))

    def close(self) -> None:
        if self._errands is not None:
            self._errands.close(lambda: None, _SLICE_S)

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts about a topic; waits for the brokers, and for the schema registry."""
        if topic in self._refused:
            raise self._refused[topic]
        found = self._known.get(topic)
        if found is None:
            from confluent_kafka.admin import (  # type: ignore[attr-defined] # noqa: PLC0415 - an extra
                AclOperation,
                ConfigResource,
                ResourceType,
            )

            described = self.look_again(topic)
            allowed = described.authorized_operations
            if allowed is not None and AclOperation.WRITE not in allowed:
                lacks = lacking(self._cluster, "Write", f"--topic {topic}")
                raise self._failed(topic, f"must not be written: {lacks}")
            resource = ConfigResource(ResourceType.TOPIC, topic)
            settings: dict[str, Any] = {}
            with suppress(OperatorError):  # The user may not read them.
                settings = self._wait(
                    topic, lambda each: each.describe_configs([resource])[resource]
                )
            known = {name: each.value for name, each in settings.items() if each.value is not None}
            found = TopicFacts(
                partitions=len(described.partitions),
                record_bytes_max=int(known.get("max.message.bytes", _RECORD_BYTES_MAX)),
                ahead_ms_max=int(known.get("message.timestamp.after.max.ms", _AHEAD_MS_MAX)),
            )
            self._prepare_values(topic)
            self._known[topic] = found
        return found

    def look_again(self, topic: str) -> Any:
        """Return the description of a topic, which may be gone; waits for the brokers."""
        described = self._described(topic)
        if described is None:
            raise self._failed(topic, "does not exist: correct its name, or make it")
        return described

    def make(self, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """Make a topic, if it is not there; waits for the brokers."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined] # noqa: PLC0415 - an extra

        described = self._described(topic, "Read")
        if described is not None:
            if len(described.partitions) < partitions:
                raise self._failed(topic, f"has fewer than {partitions} partitions: add some")
            return
        made = NewTopic(topic, partitions, config=settings)
        none_if = "TOPIC_ALREADY_EXISTS"
        self._wait(topic, lambda each: each.create_topics([made])[topic], "Create", none_if)
        _log.info("%s has made topic %s", self._operator, topic)

    def end_offset(self, topic: str, partition: int) -> int:
        """Return where a partition ends, with records of open transactions."""
        from confluent_kafka import IsolationLevel, TopicPartition  # noqa: PLC0415 - an extra
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # noqa: PLC0415 - an extra

        place = TopicPartition(topic, partition)

        def ask(admin: "AdminClient") -> Any:
            asked = admin.list_offsets(
                {place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=_TIMEOUT_S,
            )
            return asked[place]

        return int(self._wait(topic, ask).offset)

    def _learn(self, topics: Iterable[str], wake: Callable[[], object]) -> None:
        refused: dict[str, GearpyError] = {}
        try:
            for topic in topics:
                try:
                    self.facts(topic)
                except GearpyError as error:
                    refused[topic] = error
        finally:  # A writer hears of another error when it asks by itself.
            self._refused, self.is_asking = refused, False
            wake()

    # -- the brokers -----------------------------------------------------------------------

    def _prepare_values(self, topic: str) -> None:
        while True:
            try:
                self._prepare(topic)
            except RegistryAway as error:
                if not self.waits_for:
                    _log.warning("%s waits for %s", self._operator, error)
                self.waits_for = str(error)
            except GearpyError as error:
                cause = f"topic {topic!r}: {error}"
                raise OperatorError(operator=self._operator, cause=cause, is_final=True) from error
            else:
                self.waits_for = ""
                return
            time.sleep(_REGISTRY_PAUSE_S)
            self._check_goes_on()

    def _described(self, topic: str, right: str = "Write") -> Any:
        from confluent_kafka import TopicCollection  # noqa: PLC0415 - an extra

        def ask(admin: "AdminClient") -> Any:
            return admin.describe_topics(
                TopicCollection([topic]),
                include_authorized_operations=True,
                request_timeout=_TIMEOUT_S,
            )[topic]

        return self._wait(topic, ask, right, "UNKNOWN_TOPIC_OR_PART")

    def _wait(
        self,
        topic: str,
        ask: "Callable[[AdminClient], Any]",
        right: str = "Read",
        none_if: str = "",
    ) -> Any:
        """Return an answer of the brokers about a topic, however long they are away.

        An error of the name ``none_if`` stands for None; ``right`` is what the user needs.
        """
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

        while True:
            admin = self._admin  # Another thread may put it away.
            if admin is None:
                admin = self._admin = make_admin(self._operator, self._cluster, self._state)
            try:
                answer = self._answer(ask(admin))
            except (KafkaException, TimeoutError) as error:
                told = error.args[0] if isinstance(error, KafkaException) else None
                if told is not None and told.name() == none_if:
                    self._state.on_answer()
                    return None
                if told is not None and final_cause(told):
                    what = f"topic {topic!r} of {self._cluster.servers}"
                    lacks = lacking(self._cluster, right, f"--topic {topic}")
                    raise failure(self._operator, what, told, lacks=lacks) from error
                admin.poll(_PAUSE_S)
                self._admin = None  # It would keep to what it knows of leaders, however wrong.
            else:
                self._state.on_answer()
                return answer
            self._state.check(self._operator)
            self._check_goes_on()

    def _answer(self, asked: Any) -> Any:
        until_s = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return asked.result(_SLICE_S)
            except TimeoutError:
                if time.monotonic() > until_s:
                    raise
                self._check_goes_on()

    def _check_goes_on(self) -> None:
        if not self._goes_on():
            raise GearpyError(f"{self._operator}: ended while it waited for Kafka")

    def _failed(self, topic: str, why: str) -> OperatorError:
        cause = f"topic {topic!r} of {self._cluster.servers} {why}"
        return OperatorError(operator=self._operator, cause=cause, is_final=True)
