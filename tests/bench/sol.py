"""SOL: 100-byte messages from a source over a shuffle to a task that does nothing.

Row path: one `output(Message)` for each message, one `on_next` for each. Batch path: the source
makes whole batches and the receiver takes them by `on_batch`. Acknowledgements are on. Rates are
taken at the receiver after a warm-up. Latency is from `output` to `on_next`, one message in
some hundred, at a fixed rate.
"""

import json
import struct
import time
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import from_overrides
from gearpy.core.flow.partition import ShufflePartitioner
from gearpy.ids import MIN_MS
from gearpy.messages.client import Artifact
from gearpy.messages.data import Batch, Message
from gearpy.task.api.application import Graph, Processor, StreamApplication
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext
from tests.bench.measure import percentile, rss_mb

#: What is submitted; the rest is imported from here in each process.
PROGRAM: Final = "from tests.bench.sol import main\n"

_BURST: Final = 1000
_PROBE_EVERY: Final = 256
_STAMP: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class SolResult:
    """What the receiver saw. Latencies in ms; memory in MB."""

    received: int
    seconds: float
    rate: float
    p50_ms: float
    p99_ms: float
    rss_begin_mb: float
    rss_end_mb: float


class SolProducer(Task):
    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        config = context.config
        self._payload = b"x" * int(config["bytes"])
        self._rate = float(config["rate"])
        self._seconds = float(config["seconds"])
        self._sent = 0
        self._begin = 0.0

    def on_start(self, start_time_ms: int) -> None:
        assert start_time_ms == MIN_MS
        self._begin = time.monotonic()

    def produce(self) -> int:
        passed = time.monotonic() - self._begin
        if passed >= self._seconds:
            return FINISHED
        count = _BURST
        if self._rate:
            count = min(_BURST, int(passed * self._rate) - self._sent)
            if count <= 0:
                return 1
        self._send(count)
        return 0

    def _send(self, count: int) -> None:
        output, payload = self.context.output, self._payload
        first = -self._sent % _PROBE_EVERY
        for number in range(count):
            if number % _PROBE_EVERY == first:
                output(Message(_STAMP.pack(time.monotonic_ns()) + payload[8:], 1))
            else:
                output(Message(payload, 0))
        self._sent += count


class SolBatchProducer(SolProducer):
    def produce(self) -> Generator[Batch, None, int]:  # type: ignore[override] # both are allowed
        if time.monotonic() - self._begin >= self._seconds:
            return FINISHED
        values, timestamps = [self._payload] * _BURST, [0] * _BURST
        values[0], timestamps[0] = _STAMP.pack(time.monotonic_ns()) + self._payload[8:], 1
        yield Batch(values, timestamps)
        return 0


class SolProcessor(Task):
    """Takes messages one by one; of those with a stamp it takes the latency."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self._warm_up = float(context.config["warm_up"])
        self._received = 0
        self._counted_from = 0
        self._begin = 0.0
        self._end = 0.0
        self._rss_begin = 0.0
        self._latencies: list[float] = []

    def on_start(self, start_time_ms: int) -> None:
        self._begin = time.monotonic() + self._warm_up

    def on_next(self, message: Message) -> None:
        self._received += 1
        if message.timestamp:
            self._take_stamp(message.value)

    def on_stop(self, *, completed: bool) -> None:
        if completed:
            path = Path(self.context.config["result"])
            path.write_text(json.dumps(self.result()), encoding="utf-8")

    def result(self) -> dict[str, Any]:
        seconds = self._end - self._begin
        received = self._received - self._counted_from
        return asdict(
            SolResult(
                received=received,
                seconds=seconds,
                rate=received / seconds,
                p50_ms=percentile(self._latencies, 0.5),
                p99_ms=percentile(self._latencies, 0.99),
                rss_begin_mb=self._rss_begin,
                rss_end_mb=rss_mb(),
            )
        )

    def _take_stamp(self, value: bytes) -> None:
        now = time.monotonic()
        if now < self._begin:
            return
        if not self._counted_from:
            self._counted_from, self._begin, self._rss_begin = self._received, now, rss_mb()
        self._end = now
        self._latencies.append(now * 1e3 - _STAMP.unpack(value[:8])[0] / 1e6)


class SolBatchProcessor(SolProcessor):
    def on_batch(self, batch: Batch) -> None:
        self._received += len(batch)
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            if timestamp:
                self._take_stamp(value)
                break


def sol_application(
    result: Path,
    *,
    seconds: float,
    size: int = 100,
    rate: float = 0,
    warm_up: float = 1,
    batch: bool = False,
) -> StreamApplication:
    """Return the two processors; ``rate`` 0 means as fast as they can.

    The figures are written to the file ``result``, as JSON.
    """
    config = {
        "bytes": size,
        "rate": rate,
        "seconds": seconds + warm_up,
        "warm_up": warm_up,
        "result": str(result),
    }
    producer = Processor(SolBatchProducer if batch else SolProducer, config=config)
    consumer = Processor(SolBatchProcessor if batch else SolProcessor, config=config)
    return StreamApplication("sol", Graph().connect(producer, consumer, ShufflePartitioner()))


def main(args: list[str]) -> StreamApplication:
    return sol_application(Path(args[0]), **json.loads(args[1]))


def run_sol(executors: Literal["thread", "process"], options: Mapping[str, Any]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="gearpy-sol-") as folder:
        result, program = Path(folder) / "result.json", Path(folder) / "sol_program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        config = from_overrides({"log.folder": folder})
        with LocalCluster(config, executors=executors) as cluster:
            artifact = Artifact(
                kind="file", location=str(program), args=(str(result), json.dumps(dict(options)))
            )
            count = 2 if executors == "process" else 1
            cluster.client.submit("sol", artifact, executors=count).wait()
        figures: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return figures
