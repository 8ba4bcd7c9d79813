"""The program gives the right totals, on records that are in this file."""

from flow import totals

import gearpy as gp

SALES = [
    {"shop": "north", "price": 3, "at": "2026-01-01T12:00:01Z"},
    {"shop": "north", "price": 4, "at": "2026-01-01T12:00:59Z"},
    {"shop": "south", "price": 5, "at": "2026-01-01T12:01:00Z"},
]


def test_totals_of_each_shop_and_minute() -> None:
    app = gp.StreamApp("test")
    results: list[gp.WindowResult] = []
    totals(app.read(gp.rows(SALES, time="at"))).write(gp.to_list(results))
    gp.run(app)
    assert [(each.key, each.value) for each in results] == [
        ("north", {"sold": 2, "total": 7}),
        ("south", {"sold": 1, "total": 5}),
    ]
