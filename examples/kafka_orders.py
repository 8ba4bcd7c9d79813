"""Totals of orders by user and minute, out of a topic of Kafka.

Each record of the topic is an object of JSON with ``user``, ``amount`` and ``at``, the time of the
order in ms since 1970. Run it with the addresses of brokers and the name of a topic:

    gear run examples/kafka_orders.py -- --servers localhost:9092 --topic orders
"""

import argparse
from typing import TypedDict

import gearpy as gp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--servers", default="localhost:9092", help="host:port, with commas between")
parser.add_argument("--topic", default="orders")
parser.add_argument("--group", default="gearpy-orders", help="has the offsets, for others to see")
parser.add_argument("--once", action="store_true", help="end with the records that are there")
args = parser.parse_args()


class Order(TypedDict):
    """The fields that are read."""

    user: str
    amount: float
    at: int


app = gp.StreamApp("kafka-orders")
orders = app.read(
    gp.kafka(
        args.topic,
        servers=args.servers,
        value="json",
        schema=Order,
        time="at",
        out_of_order="5s",
        group=args.group,
        until="now" if args.once else None,
    ),
    name="orders",
)
totals = orders.key_by("user").window(gp.tumbling("1m")).aggregate(total=gp.agg.sum("amount"))
totals.write(gp.console())

if __name__ == "__main__":
    gp.run(app)
