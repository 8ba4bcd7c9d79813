"""Promises of Gearpump's `GraphSpec`."""

import pytest

from gearpy.core.base import graph
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.errors import GraphError
from gearpy.ids import ProcessorId

VERTICES = ["a", "b", "c", "d", "e"]
EDGES = [("a", "b"), ("b", "c"), ("a", "d"), ("d", "c"), ("c", "e")]


def test_topological_order_of_an_acyclic_graph() -> None:
    """`GraphSpec`: topological order iterator on an acyclic graph."""
    order = graph.topological_order(VERTICES, EDGES)

    assert all(order.index(source) < order.index(target) for source, target in EDGES)


def test_level_map_grows_along_every_edge() -> None:
    """`GraphSpec`: hierarchy level map for every vertex."""
    level = graph.levels(VERTICES, EDGES)

    assert level == {"a": 0, "b": 1, "d": 1, "c": 2, "e": 3}


def test_cycle_is_detected() -> None:
    """`GraphSpec`: cycle detection, here with the cycle itself."""
    assert graph.find_cycle(VERTICES, EDGES) is None
    assert graph.find_cycle(VERTICES, [*EDGES, ("e", "d")]) == ["c", "e", "d", "c"]


def test_cyclic_graph_has_no_order() -> None:
    """`GraphSpec` sorts cyclic graphs too; gearpy refuses them (deviation)."""
    with pytest.raises(GraphError, match="c -> e -> d -> c"):
        graph.topological_order(VERTICES, [*EDGES, ("e", "d")])


def test_duplicated_edges_are_detected() -> None:
    """`GraphSpec`: duplicated edge detection."""
    assert graph.duplicate_edges(EDGES) == []
    assert graph.duplicate_edges([*EDGES, ("a", "b")]) == [("a", "b")]


def test_empty_graph_has_an_empty_order() -> None:
    """`GraphSpec`: operations on an empty graph do not fail."""
    nothing: list[str] = []

    assert graph.topological_order(nothing, []) == []
    assert graph.levels(nothing, []) == {}


def test_application_graph_refuses_duplicate_edges() -> None:
    """`StreamApplication` refuses duplicated edges when it is made."""
    processors = [ProcessorSpec(id=ProcessorId(pid), name=str(pid)) for pid in (0, 1)]
    edge = EdgeSpec(source=ProcessorId(0), target=ProcessorId(1))

    with pytest.raises(GraphError, match="more than one edge 0 -> 1"):
        Dag.build(processors, [edge, edge])
