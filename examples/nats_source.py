"""Count the words of a NATS stream, from a source of one's own: `docs/connectors.md` explains it.

    nats-server -js
    bin/gear run examples/nats_source.py -- nats://127.0.0.1:4222 words

JetStream keeps messages and numbers them, so a reader can go on behind any: the source is
replayable, and counts are right after a failure. Needs `pip install nats-py`.
"""

import asyncio
import sys
import threading
from collections.abc import Sequence
from queue import Empty, Queue

import gearpy as gp


class NatsStream(gp.Source[str]):
    """The messages of a JetStream stream, as text; a message has the time it was stored."""

    replayable = True

    def __init__(self, url: str, stream: str) -> None:
        self.url, self.stream = url, stream

    def partitions(self) -> Sequence[str]:
        """Return the only one."""
        return [self.stream]

    def open(self, partition: str, resume: list[int] | None) -> "NatsReader":
        """Begin behind the message of the snapshot."""
        return NatsReader(self.url, self.stream, *(resume or (0, gp.MIN_MS)))


class NatsReader(gp.SourceReader[str]):
    """Takes messages out of a queue that a thread with the client fills."""

    out_of_order_ms = 0

    def __init__(self, url: str, stream: str, number: int, watermark_ms: int) -> None:
        self.number, self._watermark_ms = number, watermark_ms
        self.queue: Queue[tuple[int, int, str]] = Queue(maxsize=1000)
        self.closed = threading.Event()
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self.run, args=(url, stream), daemon=True)
        self.thread.start()

    def run(self, url: str, stream: str) -> None:
        """Run the client; what it raises is raised again by `read_batch`."""
        try:
            asyncio.run(self.receive(url, stream, self.number))
        except Exception as error:  # noqa: BLE001 - raised again
            self.failure = error

    async def receive(self, url: str, stream: str, number: int) -> None:
        """Fetch message by message behind a number."""
        import nats  # noqa: PLC0415 - where the source is read, no sooner
        from nats.js.errors import NotFoundError  # noqa: PLC0415

        client = await nats.connect(url, max_reconnect_attempts=1, reconnect_time_wait=0.1)
        log = client.jetstream()
        while not self.closed.is_set():
            try:
                message = await log.get_msg(stream, number + 1, next=True, subject=">")
            except NotFoundError:
                await asyncio.sleep(0.01)
                continue
            number, time_ms = message.seq, int(message.time.timestamp() * 1000)
            while self.queue.full() and not self.closed.is_set():  # noqa: ASYNC110 - a thread empties it
                await asyncio.sleep(0.01)
            self.queue.put((number, time_ms, message.data.decode()))
        await client.close()

    def read_batch(self, max_records: int) -> gp.Batch[str] | None:
        """Return what has come."""
        if self.failure is not None:
            raise self.failure
        values, times = [], []
        while len(values) < max_records:
            try:
                self.number, time_ms, text = self.queue.get_nowait()
            except Empty:
                break
            self._watermark_ms = max(self._watermark_ms, time_ms)
            values.append(text)
            times.append(time_ms)
        return gp.Batch(values, times) if values else None

    def snapshot(self) -> list[int]:
        """Return the number of the last message, and the promise so far."""
        return [self.number, self._watermark_ms]

    @property
    def watermark_ms(self) -> int:
        """Messages are stored in the order of time."""
        return self._watermark_ms

    def close(self) -> None:
        """Stop the thread."""
        self.closed.set()
        self.thread.join()


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from URL and stream."""
    app = gp.StreamApp("nats words")
    words = app.read(NatsStream(args[0], args[1])).flat_map(str.split)
    words.key_by(lambda word: word).count().write(gp.console())
    return app


if __name__ == "__main__":
    gp.run(main(sys.argv[1:]))
