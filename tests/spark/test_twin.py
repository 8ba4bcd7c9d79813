"""A program and its Spark query give the same: words, Nexmark, sessions, columns and rows."""

import random
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import gearpy as gp
from gearpy.cli.programs.verify import verify_application
from gearpy.dsl.plan.linear import linear_plans
from gearpy.errors import ConfigError, GearpyError
from gearpy.spark.query.frame import twin_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEXMARK: Final = Path(__file__).parents[2] / "examples" / "nexmark"
MODULES: Final = ("events", "columns", "winning_bids", "queries")
EVENTS: Final = 2000


@pytest.fixture(scope="module")
def nexmark() -> Iterator[Any]:
    """The queries, as the program imports them: from beside it."""
    before = set(sys.modules)
    sys.path.insert(0, str(NEXMARK))
    yield import_module("queries")
    sys.path.remove(str(NEXMARK))
    for name in set(sys.modules) - before & set(MODULES):
        sys.modules.pop(name, None)


def _agrees(app: gp.StreamApp, spark: "SparkSession", **options: Any) -> int:
    """Return how many records both sides give; they are the same."""
    verdict = verify_application(app, spark, **options)

    for answer in verdict.answers:
        found = answer.found
        assert found.is_empty, (found.missing[:3], found.extra[:3], found.different[:3])
    assert verdict.late_records == 0
    return sum(answer.found.same for answer in verdict.answers)


@pytest.mark.parametrize(
    ("query", "records"),
    [
        *[("q2", 1), ("q7", 1)],
        *(pytest.param(each, 1, marks=pytest.mark.long) for each in ("q1", "q5")),
    ],
)
def test_nexmark_agrees(spark: "SparkSession", nexmark: Any, query: str, records: int) -> None:
    app = gp.StreamApp(query)
    events = nexmark.Nexmark(events=EVENTS, partitions=2)
    nexmark.answers_of(query, app, events).write(gp.to_list([]))

    assert _agrees(app, spark, records=EVENTS) >= records


