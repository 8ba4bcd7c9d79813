"""From the plan as it was written to the one that runs: conversions, and steps in several parts.

Where a step takes rows of columns, they are converted once: in the task that makes them, if their
key is a function, or if several steps need rows; else in the task that takes them, since columns
travel for less.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gearpy.core.window.windows import GlobalWindows, TumblingWindows
from gearpy.dsl.plan.columns import Kind, aggregates_columns, kind_given, kind_taken, schema_of
from gearpy.dsl.plan.nodes import (
    AggregateNode,
    BatchNode,
    JoinNode,
    Key,
    MergeAggregateNode,
    MergeCountNode,
    Node,
    PartialAggregateNode,
    PartialCountNode,
    ProcessNode,
    RowNode,
    RowsNode,
    SideNode,
    TableNode,
)
from gearpy.task.aggregates.row_count import key_of_part
from gearpy.task.chain.fused import RowOperator
from gearpy.task.joins.streams import as_left, as_right

__all__ = ["physical"]


def physical(nodes: Sequence[Node], parallelism: int = 1) -> list[Node]:
    """Return the plan as it runs, where this is the parallelism of steps that do not say otherwise.

    Steps whose inputs are others now are copies; ``origin`` of a node has the step that was
    written, where this is not the same.
    """
    plan = _Plan(nodes, parallelism)
    for node in nodes:
        plan.place(node)
    return plan.placed


class _Plan:
    """The plan as it will run, as far as it was placed."""

    def __init__(self, nodes: Sequence[Node], parallelism: int) -> None:
        self._nodes = nodes
        self._parallelism = parallelism
        self.placed: list[Node] = []
        self._now: dict[Node, Node] = {}  # What stands for a step.
        self._given: dict[Node, Kind] = {}  # What it gives.
        self._conversions: dict[Node, list[RowsNode | TableNode]] = {}

    def place(self, node: Node) -> None:
        """Place a step whose inputs are placed."""
        given = [self._kind_of(source) for source in node.inputs]
        taken = kind_taken(node, given)
        inputs = tuple(self._ready(source, node, taken) for source in node.inputs)
        if aggregates_columns(node, given):
            assert isinstance(node, AggregateNode)
            now = self._in_two_parts(node, inputs)
        elif isinstance(node, AggregateNode) and self._counts_in_parts(node, given):
            now = self._count_in_parts(node, inputs)
        else:
            if isinstance(node, JoinNode):
                inputs = self._wrapped(node, inputs)
            now = node if inputs == node.inputs else _changed(node, inputs=inputs)
        self._now[node] = self._add(now, kind_given(node, taken))

    def _add(self, node: Node, kind: Kind) -> Node:
        self.placed.append(node)
        self._given[node] = kind
        return node

    def _of(self, node: Node) -> Node:
        """Return what stands for a step, or for another output of it."""
        if not isinstance(node, SideNode):
            return self._now[node]
        maker = self._now[node.inputs[0]]
        return node if maker is node.inputs[0] else _changed(node, inputs=(maker,))

    def _kind_of(self, node: Node) -> Kind:
        if isinstance(node, SideNode):  # Set aside one by one.
            return "rows"
        return self._given[self._now[node]]

    def _ready(self, source: Node, reader: Node, taken: Kind) -> Node:
        """Return what gives the records of a step as its reader takes them."""
        if self._kind_of(source) == taken:
            return self._of(source)
        if isinstance(reader, BatchNode):
            schema = reader.takes or schema_of(source)
            return self._once(
                TableNode(name="table", inputs=(self._of(source),), schema=schema), "table"
            )
        rows = RowsNode(name="rows", inputs=(self._of(source),), schema=schema_of(source))
        if self._is_shared(source, reader):
            return self._once(rows, "rows")
        return self._add(replace(rows, key=reader.key, parallelism=reader.parallelism), "rows")

    def _is_shared(self, source: Node, reader: Node) -> bool:
        """Tell whether columns become rows where they are made, for all that need rows."""
        row_readers = [
            node
            for node in self._nodes
            if source in node.inputs and kind_taken(node, ["table"] * len(node.inputs)) == "rows"
        ]
        return (
            len(row_readers) > 1
            or isinstance(reader, ProcessNode)
            or len(reader.inputs) > 1
            or (reader.key is not None and not reader.key.columns)
        )

    def _once(self, node: RowsNode | TableNode, kind: Kind) -> Node:
        """Add a conversion, unless there is the same already."""
        for known in self._conversions.setdefault(node.inputs[0], []):
            if type(known) is type(node) and known.schema == node.schema:
                return known
        self._conversions[node.inputs[0]].append(node)
        return self._add(node, kind)

    def _wrapped(self, node: JoinNode, inputs: Sequence[Node]) -> tuple[Node, ...]:
        """Let the records of a join say which side they are of, and their key."""
        wraps = (as_left(node.left_key.function), as_right(node.right_key.function))
        return tuple(
            self._add(
                RowNode(
                    name=f"{side} of {node.name}",
                    kind=side,
                    inputs=(source,),
                    operator=RowOperator("map", f"{side} of {node.name}", wrap),
                    origin=node,
                ),
                "rows",
            )
            for side, source, wrap in zip(("left", "right"), inputs, wraps, strict=True)
        )

    def _counts_in_parts(self, node: AggregateNode, given: list[Kind]) -> bool:
        """Tell whether rows are counted before they are sent to several tasks.

        Where there is one, all records come to it in any case, and it counts as fast as they come.
        """
        (source,) = node.inputs
        return (
            given == ["rows"]
            and node.key is not None
            and (node.parallelism or self._parallelism) > 1
            and [each.kind for each in node.aggregates.values()] == ["count"]
            and isinstance(node.windows, TumblingWindows | GlobalWindows)
            and node.windows.is_plain
            and node.late == "drop"
            and not isinstance(source, ProcessNode | SideNode)
            and sum(source in each.inputs for each in self._nodes) == 1
        )

    def _count_in_parts(self, node: AggregateNode, inputs: tuple[Node, ...]) -> Node:
        """Let rows be counted where they are."""
        assert node.key is not None
        partial = PartialCountNode(name=f"partial {node.name}", inputs=inputs, of=node, origin=node)
        return MergeCountNode(
            name=node.name,
            given=node.given,
            inputs=(self._add(partial, "rows"),),
            parallelism=node.parallelism,
            key=Key(key_of_part),
            of=node,
            origin=node,
        )

    def _in_two_parts(self, node: AggregateNode, inputs: tuple[Node, ...]) -> Node:
        """Let tables be aggregated before they are sent to the tasks of the keys."""
        partial = PartialAggregateNode(
            name=f"partial {node.name}", inputs=inputs, of=node, origin=node
        )
        return MergeAggregateNode(
            name=node.name,
            given=node.given,
            inputs=(self._add(partial, "table"),),
            parallelism=node.parallelism,
            key=node.key,
            of=node,
            origin=node,
        )


def _changed(node: Any, **changes: Any) -> Any:
    return replace(node, **changes, origin=node.origin or node)
