"""The physical plan as data."""

import gearpy as gp
from gearpy.task.stages.plan import PhysicalPlan, physical_plan


def a_plan() -> PhysicalPlan:
    app = gp.StreamApp("app", parallelism=2)
    rows = app.read(gp.collection([{"n": 1}], partitions=2), name="rows")
    columns = rows.map_batches(lambda batch: batch, schema={"n": int}, name="columns")
    sums = columns.key_by("n").window(gp.tumbling("1s")).sum("n", name="sums")
    sums.write(gp.jsonl_folder("out"), name="out")
    app.read(gp.collection([1]), name="alone").write(gp.console(), name="console")
    return physical_plan(app.build())


def test_processors_have_their_steps() -> None:
    plan = a_plan()

    assert (plan.name, plan.tasks, plan.regions) == ("app", 5, 2)
    steps = {step.id: step for each in plan.processors for step in each.steps}
    assert {name: (step.takes, step.gives) for name, step in steps.items()} == {
        "rows": ("rows", "rows"),
        "rows.table": ("rows", "columns"),
        "columns": ("columns", "columns"),
        "sums.partial": ("columns", "columns"),
        "sums": ("columns", "columns"),
        "out": ("columns", "columns"),
        "alone": ("rows", "rows"),
        "console": ("rows", "rows"),
    }
    assert steps["sums"].keeps == "sum(n) by n in tumbling 1 s, from columns"
    assert not steps["columns"].keeps


def test_edges_say_what_travels() -> None:
    (edge,) = a_plan().edges

    assert (edge.spread, edge.form) == ("by n", "columns")


def test_paths_have_their_weakest_link() -> None:
    paths = {each.sink: each for each in a_plan().paths}

    assert paths["jsonl_folder(out)"].guarantee == "exactly-once"
    assert not paths["jsonl_folder(out)"].weakest_link
    assert paths["console"].guarantee == "at-least-once"
    assert paths["console"].weakest_link.startswith("console writes again")


def test_steps_that_are_alike_are_told() -> None:
    app = gp.StreamApp("app")
    numbers = app.read(gp.collection([1]))
    numbers.key_by(str).count()
    numbers.key_by(repr).count()

    ((first, second),) = physical_plan(app.build()).alike

    assert second == f"{first}-2"


def test_a_graph_of_processors_has_a_plan() -> None:
    graph = gp.Graph().connect(gp.Processor(gp.Task, name="a"), gp.Processor(gp.Task, name="b"))

    plan = physical_plan(gp.StreamApplication("app", graph))

    assert [each.steps[0].id for each in plan.processors] == ["a", "b"]
    assert [each.spread for each in plan.edges] == ["hash"]
