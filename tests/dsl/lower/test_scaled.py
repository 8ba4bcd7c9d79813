"""Programs that are built with other numbers of tasks than they say."""

import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.messages.summaries import ScaleBounds


def test_a_step_is_scaled_by_id_or_name() -> None:
    app = gp.StreamApp("scaled", parallelism=2)
    keyed = app.read(gp.collection([1, 2, 3]), name="numbers").key_by(abs)
    keyed.count(name="count").map(str, name="text").write(gp.to_list([]), name="show")
    before, after = app.build().dag, app.scaled({"count": 5}).dag

    tasks = {step.id: spec.parallelism for spec in after.processors.values() for step in spec.steps}
    ids = {step.id for spec in before.processors.values() for step in spec.steps}
    assert tasks.keys() == ids
    assert (tasks["numbers"], tasks["count"], tasks["text"]) == (1, 5, 5)
    assert app.scaled({}).dag.structural_hash() == before.structural_hash()


def test_all_mistakes_of_a_scale_are_told() -> None:
    app = gp.StreamApp("scaled")
    app.read(gp.collection([1]), name="numbers").write(gp.to_list([]), name="show")

    with pytest.raises(ConfigError) as raised:
        app.scaled({"nobody": 2, "show": 0})

    assert [*raised.value.mistakes] == [
        "no step is called 'nobody': take one of numbers, show",
        "step 'show' cannot have 0 tasks: give it 1 or more",
    ]


def test_a_step_that_autoscale_may_scale_has_tasks_of_its_own() -> None:
    app = gp.StreamApp("scaled")
    read = app.read(gp.collection([1, 2, 3]), name="numbers")
    read.map(abs, name="abs").scale(1, 8, busy=0.5).map(str, name="text").write(gp.to_list([]))

    once, twice = app.build().dag, app.scaled({"abs": 2}).dag

    chains = [[step.name for step in once.processors[pid].steps] for pid in once.order]
    assert [each[:2] for each in chains] == [["numbers"], ["abs", "text"]]
    assert [twice.processors[pid].parallelism for pid in twice.order] == [1, 2]
    assert [step.bounds for step in once.processors[once.order[1]].steps] == [
        ScaleBounds(least=1, most=8, busy=0.5),
        None,
        None,
    ]


def test_mistakes_of_bounds_are_told() -> None:
    app = gp.StreamApp("scaled")
    stream = app.read(gp.collection([1]), name="numbers", late="side")

    with pytest.raises(ConfigError, match="at most 1 tasks are fewer than at least 2"):
        stream.scale(2, 1)
    with pytest.raises(ConfigError, match="a side output has no tasks"):
        stream.late.scale(1, 2)
