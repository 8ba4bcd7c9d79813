"""The sink for Kafka topics."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from gearpy.connectors.kafka.cluster import KafkaCluster, cluster_of
from gearpy.connectors.kafka.values import FormName, ValueForm
from gearpy.connectors.kafka.writing.outgoing import Headers, RecordForm
from gearpy.connectors.kafka.writing.values import RecordValues, ValueFunction
from gearpy.connectors.kafka.writing.writers import (
    DirectWriter,
    EpochsWriter,
    SinkPlan,
    settle_lane,
)
from gearpy.distribution import require
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import PacedWriter, Sink

KafkaGuarantee: TypeAlias = Literal["exactly-once", "at-least-once"]
Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]

_NAME: Final = "kafka_sink"
#: Unless the settings of the cluster say otherwise. A transaction of a broker that was away for a
#: moment must not wait long for its producer.
_USUAL: Final[Mapping[str, Any]] = {"linger.ms": 5, "reconnect.backoff.max.ms": 500}
_MARKER_TOPIC: Final = "gearpy-markers"


def kafka_sink(
    topic: str | Callable[[Any], str],
    *,
    servers: str | KafkaCluster,
    value: FormName | ValueForm | ValueFunction = "json",
    key: str | Callable[[Any], bytes | str | None] | None = None,
    headers: Callable[[Any], Headers | None] | None = None,
    timestamp: Callable[[Any], int] | None = None,
    partition: Callable[[Any], int] | None = None,
    guarantee: KafkaGuarantee = "exactly-once",
    compression: Compression = "none",
    name: str | None = None,
    marker_topic: str = _MARKER_TOPIC,
) -> Sink:
    """Write results to Kafka topics: exactly once by transactions, or at once.

    With "exactly-once" the records of an epoch are sent when it is complete, in one transaction for
    each task, so readers with ``isolation.level=read_committed`` see each record once, about one
    epoch after it was made. Each transaction leaves a marker in a compacted topic, which is made
    if it is not there; by that a restart knows which epochs were committed. With "at-least-once"
    records are sent as they come; after a failure those since the newest epoch come again.

    Topics must be there. A record that is too large for its topic, or whose topic is not there or
    must not be written, is dealt with by ``application.on-error``; where all records have one
    topic that cannot be written, the application ends.

    Args:
        topic: the name, or a function of a result that returns one.
        servers: ``host:port`` of some brokers with commas between, or a `gp.KafkaCluster`.
        value: "json", "text", "bytes", "msgpack", `gp.avro`, `gp.protobuf`, or a function of a
            result that returns bytes. A result that is None, or a None of the function, is a record
            without a value, which deletes its key where the topic is compacted.
        key: a field of the results, or a function that returns bytes, text or None.
        headers: a function that returns texts or bytes by name, or pairs.
        timestamp: a function that returns ms since the epoch; without, the event time.
        partition: a function that returns the number of the partition; without, murmur2 of the key,
            as Java's clients do, and any partition for a record without a key.
        guarantee: "exactly-once" or "at-least-once".
        compression: "none", "gzip", "snappy", "lz4" or "zstd".
        name: of the sink in transactional ids; without, the topic. Two sinks of one application
            need different ones.
        marker_topic: the topic of the markers.

    Raises:
        ConfigError: an argument cannot be meant so.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("pages")
        >>> pages = app.read(gp.collection([{"page": "/", "ms": 12}]))
        >>> pages.write(gp.kafka_sink("pages", servers="localhost:9092", key="page"))
    """
    cluster = cluster_of(_NAME, servers)
    require(_NAME, "confluent_kafka")
    operator = f"{_NAME}({topic if isinstance(topic, str) else 'by record'})"
    mistakes = []
    if not topic or not (isinstance(topic, str) or callable(topic)):
        mistakes.append(f"topic is {topic!r:.100}, need a name, or a function that returns one")
    for what, given, choices in (
        ("guarantee", guarantee, get_args(KafkaGuarantee)),
        ("compression", compression, get_args(Compression)),
    ):
        if given not in choices:
            mistakes.append(f"{what} is {given!r:.100}, must be one of {', '.join(choices)}")
    if name is None and not isinstance(topic, str):
        mistakes.append("give name=, as topic= is a function: it is part of transactional ids")
    if mistakes:
        raise ConfigError(*(f"{_NAME}: {each}" for each in mistakes))
    return KafkaSink(
        SinkPlan(
            name=name or str(topic),
            cluster=cluster,
            form=RecordForm(
                operator=operator,
                topic=topic,
                values=RecordValues(_NAME, value),
                key=key,
                headers=headers,
                timestamp=timestamp,
                partition=partition,
            ),
            marker_topic=marker_topic,
            settings={
                **{key: value for key, value in _USUAL.items() if key not in cluster.settings},
                "partitioner": "murmur2_random",
                "compression.type": compression,
            },
        ),
        guarantee,
    )


class KafkaSink(Sink):
    """Topics of a Kafka cluster; see `kafka_sink`."""

    paced = True

    def __init__(self, plan: SinkPlan, guarantee: KafkaGuarantee) -> None:
        self.plan = plan
        self.columnar = plan.form.takes_tables
        self.transactional = self.leaves_open = guarantee == "exactly-once"

    @property
    def description(self) -> str:
        return self.plan.form.operator

    @property
    def writes(self) -> Sequence[str]:
        return (f"{_NAME} name {self.plan.name!r} at {self.plan.cluster.servers}",)

    def settle(self, task_index: int, *, run: str) -> None:
        settle_lane(self.plan, task_index, run)

    def open(self, task_index: int, parallelism: int) -> PacedWriter:
        return (EpochsWriter if self.transactional else DirectWriter)(self.plan, task_index)
