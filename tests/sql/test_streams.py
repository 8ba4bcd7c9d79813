"""Queries over streams without end: windows, running results, joins in time, the first rows."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

import gearpy as gp
from gearpy.dsl.operators.expressions import PlacesOperator
from gearpy.dsl.plan.physical import physical
from gearpy.errors import ConfigError
from gearpy.testing import MemoryTransactions, Simulation

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Sale(NamedTuple):
    shop: str
    price: int


def at(seconds: int) -> datetime:
    return _START + timedelta(seconds=seconds)


def endless(rows: list[tuple[Any, ...]], schema: Mapping[str, Any]) -> gp.Source:
    """Return a source that does not say that it ends."""
    source = gp.rows(
        [dict(zip(schema, row, strict=True)) for row in rows], schema=schema, time="at"
    )
    source.bounded = False
    return source


def sources() -> dict[str, Any]:
    """Return bids every two seconds on three items, some asks, and a table of items."""
    bids = [(n % 3, 10 + n * 7 % 13, at(2 * n)) for n in range(12)]
    asks = [(0, 5, at(3)), (1, 6, at(8)), (0, 7, at(14))]
    return {
        "bids": endless(bids, {"item": int, "price": int, "at": datetime}),
        "asks": endless(asks, {"item": int, "ask": int, "at": datetime}),
        "items": gp.rows([{"id": 0, "name": "tea"}, {"id": 2, "name": "jam"}]),
    }


def ask(query: str, **more: Any) -> list[tuple[Any, ...]]:
    """Return the answers; a time is the seconds since the start."""
    app, results = gp.StreamApp("asked"), list[dict[str, Any]]()
    app.sql(query, **sources(), **more).write(gp.to_list(results))
    Simulation(app).run()
    return [
        tuple(
            (value - _START) // timedelta(seconds=1) if isinstance(value, datetime) else value
            for value in row.values()
        )
        for row in results
    ]


def test_windows_close_as_time_goes_on() -> None:
    """Flink's table functions, with and without its words."""
    group = "group by item, window_start, window_end"
    items = "select item, window_start, window_end, count(*), max(price)"
    answers = [
        ask(f"{items} from {table} {group}")
        for table in (
            "table(tumble(table bids, descriptor(at), interval '10' seconds))",
            "tumble(bids, at, interval '10s') as t",
        )
    ]

    assert answers[0] == answers[1]
    assert sorted(answers[0])[:3] == [(0, 0, 10, 2, 18), (0, 10, 20, 2, 21), (1, 0, 10, 2, 17)]


def test_windows_slide_and_follow_the_gaps_of_a_key() -> None:
    """A step and a size make a hop; a session ends with a pause."""
    hops = ask(
        "select window_start, count(*) from hop(table bids, descriptor(at), interval '5' seconds, "
        "interval '10' seconds) group by window_start"
    )
    sessions = ask(
        "select window_start, window_end, sum(price) from session(bids, at, interval '3' seconds) "
        "group by window_start, window_end"
    )

    assert hops == [(-5, 3), (0, 5), (5, 5), (10, 5), (15, 4), (20, 2)]
    assert sessions == [(0, 25, 192)]


def test_groups_without_windows_run() -> None:
    """Each record gives the result so far."""
    assert ask("select item, count(*) as n from bids where price > 15 group by item") == [
        (1, 1),
        (0, 1),
        (2, 1),
        (1, 2),
        (0, 2),
        (2, 2),
    ]


def test_results_of_windows_are_grouped_again_by_window() -> None:
    """The best of each window: of the results of a window all have one time."""
    counts = (
        "select item, window_start, count(*) as n from hop(bids, at, interval '5s', interval '10s')"
        " group by item, window_start"
    )
    most = ask(f"select window_start, max(n), count(*) from ({counts}) group by window_start")
    first = ask(
        f"select window_start, item from ({counts}) qualify row_number() over (partition by "
        "window_start order by n desc, item) = 1"
    )

    assert most == [(-5, 1, 3), (0, 2, 3), (5, 2, 3), (10, 2, 3), (15, 2, 3), (20, 1, 2)]
    assert first == [(-5, 0), (0, 0), (5, 0), (10, 0), (15, 2), (20, 1)]


