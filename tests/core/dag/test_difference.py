"""What two graphs differ in, told so that a person can find the cause."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.difference import graph_difference
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import ProcessorId


def a_dag(*parallelisms: int, partitioner: str = "hash", partitions: str = "") -> Dag:
    specs = [
        ProcessorSpec(id=ProcessorId(i), name=f"step{i}", parallelism=n, kind="jobs.Step")
        for i, n in enumerate(parallelisms)
    ]
    specs[0] = replace(specs[0], partitions=partitions)
    edges = [
        EdgeSpec(source=ProcessorId(i), target=ProcessorId(i + 1), partitioner=partitioner)
        for i in range(len(specs) - 1)
    ]
    return Dag(0, {spec.id: spec for spec in specs}, tuple(edges))


def difference(one: Dag, other: Dag) -> str:
    return graph_difference(one.description, other.description, theirs="executor 2")


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            a_dag(1, 2),
            a_dag(1, 3),
            "executor 2 has `1 step1 x3 (jobs.Step)`, the app master `1 step1 x2 (jobs.Step)`",
        ),
        (
            a_dag(1, 1),
            a_dag(1, 1, partitioner="shuffle"),
            "executor 2 has `0 -> 1 shuffle`, the app master `0 -> 1 hash`",
        ),
        (
            a_dag(1, partitions='["a", "b"]'),
            a_dag(1, partitions='["a"]'),
            (
                'executor 2 has `0 step0 x1 (jobs.Step) reads ["a"]`, '
                'the app master `0 step0 x1 (jobs.Step) reads ["a", "b"]`'
            ),
        ),
        (
            a_dag(1, 1),
            a_dag(1),
            "executor 2 has no `1 step1 x1 (jobs.Step)`; executor 2 has no `0 -> 1 hash`",
        ),
        (
            a_dag(1),
            a_dag(1, 1),
            (
                "executor 2 has `1 step1 x1 (jobs.Step)`, which the app master has not; "
                "executor 2 has `0 -> 1 hash`, which the app master has not"
            ),
        ),
    ],
)
def test_the_difference_names_both_sides(one: Dag, other: Dag, told: str) -> None:
    assert difference(one, other) == told


def test_of_long_lines_the_place_is_shown() -> None:
    text = graph_difference([f"0 {'a' * 900} x1"], [f"0 {'a' * 900} x2"])

    assert "x1..." in text
    assert "x2..." in text
    assert len(text) < 800


@given(st.lists(st.text()), st.lists(st.text()))
def test_whatever_was_sent_can_be_compared(expected: list[str], got: list[str]) -> None:
    """Invariant: lines come from another process; none of them is an error here."""
    assert graph_difference(expected, expected) == ""
    assert isinstance(graph_difference(expected, got), str)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_graphs_differ_in_text_when_they_do_in_hash(
    parallelisms: list[int], data: st.DataObject
) -> None:
    """Invariant: the error text is never empty."""
    partitions = st.sampled_from(["", '["a"]', '["a", "b"]'])
    one = a_dag(*parallelisms, partitions=data.draw(partitions))
    others = st.lists(st.integers(1, 3), min_size=1, max_size=4)
    other = a_dag(*data.draw(others), partitions=data.draw(partitions))

    assert bool(difference(one, other)) == (one.structural_hash() != other.structural_hash())
