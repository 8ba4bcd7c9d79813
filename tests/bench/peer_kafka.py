"""Reads a topic without gearpy; run as a script by a Python that has the others.

``peer_kafka.py READER SERVERS TOPIC PARTITIONS RECORDS``, where the reader is bare, arrow, bytewax
or quix; the last two with ``-json`` behind them parse each value, as columns do. Says as JSON how
long it took from the first records to the last, by the clock and of the CPU of all its threads.
"""

import json
import logging
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

_ROWS = 16_384  # Of a table.


class Stopwatch:
    """Measures from the first records on, so that no start of a client counts."""

    def __init__(self, records: int) -> None:
        self.left = records
        self._counted = 0
        self._begin: tuple[float, float] | None = None
        self.said: dict[str, float] | None = None

    def count(self, records: int) -> bool:
        self.left -= records
        if self._begin is None:
            self._begin = (time.perf_counter(), time.process_time())
            return self.left <= 0
        self._counted += records
        if self.left <= 0:
            seconds, cpu = self._begin
            self.said = {
                "records": self._counted,
                "seconds": time.perf_counter() - seconds,
                "cpu_seconds": time.process_time() - cpu,
            }
        return self.left <= 0


def _consumer(servers: str, topic: str, partitions: int) -> Any:
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - of this one only

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bare",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    return consumer


def _bare(servers: str, topic: str, partitions: int, watch: Stopwatch) -> None:
    consumer = _consumer(servers, topic, partitions)
    while not watch.count(len(consumer.consume(10_000, 1.0))):
        pass
    consumer.close()


def _arrow(servers: str, topic: str, partitions: int, watch: Stopwatch) -> None:
    """Make columns and check nothing: the least that they cost with this client and Arrow."""
    import pyarrow as pa  # type: ignore[import-untyped] # noqa: PLC0415 - not of the others
    from pyarrow import json as arrow_json  # noqa: PLC0415 - as above

    fields = {"id": pa.int64(), "user": pa.string(), "amount": pa.float64()}
    parse = arrow_json.ParseOptions(
        explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
    )
    read = arrow_json.ReadOptions(use_threads=False, block_size=1 << 24)
    consumer = _consumer(servers, topic, partitions)
    bodies: list[bytes] = []
    is_over = False
    while not is_over:
        bodies += [message.value() for message in consumer.consume(1000, 1.0)]
        if len(bodies) >= _ROWS or len(bodies) == watch.left:
            lines = pa.BufferReader(b"\n".join(bodies))
            table = arrow_json.read_json(lines, read_options=read, parse_options=parse)
            bodies = []
            is_over = watch.count(table.num_rows)
    consumer.close()


def _bytewax(
    servers: str, topic: str, partitions: int, watch: Stopwatch, *, parses: bool = False
) -> None:
    # Not there where gearpy is checked.
    import bytewax.operators as op  # type: ignore[import-not-found] # noqa: PLC0415 - as above
    from bytewax.connectors.kafka import KafkaSource  # type: ignore[import-not-found] # noqa: PLC0415
    from bytewax.dataflow import Dataflow  # type: ignore[import-not-found] # noqa: PLC0415 - as above
    from bytewax.outputs import (  # type: ignore[import-not-found] # noqa: PLC0415 - as above
        DynamicSink,
        StatelessSinkPartition,
    )
    from bytewax.testing import run_main  # type: ignore[import-not-found] # noqa: PLC0415 - as above

    class Part(StatelessSinkPartition):  # type: ignore[misc]
        def write_batch(self, items: list[Any]) -> None:
            watch.count(len(items))

    class Counting(DynamicSink):  # type: ignore[misc]
        def build(self, *_: object) -> Part:
            return Part()

    flow = Dataflow("speed")
    read = op.input("in", flow, KafkaSource([servers], [topic], tail=False, batch_size=10_000))
    if parses:
        import orjson  # type: ignore[import-not-found] # noqa: PLC0415 - as above

        loads = orjson.loads
        read = op.map("parse", read, lambda message: loads(message.value))
    op.output("out", read, Counting())
    run_main(flow)


def _quix(
    servers: str, topic: str, partitions: int, watch: Stopwatch, *, parses: bool = False
) -> None:
    from quixstreams import Application  # type: ignore[import-not-found] # noqa: PLC0415 - as above

    logging.getLogger("quixstreams").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        app = Application(
            broker_address=servers,
            consumer_group=uuid.uuid4().hex,
            auto_offset_reset="earliest",
            loglevel=None,
            state_dir=folder,  # Else it makes one where it was started.
        )

        def counted(_: object) -> None:
            if watch.count(1):
                app.stop()

        values = app.topic(topic, value_deserializer="json" if parses else "bytes")
        app.dataframe(values).update(counted)
        app.run()


def main() -> None:
    kind, servers, topic, partitions, records = sys.argv[1:]
    watch = Stopwatch(int(records))
    read: dict[str, Callable[[str, str, int, Stopwatch], None]] = {
        "bare": _bare,
        "arrow": _arrow,
        "bytewax": _bytewax,
        "bytewax-json": partial(_bytewax, parses=True),
        "quix": _quix,
        "quix-json": partial(_quix, parses=True),
    }
    read[kind](servers, topic, int(partitions), watch)
    sys.stdout.write(json.dumps(watch.said) + "\n")


if __name__ == "__main__":
    main()