def test_windows_tell_what_they_have_so_far() -> None:
    """EMIT CHANGES is of the outer query alone; each result takes the place of the one before."""
    counts = "select item, window_start, count(*) as n from tumble(bids, at, interval '10s') "
    group = "group by item, window_start"
    changes = ask(f"{counts} {group} emit changes")
    most = ask(f"select max(n) from ({counts} {group}) group by window_start emit changes")

    assert [row[2] for row in changes if row[:2] == (0, 0)] == [1, 2, 2]
    assert most == [(2,), (2,), (1,)]


def test_rows_of_windows_are_looked_for_in_the_same_windows() -> None:
    """They keep the bounds of theirs, so that they can be grouped by them."""
    table = "tumble({}, at, interval '10s')".format
    inner = f"(select item from {table('asks')} where ask > 5)"
    where = f"from {table('bids')} where item in {inner} and price > 12"
    rows = ask(f"select item, price, at, window_end {where}")
    counts = ask(f"select window_start, count(*) as n {where} group by window_start")
    pairs = ask(
        f"select item, window_start from {table('bids')} "
        f"where (item, price) in (select item, ask + 5 from {table('asks')})"
    )

    assert sorted(rows) == [(0, 13, 12, 20), (0, 21, 18, 20), (1, 17, 2, 10)]
    assert counts == [(0, 1), (10, 2)]
    assert pairs == [(0, 0)]


def test_a_batch_has_one_result_for_each_group() -> None:
    """What is last said of a group is what each record would have said last."""
    best = """
        select item, row_number() over w as n, price from bids
        window w as (partition by item order by price) qualify n <= 2
    """
    sums = "select item, sum(price) as s from bids group by item"
    for query, keys in ((sums, 1), (best, 2)):
        always, batches = (ask(f"{query} emit {emit}") for emit in ("changes", "per batch"))

        assert {row[:keys]: row for row in batches} == {row[:keys]: row for row in always}
        assert len(batches) < len(always)


def test_the_best_rows_of_a_batch_of_columns_are_those_of_rows() -> None:
    """They are found before columns become rows."""
    found = []
    for columns in (True, False):
        app, results = gp.StreamApp("best"), list[dict[str, Any]]()
        values = [{"k": n % 2, "v": n * 7 % 11} for n in range(40)]
        app.sql(
            "select k, v, row_number() over (partition by k order by v desc) as n from t "
            "qualify n <= 3 emit per batch",
            t=gp.rows(values) if columns else gp.collection(values, schema={"k": int, "v": int}),
        ).write(gp.to_list(results))
        Simulation(app).run()
        found.append({(row["k"], row["n"]): row["v"] for row in results})

    assert found[0] == found[1]
    assert sorted(found[0].values())[-2:] == [10, 10]


def test_pairs_keep_the_time_of_one_side() -> None:
    """So they go on into windows."""
    answer = ask(
        "select window_start, count(*) from tumble((select b.at, ask from bids b join asks a on "
        "b.item = a.item and a.at between b.at - interval '4' seconds and b.at), at, "
        "interval '10s') group by window_start"
    )

    assert answer == [(0, 2), (10, 1)]


def test_streams_are_joined_by_time() -> None:
    """Bounds for the times of both sides, in any form."""
    between = ask(
        "select b.item, b.at, ask from bids b join asks a on b.item = a.item "
        "and a.at between b.at - interval '4' seconds and b.at"
    )
    compared = ask(
        "select b.item, b.at, ask from bids b join asks a on a.at <= b.at "
        "and b.item = a.item and b.at - interval '4' seconds <= a.at"
    )
    outer = ask(
        "select b.item, b.at, ask from bids b left join asks a on b.item = a.item "
        "and a.at >= b.at - interval '4' seconds and a.at <= b.at and ask > 5"
    )

    assert sorted(between) == sorted(compared) == [(0, 6, 5), (0, 18, 7), (1, 8, 6)]
    assert {row for row in outer if row[2] is not None} == {(0, 18, 7), (1, 8, 6)}
    assert len(outer) == 12


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("tumble(bids, at, interval '10s')", "tumble(asks, at, interval '10s')"),
        (
            "(select item, price + 0 as price, window_start from tumble(bids, at, interval '10s'))",
            "(select * from tumble(asks, at, interval '10s') where ask > 0)",
        ),
    ],
    ids=["tables", "queries"],
)
def test_windows_are_joined(left: str, right: str) -> None:
    """Rows of equal windows are paired; also those of queries that leave them as they are."""
    assert sorted(
        ask(
            f"select l.item, l.window_start, price, ask from {left} l "
            f"join {right} r on l.item = r.item and l.window_start = r.window_start"
        )
    ) == [
        (0, 0, 10, 5),
        (0, 0, 18, 5),
        (0, 10, 13, 7),
        (0, 10, 21, 7),
        (1, 0, 12, 6),
        (1, 0, 17, 6),
    ]


