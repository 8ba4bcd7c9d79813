"""What autoscale may choose for a step: from a text, and in a graph."""

from dataclasses import replace

import pytest

from gearpy.core.dag.graph import Dag
from gearpy.core.scaling.bounds import bounds_by_id, bounds_in, bounds_text, with_bounds
from gearpy.errors import ConfigError
from gearpy.messages.summaries import ScaleBounds
from tests.core.scaling.scaling_build import COUNT, READ, a_dag


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("count=1..8", ScaleBounds(least=1, most=8)),
        ("count=2..2@60%", ScaleBounds(least=2, most=2, busy=0.6)),
        ("count=1..8@90", ScaleBounds(least=1, most=8, busy=0.9)),
    ],
)
def test_bounds_are_read_from_a_text(text: str, bounds: ScaleBounds) -> None:
    assert bounds_in(text) == ("count", bounds)
    assert bounds_in(f"count={bounds_text(bounds)}") == ("count", bounds)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("count", "count: write a step and its tasks, as in count=1..8"),
        ("count=4", "count=4: write a step and its tasks"),
        ("count=0..4", "step 'count' cannot have 0 tasks"),
        ("count=4..2", "step 'count': at most 2 tasks are fewer than at least 4"),
        ("count=1..2@99%", "busy for 99% of their time: give from 10% to 90%, which is 0.1 to 0.9"),
        ("count=1..2@0%", "busy for 0% of their time: give from 10% to 90%"),
        ("count=1..2@100%", "busy for 100% of their time: give from 10% to 90%"),
    ],
)
def test_mistakes_are_told(text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake.replace(".", r"\.")):
        bounds_in(text)


def test_a_dag_gets_bounds_by_name_or_id_of_a_step() -> None:
    one, two = ScaleBounds(least=1, most=2), ScaleBounds(least=3, most=4)

    assert with_bounds(a_dag(), [("count", one)]).processors[COUNT].steps[0].bounds == one
    dag = with_bounds(a_dag(), [("count-1", one), ("count-1", two)])
    assert dag.processors[COUNT].steps[0].bounds == two
    assert dag.structural_hash() == a_dag().structural_hash()
    with pytest.raises(ConfigError, match="no step is called 'cuont': take one of read, count-1"):
        with_bounds(a_dag(), [("cuont", one)])


@pytest.mark.parametrize("partitions", ['["a", "b"]', '2 partitions, "a" to "b", SHA-256 0'])
def test_a_source_gets_no_more_tasks_than_it_has_partitions(partitions: str) -> None:
    """The change would be refused when it is wanted, and nobody be told."""
    dag = a_dag()
    read = replace(dag.processors[READ], partitions=partitions)
    dag = Dag(dag.version, {**dag.processors, READ: read}, dag.edges)

    assert bounds_by_id(dag, [bounds_in("read=1..2"), bounds_in("count=1..9")])
    with pytest.raises(ConfigError, match=r"'read': at most 3 .* give 2 or fewer"):
        bounds_by_id(dag, [bounds_in("read=1..3")])
