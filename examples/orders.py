"""Follow made-up orders without end: revenue of each country, and who orders very often.

    bin/gear run --ui examples/orders.py
    bin/gear app submit --set application.on-error=quarantine examples/orders.py -- --out "$PWD/out"

Something to watch while it runs: a source, two branches, keys of unequal weight. With --bad N one
order of N cannot be read, for a look at quarantine.
"""

import argparse
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import gearpy as gp

COUNTRIES = ("DE", "FR", "PL", "IT", "ES", "AT", "DK")
WEIGHTS = (34, 18, 14, 12, 10, 7, 5)
CUSTOMERS = 5_000
OFTEN = 400


def orders(part: int, bad: int) -> Iterator[str]:
    """Yield lines of JSON, the same for each part every time, as a restart reads them again."""
    rng = random.Random(part)
    number = 0
    while True:
        number += 1
        quantity = "n/a" if bad and number % bad == 0 else str(rng.randint(1, 9))
        (country,) = rng.choices(COUNTRIES, WEIGHTS)
        customer = int(rng.paretovariate(1.2) * 7) % CUSTOMERS
        yield json.dumps({"country": country, "customer": customer, "quantity": quantity})


def parse(line: str) -> tuple[str, int, int]:
    """Return country, customer and quantity of an order."""
    order = json.loads(line)
    return order["country"], order["customer"], int(order["quantity"])


def sink(folder: str | None, name: str) -> gp.Sink[object]:
    """Return where results go: a folder that shows each once, or the console."""
    if not folder:
        return gp.console()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return gp.jsonl_folder(f"{folder}/{name}")


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="orders.py", description="Follow made-up orders.")
    parser.add_argument("--rate", type=float, default=5_000, metavar="N", help="orders per second")
    parser.add_argument("--bad", type=int, default=0, metavar="N", help="one of N cannot be read")
    parser.add_argument("--limit", type=int, metavar="N", help="end after so many orders")
    parser.add_argument("--parallelism", type=int, default=2, metavar="N", help="tasks of a step")
    parser.add_argument("--out", metavar="FOLDER", help="for results; else they are printed")
    options = parser.parse_args(args)

    app = gp.StreamApp("orders")
    made = gp.generate(
        partial(orders, bad=options.bad),
        rate=options.rate,
        limit=options.limit,
        partitions=options.parallelism,
    )
    read = app.read(made, parallelism=options.parallelism, name="orders").map(parse, name="parse")
    revenue = (
        read.key_by(lambda order: order[0], parallelism=options.parallelism)
        .window(gp.tumbling("10s"))
        .sum(lambda order: order[2], name="revenue / 10 s")
    )
    revenue.map(lambda row: [row.key, row.value], name="row").write(
        sink(options.out, "revenue"), name="revenue"
    )
    (
        read.key_by(lambda order: order[1], parallelism=options.parallelism)
        .window(gp.sliding("10s", "2s"))
        .count(name="orders of a customer")
        .filter(lambda row: row.value >= OFTEN, name="often")
        .map(lambda row: row.key, name="customer")
        .write(sink(options.out, "frequent"), name="frequent")
    )
    return app
