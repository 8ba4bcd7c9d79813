"""Which programs have a plan from a source to a sink, and what is told of all others."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import gearpy as gp
from gearpy.dsl.plan.linear import linear_plan, linear_plans, path_to, sink_of
from gearpy.errors import ConfigError
from gearpy.spark.query.plan import BatchStep, GroupStep, RowsStep


@dataclass(frozen=True)
class Sale:
    shop: str
    price: int


def _app(build: Callable[[gp.Stream[Any]], gp.Stream[Any]]) -> gp.StreamApp:
    app = gp.StreamApp("app")
    build(app.read(gp.collection([{"shop": "a", "price": 1}]))).write(gp.to_list([]))
    return app


def _refusal(build: Callable[[gp.Stream[Any]], gp.Stream[Any]]) -> str:
    app = _app(build)
    with pytest.raises(ConfigError) as raised:
        linear_plans(app.name, app.plan)
    return str(raised.value)


def test_functions_over_records_become_one_step() -> None:
    app = _app(lambda s: s.map(dict).filter(bool).flat_map(lambda r: [r]))

    (plan,) = linear_plans(app.name, app.plan)

    (step,) = plan.steps
    assert isinstance(step, RowsStep)
    assert [each.kind for each in step.operators] == ["map", "filter", "flat_map"]


def test_what_is_done_for_its_effect_is_passed_over() -> None:
    app = _app(lambda s: s.inspect(print).log().map(dict))

    (plan,) = linear_plans(app.name, app.plan)

    (step,) = plan.steps
    assert isinstance(step, RowsStep)
    assert len(step.operators) == 1


def test_an_aggregate_keeps_key_windows_and_names() -> None:
    windows = gp.sliding("10s", "2s", offset="1s")
    app = _app(lambda s: s.key_by("shop").window(windows).aggregate(n=gp.agg.count()))

    (plan,) = linear_plans(app.name, app.plan)

    (step,) = plan.steps
    assert isinstance(step, GroupStep)
    assert (step.windows, step.columns, list(step.aggregates)) == (windows, ("shop",), ["n"])
    assert plan.groups == (step,)


def test_a_single_aggregate_and_a_fold_have_functions_of_their_own() -> None:
    app = _app(lambda s: s.window(gp.global_window()).sum("price"))
    folded = _app(lambda s: s.window(gp.global_window()).reduce(lambda a, _: a))

    (single,) = linear_plans(app.name, app.plan)[0].groups
    (fold,) = linear_plans(folded.name, folded.plan)[0].groups

    assert single.is_single
    assert single.made_fold().result is not None
    assert fold.made_fold() is fold.fold
    assert not single.is_ordered
    assert fold.is_ordered


def test_columns_and_what_rows_become_are_known() -> None:
    app = gp.StreamApp("columns")
    sales = app.read(gp.collection([Sale("a", 1)], schema=Sale))
    doubled = sales.map_batches(lambda batch: batch, schema=Sale, times="at")
    doubled.map(lambda sale: sale.price).write(gp.to_list([]))

    (plan,) = linear_plans(app.name, app.plan)

    batches, rows = plan.steps
    assert isinstance(batches, BatchStep)
    assert isinstance(rows, RowsStep)
    assert batches.times == "at"
    assert batches.takes is not None
    assert rows.takes is not None
    assert rows.takes.row_type is Sale


def test_each_sink_has_its_plan() -> None:
    app = gp.StreamApp("two")
    numbers = app.read(gp.collection([1]))
    numbers.write(gp.to_list([]), name="all")
    numbers.filter(bool).write(gp.to_list([]), name="some")

    plans = linear_plans(app.name, app.plan)

    assert [plan.sink for plan in plans] == ["all", "some"]
    assert linear_plan(app.name, app.plan, "some").sink == "some"
    assert linear_plan(app.name, app.plan, 0).sink == "all"
    assert sink_of(app.name, app.plan, "all") is app.plan[1]
    assert [node.kind for node in path_to(sink_of(app.name, app.plan, 1))] == [
        "read",
        "filter",
        "write",
    ]


@pytest.mark.parametrize("sink", [None, "other", 2])
def test_a_sink_must_be_named_if_there_are_several(sink: str | int | None) -> None:
    app = gp.StreamApp("two")
    numbers = app.read(gp.collection([1]))
    numbers.write(gp.to_list([]), name="all")
    numbers.write(gp.to_list([]), name="again")

    with pytest.raises(ConfigError, match=r"0 \(all\), 1 \(again\)"):
        linear_plan(app.name, app.plan, sink)


def test_a_program_without_a_sink_is_refused() -> None:
    app = gp.StreamApp("nothing")
    app.read(gp.collection([1])).inspect(print)

    with pytest.raises(ConfigError, match="writes nothing"):
        linear_plans(app.name, app.plan)


def test_a_source_without_an_end_is_refused_unless_it_is_cut() -> None:
    app = gp.StreamApp("endless")
    app.read(gp.generate(lambda: iter(range(3)))).write(gp.to_list([]))

    with pytest.raises(ConfigError, match=r"has no end.*--records N"):
        linear_plans(app.name, app.plan)

    assert linear_plans(app.name, app.plan, endless=True)


_AGGREGATES = pytest.mark.parametrize(
    "aggregate", [gp.agg.first("value"), gp.agg.last("value"), gp.agg.collect()], ids=str
)


@_AGGREGATES
def test_results_of_windows_have_no_order(aggregate: Any) -> None:
    """They have one time, so first and last among them would be chance."""
    text = _refusal(
        lambda s: (
            s.window(gp.tumbling("10ms"))
            .count()
            .window(gp.tumbling("20ms"))
            .aggregate("behind", x=aggregate)
        )
    )

    assert "'behind'" in text
    assert str(aggregate) in text


class _Task(gp.Task):
    pass


async def _awaited(record: Any) -> Any:
    return record


_REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "merge": (lambda s: s.merge(s.map(dict)), "one source"),
    "join": (lambda s: s.key_by("shop").join(s.key_by("shop"), gp.tumbling("5ms")), "two streams"),
    "branch": (lambda s: s.branch(a=bool).a, r"filter\(\.\.\.\)"),
    "distinct": (lambda s: s.distinct("shop"), "order"),
    "map_with_state": (lambda s: s.key_by("shop").map_with_state(lambda a, b: (a, b)), "order"),
    "map_async": (lambda s: s.map_async(_awaited), "event loop"),
    "process": (lambda s: s.process(_Task), "timers"),
    "count": (lambda s: s.key_by("shop").count(), "after every record"),
    "reduce": (lambda s: s.key_by("shop").reduce(lambda a, _: a), "after every record"),
    "count windows": (lambda s: s.window(gp.count_window(5)).count(), "order"),
    "wall time": (lambda s: s.window(gp.tumbling("5ms", clock="processing")).count(), "wall time"),
    "early": (
        lambda s: s.window(gp.tumbling("5ms").triggering(gp.after_count(2))).count(),
        "before windows close",
    ),
    "late side": (lambda s: s.window(gp.tumbling("5ms"), late="side").count().late, "side output"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_has_no_query_is_refused_with_its_reason(name: str) -> None:
    build, reason = _REFUSED[name]

    text = _refusal(build)

    assert "has no Spark query" in text
    assert re.search(reason, text), text


def test_a_refusal_says_where_the_function_is_written() -> None:
    text = _refusal(lambda s: s.key_by("shop").map_with_state(lambda a, b: (a, b)))

    assert f"({__file__}:" in text
