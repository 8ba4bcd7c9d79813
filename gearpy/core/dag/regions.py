"""Regions: the connected parts of a dag, each of which restarts as a whole."""

from gearpy.core.dag.graph import Dag
from gearpy.ids import ProcessorId


def regions_of(dag: Dag) -> tuple[tuple[ProcessorId, ...], ...]:
    """Return the processors of each connected part, all in topological order.

    No record can get from one part to another. A part's number is its place here; it depends on
    the dag alone.
    """
    parts: list[set[ProcessorId]] = []
    for start in dag.order:
        if not any(start in part for part in parts):
            parts.append(_connected_to(start, dag))
    return tuple(tuple(pid for pid in dag.order if pid in part) for part in parts)


def _connected_to(start: ProcessorId, dag: Dag) -> set[ProcessorId]:
    found: set[ProcessorId] = set()
    waiting = [start]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += [*dag.upstream(pid), *dag.downstream(pid)]
    return found
