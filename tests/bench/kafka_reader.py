"""Reads a topic with gearpy: ``python -m tests.bench.kafka_reader rows|columns SERVERS TOPIC N``.

Says the same as `tests.bench.peer_kafka`.
"""

import json
import sys
from typing import Any

import gearpy as gp
from gearpy.task.api.interfaces import Batch, Sink, SinkWriter
from tests.bench.peer_kafka import Stopwatch

SCHEMA = {"id": int, "user": str, "amount": float}


class _Counting(Sink, SinkWriter):
    columnar = True

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return self

    def write_batch(self, batch: Batch[Any]) -> None:
        self._watch.count(len(batch))


def main() -> None:
    kind, servers, topic, records = sys.argv[1:]
    watch = Stopwatch(int(records))
    source = gp.kafka(topic, servers=servers, until="now")
    if kind == "columns":
        source = gp.kafka(topic, servers=servers, until="now", value="json", schema=SCHEMA)
    app = gp.StreamApp("speed")
    app.read(source).write(_Counting(watch))
    gp.run(app)
    sys.stdout.write(json.dumps(watch.said) + "\n")


if __name__ == "__main__":
    main()
