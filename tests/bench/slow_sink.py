"""Back-pressure: a source that could send millions a second into a sink of 10 ms a batch."""

import threading
import time
from collections.abc import Iterator
from itertools import repeat

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.schema import Config
from gearpy.connectors.streams.generator import generate
from gearpy.dsl.application import StreamApp
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter
from tests.bench.measure import rss_mb

_PAYLOAD = b"x" * 100


class _SlowWriter(SinkWriter):
    def write_batch(self, batch: Batch) -> None:
        time.sleep(0.01)


class SlowSink(Sink):
    """Takes 10 ms for a batch, whatever its size."""

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return _SlowWriter()


def measure_slow_sink(seconds: int) -> Iterator[tuple[int, int, int, float]]:
    """Yield each ten seconds: the second, records read, records written, memory in MB."""
    app = StreamApp("slow")
    numbers = app.read(generate(lambda: repeat(_PAYLOAD), timestamp=lambda _: 0))
    numbers.write(SlowSink(), dispatcher="pinned")
    with LocalCluster(Config()) as cluster:
        runner = threading.Thread(target=lambda: cluster.run(app), daemon=True)
        runner.start()
        began = time.monotonic()
        for second in range(0, seconds + 1, 10):
            time.sleep(max(0.0, began + max(second, 2) - time.monotonic()))
            progress = cluster.client.applications()[0].progress
            yield second, progress.records_in, progress.records_out, rss_mb()
        cluster.client.shutdown(cluster.client.applications()[0].app_id)
        runner.join(10)
