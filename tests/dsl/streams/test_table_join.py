"""Joins of a stream with a table that is complete first."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.base.fields import field_getter
from gearpy.dsl.plan.linear import linear_plans
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.chain.chain import ChainTask
from gearpy.task.joins.side_table import SideTable
from gearpy.task.joins.table import TableJoinSpec, TableJoinStage
from gearpy.testing import (
    EpochFaults,
    FlowDriver,
    ManualSource,
    MemoryTransactions,
    Simulation,
    TaskDriver,
)

CUSTOMERS: list[dict[str, Any]] = [{"id": n, "name": f"c{n}"} for n in range(50)]
ORDERS: list[dict[str, Any]] = [{"order": n, "customer": n * 7 % 55} for n in range(2000)]
ON = ("customer", "id")


@dataclass
class Customer:
    id: int
    name: str


class Order(NamedTuple):
    order: int
    customer: int


def joined(make: Any, source: gp.Source[Any] | None = None, *, parallelism: int = 1) -> list[Any]:
    app, results = gp.StreamApp("orders", parallelism=parallelism), list[Any]()
    make(app.read(source or gp.collection(ORDERS))).write(gp.to_list(results))
    Simulation(app).run()
    return results


def merged_by_hand(how: str) -> list[dict[str, Any]]:
    names = {row["id"]: row["name"] for row in CUSTOMERS}
    return [
        {**order, "name": names.get(order["customer"])}
        for order in ORDERS
        if how == "left" or order["customer"] in names
    ]


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("stream", ["rows", "columns"])
@pytest.mark.parametrize("table", ["rows", "columns", "csv", "jsonl", "parquet"])
def test_every_record_meets_a_table_that_is_complete(
    how: str, stream: str, table: str, tmp_path: Path
) -> None:
    path = tmp_path / f"customers.{table}"
    columns = pa.Table.from_pylist(CUSTOMERS)
    if table == "csv":
        path.write_text("id,name\n" + "".join(f"{n},c{n}\n" for n in range(50)))
    elif table == "jsonl":
        path.write_text("".join(f'{{"id": {n}, "name": "c{n}"}}\n' for n in range(50)))
    elif table == "parquet":
        pq.write_table(columns, path)
    sources: dict[str, Callable[[], gp.Source[Any]]] = {
        "rows": lambda: gp.collection(CUSTOMERS, partitions=3),
        "columns": lambda: gp.rows(columns, partitions=3),
        "csv": lambda: gp.csv(path),
        "jsonl": lambda: gp.jsonl(path),
        "parquet": lambda: gp.parquet(path),
    }
    source = gp.collection(ORDERS) if stream == "rows" else gp.rows(ORDERS)

    found = joined(
        lambda s: s.join_table(sources[table](), on=ON, how=how, combine="merge"), source
    )

    assert found == merged_by_hand(how)


@pytest.mark.parametrize("executors", [1, 2])
def test_tasks_have_the_table_each(executors: int) -> None:
    reads: list[int] = []

    def customers() -> Iterator[dict[str, Any]]:
        reads.append(1)
        return iter(CUSTOMERS)

    app, results = gp.StreamApp("orders", parallelism=3), list[Any]()
    orders = app.read(gp.collection(ORDERS, partitions=3))
    keyed = orders.key_by("customer")
    table = gp.generate(customers, limit=len(CUSTOMERS))
    keyed.join_table(table, on="id", combine=lambda o, c: (o["order"], c["name"])).write(
        gp.to_list(results)
    )
    orders.key_by("customer").count().write(gp.to_list([]))

    _ = gp.run(app, executors=executors)

    assert sorted(results) == [(row["order"], row["name"]) for row in merged_by_hand("inner")]
    assert sum(reads) == 1, "executors here are threads"


def test_a_stream_by_key_needs_no_other_name() -> None:
    rows = [{"customer": 1, "name": "Ada"}]
    found = joined(lambda s: s.key_by("customer").join_table(gp.rows(rows), combine="merge"))

    assert {row["name"] for row in found} == {"Ada"}


def test_classes_are_joined_by_their_fields() -> None:
    """Rows are of the class of the schema; merged ones are dicts."""
    table = gp.rows([Customer(2, "Bob")], schema=Customer)
    orders = gp.collection([Order(1, 2)])

    assert joined(lambda s: s.join_table(table, on=ON), orders)[0].right == Customer(2, "Bob")
    assert joined(lambda s: s.join_table(table, on=ON, combine="merge"), orders) == [
        {"order": 1, "customer": 2, "name": "Bob"}
    ]


def test_keys_may_be_several_fields_or_functions() -> None:
    rows = [{"a": 1, "b": "x", "v": 5}]
    other = [{"c": 1, "d": "x", "v": 5}]
    records = [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}]
    for source in (gp.collection(records), gp.rows(records)):
        assert joined(
            lambda s: s.join_table(gp.rows(rows), on=["a", "b"], combine="merge"), source
        ) == [{"a": 1, "b": "x", "v": 5}]
        assert joined(
            lambda s: s.join_table(gp.rows(other), on=(["a", "b"], ["c", "d"]), combine="merge"),
            source,
        ) == [{"a": 1, "b": "x", "v": 5}]
        assert joined(
            lambda s: s.join_table(
                gp.rows(other), on=(lambda r: r["b"].upper(), lambda r: r["d"].upper())
            ).map(lambda found: found.right["v"]),
            source,
        ) == [5]


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8),
    records=st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 10)), min_size=1, max_size=8),
    many=st.sampled_from(["all", "first", "last"]),
    how=st.sampled_from(["inner", "left"]),
    versioned=st.booleans(),
)
@settings(max_examples=10)
def test_rows_and_columns_give_the_same(
    rows: Any,
    records: Any,
    many: Any,
    how: Any,
    versioned: bool,  # noqa: FBT001
) -> None:
    schema = {"k": int, "at": int, "n": int}
    table = gp.rows(
        [{"k": k, "at": at, "n": n} for n, (k, at) in enumerate(rows)], schema=schema, time="at"
    )
    values = [{"key": key, "t": at, "r": n} for n, (key, at) in enumerate(records)]
    given_schema = {"key": int, "t": int, "r": int}

    def join(stream: gp.Stream[Any]) -> gp.Stream[Any]:
        return stream.join_table(
            table, on=("key", "k"), how=how, combine="merge", many=many, versioned=versioned
        )

    by_columns = joined(join, gp.rows(values, schema=given_schema, time="t"))
    messages = [gp.Message(value, value["t"]) for value in values]
    by_rows = joined(join, gp.collection(messages))

    assert by_rows == by_columns
    assert [row["n"] for row in by_rows] == list(
        by_hand(rows, records, many=many, how=how, versioned=versioned)
    )


def by_hand(rows: Any, records: Any, *, many: str, how: str, versioned: bool) -> Any:
    for key, time in records:
        of_key = [(at, n) for n, (k, at) in enumerate(rows) if k == key]
        if versioned:
            newest = max((at for at, _ in of_key if at <= time), default=None)
            of_key = [(at, n) for at, n in of_key if at == newest]
        found: list[int | None] = [n for _, n in of_key]
        if many != "all":
            found = found[:1] if many == "first" else found[-1:]
        yield from found or ([None] if how == "left" else [])


@pytest.mark.parametrize("stream", ["rows", "columns"])
def test_results_come_in_portions(stream: str) -> None:
    table = gp.rows([{"k": 0, "n": n} for n in range(50)])
    records = [{"key": 0, "r": n} for n in range(3000)]
    source = gp.collection(records) if stream == "rows" else gp.rows(records)

    found = joined(
        lambda s: s.join_table(table, on=("key", "k"), many="all", combine="merge"), source
    )

    assert [(row["r"], row["n"]) for row in found] == [
        (r, n) for r in range(3000) for n in range(50)
    ]


def test_a_row_counts_from_its_time_on() -> None:
    prices = gp.rows(
        [{"sku": "tea", "at": 10, "price": 3}, {"sku": "tea", "at": 20, "price": 4}], time="at"
    )
    sales = [gp.Message({"sku": "tea"}, at) for at in (5, 10, 19, 20, 99)]

    found = joined(
        lambda s: s.join_table(
            prices,
            on="sku",
            how="left",
            versioned=True,
            combine=lambda _, row: row and row["price"],
        ),
        gp.collection(sales),
    )

    assert found == [None, 3, 3, 4, 4]


# -- refresh -------------------------------------------------------------------------------


def test_a_table_is_read_again_when_its_files_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("id,name\n1,Ada\n")
    app, source, results = gp.StreamApp("named"), ManualSource(), list[Any]()
    app.read(source).join_table(
        gp.csv(tmp_path / "*.csv"), on="id", how="left", combine="merge", refresh="10s"
    ).map(lambda row: row["name"]).write(gp.to_list(results))
    flow = FlowDriver(app)
    flow.send(source, {"id": 1})
    path.write_text("id,name\n1,Eve\n")
    os.utime(path, (1, 1))
    (tmp_path / "more.csv").write_text("id,name\n2,Bob\n")
    flow.send(source, {"id": 1})
    flow.advance("11s")
    flow.send(source, {"id": 1})
    flow.send(source, {"id": 2})
    path.write_text("id,name\n1,One\n1,Two\n")
    flow.advance("11s")
    flow.send(source, {"id": 1})
    path.unlink()
    (tmp_path / "more.csv").unlink()
    flow.advance("11s")
    flow.send(source, {"id": 1})
    flow.end(source)
    flow.stop()

    assert results == ["Ada", "Ada", "Eve", "Bob", "Eve", "Eve"]


def test_a_table_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("id,name\n1,Ada\n")
    source = gp.csv(path)
    stamp = path.stat()

    before = source.renewed().version()
    path.write_text("id,name\n1,Eve\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 10_000_000))

    assert source.renewed().version() != before
    assert source.renewed().version() == source.renewed().version()


def test_the_plan_says_what_wall_time_decides() -> None:
    app = gp.StreamApp("plan")
    app.read(gp.collection(ORDERS)).join_table(gp.rows(CUSTOMERS), on=ON, refresh="5m").write(
        gp.to_list([])
    )

    names = [step.name for each in app.build().dag.processors.values() for step in each.steps]

    assert "join_table(rows(50), looked at by wall time each 5m)" in names


# -- restarts ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_results_are_right_whatever_fails(seed: int) -> None:
    app, sink = gp.StreamApp("restarts"), MemoryTransactions()
    orders = [gp.Message(order, order["order"]) for order in ORDERS[:300]]
    read = app.read(gp.collection(orders, partitions=2), parallelism=2)
    read.map_async(slow).join_table(gp.collection(CUSTOMERS), on=ON, combine="merge").write(sink)
    simulation = Simulation(
        app,
        seed=seed,
        cut_every_ms=5,
        delay_ms=3,
        read_records=2,
        crashes_after_epochs=3,
        faults=EpochFaults(store_ms=5, commit_ms=5, given_up=0.1, commits_lost=0.2),
    )
    simulation.run()

    expected = [row for row in merged_by_hand("inner") if row["order"] < 300]
    assert Counter(map(repr, sink.values)) == Counter(map(repr, expected))
    assert simulation.restored


async def slow(order: dict[str, Any]) -> dict[str, Any]:
    """Take a while, so that there is something to crash."""
    await asyncio.sleep(order["order"] % 23 / 1000)
    return order


def test_another_table_after_a_restart_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Records that come again may meet other rows: nobody can know that otherwise."""
    rows = [{"id": 1, "name": "Ada"}]

    def task(context: gp.TaskContext) -> ChainTask:
        key = field_getter("id")
        table = SideTable("named", gp.collection(rows), key)
        spec = TableJoinSpec(table=table, left=key, right=("id",), merges=True)
        return ChainTask(context, lambda context: [TableJoinStage(context, "named", spec)])

    driver = TaskDriver(task)
    driver.send({"id": 1})
    kept = driver.cut()
    same = TaskDriver(task, resume=kept)
    same.send({"id": 1})
    assert not caplog.records
    rows[0]["name"] = "Eve"
    other = TaskDriver(task, resume=kept)
    other.send({"id": 1})

    assert [message.value["name"] for message in (*same.outputs, *other.outputs)] == ["Ada", "Eve"]
    assert "collection(1 values) is another one than before the restart" in caplog.text


