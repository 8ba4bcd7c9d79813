"""Where conversions between rows and columns go, and what steps in several parts become."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import gearpy as gp
from gearpy.columns.row_schema import row_schema_of
from gearpy.dsl.application import StreamApp
from gearpy.dsl.operators.groups import (
    MergeAggregateOperator,
    MergeCountOperator,
    PartialAggregateOperator,
    PartialCountOperator,
)
from gearpy.dsl.operators.joins import JoinOperator
from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.records import ToColumnsOperator
from gearpy.dsl.operators.routes import SideOperator
from gearpy.dsl.plan.physical import physical
from gearpy.dsl.streams.stream import Stream
from gearpy.testing import Simulation
from tests.dsl.chains import chains
from tests.dsl.operators.test_columns import Trade, to_trade
from tests.dsl.tables import EVENTS, TableSource

TUMBLING = gp.tumbling("10ms")


def an_app(*, parallelism: int = 1) -> tuple[StreamApp, Stream[Any]]:
    app = StreamApp("plan", parallelism=parallelism)
    return app, app.read(TableSource(EVENTS, parts=parallelism), name="read")


def shown(app: StreamApp) -> list[str]:
    return [f"{node.name} <- {', '.join(map(_name, node.inputs))}" for node in physical(app.plan)]


def _name(node: Operator) -> str:
    return f"{node.inputs[0].name}.{node.tag}" if isinstance(node, SideOperator) else node.name


def test_plan_of_rows_stays_as_it_is() -> None:
    app = StreamApp("rows")
    numbers = app.read(gp.collection([1]))
    numbers.merge(numbers.map(str)).key_by(str).window(TUMBLING).count().write(gp.to_list([]))

    assert physical(app.plan) == list(app.plan)


def test_rows_are_made_in_the_chain_that_takes_them() -> None:
    app, sales = an_app()
    sales.map(str, name="map").write(gp.to_list([]), name="write")

    assert shown(app) == ["read <- ", "rows <- read", "map <- rows", "write <- map"]
    assert chains(app) == ["read > rows > map > write x1"]


def test_columns_travel_to_the_task_of_their_key() -> None:
    app, sales = an_app(parallelism=2)
    sales.key_by("user").count(name="count").write(gp.to_list([]), name="write")

    assert chains(app) == [
        "read x2",
        "count > rows > write x2",
        "read -> count > rows > write: group-by",
    ]


def test_rows_are_made_once_for_all() -> None:
    app, sales = an_app()
    sales.map(str, name="map").write(gp.to_list([]), name="one")
    sales.write(gp.to_list([]), name="two")

    assert shown(app) == ["read <- ", "rows <- read", "map <- rows", "one <- map", "two <- rows"]
    assert chains(app)[:3] == ["read > rows x1", "map > one x1", "two x1"]


def test_aggregate_of_columns_has_two_parts() -> None:
    """One before the records are sent, one behind; the aggregate is the origin of both."""
    app, sales = an_app(parallelism=2)
    by_user = sales.key_by("user").window(TUMBLING)
    by_user.sum("price", name="total").write(gp.to_list([]), name="write")

    _, partial, merge, _ = physical(app.plan)

    assert isinstance(partial, PartialAggregateOperator)
    assert isinstance(merge, MergeAggregateOperator)
    assert partial.origin is merge.origin is partial.of is merge.of is app.plan[1]
    assert merge.given == "total"
    assert chains(app) == [
        "read > partial total x2",
        "total > write x2",
        "read > partial total -> total > write: group-by",
    ]


def test_count_of_rows_in_several_tasks_has_two_parts() -> None:
    app = StreamApp("app", parallelism=2)
    sales = app.read(gp.collection([1]), name="read")
    sales.key_by("user").window(TUMBLING).count(name="count").write(gp.to_list([]), name="write")

    _, partial, merge, _ = physical(app.plan, 2)

    assert isinstance(partial, PartialCountOperator)
    assert isinstance(merge, MergeCountOperator)
    assert partial.origin is merge.origin is partial.of is merge.of is app.plan[1]
    assert merge.keeps == app.plan[1].keeps
    assert chains(app) == [
        "read > partial count x1",
        "count > write x2",
        "read > partial count -> count > write: group-by",
    ]


@pytest.mark.parametrize(
    "windows",
    [
        gp.sliding("10s", "5s"),
        gp.session("5s"),
        gp.tumbling("10s", clock="processing"),
        TUMBLING.allowed_lateness("1s"),
        TUMBLING.triggering(gp.every(count=2)),
    ],
)
def test_count_in_other_windows_has_one_part(windows: Any) -> None:
    app = StreamApp("app", parallelism=2)
    app.read(gp.collection([1])).key_by("user").window(windows).count().write(gp.to_list([]))

    assert physical(app.plan, 2) == list(app.plan)


def test_count_of_late_or_shared_records_has_one_part() -> None:
    """What sets late records aside needs them; who shares a stream would need a task for it."""
    app = StreamApp("app", parallelism=2)
    shared = app.read(gp.collection([1]))
    by_user = shared.key_by("user")
    by_user.window(TUMBLING, late="side").count().write(gp.to_list([]))
    by_user.window(TUMBLING).count().write(gp.to_list([]))
    by_user.window(TUMBLING).sum("price").write(gp.to_list([]))

    assert physical(app.plan, 2) == list(app.plan)


def test_tables_are_made_for_functions_of_batches() -> None:
    app = StreamApp("app")
    sales = app.read(gp.collection([1]), name="read").map(to_trade, name="map")
    tables = sales.map_batches(lambda batch: batch, name="batches", schema=Trade)
    tables.key_by("user").window(TUMBLING).count(name="count").write(gp.to_list([]), name="write")

    steps = physical(app.plan)

    assert shown(app) == [
        "read <- ",
        "map <- read",
        "table <- map",
        "batches <- table",
        "partial count <- batches",
        "count <- partial count",
        "write <- count",
    ]
    assert isinstance(steps[2], ToColumnsOperator)
    assert steps[2].schema == row_schema_of(Trade)


def test_merge_of_tables_and_rows_has_rows() -> None:
    app, sales = an_app()
    others = app.read(gp.collection([{"user": "z"}]), name="others")
    sales.merge(others, name="merge").write(gp.to_list([]), name="write")
    sales.merge(sales.map_batches(lambda batch: batch, name="batches"), name="both")

    assert shown(app) == [
        "read <- ",
        "others <- ",
        "rows <- read",
        "merge <- rows, others",
        "write <- merge",
        "batches <- read",
        "both <- read, batches",
    ]


def test_records_of_a_join_are_wrapped() -> None:
    app = StreamApp("app", parallelism=2)
    left = app.read(gp.collection(["a"]), name="one").key_by(str)
    right = app.read(gp.collection(["a"]), name="two").key_by(str)
    left.join(right, TUMBLING, name="join").write(gp.to_list([]), name="write")

    (join,) = [node for node in physical(app.plan) if isinstance(node, JoinOperator)]

    assert chains(app) == [
        "one > left of join x1",
        "two > right of join x1",
        "join > write x2",
        "one > left of join -> join > write: group-by",
        "two > right of join -> join > write: group-by",
    ]
    assert join.origin is app.plan[2]


def test_stream_can_be_joined_with_itself() -> None:
    app = StreamApp("app")
    words = app.read(gp.collection(["a"]), name="read").key_by(str)
    words.join(words, TUMBLING, name="join").write(gp.to_list([]), name="write")

    assert chains(app)[:4] == ["read x1", "left of join x1", "right of join x1", "join > write x1"]


def test_side_outputs_follow_their_step() -> None:
    app, sales = an_app()
    totals = sales.key_by(str).window(TUMBLING, late="side").count(name="count")
    totals.late.write(gp.to_list([]), name="write")
    sales.split(bool, name="split")[0].write(gp.to_list([]), name="yes")

    assert shown(app) == [
        "read <- ",
        "rows <- read",
        "count <- rows",
        "write <- count.late",
        "split <- rows",
        "yes <- split.yes",
    ]


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by("user").count(),
        lambda s: s.map(str).key_by(len).sum(),
        lambda s: s.key_by("user").join(s.key_by("user"), TUMBLING),
        lambda s: s.map_batches(lambda batch: batch).window(TUMBLING).count(),
    ],
    ids=["key", "rows", "join", "batches"],
)
def test_inputs_come_before_what_reads_them(build: Callable[[Stream[Any]], Any]) -> None:
    app, sales = an_app()
    build(sales)

    steps = physical(app.plan)

    for at, node in enumerate(steps):
        assert all(source in steps[:at] for source in node.inputs)
    assert {node.origin or node for node in steps} >= set(app.plan)


@dataclass(frozen=True, slots=True)
class Ask:
    price: int


@dataclass(frozen=True, slots=True)
class Bid:
    price: int


def _of_both() -> tuple[StreamApp, Stream[Any]]:
    app = StreamApp("merged")
    asks = app.read(gp.collection([Ask(1)], schema=Ask), name="asks")
    bids = app.read(gp.collection([Bid(2)], schema=Bid), name="bids")
    return app, asks.merge(bids, name="merge")


PASSING: list[Callable[[Stream[Any]], Stream[Any]]] = [
    lambda s: s,
    lambda s: s.repartition(2, name="pass"),
    lambda s: s.merge(s.repartition(1), name="pass"),
]


@pytest.mark.parametrize("passing", PASSING, ids=["merge", "repartition", "merge of a merge"])
@pytest.mark.parametrize("has_columns", [False, True], ids=["rows", "rows and columns"])
def test_merged_columns_give_rows_of_their_classes(
    passing: Callable[[Stream[Any]], Stream[Any]], *, has_columns: bool
) -> None:
    """Whoever else reads the same in columns, and whatever passes it on."""
    app, both = _of_both()
    both = passing(both)
    rows, prices = list[Any](), list[Any]()
    both.filter(lambda each: each.price > 0).write(gp.to_list(rows))
    if has_columns:
        both.map_batches(lambda batch: batch, schema=Bid).write(gp.to_list(prices))

    Simulation(app).run()

    times = 2 if passing is PASSING[2] else 1
    assert sorted(map(repr, rows)) == sorted([repr(Ask(1)), repr(Bid(2))] * times)
    expected = [Bid(1), Bid(2)] * times if has_columns else []
    assert sorted(map(repr, prices)) == sorted(map(repr, expected))


def test_merged_columns_of_one_class_stay_columns() -> None:
    app = StreamApp("one")
    one, other = (
        app.read(gp.collection([Bid(at)], schema=Bid), name=f"bids{at}") for at in range(2)
    )
    one.merge(other, name="merge").map(repr, name="map").write(gp.to_list([]), name="write")

    assert shown(app)[2:4] == ["merge <- bids0, bids1", "rows <- merge"]


def test_merged_columns_of_several_classes_stay_columns_for_who_takes_columns() -> None:
    app, both = _of_both()
    both.map_batches(lambda batch: batch, schema=Bid, name="batches").write(
        gp.to_list([]), name="write"
    )

    assert shown(app)[2:4] == ["merge <- asks, bids", "batches <- merge"]


def test_columns_that_nobody_takes_are_not_passed_on() -> None:
    """What is computed stays, as it may fail; so does all before a step that keeps columns."""
    app, sales = an_app()
    table = gp.rows([{"user": "ada", "town": "Paris"}])
    chosen = sales.select("user", "amount", "time", twice=gp.col("amount") * 2)
    joined = chosen.join_table(table, "user", combine="merge")
    joined.select("amount", "town", "time").select("town", "amount").write(gp.to_list([]))
    chosen.select("user", "amount").with_columns(n=gp.col("amount") + 1).write(gp.to_list([]))

    passed = [node.name for node in physical(app.plan) if node.name.startswith("select")]

    assert passed == [
        "select(user, amount, amount * 2 as twice)",
        "select(amount, town)",
        "select(town, amount)",
        "select(user, amount)",
    ]
