"""Promises of Gearpump's `PlannerSpec`: what chains with what, and how edges are spread.

Deviations. Gearpump refuses to chain some pairs of operators and fails; here any two steps
chain whose records need not move between tasks. Its group-by is a processor that holds an
operator for each group; here the step behind `key_by` runs where the records of a key meet.
"""

import gearpy as gp
from gearpy.dsl.application import StreamApp


def plan(app: StreamApp) -> tuple[list[str], dict[tuple[int, int], str]]:
    application = app.build()
    names = [application.dag.processors[pid].name for pid in application.dag.order]
    return names, {(edge.source, edge.target): edge.partitioner for edge in application.dag.edges}


def test_plan_is_chained() -> None:
    """`PlannerSpec`: source / group-by, window, flat map, reduce / processor / sink."""
    app = StreamApp("planner", parallelism=2)
    (
        app.read(gp.collection([1], partitions=2), name="source")
        .key_by(lambda number: number % 2)
        .window(gp.global_window())
        .reduce(max, name="reduce")
        .flat_map(lambda result: [result.value], name="flat map")
        .process(gp.Task, name="processor")
        .write(gp.to_list([]), name="sink")
    )

    names, partitioners = plan(app)

    assert names == ["source", "reduce > flat map", "processor", "sink"]
    assert partitioners == {(0, 1): "group-by", (1, 2): "co-location", (2, 3): "co-location"}


def test_any_order_of_steps_chains() -> None:
    """`OpSpec` has pairs that cannot be chained; here a window's results are mapped in its task."""
    app = StreamApp("planner")
    (
        app.read(gp.collection([1]), name="source")
        .map(str, name="map")
        .window(gp.global_window())
        .count(name="count")
        .map(str, name="again")
        .write(gp.to_list([]), name="sink")
    )

    assert plan(app) == (["source > map > count > again > sink"], {})
