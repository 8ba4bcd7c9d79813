"""Every step of the stream language, run as users run it; with one task, and with several."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy import agg
from gearpy.dsl.streams.stream import Stream
from gearpy.testing.simulation import Simulation
from tests.dsl.tables import EVENTS, SALES, Sale, TableSource

Build = Callable[[Stream[Any]], Stream[Any]]


class Step(NamedTuple):
    build: Build
    expected: Iterable[Any]


def an_app(
    source: gp.Source, build: Build, *, parallelism: int = 1
) -> tuple[gp.StreamApp, list[Any]]:
    """Return an application with a step, and where its results will be."""
    app = gp.StreamApp("operators", parallelism=parallelism)
    results: list[Any] = []
    build(app.read(source)).write(gp.to_list(results))
    return app, results


def values(results: Stream[Any]) -> Stream[Any]:
    return results.map(lambda result: (result.key, result.value))


def by_user(sales: Stream[Any]) -> Any:
    return sales.key_by("user").window(gp.global_window())


def of_users(function: Callable[[list[Sale]], Any]) -> list[tuple[str, Any]]:
    return [(user, function([sale for sale in SALES if sale["user"] == user])) for user in "abc"]


def prices(sales: list[Sale]) -> list[int]:
    return [sale["price"] for sale in sales]


async def doubled(sale: Sale) -> int:
    await asyncio.sleep(0)
    return 2 * sale["price"]


async def name_of(user: str) -> str:
    await asyncio.sleep(0)
    return user.upper()


class Odd(gp.Task):
    """Sends odd prices, sets even ones aside, and some by the other way to do so."""

    def on_next(self, message: gp.Message) -> Iterator[gp.Message]:
        price = message.value["price"]
        if price % 2:
            yield message._replace(value=price)
        elif price % 4:
            yield message._replace(value=gp.Side("even", price))
        else:
            self.context.output_to("even", message._replace(value=price))


def first_of(sales: Iterable[Sale], field: str) -> list[Any]:
    found: dict[Any, Sale] = {}
    for sale in sales:
        found.setdefault(sale[field], sale)  # type: ignore[literal-required]
    return list(found.values())


def joined(join: Callable[[Any, Any], Stream[Any]]) -> Build:
    """Join two parts of a stream by user: sales of items 0 and 1, and of items 1 and 2."""

    def build(sales: Stream[Any]) -> Stream[Any]:
        left = sales.filter(lambda sale: sale["item"] < 2).key_by("user")
        right = sales.filter(lambda sale: sale["item"] in {1, 2}).key_by("user")
        return join(left, right)

    return build


PRICES: Final = prices(SALES)
STEPS: Final[dict[str, Step]] = {
    "map": Step(lambda s: s.map(lambda sale: sale["price"]), PRICES),
    "filter": Step(
        lambda s: s.filter(lambda sale: sale["price"] > 9).map(lambda sale: sale["price"]),
        [price for price in PRICES if price > 9],
    ),
    "flat_map": Step(
        lambda s: s.flat_map(lambda sale: [sale["price"]] * 2), [p for p in PRICES for _ in "ab"]
    ),
    "inspect": Step(lambda s: s.inspect(len), SALES),
    "log": Step(lambda s: s.log("debug", every=10), SALES),
    "distinct": Step(lambda s: s.map(lambda sale: sale["price"]).distinct(), set(PRICES)),
    "unique": Step(lambda s: s.map(lambda sale: sale["price"]).unique(), set(PRICES)),
    "distinct by": Step(lambda s: s.distinct("item").map(lambda sale: sale["item"]), [0, 1, 2, 3]),
    "keyed distinct": Step(
        lambda s: s.key_by("item").distinct().map(lambda sale: sale["item"]), [0, 1, 2, 3]
    ),
    "merge": Step(lambda s: s.merge(s.map(dict)), [*SALES, *SALES]),
    "union": Step(
        lambda s: s.filter(lambda sale: sale["item"]).union(
            s.filter(lambda sale: not sale["item"])
        ),
        SALES,
    ),
    "split": Step(
        lambda s: s.split(lambda sale: sale["price"] > 9)[1].map(lambda sale: sale["price"]),
        [price for price in PRICES if price <= 9],
    ),
    "branch": Step(
        lambda s: (
            (b := s.branch(low=lambda sale: sale["price"] < 5, odd=lambda sale: sale["price"] % 2))
            .low.map(lambda sale: ("low", sale["price"]))
            .merge(
                b["odd"].map(lambda sale: ("odd", sale["price"])),
                b.default.map(lambda sale: ("rest", sale["price"])),
            )
        ),
        [("low" if p < 5 else "odd" if p % 2 else "rest", p) for p in PRICES],
    ),
    "process": Step(lambda s: s.process(Odd), [price for price in PRICES if price % 2]),
    "side": Step(
        lambda s: s.process(Odd).side("even"), [price for price in PRICES if not price % 2]
    ),
    "map_async": Step(lambda s: s.map_async(doubled), [2 * price for price in PRICES]),
    "lookup": Step(
        lambda s: s.lookup(name_of, key="user", combine=lambda sale, name: (name, sale["price"])),
        [(sale["user"].upper(), sale["price"]) for sale in SALES],
    ),
    "lookup of pairs": Step(
        lambda s: s.lookup(name_of, key=lambda sale: sale["user"]).map(lambda pair: pair[1]),
        [sale["user"].upper() for sale in SALES],
    ),
    "map_batches": Step(
        lambda s: s.map_batches(
            lambda batch: batch.set_column(2, "price", pc.negate(batch.column("price")))
        ).map(lambda sale: sale["price"]),
        [-price for price in PRICES],
    ),
    "reduce": Step(
        lambda s: values(by_user(s.map(dict)).reduce(lambda a, b: {**a, **b, "n": 1})).map(
            lambda pair: pair[0]
        ),
        ["a", "b", "c"],
    ),
    "fold": Step(
        lambda s: values(by_user(s).fold([], lambda kept, sale: [*kept, sale["price"]])).map(
            lambda pair: (pair[0], sorted(pair[1]))
        ),
        of_users(lambda sales: sorted(prices(sales))),
    ),
    "aggregate": Step(
        lambda s: values(
            by_user(s).aggregate(
                "named", n=agg.count(), total=agg.sum("price"), least=agg.min("price")
            )
        ),
        of_users(
            lambda sales: {
                "n": len(sales),
                "total": sum(prices(sales)),
                "least": min(prices(sales)),
            }
        ),
    ),
    "count": Step(lambda s: values(by_user(s).count()), of_users(len)),
    "sum": Step(
        lambda s: values(by_user(s).sum("price")), of_users(lambda sales: sum(prices(sales)))
    ),
    "sum of": Step(
        lambda s: values(by_user(s).sum(lambda sale: sale["price"])),
        of_users(lambda sales: sum(prices(sales))),
    ),
    "min": Step(
        lambda s: values(by_user(s).min("price")), of_users(lambda sales: min(prices(sales)))
    ),
    "max": Step(
        lambda s: values(by_user(s).max("price")), of_users(lambda sales: max(prices(sales)))
    ),
    "mean": Step(
        lambda s: values(by_user(s).mean("price")),
        of_users(lambda sales: sum(prices(sales)) / len(sales)),
    ),
    "top_n": Step(
        lambda s: values(by_user(s).top_n(2, "price")).map(lambda pair: (pair[0], prices(pair[1]))),
        of_users(lambda sales: sorted(prices(sales), reverse=True)[:2]),
    ),
    "without key": Step(
        lambda s: values(s.window(gp.global_window()).sum("price")), [(None, sum(PRICES))]
    ),
    "two keys": Step(
        lambda s: values(s.group_by("user", "item").window(gp.global_window()).count()),
        Counter((sale["user"], sale["item"]) for sale in SALES).items(),
    ),
    "tumbling": Step(
        lambda s: s.window(gp.tumbling("20ms", offset="5ms")).count(),
        [
            gp.WindowResult(None, n, start, start + 20)
            for start, n in ((-15, 5), (5, 20), (25, 20), (45, 15))
        ],
    ),
    "sliding": Step(
        lambda s: s.window(gp.sliding("40ms", "20ms")).count(),
        [
            gp.WindowResult(None, n, start, start + 40)
            for start, n in ((-20, 20), (0, 40), (20, 40), (40, 20))
        ],
    ),
    "session": Step(
        lambda s: values(s.filter(lambda sale: sale["item"] < 2).window(gp.session("2ms")).count()),
        [(None, 2)] * 15,
    ),
    "count window": Step(
        lambda s: values(s.key_by("user").window(gp.count_window(8)).count()),
        [(user, n) for user in "abc" for n in (8, 8, 4)],
    ),
    "running count": Step(
        lambda s: s.key_by("item").count(), [(item, n) for item in range(4) for n in range(1, 16)]
    ),
    "running sum": Step(
        lambda s: s.map(lambda _: 1).key_by(lambda _: "all").sum(),
        [("all", n) for n in range(1, 61)],
    ),
    "running min": Step(
        lambda s: s.key_by("item").min("item"), [(item, item) for item in range(4)] * 15
    ),
    "running max": Step(
        lambda s: s.key_by("item").max("item"), [(item, item) for item in range(4)] * 15
    ),
    "running mean": Step(
        lambda s: s.key_by("item").mean("item"), [(item, float(item)) for item in range(4)] * 15
    ),
    "running top_n": Step(lambda s: s.map(lambda _: 1).key_by(str).top_n(1), [("1", [1])] * 60),
    "running aggregate": Step(
        lambda s: s.key_by("item").aggregate(last=agg.last("item"), first=agg.first("item")),
        [(item, {"last": item, "first": item}) for item in range(4)] * 15,
    ),
    "running fold": Step(
        lambda s: s.key_by("item").fold(0, lambda n, _: n + 1),
        [(item, n) for item in range(4) for n in range(1, 16)],
    ),
    "running reduce": Step(
        lambda s: s.map(lambda sale: sale["item"]).key_by(lambda item: item).reduce(max),
        [(item, item) for item in range(4)] * 15,
    ),
    "map_with_state": Step(
        lambda s: s.key_by("user").map_with_state(
            lambda n, sale: (n + 1, (sale["user"], n)), initial=0
        ),
        [(user, n) for user in "abc" for n in range(20)],
    ),
    "flat_map_with_state": Step(
        lambda s: s.key_by("user").flat_map_with_state(
            lambda n, sale: (n + 1, [] if n % 2 else [sale["user"]]), initial=0
        ),
        ["a", "b", "c"] * 10,
    ),
    "join": Step(
        joined(
            lambda left, right: left.join(right, gp.tumbling("4ms")).map(lambda found: found.key)
        ),
        [
            left["user"]
            for start in range(0, 60, 4)
            for left in SALES[start : start + 4]
            for right in SALES[start : start + 4]
            if left["item"] < 2 and right["item"] in {1, 2} and left["user"] == right["user"]
        ],
    ),
    "cogroup": Step(
        joined(
            lambda left, right: left.cogroup(right, gp.global_window()).map(
                lambda found: (found.key, len(found.left), len(found.right))
            )
        ),
        [
            (
                user,
                sum(sale["item"] < 2 for sale in sales),
                sum(sale["item"] in {1, 2} for sale in sales),
            )
            for user, sales in of_users(list)
        ],
    ),
    "join_interval": Step(
        joined(lambda left, right: left.join_interval(right, combine=lambda a, b: a == b)),
        [True] * 15,
    ),
    "join_asof": Step(
        joined(
            lambda left, right: left.join_asof(right, tolerance=0, how="inner").map(
                lambda found: (found.left["item"], found.right["item"])
            )
        ),
        [(1, 1)] * 15,
    ),
    "join_latest": Step(
        joined(lambda left, right: left.join_latest(right, combine=lambda sale, _: sale["item"])),
        [0, 1] * 15,
    ),
}


def in_order(results: Iterable[Any]) -> list[str]:
    return sorted(map(repr, results))


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_step_on_rows(step: Step) -> None:
    app, results = an_app(gp.collection(EVENTS), step.build)

    Simulation(app).run()

    assert in_order(results) == in_order(step.expected)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_step_on_columns(step: Step) -> None:
    """The same where the records come as tables, spread over several tasks; in virtual time."""
    app, results = an_app(TableSource(EVENTS, parts=3), step.build, parallelism=3)

    Simulation(app).run()

    assert in_order(results) == in_order(step.expected)
