"""Kafka on gearpy, on the bare client and on other stream processors, in turns on one broker.

Records of a second of the CPU count: of all threads of the process that reads. The bare client is
that of gearpy, "arrow" the same with Arrow's reader of JSON; the others bring one that is older.
Rows are bytes; columns are made of JSON, and are to be seen beside the others with ``-json``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.bench.kafka_writer import WRITERS
from tests.servers.kafka import Kafka

#: What the environment of the others has.
PACKAGES: Final = ("bytewax==0.21.1", "quixstreams==3.28.1")
READERS: Final = (
    *("bare", "rows", "bytewax", "quix"),
    *("arrow", "columns", "bytewax-json", "quix-json"),
)

_OURS: Final = frozenset({"rows", "columns"})
_WITH_CLIENT: Final = frozenset({"bare", "arrow"})
_HERE: Final = Path(__file__).parent
_TIMEOUT_S: Final = 600.0
_BYTES: Final = 100
_TOPIC_S: Final = 60


@dataclass(frozen=True, slots=True)
class Rate:
    reader: str
    per_second: float
    per_cpu_second: float
    load: float


def filled(servers: str, partitions: int, records: int) -> str:
    topic, admin = f"speed{partitions}", AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_TOPIC_S)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "batch.size": 1_000_000})
    for number in range(records):
        _send(producer, topic, _record(number), number % partitions)
    producer.flush()
    return topic


def _record(number: int) -> bytes:
    body = f'{{"id": {number}, "user": "user{number % 1000:05}", "amount": {number % 977 / 7:.4f}'
    return body.encode() + b', "more": "'.ljust(_BYTES - len(body) - 2, b"x") + b'"}'


def _send(producer: Any, topic: str, body: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, body, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def measure_readers(
    cluster: Kafka, python: Path, topic: str, partitions: int, records: int
) -> Iterator[Rate]:
    servers = cluster.address.plain
    for reader in READERS:
        if reader in _OURS:
            command = [sys.executable, "-P", "-m", "tests.bench.kafka_reader", reader, servers]
            said = _run([*command, topic, str(records)])
        else:
            script = str(_HERE / "peer_kafka.py")
            with_client = sys.executable if reader in _WITH_CLIENT else str(python)
            command = [with_client, script, reader, servers, topic, str(partitions), str(records)]
            said = _run(command)
        yield _rate(reader, said)


def measure_writers(servers: str, partitions: int, records: int) -> Iterator[Rate]:
    admin = AdminClient({"bootstrap.servers": servers})
    for writer in WRITERS:
        topic = f"written-{uuid4().hex[:8]}"
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_TOPIC_S)
        command = [sys.executable, "-P", "-m", "tests.bench.kafka_writer", writer, servers]
        yield _rate(writer, _run([*command, topic, str(records)]))


def _rate(name: str, said: dict[str, float]) -> Rate:
    return Rate(
        name,
        said["records"] / said["seconds"],
        said["records"] / said["cpu_seconds"],
        os.getloadavg()[0],
    )


def _run(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said
