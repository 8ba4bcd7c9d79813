"""Records that two steps have: neither sees what the other does to them."""

from collections.abc import Callable
from typing import Any

import pytest

import gearpy as gp
from gearpy.testing import FlowDriver, ManualSource, Simulation

ROWS = 60


def negate(row: dict[str, int]) -> dict[str, int]:
    row["x"] = -1
    return row


def two_branches(tasks: int, *, first: bool) -> tuple[gp.StreamApp, list[Any], list[Any]]:
    app, changed, kept = gp.StreamApp("shared"), list[Any](), list[Any]()
    rows = app.read(gp.generate(lambda: ({"x": i} for i in range(ROWS)), limit=ROWS))

    def change() -> None:
        keyed = rows.key_by(lambda row: row["x"] % 6, parallelism=tasks)
        keyed.map_with_state(lambda _, row: (1, negate(row))).write(gp.to_list(changed))

    def keep() -> None:
        keyed = rows.key_by(lambda row: row["x"] % 6, parallelism=tasks)
        keyed.map_with_state(lambda _, row: (1, row["x"])).write(gp.to_list(kept))

    for branch in (change, keep) if first else (keep, change):
        branch()
    return app, changed, kept


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_branches_do_not_see_each_other(tasks: int, first: bool) -> None:  # noqa: FBT001
    app, changed, kept = two_branches(tasks, first=first)

    Simulation(app).run()

    assert sorted(kept) == list(range(ROWS))
    assert changed == [{"x": -1}] * ROWS


@pytest.mark.parametrize("executors", [1, 3])
def test_branches_in_several_executors_do_not_either(executors: int) -> None:
    app, _, kept = two_branches(3, first=True)

    _ = gp.run(app, executors=executors)

    assert sorted(kept) == list(range(ROWS))


def test_a_program_has_its_own_values_after_a_run() -> None:
    values: list[dict[str, int]] = [{"x": 1}, {"x": 2}]
    app, results = gp.StreamApp("again"), list[Any]()
    app.read(gp.collection(values)).map(negate).write(gp.to_list(results))

    Simulation(app).run()

    assert values == [{"x": 1}, {"x": 2}]
    assert results == [{"x": -1}, {"x": -1}]


def changed_by_a_later_step(
    make: Callable[[gp.Stream[Any]], gp.Stream[Any]], change: Callable[[Any], object]
) -> list[Any]:
    """Return what a step gives for three records, where a later step changes all that it gets."""
    app, source, results = gp.StreamApp("kept"), ManualSource("rows"), list[Any]()

    def seen(result: Any) -> str:
        text = repr(result)
        change(result)
        return text

    make(app.read(source)).map(seen).write(gp.to_list(results))
    flow = FlowDriver(app)
    for at in (1, 2, 3):
        flow.send(source, {"k": "a", "at": at}, at)
    flow.watermark(source, 100)
    flow.end(source)
    flow.stop()
    return results


def test_a_running_fold_may_add_in_place() -> None:
    app, results = gp.StreamApp("in_place"), list[Any]()

    def add(kept: list[int], n: int) -> list[int]:
        kept.append(n)
        return kept

    keyed = app.read(gp.collection([1, 2, 3])).key_by(lambda _: "a")
    keyed.fold(list[int](), add).write(gp.to_list(results))
    Simulation(app).run()

    assert results == [("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3])]


def test_windows_that_fire_again_keep_what_they_have() -> None:
    windows = (
        gp.tumbling("10ms").triggering(gp.after_watermark(early=gp.every(count=1))).accumulating()
    )
    found = changed_by_a_later_step(
        lambda rows: rows.key_by("k").window(windows).top_n(5, by="at"),
        lambda result: [row.clear() for row in result.value],
    )

    assert [text.count("'at'") for text in found] == [1, 2, 3, 3]


def test_sliding_windows_do_not_share_records() -> None:
    found = changed_by_a_later_step(
        lambda rows: rows.key_by("k").window(gp.sliding("10ms", every="5ms")).top_n(5, by="at"),
        lambda result: [row.clear() for row in result.value],
    )

    assert [text.count("'at'") for text in found] == [3, 3]


def test_a_join_keeps_what_it_has() -> None:
    """``combine`` may change both records, each pair has its own."""
    app, left, right = gp.StreamApp("joined"), ManualSource("left"), ManualSource("right")
    results: list[Any] = []

    def combine(order: dict[str, Any], paid: dict[str, Any]) -> dict[str, Any]:
        order["n"] = order.get("n", 0) + paid.pop("n")
        return order

    orders = app.read(left).key_by("k")
    orders.join_interval(app.read(right).key_by("k"), after="10ms", combine=combine).write(
        gp.to_list(results)
    )
    flow = FlowDriver(app)
    flow.send_all(left, gp.Message({"k": 1}, 0), gp.Message({"k": 1}, 1))
    flow.send_all(right, gp.Message({"k": 1, "n": 5}, 2), gp.Message({"k": 1, "n": 7}, 3))
    flow.stop()

    assert sorted(row["n"] for row in results) == [5, 5, 7, 7]


def test_an_answer_that_is_kept_is_not_shared() -> None:
    app, results = gp.StreamApp("asked"), list[Any]()

    async def ask(key: str) -> dict[str, str]:
        return {"name": key}

    keys = app.read(gp.collection([{"k": "a"}] * 3))
    named = keys.lookup(ask, key="k", combine=lambda _, answer: answer, cache=10)
    named.map(lambda answer: answer.pop("name")).write(gp.to_list(results))
    Simulation(app).run()

    assert results == ["a", "a", "a"]
