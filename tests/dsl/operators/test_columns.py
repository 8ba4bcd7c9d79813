"""Which steps of a plan run on columns; a function of the plan alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

import gearpy as gp
from gearpy import agg
from gearpy.columns.row_schema import row_schema_of
from gearpy.dsl.application import StreamApp
from gearpy.dsl.operators.operator import Kind, Operator, unknown_fields
from gearpy.dsl.operators.routes import MergeOperator, WriteOperator
from gearpy.dsl.streams.stream import Stream
from tests.dsl.tables import EVENTS, Sale, TableSource


@dataclass
class Trade:
    user: str
    price: int

    @property
    def doubled(self) -> int:
        return 2 * self.price


class Tick(NamedTuple):
    price: float


def last_step(build: Callable[[Stream[Any]], Any], source: gp.Source | None = None) -> Operator:
    app = StreamApp("plan")
    build(app.read(source or TableSource(EVENTS)))
    return app.plan[-1]


TUMBLING = gp.tumbling("10ms")
LOCAL = gp.tumbling("1h", zone="Europe/Berlin")
THERE = "there are user, item, price"
MEANT = f"did you mean 'user'? {THERE}"


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by("user").window(TUMBLING).count(),
        lambda s: s.key_by("user", "item").window(TUMBLING).sum("price"),
        lambda s: s.window(TUMBLING).mean("price"),
        lambda s: s.key_by("user").window(gp.sliding("10ms", "5ms")).max("price"),
        lambda s: s.key_by("user").window(gp.global_window()).min("price"),
        lambda s: s.key_by("user").window(TUMBLING).aggregate(n=agg.count(), m=agg.sum("price")),
        lambda s: s.key_by("user").window(TUMBLING.accumulating()).count(),
        lambda s: s.key_by("user").window(gp.session("5ms")).count(),
        lambda s: s.key_by("user").window(TUMBLING.triggering(gp.every(count=2))).count(),
        lambda s: s.key_by("user").window(TUMBLING.allowed_lateness("5ms")).count(),
        lambda s: s.key_by("user").window(gp.tumbling("10ms", clock="processing")).count(),
    ],
    ids=[
        *("key", "two keys", "no key", "sliding", "global", "several", "fires once all the same"),
        *("session", "trigger", "lateness", "wall time"),
    ],
)
def test_windows_aggregate_columns(build: Callable[[Stream[Any]], Any]) -> None:
    step = last_step(build)

    assert step.kind_taken(["table"]) == "table"
    assert step.kind_given("table") == "rows"
    assert step.kind_taken(["rows"]) == "rows"


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by(lambda row: row["user"]).window(TUMBLING).count(),
        lambda s: s.key_by("user").window(TUMBLING).sum(lambda row: row["price"]),
        lambda s: s.key_by("user").window(TUMBLING).sum(),
        lambda s: s.key_by("user").window(TUMBLING).top_n(3),
        lambda s: s.key_by("user").window(TUMBLING).reduce(max),
        lambda s: s.key_by("user").window(TUMBLING).fold(0, lambda n, _: n + 1),
        lambda s: s.key_by("user").window(gp.session("5ms")).aggregate(all=gp.agg.collect("price")),
        lambda s: s.key_by("user").window(gp.count_window(5)).count(),
        lambda s: s.key_by("user").window(TUMBLING.triggering(gp.every(count=1))).count(),
        lambda s: s.key_by("user").window(gp.session("5ms").triggering(gp.every(count=9))).count(),
        lambda s: s.key_by("user").window(TUMBLING, late="side").count(),
        lambda s: s.key_by("user").window(TUMBLING, late="restamp").count(),
        lambda s: s.key_by("user").window(TUMBLING).sum("user"),
        lambda s: s.key_by("user").aggregate(n=gp.agg.mode("price")),
    ],
    ids=[
        "key is a function",
        "function of the record",
        "whole record",
        "whole records",
        "reduce",
        "fold",
        "list of a session",
        "count window",
        "each record fires",
        "records of sessions are counted",
        "late records aside",
        "late records restamped",
        "type of the column",
        "running",
    ],
)
def test_other_steps_take_rows(build: Callable[[Stream[Any]], Any]) -> None:
    step = last_step(build)

    assert step.kind_taken(["table"]) == "rows"
    assert step.kind_given("rows") == "rows"


TOPS = ("top of sessions", "running top", "top by a function")


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda s: s.key_by("user").aggregate(d=agg.mode("item")), "after every record"),
        (lambda s: s.key_by("user").window(TUMBLING, late="side").count(), "what is late"),
        (lambda s: s.key_by(str).window(TUMBLING).count(), "its key is a function"),
        (lambda s: s.key_by("user").window(TUMBLING).sum("user"), "cannot be added up"),
        (lambda s: s.window(gp.session("5ms")).aggregate(m=agg.mode("user")), "to be merged"),
        (lambda s: s.key_by("user").per_batch().aggregate(m=agg.collect("user")), "sees the order"),
        (lambda s: s.key_by("user").join(s.key_by("user"), LOCAL), "of a local clock"),
        (lambda s: s.key_by("user").cogroup(s.key_by("user"), TUMBLING), "lists of records"),
        (lambda s: s.key_by("user").window(gp.session("5ms")).top_n(2, "price"), "sessions"),
        (lambda s: s.key_by("user").top_n(2, "usr"), "no order in columns"),
        (lambda s: s.key_by(str).window(TUMBLING).top_n(2, "price"), "no name of a column"),
    ],
    ids=["running", "late", "key", "type", "session", "order", "join", "cogroup", *TOPS],
)
def test_it_is_told_why_a_step_takes_rows(build: Callable[[Stream[Any]], Any], reason: str) -> None:
    assert reason in last_step(build).why_rows


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(str),
        lambda s: s.filter(bool),
        lambda s: s.flat_map(list),
        lambda s: s.log(),
        lambda s: s.distinct(lambda row: row["user"]),
        lambda s: s.process(gp.Task),
        lambda s: s.write(gp.to_list([])),
        lambda s: s.key_by("user").map_with_state(lambda a, b: (a, b)),
        lambda s: s.key_by("user").cogroup(s.key_by("user"), TUMBLING),
    ],
    ids=["map", "filter", "flat_map", "log", "distinct", "process", "write", "state", "cogroup"],
)
def test_functions_of_records_take_rows(build: Callable[[Stream[Any]], Any]) -> None:
    step = last_step(build)

    assert step.kind_taken(["table"] * len(step.inputs)) == "rows"


def test_distinct_by_names_takes_and_gives_columns() -> None:
    step = last_step(lambda s: s.distinct("user"))

    assert step.kind_taken(["table"]) == step.kind_given("table") == "table"
    assert step.kind_taken(["rows"]) == step.kind_given("rows") == "rows"


def test_merge_takes_what_all_give() -> None:
    step = last_step(lambda s: s.merge(s))

    assert isinstance(step, MergeOperator)
    assert step.kind_taken(["table", "table"]) == "table"
    assert step.kind_taken(["table", "rows"]) == "rows"
    assert step.kind_given("table") == "table"
    assert step.kind_given("rows") == "rows"


@pytest.mark.parametrize("kind", ["rows", "table"])
def test_repartition_leaves_records_in_their_form(kind: Kind) -> None:
    step = last_step(lambda s: s.repartition(2))

    assert step.kind_taken([kind]) == kind
    assert step.kind_given(kind) == kind


class TableSink(gp.Sink):
    columnar = True

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        raise NotImplementedError


def test_sink_takes_tables_if_it_says_so() -> None:
    step = last_step(lambda s: s.write(TableSink()))

    assert isinstance(step, WriteOperator)
    assert step.kind_taken(["table"]) == "table"
    assert step.kind_taken(["rows"]) == "rows"


@pytest.mark.parametrize(("takes_results", "kind"), [(True, "table"), (False, "rows")])
def test_sink_of_tables_takes_those_of_results_unless_it_says_no(
    takes_results: Any, kind: Kind
) -> None:
    sink = TableSink()
    sink.takes_results = takes_results
    step = last_step(lambda s: s.window(gp.tumbling("1s")).count().write(sink))

    assert step.kind_taken(["table"]) == kind


def to_trade(_: Any) -> Trade:
    return Trade("a", 1)


def to_ticks(_: Any) -> Iterator[Tick]:
    yield Tick(1.0)


def to_sales(_: Any) -> list[Sale]:
    return []


def unsaid(_: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Say nothing."""


