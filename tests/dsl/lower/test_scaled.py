"""Programs that are built with other numbers of tasks than they say."""

import pytest

import gearpy as gp
from gearpy.errors import ConfigError


def test_a_step_is_scaled_by_id_or_name() -> None:
    """With what follows it in its chain; the rest, and all ids, stay as they are."""
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
    """With the steps that there are."""
    app = gp.StreamApp("scaled")
    app.read(gp.collection([1]), name="numbers").write(gp.to_list([]), name="show")

    with pytest.raises(ConfigError) as raised:
        app.scaled({"nobody": 2, "show": 0})

    assert [*raised.value.mistakes] == [
        "no step is called 'nobody': take one of numbers, show",
        "step 'show' cannot have 0 tasks: give it 1 or more",
    ]
