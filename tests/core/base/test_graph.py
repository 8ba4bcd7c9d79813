"""Order, levels and mistakes of directed graphs."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base import graph
from gearpy.errors import GraphError

pairs = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20)


def test_of_two_that_could_come_next_the_first_given_does() -> None:
    order = graph.topological_order(["z", "a", "m"], [("a", "m")])

    assert order == ["z", "a", "m"]


def test_cycle_is_refused_by_name() -> None:
    edges = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t")]

    with pytest.raises(GraphError, match="a -> b -> a"):
        graph.topological_order(["s", "a", "b", "t"], edges)


def test_each_duplicate_edge_is_named_once() -> None:
    assert graph.duplicate_edges([(1, 2), (1, 2), (2, 3), (1, 2)]) == [(1, 2)]


@given(pairs)
def test_either_every_edge_points_forward_or_there_is_a_real_cycle(
    edges: list[tuple[int, int]],
) -> None:
    """The invariant of the module: sorted, or a proof that it cannot be."""
    vertices = list(range(8))

    cycle = graph.find_cycle(vertices, edges)

    if cycle is None:
        order = graph.topological_order(vertices, edges)
        level = graph.levels(vertices, edges)
        assert sorted(order) == vertices
        assert all(order.index(source) < order.index(target) for source, target in edges)
        assert all(level[source] < level[target] for source, target in edges)
    else:
        assert cycle[0] == cycle[-1]
        assert set(itertools.pairwise(cycle)) <= set(edges)
        assert len(set(cycle)) == len(cycle) - 1
