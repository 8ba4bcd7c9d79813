"""Writes records of 100 bytes to a topic, by gearpy or by the bare client; prints rates as JSON."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from confluent_kafka import Producer

import gearpy as gp
from gearpy.connectors.kafka.writing.lane import hand_over
from gearpy.connectors.kafka.writing.sink import KafkaGuarantee

__all__ = ["WRITERS"]

WRITERS: Final = ("producer", "at-least-once", "exactly-once")

_BYTES: Final = 100
_BLOCK: Final = 10_000
_Began = list[tuple[float, float]]


def _records(count: int) -> Iterator[bytes]:
    rng = random.Random(1)
    block = [rng.randbytes(_BYTES) for _ in range(_BLOCK)]
    for _ in range(count // _BLOCK):
        yield from block


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _write_bare(servers: str, topic: str, count: int) -> _Began:
    """Write with the settings of the sink."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
        }
    )
    began = [_now()]
    hand_over(producer, ((topic, record) for record in _records(count)), lambda: None)
    producer.flush()
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
