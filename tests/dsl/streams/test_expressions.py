"""Steps of expressions: over columns and over rows, with policies for bad records."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.testing import Simulation

SALES: Final[list[dict[str, Any]]] = [
    {"shop": "north", "price": 3, "at": 1_000},
    {"shop": "south", "price": None, "at": 2_000},
    {"shop": "north", "price": 5, "at": 12_000},
]
Build: TypeAlias = Callable[[gp.Stream[Any]], gp.Stream[Any]]


def in_columns() -> gp.Source[Any]:
    return gp.rows(SALES, time="at")


def in_rows() -> gp.Source[Any]:
    return gp.collection(SALES, timestamp=lambda sale: sale["at"])


def run(source: gp.Source[Any], build: Build) -> list[Any]:
    app, results = gp.StreamApp("expressions"), list[Any]()
    build(app.read(source)).write(gp.to_list(results, messages=True))
    Simulation(app).run()
    return results


@pytest.mark.parametrize(
    ("build", "records"),
    [
        (lambda s: s.filter(gp.col("price") > 3), [SALES[2]]),
        (lambda s: s.filter(gp.col("price").is_null()), [SALES[1]]),
        (lambda s: s.filter(gp.col("price") > 9), []),
        (
            lambda s: s.select("at", twice=gp.col("price") * 2, shop="shop", one=1),
            [
                {"at": 1_000, "twice": 6, "shop": "north", "one": 1},
                {"at": 2_000, "twice": None, "shop": "south", "one": 1},
                {"at": 12_000, "twice": 10, "shop": "north", "one": 1},
            ],
        ),
        (
            lambda s: s.with_columns(gp.col("at").alias("then"), price=gp.col("price") * 2),
            [
                {**sale, "price": sale["price"] and sale["price"] * 2, "then": sale["at"]}
                for sale in SALES
            ],
        ),
        (
            lambda s: s.filter(gp.col("price") > 0).map(lambda sale: sale["price"]),
            [3, 5],
        ),
    ],
)
def test_columns_and_rows_give_the_same(build: Build, records: list[Any]) -> None:
    of_columns = run(in_columns(), build)
    of_rows = run(in_rows(), build)

    assert [each.value for each in of_columns] == records
    assert of_columns == of_rows


def kinds(app: gp.StreamApp) -> dict[str, str]:
    return {
        step.name: f"{step.takes} to {step.gives}"
        for processor in app.build().processors.values()
        for step in processor.steps
    }


def test_columns_stay_columns() -> None:
    app = gp.StreamApp("columns")
    sales = app.read(in_columns()).filter(gp.col("price") * 2 > 6).select("shop")
    sales.write(gp.to_list([]))

    shown = kinds(app)

    assert shown["filter(price * 2 > 6)"] == "columns to columns"
    assert shown["select(shop)"] == "columns to columns"


@pytest.mark.parametrize("source", [in_columns(), in_rows()])
def test_a_bad_record_is_set_aside_alone(source: gp.Source[Any]) -> None:
    app, results, bad = gp.StreamApp("bad"), list[Any](), list[Any]()
    made = app.read(source).with_columns(q=12 // (gp.col("price") - 3), on_error="side")
    made.write(gp.to_list(results))
    made.errors.write(gp.to_list(bad))

    Simulation(app).run()

    assert [each["q"] for each in results] == [None, 6]
    assert [each.record for each in bad] == SALES[:1]


@pytest.mark.parametrize("source", [in_columns(), in_rows()])
def test_a_failure_names_step_and_record(source: gp.Source[Any]) -> None:
    with pytest.raises(gp.OperatorError) as failed:
        run(source, lambda s: s.filter(gp.col("price") * (1 << 61) > 0))

    assert failed.value.operator == f"filter(price * {1 << 61} > 0)"
    assert failed.value.record == repr(SALES[2])
    assert failed.value.cause.startswith(f"OverflowError: 5 * {1 << 61} is ")


def test_mistakes_are_told_before_the_program_runs() -> None:
    app = gp.StreamApp("wrong")
    sales = app.read(in_columns())
    sales.filter(gp.col("prize") > 1).write(gp.to_list([]))
    sales.select(n=gp.col("shop") * 2).write(gp.to_list([]))

    with pytest.raises(gp.ConfigError) as refused:
        app.build()

    assert "did you mean 'price'?" in str(refused.value)
    assert "select(shop * 2 as n): shop * 2: * takes numbers" in str(refused.value)


P: Final = gp.col("price")


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by(gp.col("shop").str.upper()).window(gp.tumbling("10s")).count(),
        lambda s: s.key_by("shop", P.is_null()).window(gp.tumbling("10s")).count(),
        lambda s: s.key_by(gp.col("shop")).window(gp.sliding("10s", "5s")).sum(P * 2),
        lambda s: s.window(gp.tumbling("1m")).aggregate(
            n=gp.agg.count(where=P > 3),
            net=gp.agg.sum(P * 0.5),
            same=gp.agg.mean(P * 0.5),
            large=gp.agg.max("price", where=P * 2 > 6),
            best=gp.agg.arg_max(gp.col("shop").str.upper(), by=-P),
        ),
    ],
    ids=["key", "two keys", "column as key", "aggregates"],
)
def test_windows_of_expressions_are_the_same_over_columns_and_rows(build: Build) -> None:
    of_columns, of_rows = run(in_columns(), build), run(in_rows(), build)

    assert of_columns
    assert sorted(map(repr, of_columns)) == sorted(map(repr, of_rows))


def test_windows_of_expressions_take_columns() -> None:
    app = gp.StreamApp("columns")
    by_shop = app.read(in_columns()).key_by(gp.col("shop").str.upper()).window(gp.tumbling("10s"))
    by_shop.aggregate(net=gp.agg.sum(P * 0.5, where=P > 1)).write(gp.to_list([]))

    shown = kinds(app)

    assert shown["columns of window_aggregate"] == "columns to columns"
    assert shown["partial window_aggregate"] == "columns to columns"
    assert {step.key for each in app.build().processors.values() for step in each.steps} == {
        "",
        "upper(shop)",
    }


SHOUT: Final = gp.col("shop").str.upper()
SHOPS: Final = gp.rows([{"id": "NORTH", "zip": 1, "m": 3}, {"id": "WEST", "zip": 2, "m": 5}])


def by_itself(stream: gp.Stream[Any], step: str, *args: Any, **more: Any) -> gp.Stream[Any]:
    joined: gp.Stream[Any] = getattr(stream.key_by(SHOUT, P), step)(
        stream.key_by(gp.col("shop").str.upper(), "price"), *args, **more
    )
    return joined


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.distinct(SHOUT),
        lambda s: s.key_by("shop", P.is_null()).distinct(within="5s"),
        lambda s: s.key_by(SHOUT).pairwise(),
        lambda s: s.key_by(SHOUT).count(),
        lambda s: s.key_by(SHOUT).rolling(2, most=gp.agg.max(P * 2)),
        lambda s: s.join_table(SHOPS, on=(SHOUT, "id"), combine="merge"),
        lambda s: s.key_by(SHOUT).join_table(SHOPS, on="id", combine="merge", how="left"),
        lambda s: s.join_table(SHOPS, on=([SHOUT, P], ["id", "m"]), combine="merge", how="left"),
        lambda s: by_itself(s, "join_interval", before="20s"),
        lambda s: by_itself(s, "join_interval", after="20s", combine=lambda a, b: (a, b)),
        lambda s: by_itself(s, "join", gp.tumbling("10s"), how="outer"),
        lambda s: by_itself(s, "join_asof"),
        lambda s: by_itself(s, "join_latest"),
    ],
    ids=[
        "distinct",
        "distinct within",
        "pairwise",
        "count",
        "rolling",
        "table",
        "table by key",
        "table of two keys",
        "interval",
        "combined",
        "window",
        "as of",
        "latest",
    ],
)
def test_keys_of_expressions_keep_columns_and_no_trace(build: Build) -> None:
    of_columns, of_rows = run(in_columns(), build), run(in_rows(), build)
    app = gp.StreamApp("forms")
    build(app.read(in_columns())).write(gp.to_list([]))
    before_sink = [step for each in app.build().processors.values() for step in each.steps][:-1]

    assert of_columns
    assert sorted(map(repr, of_columns)) == sorted(map(repr, of_rows))
    assert "= upper" not in repr(of_columns)
    assert {step.takes for step in before_sink if step.name not in ("rows", "join_interval")} == {
        "columns"
    }


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (
            lambda s: s.join_table(SHOPS, on=(SHOUT, "id"), combine="merge").select("zip"),
            [{"zip": 1}, {"zip": 1}],
        ),
        (
            lambda s: s.filter(gp.col("at") > 1_000).distinct(SHOUT).select("price"),
            [{"price": None}, {"price": 5}],
        ),
    ],
    ids=["table", "distinct"],
)
def test_a_source_that_reads_few_columns_is_enough_for_a_key_of_expressions(
    build: Build, values: list[Any], tmp_path: Path
) -> None:
    pq.write_table(pa.Table.from_pylist(SALES), tmp_path / "sales.parquet")

    found = [each.value for each in run(gp.parquet(str(tmp_path / "*.parquet")), build)]

    assert found == values


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda s: s.distinct(lambda sale: sale["shop"]), "its key is a function"),
        (lambda s: s.join_table(SHOPS, on=("shop", "id")), 'combine="merge" keeps them'),
        (
            lambda s: s.join_table(SHOPS, on=(lambda r: r["shop"], "id"), combine="merge"),
            "its key is a function",
        ),
    ],
    ids=["distinct by function", "pairs", "join by function"],
)
def test_the_plan_says_why_a_step_by_key_takes_rows(build: Build, reason: str) -> None:
    app = gp.StreamApp("notes")
    build(app.read(in_columns())).write(gp.to_list([]))

    notes = [step.note for each in app.build().processors.values() for step in each.steps]

    assert any(reason in note for note in notes)


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (lambda s: s.count().filter(gp.col("value") > 1), [("north", 2)]),
        (
            lambda s: s.count().select("key", twice=gp.col("value") * 2),
            [
                {"key": "north", "twice": 2},
                {"key": "south", "twice": 2},
                {"key": "north", "twice": 4},
            ],
        ),
        (
            lambda s: s.aggregate(most=gp.agg.max("at")).with_columns(s=gp.col("most") // 1000),
            [
                {"key": "north", "most": 1_000, "s": 1},
                {"key": "south", "most": 2_000, "s": 2},
                {"key": "north", "most": 12_000, "s": 12},
            ],
        ),
        (
            lambda s: s.count().key_by("key").max("value"),
            [("north", 1), ("south", 1), ("north", 2)],
        ),
        (lambda s: s.count().distinct("value"), [("north", 1), ("north", 2)]),
        (lambda s: s.count().split(gp.col("value") > 1)[0], [("north", 2)]),
        (
            lambda s: s.per_batch().aggregate(n=gp.agg.count()).select("n"),
            [{"n": 1}, {"n": 1}, {"n": 2}],
        ),
        (
            lambda s: s.count().map_batches(lambda table: table, form="arrow"),
            [
                {"key": "north", "value": 1},
                {"key": "south", "value": 1},
                {"key": "north", "value": 2},
            ],
        ),
    ],
    ids=["filter", "select", "with_columns", "key_by", "distinct", "split", "per batch", "batches"],
)
def test_results_without_windows_have_fields_over_rows_and_columns(
    build: Callable[[Any], Any], values: list[Any]
) -> None:
    for source in (in_columns(), in_rows()):
        app, results = gp.StreamApp("pairs"), list[Any]()
        build(app.read(source).key_by("shop")).write(gp.to_list(results))
        gp.run(app)

        assert results == values


def test_a_pair_of_another_key_has_a_field_for_each_part_and_others_have_none() -> None:
    app, results = gp.StreamApp("parts"), list[Any]()
    by_two = app.read(in_rows()).key_by("shop", "at").aggregate(key_1=gp.agg.count())
    by_two.select("key_1", "key_2", "value").write(gp.to_list(results))
    Simulation(app).run()
    three = gp.StreamApp("three")
    three.read(gp.collection([(1, 2, 3)])).filter(gp.col("key") > 1).write(gp.to_list([]))

    assert results[0] == {"key_1": "north", "key_2": 1_000, "value": {"key_1": 1}}
    with pytest.raises(
        gp.OperatorError, match="there is no field 'key' in a tuple: there are none"
    ):
        gp.run(three)


@pytest.mark.parametrize("source", [in_columns(), in_rows()])
def test_sinks_with_columns_take_results_without_windows(
    source: gp.Source[Any], tmp_path: Path
) -> None:
    app, table = gp.StreamApp("pairs"), gp.to_table()
    counts = app.read(source).key_by("shop").count()
    counts.write(table)
    counts.write(gp.parquet_folder(tmp_path / "counts"))
    counts.write(gp.csv_folder(tmp_path / "texts"))
    gp.run(app)

    values = [("north", 1), ("south", 1), ("north", 2)]
    written = pa.dataset.dataset(tmp_path / "counts").to_table().to_pylist()
    (text,) = (tmp_path / "texts").glob("*.csv")
    assert written == [{"key": key, "value": value} for key, value in values]
    assert text.read_text() == '"key","value"\n"north",1\n"south",1\n"north",2\n'
    assert table.to_arrow().select(["key", "value"]).to_pylist() == written


def test_records_of_known_columns_are_distinct_as_a_whole() -> None:
    """A dict is no key; a class is one, and stays so."""
    app, different, sold = gp.StreamApp("whole"), list[Any](), list[Any]()
    app.read(gp.rows([*SALES, *SALES, {**SALES[1], "price": 4}])).distinct().write(
        gp.to_list(different)
    )
    app.read(gp.rows([SOLD[0], SOLD[1], SOLD[0]], schema=Sold)).distinct().write(gp.to_list(sold))

    Simulation(app).run()

    assert different == [*SALES, {**SALES[1], "price": 4}]
    assert sold == SOLD[:2]


@pytest.mark.parametrize("source", [in_columns(), in_rows()])
def test_other_steps_take_expressions_as_functions(source: gp.Source[Any]) -> None:
    app, yes, rest = gp.StreamApp("others"), list[Any](), list[Any]()
    shops, tops, folded = list[Any](), list[Any](), list[Any]()
    sales = app.read(source)
    large, others = sales.split(P > 3)
    large.write(gp.to_list(yes))
    others.write(gp.to_list(rest))
    sales.distinct(gp.col("shop").str.upper()).write(gp.to_list(shops))
    by_shop = sales.key_by(gp.col("shop").str.upper())
    by_shop.window(gp.session("1s")).top_n(1, by=P * -1).write(gp.to_list(tops))
    by_shop.sum(gp.col("at") // 1000).write(gp.to_list(folded))

    Simulation(app).run()

    assert yes == SALES[2:]
    assert rest == SALES[:2]
    assert shops == SALES[:2]
    assert len(tops) == 3
    assert folded == [("NORTH", 1), ("SOUTH", 2), ("NORTH", 13)]


class Sold(NamedTuple):
    """What was sold."""

    shop: str
    price: int | None


SOLD: Final = [Sold("north", 3), Sold("south", None), Sold("north", 50), Sold("east", 9)]


@pytest.mark.parametrize("schema", [None, Sold])
def test_branches_of_expressions_keep_records_and_columns(schema: type[Sold] | None) -> None:
    app, found = gp.StreamApp("branches"), dict[str, list[Any]]()
    sold = app.read(gp.collection(SOLD, schema=schema))
    by_price = sold.branch(small=P < 5, middle=P < 10)
    north, others = by_price.default.merge(by_price.small).split(gp.col("shop") == "north")
    for name, each in {"middle": by_price.middle, "north": north, "others": others}.items():
        each.write(gp.to_list(found.setdefault(name, [])))

    Simulation(app).run()

    assert found["middle"] == [SOLD[3]]
    assert sorted(found["north"]) == [SOLD[0], SOLD[2]]
    assert found["others"] == [SOLD[1]]
    expected = "rows to rows" if schema is None else "columns to columns"
    assert {way for name, way in kinds(app).items() if "(" in name} == {expected}


def test_a_bad_record_is_left_out_of_a_branch_once() -> None:
    app, large, others = gp.StreamApp("branches"), list[Any](), list[Any]()
    rows = [{"price": 4}, {"price": 1 << 62}, {"price": 1}]
    is_large, rest = app.read(gp.rows(rows)).split(P * 4 < 8)
    is_large.write(gp.to_list(large))
    rest.write(gp.to_list(others))

    simulation = Simulation(app, on_error="skip").run()

    assert (large, others) == ([{"price": 1}], [{"price": 4}])
    assert sum(each.skipped_records for each in simulation.clocks()) == 1


def test_mistakes_in_keys_and_aggregates_are_told_before_the_program_runs() -> None:
    app = gp.StreamApp("wrong")
    sales = app.read(in_columns()).key_by(gp.col("shap").str.upper()).window(gp.tumbling("1s"))
    sales.sum(gp.col("shop") * 2).write(gp.to_list([]))

    with pytest.raises(gp.ConfigError) as refused:
        app.build()

    assert "there is no column 'shap': did you mean 'shop'?" in str(refused.value)
    assert "shop * 2: * takes numbers" in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda s: s.filter("price > 3"), "filter('price > 3'): give an expression, such as"),
        (lambda s: s.select(), "select takes names of columns and expressions, not nothing"),
        (lambda s: s.select(3), "select takes names of columns and expressions, not 3"),
        (lambda s: s.with_columns(P * 2, P * 2), "with_columns makes two columns 'price * 2'"),
        (lambda s: s.select(net=[1]), "select: [1] is no value for an expression"),
    ],
    ids=["text", "nothing", "number", "twice", "list"],
)
def test_mistakes_are_told_where_they_are_made(wrong: Build, text: str) -> None:
    with pytest.raises(gp.ConfigError) as refused:
        wrong(gp.StreamApp("wrong").read(in_columns()))
    assert text in str(refused.value)


@dataclass
class Sale:
    shop: str
    price: int

    @property
    def doubled(self) -> int:
        return self.price * 2


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (lambda s: s.filter(P > 3), [Sale("south", 5)]),
        (lambda s: s.filter(P > 3).map(lambda sale: sale.doubled), [10]),
        (lambda s: s.filter(gp.col("doubled") > 6), [Sale("south", 5)]),
        (
            lambda s: s.select("shop", twice=gp.col("doubled")).skip(1),
            [{"shop": "south", "twice": 10}],
        ),
        (lambda s: s.with_columns(one=1).take(1), [{"shop": "north", "price": 3, "one": 1}]),
        (lambda s: s.map(P * 2), [6, 10]),
    ],
    ids=["filter", "then a function", "property", "select", "with_columns", "map"],
)
@pytest.mark.parametrize("schema", [Sale, None], ids=["columns", "rows"])
def test_rows_of_a_class_are_taken(schema: type[Sale], build: Build, values: list[Any]) -> None:
    sales = [Sale("north", 3), Sale("south", 5)]

    results = run(gp.collection(sales, schema=schema), build)

    assert [each.value for each in results] == values


def test_the_plan_says_what_would_keep_columns() -> None:
    app = gp.StreamApp("notes")
    app.read(in_columns()).filter(lambda sale: sale["price"]).write(gp.to_list([]))

    (rows,) = [
        step.note
        for each in app.build().processors.values()
        for step in each.steps
        if step.name == "rows"
    ]

    assert rows == (
        "filter(lambda) makes rows of columns: an expression such as "
        'filter(gp.col("price") > 3) keeps them'
    )


def test_a_source_takes_an_expression_as_its_time() -> None:
    results = run(gp.rows(SALES, time=gp.col("at") * 1000), lambda s: s.filter(P > 3))

    assert results == [gp.Message(SALES[2], 12_000_000)]


def test_an_expression_that_is_no_time_is_refused() -> None:
    with pytest.raises(gp.ConfigError, match="time=there is no column 'att': did you mean 'at'"):
        gp.rows(SALES, time=gp.col("att") * 1000)