def test_rows_of_a_query_in_windows_are_grouped_by_window() -> None:
    rows = "select item, window_start from tumble(bids, at, interval '10s') where item = 0"
    counted = ask(f"select window_start, count(*) from ({rows}) group by window_start")
    plain = "select window_start, count(*) from tumble(bids, at, interval '10s') where item = 0 "

    assert counted == ask(f"{plain} group by window_start")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("select * from (select * from {})", "taken together by GROUP BY window_start"),
        ("select count(*) from (select item, window_start as at from {})", "keeps its name"),
        ("select count(*) from (select distinct item from {})", "taken together by GROUP BY"),
    ],
)
def test_rows_of_windows_are_taken_together_by_their_window(rows: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ask(rows.format("tumble(bids, at, interval '10s')"))


def test_each_row_finds_the_newest_or_the_next_one() -> None:
    """ASOF JOIN, and the version of a table at the time of a row."""
    newest = ask(
        "select b.at, ask from bids b asof join asks a on b.item = a.item and b.at >= a.at"
    )
    following = ask(
        "select b.at, ask from bids b asof left join asks a on b.item = a.item and b.at <= a.at"
    )
    version = ask(
        "select b.at, ask from bids b join asks for system_time as of b.at a on b.item = a.item"
    )

    assert sorted(newest) == sorted(version) == [(6, 5), (8, 6), (12, 5), (14, 6), (18, 7), (20, 6)]
    assert sorted(following)[:4] == [(0, 5), (2, 6), (4, None), (6, 7)]


def test_rows_of_a_table_are_found() -> None:
    """A source that ends is a table for a stream that does not."""
    inner = ask("select price, name from bids join items on item = id and name <> 'jam'")
    outer = ask("select item, name from bids left join items i on bids.item = i.id")

    assert inner == [(10, "tea"), (18, "tea"), (13, "tea"), (21, "tea")]
    assert outer[:3] == [(0, "tea"), (1, None), (2, "jam")]


@pytest.mark.parametrize("columns", ["*", "id", "name, id"])
def test_rows_of_one_table_are_there_twice(columns: str) -> None:
    again = f"select {columns} from items"
    assert len(ask(f"{again} union all {again}")) == 2 * len(ask(again)) == 4
    assert sorted(ask(f"{again} union {again}")) == sorted(ask(again))
    assert ask(f"{again} except {again}") == []


def test_the_first_rows_of_each_partition_are_known_so_far() -> None:
    """Each row that is among them brings the list anew; windows bring it once."""
    running = ask(
        "select item, price, row_number() over (partition by item order by price desc) as place "
        "from bids qualify place <= 2"
    )
    windows = ask(
        "select window_start, price from tumble(bids, at, interval '10s') qualify "
        "row_number() over (partition by window_start order by price desc) = 1"
    )

    assert running[:5] == [(0, 10, 1), (1, 17, 1), (2, 11, 1), (0, 18, 1), (0, 10, 2)]
    assert windows == [(0, 18), (10, 21), (20, 22)]


_RANKED: Final = {
    "by partition": "select item, price, row_number() over (partition by item order by price desc, "
    "at) as place from bids qualify place <= 3",
    "by window": "select window_end, at, row_number() over (partition by window_start, item order "
    "by price) as n from hop(bids, at, interval '4s', interval '12s') qualify n <= 2",
    "in another query": "select * from (select at, row_number() over (partition by price % 2 order "
    "by price, at) as n from bids) as q where n < 3",
    "one place": "select item, at from bids qualify row_number() over (partition by item order by "
    "price desc) = 2",
}


@pytest.mark.parametrize("is_bounded", [True, False])
@pytest.mark.parametrize("name", _RANKED)
def test_the_first_rows_are_the_same_of_columns_and_of_rows(name: str, is_bounded: Any) -> None:
    """Columns stay columns, with the place of each row."""
    found = []
    for form in ("columns", "rows"):
        app, results = gp.StreamApp(form), list[dict[str, Any]]()
        source = sources()["bids"]
        source.bounded = is_bounded
        bids = app.read(source)
        bids = bids if form == "columns" else bids.filter(lambda _: True)
        app.sql(_RANKED[name], bids=bids).write(gp.to_list(results))
        places = [each for each in physical(app.plan) if isinstance(each, PlacesOperator)]
        assert [each.is_columnar for each in places] == [form == "columns"]
        Simulation(app).run()
        found.append(results)
    assert found[0] == found[1] != []


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("item in (select id from items)", {0, 2}),
        ("item in (select id from items where name = 'tea') and price > 9", {0}),
        (
            "price > 9 and exists (select 1 from items i where i.id = b.item and i.name <> 'tea')",
            {2},
        ),
        ("not exists (select 1 from items where id = b.item)", {1}),
        ("nullif(item, 0) in (select nullif(id, 0) from items)", {2}),
    ],
)
def test_rows_of_a_table_are_asked_for(condition: str, wanted: set[int]) -> None:
    """A source that ends is read first. Null is in nothing."""
    assert {row[0] for row in ask(f"select item from bids b where {condition}")} == wanted


