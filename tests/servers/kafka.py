"""Kafka brokers, which are their own controllers."""

import shutil
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, java, says
from tests.servers.recipes import cached, jars, run

_VERSION: Final = "4.1.0"
_JARS: Final = (f"org.apache.kafka:kafka_2.13:{_VERSION}", "org.slf4j:slf4j-simple:1.7.36")
_CLUSTER: Final = "gearpyAAAAAAAAAAAAAAAA"  # Any 22 characters of base64.
_HEAP_MB: Final = 320
_READY: Final = "Kafka Server started"
_QUIET: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
#: For SASL/PLAIN; `ADMIN` may do all, `USER` nothing until a test gives it rights.
ADMIN: Final = ("admin", "admin-password")
USER: Final = ("ann", "ann-password")

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
log.dirs={data}
auto.create.topics.enable=false
num.partitions=4
default.replication.factor={copies}
min.insync.replicas={in_sync}
offsets.topic.num.partitions=4
offsets.topic.replication.factor={copies}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={in_sync}
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.bytes=67108864
log.retention.check.interval.ms=1000
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=4
background.threads=2
"""


class KafkaAddress(NamedTuple):
    """Where a cluster is, as ``bootstrap.servers``."""

    plain: str
    sasl: str


class Kafka:
    """A cluster of brokers on free ports.

    Topics are not made by use. Where there are three brokers, each topic has three replicas, of
    which two must be in sync.
    """

    def __init__(self, folder: Path, brokers: int = 1) -> None:
        ports = [(free_port(), free_port(), free_port()) for _ in range(brokers)]
        self.address = KafkaAddress(
            *(",".join(f"127.0.0.1:{each[n]}" for each in ports) for n in (0, 1))
        )
        voters = ",".join(f"{n}@127.0.0.1:{each[2]}" for n, each in enumerate(ports, 1))
        self.brokers = [
            _broker(folder / f"broker{n}", n, each, voters, brokers)
            for n, each in enumerate(ports, 1)
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.brokers:
            each.stop()

    @property
    def broker(self) -> Server:
        return self.brokers[0]

    def start(self) -> None:
        for each in self.brokers:
            each.begin()
        for each in self.brokers:
            each.wait_ready()


def fetch(brokers: int = 1) -> None:
    for node in range(1, brokers + 1):
        _formatted(node)


def _broker(
    folder: Path, node: int, ports: tuple[int, int, int], voters: str, brokers: int
) -> Server:
    plain, sasl, controller = ports
    folder.mkdir(parents=True)
    properties = folder / "server.properties"
    text = _PROPERTIES.format(
        node=node,
        plain=plain,
        sasl=sasl,
        controller=controller,
        voters=voters,
        users=" ".join(f'user_{name}="{password}"' for name, password in (ADMIN, USER)),
        data=folder / "data",
        copies=min(brokers, 3),
        in_sync=1 if brokers < 3 else 2,
    )
    properties.write_text(text)
    shutil.copytree(_formatted(node), folder / "data")
    return Server([*_jvm(), "kafka.Kafka", str(properties)], folder, is_ready=says(_READY))


def _formatted(node: int) -> Path:
    """Return the empty storage of a broker, which takes a JVM to make."""

    def fill(folder: Path) -> None:
        properties = folder / "server.properties"
        properties.write_text(
            f"process.roles=broker,controller\nnode.id={node}\nlog.dirs={folder}/data\n"
            f"controller.quorum.voters={node}@127.0.0.1:1\n"
            "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\n"
            "controller.listener.names=CONTROLLER\n"
        )
        tool = [*_jvm(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER]
        run("formatting the storage of Kafka", [*tool, "-c", str(properties)])

    return cached(f"kafka-storage-{node}", f"{_VERSION} {_CLUSTER}", fill) / "data"


def _jvm() -> list[str]:
    return [*java(_HEAP_MB), *_QUIET, "-cp", f"{jars('kafka', _JARS)}/*"]