# -- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"table": gp.rows(CUSTOMERS)}, 'say what is equal in records and rows, as on="customer"'),
        ({"table": gp.rows(CUSTOMERS), "on": 5}, "on=5 is not understood: give the name"),
        ({"table": gp.rows(CUSTOMERS), "on": ON, "how": "outer"}, "how='outer' is unknown"),
        ({"table": gp.rows(CUSTOMERS), "on": ON, "many": "some"}, "many='some' is unknown"),
        ({"table": gp.rows(CUSTOMERS), "on": ON, "combine": "both"}, "combine='both' is unknown"),
        ({"table": gp.rows(CUSTOMERS), "on": ON, "combine": len}, "len takes"),
        ({"table": gp.rows(CUSTOMERS), "on": ON, "refresh": "soon"}, "refresh"),
        ({"table": CUSTOMERS, "on": ON}, r"takes a source such as gp.csv\(...\) .*, not list"),
        ({"table": gp.generate(lambda: iter(())), "on": ON}, "has no end, and a table must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    orders = gp.StreamApp("wrong").read(gp.collection(ORDERS))

    with pytest.raises(ConfigError, match=text):
        orders.join_table(**arguments)


def test_a_stream_is_no_table() -> None:
    app = gp.StreamApp("wrong")
    orders, others = app.read(gp.collection(ORDERS)), app.read(gp.collection(CUSTOMERS))

    with pytest.raises(ConfigError, match="not Stream: join streams with join_latest"):
        orders.join_table(others, on=ON)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("table", "on", "text"),
    [
        (
            gp.rows(CUSTOMERS),
            "customer",
            "there is no field 'customer' in the table .*: there are id",
        ),
        (gp.rows(CUSTOMERS), ("client", "id"), "there is no field 'client' in what"),
        (gp.csv("/not/there.csv"), ON, "'/not/there.csv' matches no file"),
        (
            gp.rows([{"id": "1", "name": "x"}]),
            ON,
            "'customer' is int64 in the records, and 'id' is string in the table",
        ),
        (gp.rows([{"id": 1, "order": 1}]), ON, "both the records and the rows .* a field 'order'"),
    ],
)
def test_mistakes_that_schemas_tell_are_told_before_anything_runs(
    table: gp.Source[Any], on: Any, text: str
) -> None:
    app = gp.StreamApp("wrong")
    app.read(gp.rows(ORDERS)).join_table(table, on=on, combine="merge").write(gp.to_list([]))

    with pytest.raises(ConfigError, match=text):
        app.build()


