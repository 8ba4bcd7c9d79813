"""SOL, "speed of light": how many small messages pass from one task to another.

    bin/gear run examples/sol.py -- --seconds 5

A source sends messages of 100 bytes, one `output` call each; a task that does nothing takes
them, one `on_next` call each. After Gearpump's example of the same name.
"""

import argparse
import time

import gearpy as gp

BURST = 1000  # Messages of one `produce` call; credit is checked between calls.


class SolStreamProducer(gp.Task):
    """Sends the same message again and again, until its time is over."""

    def __init__(self, context: gp.TaskContext) -> None:
        super().__init__(context)
        self.payload = b"x" * int(context.config["bytes"])
        self.seconds = float(context.config["seconds"])
        self.end = 0.0

    def on_start(self, start_time_ms: int) -> None:
        """Start the clock."""
        self.end = time.monotonic() + self.seconds

    def produce(self) -> int:
        """Send one burst."""
        if time.monotonic() >= self.end:
            return gp.FINISHED
        output, payload, now_ms = self.context.output, self.payload, self.context.now_ms()
        for _ in range(BURST):
            output(gp.Message(payload, now_ms))
        return 0


class SolStreamProcessor(gp.Task):
    """Takes messages, counts them, and says how fast they came."""

    def __init__(self, context: gp.TaskContext) -> None:
        super().__init__(context)
        self.received = 0
        self.started = 0.0

    def on_start(self, start_time_ms: int) -> None:
        """Start the clock."""
        self.started = time.monotonic()

    def on_next(self, message: gp.Message) -> None:
        """Do nothing with a message."""
        self.received += 1

    def on_stop(self, *, completed: bool) -> None:
        """Print the rate."""
        seconds = time.monotonic() - self.started
        rate = self.received / seconds
        print(
            f"task {self.context.task_id}: {self.received:,} messages in {seconds:.1f} s, "
            f"{rate:,.0f} msg/s",
            flush=True,
        )


def main(args: list[str]) -> gp.StreamApplication:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="sol.py", description="Measure messages per second.")
    parser.add_argument("--seconds", type=float, default=5, help="how long to send")
    parser.add_argument("--bytes", type=int, default=100, help="size of a message")
    parser.add_argument("--producers", type=int, default=1, help="tasks that send")
    parser.add_argument("--processors", type=int, default=1, help="tasks that take")
    options = parser.parse_args(args)

    config = {"bytes": options.bytes, "seconds": options.seconds}
    producer = gp.Processor(SolStreamProducer, options.producers, config=config)
    processor = gp.Processor(SolStreamProcessor, options.processors)
    graph = gp.Graph().connect(producer, processor, gp.ShufflePartitioner())
    return gp.StreamApplication("sol", graph)


if __name__ == "__main__":
    gp.run(main)
