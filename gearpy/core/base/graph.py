"""Order, levels and mistakes of a directed graph: plain functions over vertices and edges.

Every answer depends only on the order in which vertices and edges are given, never on a
hash, so that two processes that build one graph number it alike. Gearpump: `Graph`.
"""

from collections.abc import Hashable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from gearpy.errors import GraphError

V = TypeVar("V", bound=Hashable)


def topological_order(vertices: Sequence[V], edges: Iterable[tuple[V, V]]) -> list[V]:
    """Return the vertices so that every edge points forward.

    Of several vertices that could come next, the one given first does.
    Gearpump: `Graph.topologicalOrderIterator`.

    Raises:
        GraphError: there is a cycle; the text shows it as ``a -> b -> a``.
    """
    known = list(edges)
    order = _sorted_part(vertices, known)
    if len(order) < len(vertices):
        cycle = find_cycle(vertices, known)
        assert cycle is not None, "vertices left over without a cycle"
        raise GraphError(f"the graph has a cycle: {' -> '.join(map(str, cycle))}")
    return order


def _sorted_part(vertices: Sequence[V], edges: Iterable[tuple[V, V]]) -> list[V]:
    position = {vertex: place for place, vertex in enumerate(vertices)}
    waiting = dict.fromkeys(vertices, 0)
    targets: dict[V, list[V]] = {vertex: [] for vertex in vertices}
    for source, target in edges:
        waiting[target] += 1
        targets[source].append(target)
    ready = [position[vertex] for vertex in vertices if not waiting[vertex]]
    heapify(ready)
    order: list[V] = []
    while ready:
        vertex = vertices[heappop(ready)]
        order.append(vertex)
        for target in targets[vertex]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, position[target])
    return order


def find_cycle(vertices: Sequence[V], edges: Iterable[tuple[V, V]]) -> list[V] | None:
    """Return one cycle as ``[a, b, ..., a]``, or None where there is none.

    Gearpump: `Graph.hasCycle`, which only says whether there is one.
    """
    known = list(edges)
    sorted_part = set(_sorted_part(vertices, known))
    source_of = {target: source for source, target in known if source not in sorted_part}
    start = next((vertex for vertex in vertices if vertex not in sorted_part), None)
    if start is None:
        return None
    # Whatever could not be sorted has a source that could not either, so that a walk
    # against the edges must come back to where it was.
    walk = [start]
    while source_of[walk[-1]] not in walk:
        walk.append(source_of[walk[-1]])
    cycle = walk[walk.index(source_of[walk[-1]]) :][::-1]
    first = cycle.index(min(cycle, key=vertices.index))
    return [*cycle[first:], *cycle[:first], cycle[first]]


def levels(vertices: Sequence[V], edges: Iterable[tuple[V, V]]) -> dict[V, int]:
    """Return for every vertex the length of the longest path that leads to it.

    An edge always goes from a lower to a higher level.
    Gearpump: `Graph.vertexHierarchyLevelMap`.
    """
    known = list(edges)
    order = topological_order(vertices, known)
    targets: dict[V, list[V]] = {vertex: [] for vertex in vertices}
    for source, target in known:
        targets[source].append(target)
    found = dict.fromkeys(order, 0)
    for vertex in order:
        for target in targets[vertex]:
            found[target] = max(found[target], found[vertex] + 1)
    return found


def duplicate_edges(edges: Iterable[tuple[V, V]]) -> list[tuple[V, V]]:
    """Return each edge that is there more than once, once. Gearpump: `Graph.hasDuplicatedEdge`."""
    seen: set[tuple[V, V]] = set()
    twice: dict[tuple[V, V], None] = {}
    for edge in edges:
        if edge in seen:
            twice[edge] = None
        seen.add(edge)
    return list(twice)


def unknown_vertices(vertices: Iterable[V], edges: Iterable[tuple[V, V]]) -> list[V]:
    known = set(vertices)
    return list(dict.fromkeys(end for edge in edges for end in edge if end not in known))
