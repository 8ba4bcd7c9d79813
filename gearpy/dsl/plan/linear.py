"""The way from a source to a sink as a plan that another engine can run, or why it cannot.

Taken are bounded sources, functions over records and over batches, and aggregates of windows of
event time; every other step is refused by name. What a step does beside, as logging, belongs to
the stream: `inspect` and `log` are passed over.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gearpy.core.window.trigger import phases_of
from gearpy.core.window.windows import CountWindows, Windows
from gearpy.dsl.plan.columns import schema_of
from gearpy.dsl.plan.nodes import (
    AggregateNode,
    AsyncNode,
    BatchNode,
    BranchNode,
    DistinctNode,
    FoldNode,
    JoinNode,
    LogNode,
    MergeNode,
    Node,
    ProcessNode,
    ReadNode,
    RowNode,
    SideNode,
    StateNode,
    TableJoinNode,
    WriteNode,
)
from gearpy.errors import ConfigError
from gearpy.spark.query.plan import BatchStep, GroupStep, LinearPlan, RowsStep, Step
from gearpy.task.chain.fused import RowOperator

__all__ = ["linear_plan", "linear_plans", "path_to", "sink_of"]

#: Why a step has no counterpart in a query over all records at once.
_REASONS: Final[dict[type[Node], str]] = {
    MergeNode: "it joins several streams, and the query goes from one source to one sink",
    JoinNode: "it reads two streams, and the query goes from one source to one sink",
    TableJoinNode: "it reads a table beside the stream: join the frames in Spark",
    BranchNode: "it gives several streams: use filter(...) for each of them",
    DistinctNode: "which record of a key comes first depends on the order in which they come",
    StateNode: "what it gives depends on the order in which the records of a key come",
    AsyncNode: "coroutines run in gearpy's event loop only: use map(...)",
    ProcessNode: "a task of one's own runs in gearpy only: it has state, timers and a clock",
}
_ENDLESS: Final = (
    "its source has no end, or does not say that it has one: give it a limit, or take some of its "
    "records with gear verify --records N"
)
_TIED: Final = frozenset({"first", "last", "collect"})


def linear_plans(app: str, nodes: Sequence[Node], *, endless: bool = False) -> list[LinearPlan]:
    """Return the plan of each sink of a program.

    Args:
        app: name of the application.
        nodes: the steps as they were written.
        endless: take a source without an end, too: somebody will cut it.

    Raises:
        ConfigError: names every step that cannot be in such a plan, and why.
    """
    sinks = [node for node in nodes if isinstance(node, WriteNode)]
    if not sinks:
        raise ConfigError(f"application {app!r} writes nothing: end a stream with .write(...)")
    return [_plan(app, sink, endless=endless) for sink in sinks]


def linear_plan(app: str, nodes: Sequence[Node], sink: str | int | None = None) -> LinearPlan:
    """Return the plan of one sink.

    Args:
        app: name of the application.
        nodes: the steps as they were written.
        sink: its name, or its number from 0; None: there is only one.

    Raises:
        ConfigError: there is no such sink, or its plan is refused.
    """
    return _plan(app, sink_of(app, nodes, sink), endless=False)


def sink_of(app: str, nodes: Sequence[Node], sink: str | int | None) -> WriteNode:
    """Return the step that writes into a sink.

    Raises:
        ConfigError: there is none of this name or number, or several and none was named.
    """
    sinks = [node for node in nodes if isinstance(node, WriteNode)]
    shown = ", ".join(f"{at} ({node.name})" for at, node in enumerate(sinks)) or "none"
    if sink is None and len(sinks) == 1:
        return sinks[0]
    if sink is None:
        raise ConfigError(f"application {app!r} has {len(sinks)} sinks, say which: {shown}")
    found = [n for at, n in enumerate(sinks) if sink in {at, n.name} and type(sink) is not bool]
    if len(found) != 1:
        raise ConfigError(f"application {app!r} has no one sink {sink!r}: there are {shown}")
    return found[0]


def path_to(sink: WriteNode) -> list[Node]:
    """Return the steps from the source to a sink; before a step with several inputs it ends."""
    path: list[Node] = [sink]
    while len(path[-1].inputs) == 1:
        path.append(path[-1].inputs[0])
    return path[::-1]


def _plan(app: str, sink: WriteNode, *, endless: bool) -> LinearPlan:
    path = path_to(sink)
    mistakes = [f"{sink.name}: {each}" for each in _mistakes(path, endless=endless)]
    if mistakes:
        raise ConfigError(*mistakes)
    source, *steps, _ = path
    assert isinstance(source, ReadNode)
    return LinearPlan(
        app=app,
        sink=sink.name,
        source=source.source,
        steps=tuple(_fused(_steps(steps))),
        gives=schema_of(sink.inputs[0]),
    )


# -- what is refused -------------------------------------------------------------------------------


def _mistakes(path: Sequence[Node], *, endless: bool) -> Iterator[str]:
    is_grouped = False
    for node in path:
        reason = _reason(node, is_grouped=is_grouped, endless=endless)
        if reason:
            yield f"{node.kind or 'step'} {node.name!r}{_place(node)} has no Spark query: {reason}"
        is_grouped = is_grouped or isinstance(node, AggregateNode | FoldNode)


def _reason(node: Node, *, is_grouped: bool, endless: bool) -> str:
    if isinstance(node, ReadNode):
        return "" if node.source.bounded or endless else _ENDLESS
    if isinstance(node, SideNode):
        if isinstance(node.inputs[0], BranchNode):
            return ""  # The branch itself is told of.
        return f"it is a side output ({node.tag}), and a query over all records has none"
    if isinstance(node, AggregateNode | FoldNode):
        return _reason_of_group(node, is_grouped=is_grouped)
    return _REASONS.get(type(node), "")


def _reason_of_group(node: AggregateNode | FoldNode, *, is_grouped: bool) -> str:
    if node.windows is None:
        return "it gives a result after every record: add .window(...), such as gp.global_window()"
    tied = _tied(node) if is_grouped else ""
    if tied:
        return (
            f"{tied} depends on the order in which the results of the windows before come, "
            "which have the same time"
        )
    return _reason_of_windows(node.windows)


def _reason_of_windows(windows: Windows) -> str:
    if isinstance(windows, CountWindows):
        return "what is in a count window depends on the order in which records come"
    if windows.clock != "event":
        return "its windows are of wall time, and a query over all records has none"
    early, _ = phases_of(windows.trigger)
    if early is not None:
        return "its trigger puts out results before windows close, and the query has the last only"
    return ""


def _tied(node: AggregateNode | FoldNode) -> str:
    if isinstance(node, FoldNode):
        return ""
    return next((str(each) for each in node.aggregates.values() if each.kind in _TIED), "")


def _place(node: Node) -> str:
    """Return where the function of a step is written, if the user wrote one that tells."""
    function = _function_of(node)
    is_own = str(getattr(function, "__module__", "")).startswith("gearpy.")
    code = getattr(function, "__code__", None)
    return "" if code is None or is_own else f" ({code.co_filename}:{code.co_firstlineno})"


def _function_of(node: Node) -> Any:
    for name in ("operator", "function", "task"):
        found = getattr(node, name, None)
        if found is not None:
            function = getattr(found, "function", found)
            return getattr(function, "__init__", None) if isinstance(function, type) else function
    if isinstance(node, BranchNode):
        return next(iter(node.predicates.values()))
    return None if node.key is None or node.key.columns else node.key.function


# -- what is taken ---------------------------------------------------------------------------------


def _steps(nodes: Sequence[Node]) -> Iterator[Step]:
    for node in nodes:
        takes = schema_of(node.inputs[0])
        if isinstance(node, RowNode) and node.kind != "inspect":
            yield RowsStep(operators=(node.operator,), takes=takes)
        elif isinstance(node, BatchNode):
            yield BatchStep(
                name=node.name,
                function=node.function,
                form=node.form,
                times=node.times,
                takes=node.takes or takes,
                gives=node.gives,
            )
        elif isinstance(node, AggregateNode | FoldNode):
            yield _group(node)
        else:
            assert isinstance(node, LogNode | RowNode), "the others were refused"


def _group(node: AggregateNode | FoldNode) -> GroupStep:
    assert node.windows is not None, "checked before"
    fold = node.fold if isinstance(node, FoldNode) else None
    return GroupStep(
        name=node.name,
        windows=node.windows,
        key=None if node.key is None else node.key.function,
        columns=() if node.key is None else node.key.columns,
        aggregates={} if isinstance(node, FoldNode) else node.aggregates,
        is_single=isinstance(node, AggregateNode) and node.is_single,
        fold=fold,
        takes=schema_of(node.inputs[0]),
    )


def _fused(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield the steps, functions over records that follow each other as one."""
    rows: list[RowOperator] = []
    first: RowsStep | None = None
    for step in steps:
        if isinstance(step, RowsStep):
            first = first or step
            rows += step.operators
            continue
        if first is not None:
            yield RowsStep(operators=tuple(rows), takes=first.takes)
        rows, first = [], None
        yield step
    if first is not None:
        yield RowsStep(operators=tuple(rows), takes=first.takes)
