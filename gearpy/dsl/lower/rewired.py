"""A program with other sources and sinks: what its streams give is gathered in lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gearpy.connectors.memory import to_list
from gearpy.dsl.lower.lower import lower
from gearpy.dsl.plan.nodes import AggregateNode, FoldNode, Node, ReadNode, SideNode, WriteNode
from gearpy.messages.data import Message
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import Source
from gearpy.task.time.late import LATE

__all__ = ["Gathering", "gathering"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """A program that gathers what it gives.

    Attributes:
        application: what to run, in this process.
        written: by sink, in the order of the program: the records with their event times.
        late: by the name of a step: the late records that it left out, if that was asked for.
    """

    application: StreamApplication
    written: tuple[list[Message], ...]
    late: Mapping[str, list[Message]]


def gathering(
    name: str,
    nodes: Sequence[Node],
    *,
    parallelism: int,
    sources: Mapping[Source, Source],
    late: Literal["as written", "keep", "gather"] = "as written",
) -> Gathering:
    """Return a program that gathers what goes to the sinks of another one.

    Args:
        name: of the application.
        nodes: the steps as they were written.
        parallelism: of steps that do not say otherwise.
        sources: what is read instead of a source.
        late: what becomes of late records: as the program says; sources leave them to the windows
            ("keep"); or they are gathered, too.
    """
    maker = _Maker(sources, late)
    for node in _read_by_sinks(nodes):
        maker.place(node)
    application = lower(name, maker.nodes, parallelism=parallelism)
    return Gathering(application=application, written=tuple(maker.written), late=maker.late)


class _Maker:
    """Copies the steps of a program."""

    def __init__(self, sources: Mapping[Source, Source], late: str) -> None:
        self.nodes: list[Node] = []
        self.written: list[list[Message]] = []
        self.late: dict[str, list[Message]] = {}
        self._sources = sources
        self._policy = late
        self._now: dict[Node, Node] = {}

    def place(self, node: Node) -> None:
        """Copy a step whose inputs were copied."""
        changes: dict[str, Any] = {"inputs": tuple(self._of(each) for each in node.inputs)}
        if isinstance(node, ReadNode):
            changes["source"] = self._sources.get(node.source, node.source)
        elif isinstance(node, WriteNode):
            self.written.append([])
            changes |= {"sink": to_list(self.written[-1], messages=True), "dispatcher": "default"}
        gathers = self._policy == "gather" and _may_find_late(node)
        if gathers:
            changes["late"] = "side"
        elif self._policy == "keep" and isinstance(node, ReadNode):
            changes["late"] = "keep"
        made = replace(node, **changes)
        self._now[node] = made
        self.nodes.append(made)
        if gathers:
            self._gather_late(made)

    def _of(self, node: Node) -> Node:
        if not isinstance(node, SideNode):
            return self._now[node]
        return replace(node, inputs=(self._now[node.inputs[0]],))

    def _gather_late(self, made: Node) -> None:
        found = self.late.setdefault(made.name, [])
        side = SideNode(name=f"late of {made.name}", inputs=(made,), tag=LATE)
        sink = to_list(found, messages=True)
        self.nodes.append(WriteNode(name=f"late of {made.name}", inputs=(side,), sink=sink))


def _may_find_late(node: Node) -> bool:
    if isinstance(node, FoldNode | AggregateNode):
        return node.windows is not None
    return isinstance(node, ReadNode)


def _read_by_sinks(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the steps from which something comes to a sink."""
    needed: set[Node] = set()
    for node in reversed(nodes):
        if isinstance(node, WriteNode) or node in needed:
            needed.add(node)
            needed |= {_maker(each) for each in node.inputs}
    return (node for node in nodes if node in needed)


def _maker(node: Node) -> Node:
    """Return the step that makes the records of a node."""
    return node.inputs[0] if isinstance(node, SideNode) else node
