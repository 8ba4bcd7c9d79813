"""Totals of windows, handed to a function on Spark: ``bin/gear run examples/spark_totals.py``.

gearpy computes the windows within milliseconds of their end; the function gets what has closed as a
DataFrame, each batch exactly once, and does with it what Spark does well.
"""

from typing import Any

import gearpy as gp

SALES = [("north", 3, 1_000), ("south", 5, 4_000), ("north", 7, 9_000), ("south", 1, 12_000)]
ROWS = [{"shop": shop, "price": price, "at": ms} for shop, price, ms in SALES]


def load(frame: Any, batch: Any) -> None:
    """Put a batch of finished windows where they belong; here onto the screen."""
    print(f"batch {batch.id}: {batch.rows} rows")
    frame.select("shop", "window_start", "total").orderBy("window_start", "shop").show()


app = gp.StreamApp("totals")
by_shop = app.read(gp.rows(ROWS, time="at")).key_by("shop").window(gp.tumbling("10s"))
by_shop.aggregate(total=gp.agg.sum("price")).to_spark(load, "totals-log", key="shop")

if __name__ == "__main__":
    gp.run(app)