def unknown(_: Any) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
    """Say something that is not there."""


def to_dict(_: Any) -> dict[str, int]:
    return {}


def to_many(_: Any) -> Iterable[int]:
    return []


SCHEMAS: Final[dict[str, tuple[Callable[[Stream[Any]], Any], Any]]] = {
    "source": (lambda _: None, Sale),
    "filter": (lambda s: s.filter(bool), Sale),
    "inspect": (lambda s: s.inspect(print), Sale),
    "log": (lambda s: s.log(), Sale),
    "distinct": (lambda s: s.distinct("user"), Sale),
    "merge of the same": (lambda s: s.merge(s.filter(bool)), Sale),
    "merge of others": (lambda s: s.merge(s.map(to_trade)), None),
    "dataclass": (lambda s: s.map(to_trade), Trade),
    "iterator": (lambda s: s.flat_map(to_ticks), Tick),
    "list": (lambda s: s.flat_map(to_sales), Sale),
    "filter of objects": (lambda s: s.map(to_trade).filter(bool), Trade),
    "no annotation": (lambda s: s.map(unsaid), None),
    "unknown annotation": (lambda s: s.map(unknown), None),
    "dict": (lambda s: s.map(to_dict), None),
    "class": (lambda s: s.map(str), None),
    "function of Python": (lambda s: s.map(len), None),
    "numbers": (lambda s: s.flat_map(to_many), None),
    "batches": (lambda s: s.map_batches(lambda batch: batch), None),
    "batches of": (lambda s: s.map_batches(lambda batch: batch, schema=Trade), Trade),
    "task": (lambda s: s.process(gp.Task), None),
    "aggregate": (lambda s: s.key_by("user").aggregate(d=agg.mode("item")), None),
}


