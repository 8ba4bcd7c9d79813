"""Numbered records of a topic through state and windows into topics; for `kafka_crash`."""

import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

import gearpy as gp
from tests.bench.numbered import PARTITIONS, numbered_app

#: The topic that is read.
NUMBERS: Final = "numbers"
#: Records of each of its partitions.
END: Final = 30_000
_HURRY: Final = END * 3 // 4  # From there on records come slowly, until the rest is asked for.
_SLOWER: Final = 100


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args``: folder of results, records per second, brokers."""
    folder, rate, servers = args

    def sink(place: Path) -> gp.Sink:
        return gp.kafka_sink(place.name, servers=servers, key=_key)

    source = gp.kafka(
        NUMBERS,
        servers=servers,
        value="json",
        time=lambda value: value[1],
        until={f"{NUMBERS}/{partition}": END for partition in range(PARTITIONS)},
        group="numbered",
        idle="1h",  # A broker that is away is no reason for windows to close.
    )
    return numbered_app(
        Path(folder),
        rate=float(rate),
        sink=sink,
        source=source,
        step=lambda value: (value[0], value[1]),
    )


def _key(result: Any) -> str:
    if isinstance(result, dict):
        return str(result["key"] if "key" in result else result["group"])
    return str(result.key)


class Feeder:
    """Writes the records that the program reads, some each moment, on a thread of its own."""

    def __init__(self, servers: str, rate: float) -> None:
        self._pause_s = PARTITIONS / rate
        self._hurry = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "queue.buffering.max.messages": END * PARTITIONS,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        self._hurry.set()

    def close(self) -> None:
        self._hurry.set()
        self._thread.join()

    def _feed(self) -> None:
        at_s = time.monotonic()
        for n in range(END):
            for partition in range(PARTITIONS):
                value = json.dumps([partition, n]).encode()
                self._producer.produce(NUMBERS, value, partition=partition)
            self._producer.poll(0)
            at_s += self._pause_s * (1 if n < _HURRY else _SLOWER)
            self._hurry.wait(max(0.0, at_s - time.monotonic()))
        self._producer.flush()
