"""Totals of orders by user and minute, out of a topic of Kafka.

Each record of the topic is an object of JSON with ``user``, ``amount`` and ``at``, the time of the
order in ms since 1970. Run it with the addresses of brokers and the name of a topic:

    gear run examples/kafka_orders.py -- --servers localhost:9092 --topic orders
"""

import argparse
from typing import TypedDict

import gearpy as gp


class Order(TypedDict):
    """The fields that are read."""

    user: str
    amount: float
    at: int


def main(args: list[str]) -> gp.StreamApp:
    """Build the application."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", default="localhost:9092", help="host:port, with commas")
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--group", default="gearpy-orders", help="has the offsets, for others")
    parser.add_argument("--once", action="store_true", help="end with what is there")
    given = parser.parse_args(args)
    app = gp.StreamApp("kafka-orders")
    orders = app.read(
        gp.kafka(
            given.topic,
            servers=given.servers,
            value="json",
            schema=Order,
            time="at",
            out_of_order="5s",
            group=given.group,
            until="now" if given.once else None,
        ),
        name="orders",
    )
    totals = orders.key_by("user").window(gp.tumbling("1m")).aggregate(total=gp.agg.sum("amount"))
    totals.write(gp.console())
    return app


if __name__ == "__main__":
    gp.run(main)
