"""Writes records of 100 bytes to a topic, by gearpy or by the bare client; prints rates as JSON."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from confluent_kafka import Producer

import gearpy as gp
from gearpy.connectors.kafka.writing.lane import transaction_settings
from gearpy.connectors.kafka.writing.sink import KafkaGuarantee

WRITERS: Final = ("producer", "transactions", "at-least-once", "exactly-once")

_BYTES: Final = 100
_BLOCK: Final = 10_000
#: Records of a transaction of the bare producer: as of an epoch of a second.
_TRANSACTION: Final = 400_000
_POLL_S: Final = 0.1
_Began = list[tuple[float, float]]


def _records(count: int) -> Iterator[bytes]:
    rng = random.Random(1)
    block = [rng.randbytes(_BYTES) for _ in range(_BLOCK)]
    for _ in range(count // _BLOCK):
        yield from block


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _bare(servers: str, **more: str | int) -> Producer:
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        **more,
    }
    return Producer(settings)


def _produce(producer: Producer, topic: str, records: Iterable[bytes]) -> None:
    produce = producer.produce
    for record in records:
        while True:
            try:
                produce(topic, record)
                break
            except BufferError:
                producer.poll(_POLL_S)


def _write_bare(servers: str, topic: str, count: int) -> _Began:
    producer = _bare(servers)
    began = [_now()]
    _produce(producer, topic, _records(count))
    producer.flush()
    return began


def _write_transactions(servers: str, topic: str, count: int) -> _Began:
    """Write in transactions, with as many requests under way as the sink; nothing is kept."""
    own: dict[str, str | int] = {"transactional.id": f"bare-{topic}"}
    producer = _bare(servers, **own, **transaction_settings({}))
    producer.init_transactions()
    began, records = [_now()], _records(count)
    for _ in range(0, count, _TRANSACTION):
        producer.begin_transaction()
        _produce(producer, topic, islice(records, _TRANSACTION))
        producer.commit_transaction()
    return began


def _write_by_sink(guarantee: KafkaGuarantee) -> Callable[[str, str, int], _Began]:
    def write(servers: str, topic: str, count: int) -> _Began:
        """Write from a generator; the time counts from its first record to the end of the run."""
        began: _Began = []

        def records() -> Iterator[bytes]:
            began.append(_now())
            yield from _records(count)

        app = gp.StreamApp("writer")
        sink = gp.kafka_sink(topic, servers=servers, value="bytes", guarantee=guarantee)
        app.read(gp.generate(records)).write(sink)
        gp.run(app)
        return began

    return write


def main() -> None:
    """Write; the arguments are one of `WRITERS`, addresses, a topic, and how many records."""
    writer, servers, topic, count = sys.argv[1:]
    write = {
        "producer": _write_bare,
        "transactions": _write_transactions,
        "at-least-once": _write_by_sink("at-least-once"),
        "exactly-once": _write_by_sink("exactly-once"),
    }[writer]
    began_s, began_cpu_s = write(servers, topic, int(count))[0]
    ended_s, ended_cpu_s = _now()
    said = {
        "records": int(count),
        "seconds": ended_s - began_s,
        "cpu_seconds": ended_cpu_s - began_cpu_s,
    }
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
