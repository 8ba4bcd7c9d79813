"""Sales of each shop and minute, from files of JSON lines to a folder that has each window once."""

import gearpy as gp


def totals(sales: gp.Stream) -> gp.Stream:
    """Return the sales of each shop and minute."""
    by_shop = sales.key_by("shop").window(gp.tumbling("1m"))
    return by_shop.aggregate("totals", sold=gp.agg.count(), total=gp.agg.sum("price"))


def main() -> gp.StreamApp:
    """Return the application that `gear run flow.py` runs."""
    app = gp.StreamApp("PROJECT")
    sales = app.read(gp.jsonl("data/*.jsonl", time="at"), name="sales")
    totals(sales).write(gp.jsonl_folder("totals"), name="totals-folder")
    return app
