"""Follow shopping carts until they are bought or left alone; write what became of each once.

    bin/gear run examples/carts.py -- --out ends actions.jsonl

Lines of input say what somebody did with a cart, and when:

    {"time": "2026-03-01T09:00:00Z", "user": "ada", "action": "add", "item": "tea"}
    {"time": "2026-03-01T09:05:00Z", "user": "ada", "action": "buy"}

What is in a cart is keyed state. A timer on event time goes off when nobody has added anything for
some time. Results appear in the folder when their epoch is complete, so whoever reads it sees each
of them once, whatever fails meanwhile.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import gearpy as gp


class Carts(gp.Task):
    """Keeps the cart of each user until it is bought, or nobody has added anything for too long."""

    def __init__(self, context: gp.TaskContext, patience_ms: int) -> None:
        super().__init__(context)
        self.patience_ms = patience_ms

    def on_start(self, start_time_ms: int) -> None:
        """Declare what is kept for each key."""
        self.state = self.context.state
        self.items = self.state.map("items", coder="int")
        self.left_ms = self.state.value("left", coder="int", default=gp.MAX_MS)

    def on_next(self, message: gp.Message) -> Iterator[gp.Message]:
        """Take one action; the state is that of its user."""
        # Records may come before the timers of older times: those wait for the watermark.
        if message.timestamp >= self.left_ms.get():
            yield self.end("left", self.left_ms.get())
        action = message.value
        if action["action"] == "add":
            self.add(action["item"], message.timestamp)
        elif self.items:
            yield self.end("bought", message.timestamp)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message]:
        """Give up a cart; the state is that of the timer's user."""
        yield self.end("left", timer.at_ms)

    def add(self, item: str, time_ms: int) -> None:
        """Put something into the cart, and begin to wait anew."""
        self.items[item] = self.items.get(item, 0) + 1
        self.left_ms.set(time_ms + self.patience_ms)
        self.state.timers.event_time(time_ms + self.patience_ms)  # Moves the one that is set.

    def end(self, how: str, time_ms: int) -> gp.Message:
        """Return what became of the cart, and forget it, its timer as well."""
        result = {"user": self.state.key, "cart": how, "items": dict(self.items.items())}
        self.state.clear()
        return gp.Message(result, time_ms)


def time_of(line: str) -> datetime:
    """Return when the action of a line happened."""
    return datetime.fromisoformat(json.loads(line)["time"])


def user_of(action: dict[str, Any]) -> str:
    """Return whose cart it is."""
    user: str = action["user"]
    return user


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="carts.py", description="What becomes of carts.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines, or glob patterns")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="for the results")
    parser.add_argument("--patience", type=int, default=30, metavar="MINUTES", help="for a cart")
    parser.add_argument("--late", default="1m", metavar="TIME", help="how late lines may be")
    parser.add_argument("--follow", action="store_true", help="wait for lines to be added")
    parser.add_argument("--parallelism", type=int, default=1, help="tasks that keep carts")
    options = parser.parse_args(args)
    patience_ms = options.patience * 60_000

    def carts(context: gp.TaskContext) -> Carts:
        return Carts(context, patience_ms)

    app = gp.StreamApp("carts")
    source = gp.files(
        *options.files, timestamp=time_of, out_of_order=options.late, follow=options.follow
    )
    actions = app.read(source).map(json.loads, name="parse")
    (
        actions.key_by(user_of, parallelism=options.parallelism)
        .process(carts)
        .write(gp.jsonl_folder(options.out))
    )
    return app


if __name__ == "__main__":
    gp.run(main)