@pytest.mark.parametrize(("build", "expected"), SCHEMAS.values(), ids=SCHEMAS)
def test_schema_is_said_by_somebody(build: Callable[[Stream[Any]], Any], expected: Any) -> None:
    found = last_step(build).schema_given(declared=False)

    assert found == (None if expected is None else row_schema_of(expected))


@pytest.mark.parametrize(
    ("build", "mistakes"),
    [
        (lambda s: s.key_by("user").count(), []),
        (
            lambda s: s.key_by("usr", "item").count(),
            [f"count: there is no field 'usr' in what 'tables' gives: {MEANT}"],
        ),
        (
            lambda s: s.key_by("user").window(TUMBLING).sum("cost"),
            [f"window_sum: there is no field 'cost' in what 'tables' gives: {THERE}"],
        ),
        (lambda s: s.map(to_trade).key_by("nothing").count(), []),
        (
            lambda s: (
                s.map_batches(lambda batch: batch, schema=Trade, name="trades")
                .key_by("doubled")
                .sum("prise")
            ),
            [
                (
                    "sum: there is no field 'prise' in what 'trades' gives: "
                    "did you mean 'price'? there are user, price"
                )
            ],
        ),
        (
            lambda s: s.key_by("user").join(s.key_by("uzer"), TUMBLING),
            [f"join: there is no field 'uzer' in what 'tables' gives: {MEANT}"],
        ),
    ],
    ids=["known", "key", "aggregate", "annotated", "property", "join"],
)
def test_unknown_fields_are_told(build: Callable[[Stream[Any]], Any], mistakes: list[str]) -> None:
    assert unknown_fields(last_step(build)) == mistakes