def test_word_count_agrees(spark: "SparkSession", tmp_path: Path) -> None:
    """Text files are read as they are; a window is of the time when its file was changed."""
    rng, words = random.Random(1), ["to", "be", "or", "not", "that", "is"]
    for name in ("a", "b"):
        lines = [" ".join(rng.choices(words, k=5)) for _ in range(200)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    app = gp.StreamApp("words")
    read = app.read(gp.files(str(tmp_path / "*.txt"))).flat_map(str.split)
    read.key_by(lambda word: word).window(gp.global_window()).count().write(gp.to_list([]))

    assert _agrees(app, spark) == 6


def _sales(rows: int = 1500) -> list[dict[str, Any]]:
    rng = random.Random(2)
    return [
        {
            "shop": rng.choice(["a", "b", "c", None]),
            "price": rng.choice([None, *range(-5, 9), 2**60]),
            "weight": rng.choice([None, float("nan"), -0.0, *(rng.random() for _ in range(9))]),
            "paid": rng.random() < 0.5,
            "at": rng.randrange(-50_000, 50_000) * 7,  # No two of a key at one time, mostly.
        }
        for _ in range(rows)
    ]


_SCHEMA: Final = {
    "shop": str | None, "price": int | None, "weight": float | None, "paid": bool, "at": int
}  # fmt: skip
_SQL: Final = {
    "n": gp.agg.count(),
    "total": gp.agg.sum("price"),
    "mean": gp.agg.mean("price"),
    "heaviest": gp.agg.max("weight"),
    "lightest": gp.agg.min("weight"),
    "name": gp.agg.max("shop"),
    "prices": gp.agg.distinct("price"),
    "weights": gp.agg.distinct("weight"),
    "spread": gp.agg.stddev("price"),
    "all": gp.agg.all("price"),
    "any": gp.agg.any("weight"),
    "paid": gp.agg.any("paid"),
}


def _read(app: gp.StreamApp) -> gp.Stream[Any]:
    sales = gp.collection(
        _sales(), timestamp=lambda sale: sale["at"], out_of_order="1h", schema=_SCHEMA
    )
    return app.read(sales)


def test_sql_says_what_windows_and_aggregates_say(spark: "SparkSession") -> None:
    app = gp.StreamApp("columns")
    sales = _read(app)
    windows = [
        gp.tumbling("10s", offset="3s"),
        gp.sliding("10s", "4s", offset="1s"),
        gp.session("700ms"),
        gp.global_window(),
    ]
    for each in windows:
        sales.key_by("shop", "paid").window(each).aggregate(**_SQL).write(gp.to_list([]))
    sales.window(gp.session("70ms")).count().write(gp.to_list([]))
    queries = [twin_frame(spark, plan) for plan in linear_plans(app.name, app.plan)]

    same = _agrees(app, spark)

    assert all(query.group is not None for query in queries), "all of it is SQL"
    assert same > 500


def test_python_does_what_sql_cannot(spark: "SparkSession") -> None:
    app = gp.StreamApp("rows")
    sales = _read(app).filter(lambda sale: sale["price"] is not None)
    by_shop = sales.key_by(lambda sale: (sale["shop"], sale["paid"]))
    by_shop.window(gp.session("700ms")).aggregate(
        first=gp.agg.first("price"),
        last=gp.agg.last("at"),
        top=gp.agg.top(2, "price"),
        tail=gp.agg.quantile([0.5, 0.95], "price"),
        about=gp.agg.approx_distinct("at"),
        usual=gp.agg.mode("price"),
        best=gp.agg.arg_max("at", by="price"),
        paid=gp.agg.sum("price", where="paid"),
    ).write(gp.to_list([]))
    by_shop.window(gp.sliding("10s", "4s")).reduce(
        lambda a, b: max(a, b, key=lambda sale: (sale["at"], sale["price"]))
    ).map(lambda result: result.value).write(gp.to_list([]))

    assert _agrees(app, spark) > 250


def test_what_differs_is_found(spark: "SparkSession") -> None:
    """A function that gives something else each time has no query that agrees."""
    app = gp.StreamApp("chance")
    app.read(gp.collection([1, 2, 3])).map(lambda n: (n, random.random())).write(gp.to_list([]))

    (answer,) = verify_application(app, spark).answers

    assert not answer.found.is_empty
    assert len(answer.found.missing) == len(answer.found.extra) == 3


def test_late_records_are_told_apart(spark: "SparkSession") -> None:
    """The stream leaves them out, the query does not: people see which, and the rest agrees."""
    app = gp.StreamApp("late")
    times = [0, *[25] * 3000, 3]
    app.read(gp.collection(times, timestamp=_itself)).window(gp.tumbling("10ms")).count(
        name="counts"
    ).write(gp.to_list([]))

    verdict = verify_application(app, spark)

    assert verdict.agrees
    assert verdict.late_records == 1
    assert [m.value for of in verdict.late.values() for m in of] == [3]


def test_a_query_is_a_table_with_the_columns_of_a_window_log(spark: "SparkSession") -> None:
    app = gp.StreamApp("table")
    sales = _read(app)
    sales.key_by("shop").window(gp.tumbling("10s")).aggregate(n=gp.agg.count()).write(
        gp.to_list([]), name="counts"
    )
    sales.map(lambda sale: {"price": sale["price"], "paid": sale["paid"]}).write(
        gp.to_list([]), name="prices"
    )

    counts = app.to_spark_frame(spark, sink="counts")
    prices = app.to_spark_frame(spark, sink="prices")

    assert counts.columns == [
        "window_start", "window_end", "key", "n", "firing", "timing", "retracts"
    ]  # fmt: skip
    assert sum(row["n"] for row in counts.collect()) == len(_sales())
    assert prices.columns == ["price", "paid", "event_time"]
    assert prices.count() == len(_sales())


def test_a_table_without_records_has_no_columns(spark: "SparkSession") -> None:
    app = gp.StreamApp("empty")
    app.read(gp.collection([1])).filter(lambda n: n > 1).write(gp.to_list([]))

    with pytest.raises(ConfigError, match="no record"):
        app.to_spark_frame(spark)


def test_what_user_code_raises_is_told(spark: "SparkSession") -> None:
    app = gp.StreamApp("raises")
    app.read(gp.collection([1, 0])).map(lambda n: 1 // n, name="divided").write(gp.to_list([]))
    (plan,) = linear_plans(app.name, app.plan)

    with pytest.raises(GearpyError, match=r"divided.*ZeroDivisionError|ZeroDivisionError"):
        list(twin_frame(spark, plan).batches())


def _itself(time: int) -> int:
    return time


def test_local_windows_are_the_same_in_any_time_zone_of_the_session(spark: "SparkSession") -> None:
    """Over both changes of a year, by the clocks of Berlin; Spark's are those of Los Angeles."""
    hours = range(1_767_225_600_000, 1_798_761_600_000, 5 * 3_600_000)  # Of 2026.
    rows: list[Any] = [{"shop": "ab"[at % 2], "at": hour} for at, hour in enumerate(hours)]
    app = gp.StreamApp("days")
    sales = app.read(
        gp.collection(rows, timestamp=lambda row: row["at"], schema={"shop": str, "at": int})
    )
    for windows in (
        gp.tumbling("1d", zone="Europe/Berlin"),
        gp.sliding("2d", "12h", zone="Europe/Berlin"),
    ):
        sales.key_by("shop").window(windows).aggregate(n=gp.agg.count(), last=gp.agg.max("at")).map(
            lambda result: (*result, result.local_start)
        ).write(gp.to_list([]))
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        assert _agrees(app, spark) == 2 * (365 + 2 * 365 + 3)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
