"""What a step is, and what it keeps over restarts, as text that is alike in every process.

Says nothing of functions: they may be rewritten, renamed and moved while their steps stay what
they are. Two steps whose texts differ cannot go on from each other's state.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gearpy.core.window.aggregates import Aggregate
from gearpy.core.window.trigger import AfterWatermark
from gearpy.core.window.windows import (
    CountWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    Windows,
)
from gearpy.dsl.plan.keys import ITSELF
from gearpy.dsl.plan.nodes import (
    AggregateNode,
    AsyncNode,
    BranchNode,
    DistinctNode,
    FoldNode,
    JoinNode,
    Key,
    MergeAggregateNode,
    MergeCountNode,
    Node,
    ProcessNode,
    ReadNode,
    StateNode,
    TableJoinNode,
    WriteNode,
)

__all__ = ["kept_by", "key_text", "structure_of", "windows_text"]

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))


def structure_of(node: Node) -> str:
    """Return what a step as it was written is, beside its kind."""
    match node:
        case ReadNode():
            return f"{type(node.source).__qualname__} {node.source.description}"
        case WriteNode():
            return f"{type(node.sink).__qualname__} {node.sink.description}"
        case BranchNode():
            return ", ".join([*node.predicates, node.default or ""])
        case ProcessNode():
            return getattr(node.task, "__qualname__", type(node.task).__qualname__)
    return kept_by(node)


def kept_by(node: Node) -> str:
    """Return what a step that runs keeps, and in which form; empty for nothing."""
    text = _KEPT.get(type(node))
    return "" if text is None else text(node)


def key_text(key: Key | None) -> str:
    """Return what records come together by; empty if they need not."""
    if key is None:
        return ""
    if key.columns:
        return ", ".join(key.columns)
    return "the record" if key is ITSELF else "a function"


def windows_text(windows: Windows) -> str:
    """Return which windows these are; what is as it is by default is left out."""
    parts = [_shape(windows)]
    if windows.clock != "event":
        parts.append(f"{windows.clock} time")
    if windows.trigger != AfterWatermark():
        parts.append(f"fires {windows.trigger}")
    if windows.accumulation != "discarding":
        parts.append(windows.accumulation)
    if windows.allowed_lateness_ms:
        parts.append(f"allows {_span(windows.allowed_lateness_ms)}")
    return ", ".join(parts)


def _shape(windows: Windows) -> str:
    match windows:
        case TumblingWindows():
            return f"tumbling {_span(windows.size_ms)}{_offset(windows.offset_ms)}"
        case SlidingWindows():
            every = f"sliding {_span(windows.size_ms)} every {_span(windows.every_ms)}"
            return f"{every}{_offset(windows.offset_ms)}"
        case SessionWindows():
            return f"session gap {_span(windows.gap_ms)}"
        case CountWindows():
            return f"count {windows.records}"
        case GlobalWindows():
            return "global"
    return repr(windows)


def _offset(offset_ms: int) -> str:
    return f" offset {_span(offset_ms)}" if offset_ms else ""


def _span(span_ms: int) -> str:
    for unit_ms, name in _UNITS:
        if span_ms % unit_ms == 0 and span_ms:
            return f"{span_ms // unit_ms} {name}"
    return f"{span_ms} ms"


def _by(key: Key | None) -> str:
    return f" by {key_text(key)}" if key is not None else ""


def _in(windows: Windows | None) -> str:
    return f" in {windows_text(windows)}" if windows is not None else ""


def _aggregated(node: AggregateNode) -> str:
    return f"{_aggregates(node.aggregates)}{_by(node.key)}{_in(node.windows)}"


def _aggregates(aggregates: Mapping[str, Aggregate]) -> str:
    return ", ".join(
        text if name == each.kind else f"{name}={text}"
        for name, each in aggregates.items()
        for text in [_aggregate(each)]
    )


def _aggregate(each: Aggregate) -> str:
    of = each.of if isinstance(each.of, str) else "" if each.of is None else "a function"
    option = str(each.option) if each.option else ""
    return f"{each.kind}({', '.join(filter(None, (option, of)))})"


_KEPT: Final[Mapping[type[Node], Callable[[Any], str]]] = {
    AggregateNode: _aggregated,
    AsyncNode: lambda _: "records in flight",
    DistinctNode: lambda node: f"what has passed{_by(node.key)}",
    FoldNode: lambda node: f"one value{_by(node.key)}{_in(node.windows)}",
    JoinNode: lambda node: f"{node.spec.description}, {_of_both(node)}",
    MergeAggregateNode: lambda node: f"{_aggregated(node.of)}, from columns",
    MergeCountNode: lambda node: _aggregated(node.of),
    ProcessNode: lambda node: f"what its task keeps{_by(node.key)}",
    ReadNode: lambda node: f"places in {type(node.source).__qualname__}",
    StateNode: lambda node: f"a value{_by(node.key)}",
    TableJoinNode: lambda _: "which table it was",
    WriteNode: lambda node: f"what {type(node.sink).__qualname__} has written",
}


def _of_both(node: JoinNode) -> str:
    left, right = key_text(node.left_key), key_text(node.right_key)
    return f"by {left}" if left == right else f"by {left} and {right}"
