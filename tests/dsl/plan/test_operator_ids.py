"""Ids of steps stay what they are while a program changes around them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.dag.state_moves import layout_of, lost, state_moves
from gearpy.errors import ConfigError

Stream = gp.Stream[Any]


def an_app(*branches: Callable[[Stream], Any]) -> gp.StreamApp:
    app = gp.StreamApp("app")
    numbers = app.read(gp.collection([1]))
    for branch in branches:
        branch(numbers)
    return app


def ids_of(app: gp.StreamApp, *kinds: str) -> list[str]:
    dag = app.build().dag
    return [
        step.id for pid in dag.order for step in dag.processors[pid].steps if step.kind in kinds
    ]


def count_by_user(stream: Stream) -> Stream:
    return stream.key_by("user").count()


def windows(stream: Stream) -> Stream:
    return stream.key_by(str).window(gp.tumbling("1s")).sum()


def kept(stream: Stream) -> Stream:
    return stream.key_by(str).map_with_state(lambda last, n: (n, last))


def joined(stream: Stream) -> Stream:
    return stream.key_by(str).join(stream.map(str).key_by(str), gp.session("1s"))


BRANCHES = [count_by_user, windows, kept, joined, lambda stream: stream.key_by(str).distinct()]


def test_a_name_is_the_id() -> None:
    named = an_app(lambda numbers: numbers.key_by(str).count(name="per key"))
    odd = an_app(lambda numbers: numbers.key_by(str).count(name="größer als 3"))

    assert ids_of(named, "count") == ["per key"]
    (digest,) = ids_of(odd, "count")
    assert digest.startswith("name-")


def test_a_name_is_given_once() -> None:
    """Two steps could not be told apart; all such names are told."""
    app = an_app(
        lambda numbers: numbers.map(str, name="one").map(str, name="two"),
        lambda numbers: numbers.map(str, name="one").map(str, name="two"),
    )

    with pytest.raises(ConfigError) as caught:
        app.build()

    assert [mistake.split(":")[0] for mistake in caught.value.mistakes] == [
        "2 steps have the name 'one'",
        "2 steps have the name 'two'",
    ]


@given(order=st.permutations(BRANCHES))
def test_the_order_of_other_lines_does_not_count(order: list[Callable[[Stream], Any]]) -> None:
    alone = {each: ids_of(an_app(each), *KINDS) for each in BRANCHES}

    together = ids_of(an_app(*order), *KINDS)

    assert sorted(together) == sorted(found for ids in alone.values() for found in ids)


KINDS = ("count", "window_sum", "map_with_state", "join", "distinct")


def test_functions_do_not_count() -> None:
    one = an_app(lambda numbers: numbers.key_by(lambda n: n).reduce(lambda a, b: a + b))
    other = an_app(lambda numbers: numbers.key_by(str).reduce(max))

    assert ids_of(one, "reduce") == ids_of(other, "reduce")


def test_steps_that_pass_records_on_do_not_count() -> None:
    before = an_app(windows)
    after = an_app(lambda numbers: windows(numbers.map(abs).filter(bool).inspect(str)))

    assert ids_of(before, "window_sum") == ids_of(after, "window_sum")
    assert not lost(state_moves(layout_of(before.build().dag), layout_of(after.build().dag)))


@pytest.mark.parametrize(
    "changed",
    [
        lambda numbers: numbers.key_by(str).window(gp.tumbling("2s")).sum(),
        lambda numbers: numbers.key_by("user").window(gp.tumbling("1s")).sum(),
        lambda numbers: numbers.key_by(str).window(gp.tumbling("1s")).max(),
        lambda numbers: windows(count_by_user(numbers)),
        lambda numbers: windows(numbers.split(bool)[0]),
    ],
    ids=["window", "key", "aggregate", "input", "branch"],
)
def test_what_a_step_is_counts(changed: Callable[[Stream], Any]) -> None:
    assert ids_of(an_app(changed), "window_sum", "window_max") != ids_of(
        an_app(windows), "window_sum"
    )


def test_steps_that_are_alike_have_numbers() -> None:
    first, second = ids_of(an_app(windows, windows), "window_sum")
    named = an_app(
        lambda numbers: numbers.key_by(str).window(gp.tumbling("1s")).sum(name=f"{first}-2"),
        windows,
        windows,
    )

    assert second == f"{first}-2"
    assert len(set(ids_of(named, "window_sum"))) == 3


def test_all_steps_have_ids_of_their_own() -> None:
    table = gp.StreamApp("columns")

    def same(batch: Any) -> Any:
        return batch

    read = table.read(gp.collection([{"n": 1}]))
    batches = read.map_batches(same, schema={"n": int})
    batches.key_by("n").window(gp.tumbling("1s")).sum("n").write(gp.to_list([]))
    batches.key_by("n").count().write(gp.to_list([]))
    batches.map(str).write(gp.to_list([]))
    for app in (table, an_app(*BRANCHES)):
        dag = app.build().dag
        found = [step.id for spec in dag.processors.values() for step in spec.steps]

        assert len(found) == len(set(found))
        assert all(found)


@pytest.mark.parametrize(
    "build",
    [
        lambda left, _: left.distinct(),
        lambda left, _: left.pairwise(),
        lambda left, _: left.top_n(2, "n", when="changed"),
        lambda left, _: left.window(gp.tumbling("1s")).top_n(2, "n"),
        lambda left, right: left.join_asof(right),
        lambda left, right: left.join_asof(right, combine=lambda one, _: one),
        lambda left, right: left.join_latest(right),
    ],
    ids=["distinct", "pairwise", "top", "top of windows", "asof", "combined", "latest"],
)
def test_what_is_kept_of_rows_is_that_of_columns(build: Callable[[Any, Any], Any]) -> None:
    apps = []
    for schema in (None, {"k": str, "n": int}):
        app = gp.StreamApp("app")
        source = gp.collection([{"k": "a", "n": 1}], schema=schema)
        left, right = (app.read(source, name=name).key_by("k") for name in ("left", "right"))
        build(left, right).write(gp.to_list([]), name="out")
        right.count().write(gp.to_list([]), name="counts")
        apps.append(app.build().dag)

    moves = state_moves(*map(layout_of, apps))

    assert not lost(moves)
    assert {each.fate for each in moves if each.new and each.new.step.keeps} == {"kept"}
    assert {step.takes for pid in apps[1].order for step in apps[1].processors[pid].steps} != {
        "rows"
    }


def test_processors_of_a_graph_are_found_by_name() -> None:
    graph = gp.Graph()
    first, second = gp.Processor(gp.Task, name="a"), gp.Processor(gp.Task, name="a")
    graph.connect(first, second)

    dag = gp.StreamApplication("app", graph).dag

    assert list(layout_of(dag)) == ["a", "a-2"]
