"""What there is to tell of each step of the plan that runs."""

from collections.abc import Mapping, Sequence

from gearpy.core.dag.graph import StepSpec
from gearpy.dsl.plan.columns import Kind, schema_of
from gearpy.dsl.plan.kept import kept_by, key_text
from gearpy.dsl.plan.nodes import (
    BatchNode,
    JoinNode,
    MergeCountNode,
    MergeNode,
    Node,
    PartialAggregateNode,
    ProcessNode,
    ReadNode,
    SideNode,
    TableJoinNode,
    TableNode,
)
from gearpy.dsl.plan.order import order_of

__all__ = ["step_specs"]

_WORDS: dict[Kind, str] = {"rows": "rows", "table": "columns"}


def step_specs(placed: Sequence[Node], ids: Mapping[Node, str]) -> dict[Node, StepSpec]:
    """Return what each step is.

    Args:
        placed: the plan that runs.
        ids: of its steps.
    """
    gives: dict[Node, Kind] = {}
    specs: dict[Node, StepSpec] = {}
    for node in placed:
        taken = _taken(node, gives)
        gives[node] = _given(node, taken)
        specs[node] = StepSpec(
            id=ids[node],
            name=node.name,
            kind=node.kind,
            keeps=kept_by(node),
            key=_key(node),
            takes=_WORDS[taken],
            gives=_WORDS[gives[node]],
            is_whole=isinstance(node, ProcessNode),
            order=order_of(node),
        )
    return specs


def _taken(node: Node, gives: Mapping[Node, Kind]) -> Kind:
    if not node.inputs:
        return _given(node, "rows")
    kinds: set[Kind] = {
        "rows" if isinstance(source, SideNode) else gives[source] for source in node.inputs
    }
    return "table" if kinds == {"table"} else "rows"


def _given(node: Node, taken: Kind) -> Kind:
    if isinstance(node, ReadNode):
        return "rows" if schema_of(node) is None else "table"
    if isinstance(node, BatchNode | TableNode | PartialAggregateNode):
        return "table"
    return taken if isinstance(node, MergeNode | TableJoinNode) else "rows"


def _key(node: Node) -> str:
    if isinstance(node, JoinNode | TableJoinNode):
        return " = ".join(dict.fromkeys((key_text(node.left_key), key_text(node.right_key))))
    return key_text(node.of.key if isinstance(node, MergeCountNode) else node.key)
