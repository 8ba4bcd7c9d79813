"""Which steps see the order in which records of a key come, and which order that is."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from gearpy.core.window.aggregates import Aggregate
from gearpy.core.window.trigger import phases_of
from gearpy.core.window.windows import CountWindows, Windows
from gearpy.dsl.plan.nodes import (
    AggregateNode,
    DistinctNode,
    FoldNode,
    JoinNode,
    MergeAggregateNode,
    Node,
    ProcessNode,
    StateNode,
    sources_of,
)

__all__ = ["Order", "order_of", "waits_for_order"]

#: What a step goes by that sees more than which records there are.
Order: TypeAlias = Literal["", "event time", "arrival", "wall time"]

#: Joins of which the results tell in which order records of a key came.
_JOINS: Final = ("window", "cogroup", "asof", "latest")
#: Aggregates that tell it of records in one window.
_AGGREGATES: Final = ("collect", "custom")


def order_of(node: Node) -> Order:
    """Return by what order a step of the plan gets its records; empty where it sees none."""
    windows = getattr(node, "windows", None)
    if isinstance(windows, Windows) and windows.clock == "processing":
        return "wall time"
    if isinstance(node, MergeAggregateNode):  # Whole tables are taken together, as they come.
        return "arrival" if _lists(node.of.aggregates.values()) else ""
    if not _sees_order(node):
        is_early = isinstance(windows, Windows) and phases_of(windows.trigger)[0] is not None
        return "arrival" if is_early else ""
    keys = (node.left_key, node.right_key) if isinstance(node, JoinNode) else (node.key,)
    if any(key is not None and not key.is_ordered for key in keys):
        return "arrival"
    if isinstance(node, ProcessNode) and node.key is None:
        return "arrival"
    is_by_arrival = all(read.source.is_by_arrival for read in sources_of(node))
    return "arrival" if is_by_arrival else "event time"


def waits_for_order(node: Node) -> bool:
    """Tell whether records of a step wait for event time, to come in its order."""
    return order_of(node) == "event time"


def _of_windows(windows: Windows, aggregates: Iterable[Aggregate]) -> bool:
    """Tell whether aggregates over windows see the order of the records."""
    return isinstance(windows, CountWindows) or any(each.kind in _AGGREGATES for each in aggregates)


def _lists(aggregates: Iterable[Aggregate]) -> bool:
    return any(each.kind == "collect" for each in aggregates)


def _sees_order(node: Node) -> bool:
    match node:
        case ProcessNode() | StateNode() | DistinctNode():
            return True
        case FoldNode():
            return True
        case JoinNode():
            return node.spec.kind in _JOINS
        case AggregateNode():
            return node.windows is None or _of_windows(node.windows, node.aggregates.values())
    return False