@pytest.mark.parametrize(
    ("rows", "on", "text"),
    [
        (CUSTOMERS, "customer", "table collection.*there is no field 'customer': .* has id, name"),
        (CUSTOMERS * 2, ON, r"several rows have one key: 0 \(2 rows\), .* and 47 more"),
        ([{"id": "1", "name": "x"}], ON, "is a number, and keys of the table are text"),
        ([{"id": 0, "order": 1}], ON, "both the records and the rows .* a field 'order'"),
        ([{"id": [1]}], ON, "of a row is a list, which cannot be looked up"),
        ([5], ON, "there is no field 'id'"),
    ],
)
def test_mistakes_in_rows_are_told_with_the_table(rows: list[Any], on: Any, text: str) -> None:
    with pytest.raises(OperatorError, match=text):
        joined(lambda s: s.join_table(gp.collection(rows), on=on, combine="merge"))


def test_a_batch_twin_is_refused() -> None:
    app = gp.StreamApp("twin")
    app.read(gp.rows(ORDERS)).join_table(gp.rows(CUSTOMERS), on=ON, name="customers").write(
        gp.jsonl_folder("out")
    )

    with pytest.raises(ConfigError, match=r"'customers'.*it reads a table beside the stream"):
        linear_plans("twin", app._program.steps)  # noqa: SLF001 - what `to_spark_frame` asks