_OVER: Final = (
    "row_number() over (partition by item order by at)",
    "lag(price) over (partition by item order by at)",
    "lag(item, 2, -1) over (order by at)",
    "sum(price) over (partition by item order by at)",
    "count(*) over (order by at)",
    "max(price) filter (where item > 0) over (order by at)",
    "count(distinct price) over (partition by item order by at rows 2 preceding)",
    "avg(price) over (order by at rows between 3 preceding and current row)",
    "min(price) over (partition by item order by at range interval '5' seconds preceding)",
    "first_value(price) over (partition by item order by at rows 1 preceding)",
    "last_value(price) over (order by at)",
)


@pytest.mark.parametrize("function", _OVER)
def test_functions_over_the_rows_so_far_are_those_over_all(function: str) -> None:
    """What looks back alone is told as rows come; of equal times all see each other in a RANGE."""
    rows: list[tuple[Any, ...]] = [(n % 3, n * 7 % 5 or None, at(n // 2 * 2)) for n in range(20)]
    query = f"select item, price, at, {function} as f from marks"
    schema = {"item": int, "price": int | None, "at": datetime}
    marks = endless(rows, schema)
    bounded = gp.rows([dict(zip(schema, row, strict=True)) for row in rows], schema=schema)
    assert ask(query, marks=marks) != []
    assert sorted(ask(query, marks=marks), key=repr) == sorted(ask(query, marks=bounded), key=repr)


@pytest.mark.parametrize("frame", ["", "range interval '5' seconds preceding"])
def test_rows_of_one_time_see_each_other_also_over_crashes(frame: str) -> None:
    """They wait for each other in keyed state, whichever partition and epoch they come in."""
    seconds = [n // 3 + n % 2 for n in range(60)]
    rows: list[dict[str, Any]] = [
        {"item": n % 2, "price": n, "at": at(second)} for n, second in enumerate(seconds)
    ]
    query = f"select item, price, sum(price) over (partition by item order by at {frame}) as s"
    found = []
    for crashes in (0, 3):
        app, sink = gp.StreamApp("peers"), MemoryTransactions()
        marks = app.read(gp.rows(rows, time="at", out_of_order="2s"))
        app.sql(f"{query} from marks emit changes", marks=marks).write(sink)
        Simulation(app, seed=3, read_records=4, cut_every_ms=5, crashes_after_epochs=crashes).run()
        found.append(sorted(tuple(row.values()) for row in sink.values))

    def seen(row: dict[str, Any], other: dict[str, Any]) -> bool:
        oldest = row["at"] - timedelta(seconds=5) if frame else at(0)
        return bool(other["item"] == row["item"] and oldest <= other["at"] <= row["at"])

    wanted = [
        (row["item"], row["price"], sum(each["price"] for each in rows if seen(row, each)))
        for row in rows
    ]
    assert found == [sorted(wanted), sorted(wanted)]


def test_functions_over_rows_go_on_into_windows() -> None:
    """Rows keep their event times. What they are compared with may stand in QUALIFY."""
    steps = (
        "select item, at, price - lag(price) over (partition by item order by at) as d from bids"
    )
    answer = ask(
        f"select window_start, max(d) from tumble(({steps}), at, interval '10s') "
        "group by window_start"
    )
    falling = ask(
        "select item, at from bids qualify price < lag(price) over (partition by item order by at)"
    )
    ranked = ask(
        "select item, window_start, rank() over (partition by window_start order by count(*) desc) "
        "as place from tumble(bids, at, interval '10s') group by item, window_start"
    )

    assert answer == [(0, 8), (10, 8), (20, 8)]
    assert falling == [(1, 8), (0, 12), (2, 16), (1, 20)]
    assert sorted(ranked)[:4] == [(0, 0, 1), (0, 10, 1), (1, 0, 1), (1, 10, 3)]


def test_functions_of_the_program_are_called() -> None:
    """Their annotations say what they return; they stand wherever a value does."""

    def doubled(price: int) -> int:
        return price * 2

    app, results = gp.StreamApp("called"), list[dict[str, Any]]()
    app.sql(
        "select item, sum(doubled(price)) as s, doubled(max(price)) as most from bids "
        "where doubled(price) > 30 group by item emit final",
        functions={"doubled": doubled},
        bids=gp.rows([{"item": 1, "price": 5}, {"item": 1, "price": 20}, {"item": 1, "price": 30}]),
    ).write(gp.to_list(results))
    Simulation(app).run()

    assert results == [{"item": 1, "s": 100, "most": 60}]


def test_a_limit_ends_a_join_of_many_pairs() -> None:
    """Any rows will do without an order, so none waits until all pairs of a window are there."""
    seen = list[int]()

    def noted(value: int) -> int:
        seen.append(value)
        return value

    rows = [{"k": 1, "v": n, "at": at(n)} for n in range(1500)]
    app = gp.StreamApp("pairs")
    table = "tumble(marks, at, interval '1' hour)"
    pairs = app.sql(
        f"select noted(a.v) as v from {table} a join {table} b on a.k = b.k "
        "and a.window_start = b.window_start limit 5",
        functions={"noted": noted},
        marks=gp.rows(rows, time="at"),
    )

    assert len(pairs.to_list(5)) == 5
    assert len(seen) < len(rows) ** 2 // 4


_SALES: Final = "select shop, sum(price) as s from this group by shop"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (_SALES, [("a", 4)]),
        (f"{_SALES} emit changes", [("a", 1), ("a", 4)]),
        (f"{_SALES} emit final", [("a", 4)]),
        ("select count(*) as n, max(price) from this where price > 9", [(0, None)]),
        ("select * from this limit 1", [("a", 1)]),
        ("select lpad(shop, -1, 'x') as a, rpad(shop, 0) as b from this limit 1", [("", "")]),
        ("select THIS.SHOP, Price from this order by PRICE desc", [("a", 3), ("a", 1)]),
    ],
)
def test_a_bounded_stream_has_a_final_answer(query: str, wanted: list[Any]) -> None:
    """Unless its changes are asked for; of no rows the answer is one row."""
    app, results = gp.StreamApp("final"), list[dict[str, Any]]()
    sales = app.read(gp.rows([{"shop": "a", "price": 1}, {"shop": "a", "price": 3}]))
    sales.sql(query).write(gp.to_list(results))
    Simulation(app).run()

    assert [tuple(row.values()) for row in results] == wanted


def test_answers_have_a_schema() -> None:
    """So they go on in columns, and into sinks that want types."""
    app = gp.StreamApp("typed")
    sales = app.read(gp.rows([{"shop": "a", "price": 1}]))
    answer = sales.sql("select shop, price / 2 as half, price > 1 as b, null as n from this")

    assert answer.to_arrow().drop_columns(["event_time"]).to_pylist() == [
        {"shop": "a", "half": 0.5, "b": False, "n": None}
    ]


def test_rows_of_classes_are_tables() -> None:
    """A stream of typed rows needs no columns."""
    app, results = gp.StreamApp("rows"), list[dict[str, Any]]()

    def to_sale(text: str) -> Sale:
        return Sale(text, len(text))

    sales = app.read(gp.collection(["tea", "bread", "jam"])).map(to_sale)
    sales.sql("select price, count(*) as n, max(shop) as s from this group by price").write(
        gp.to_list(results)
    )
    Simulation(app).run()

    assert sorted(row["s"] for row in results) == ["bread", "tea"]
