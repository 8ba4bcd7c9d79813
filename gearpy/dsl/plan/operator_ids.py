"""Ids of steps, which stay the same while a program changes around them; functions of the plan.

A name that was given is the id. Any other step has one that is derived from what the step is and
from which sources and grouping steps its records come; of steps that are alike in that, the first
in the program has the number 1. Steps that keep nothing and pass records on, such as `map`, do not
count on that way: to add one, or to take one away, leaves the ids behind it as they are.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from gearpy.dsl.plan.kept import structure_of
from gearpy.dsl.plan.nodes import (
    BatchNode,
    BranchNode,
    JoinNode,
    LogNode,
    MergeAggregateNode,
    MergeCountNode,
    MergeNode,
    Node,
    PartialAggregateNode,
    PartialCountNode,
    RowNode,
    RowsNode,
    SideNode,
    TableNode,
)
from gearpy.errors import ConfigError

__all__ = ["operator_ids", "step_ids"]

_DIGEST_CHARS: Final = 8
_CHARS_MAX: Final = 60
#: What can be part of the name of a state as it is.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. ()<>=,:+*/-]*")
_PASSING: Final = (RowNode, BatchNode, LogNode, BranchNode)


def operator_ids(nodes: Sequence[Node]) -> dict[Node, str]:
    """Return the id of each step of a plan as it was written.

    Raises:
        ConfigError: a name was given to two steps.
    """
    _check_given(nodes)
    taken = {_of_name(node.given) for node in nodes if node.given}
    ids: dict[Node, str] = {}
    from_: dict[Node, str] = {}  # What tells where the records of a step come from.
    times: Counter[str] = Counter()
    for node in nodes:
        if node.given:
            ids[node] = _of_name(node.given)
        else:
            derived = _derived(node, from_)
            times[derived] += 1
            ids[node] = _numbered(derived, times, taken)
        from_[node] = _origin(node, from_) if isinstance(node, _PASSING) else ids[node]
        if isinstance(node, MergeNode):
            from_[node] = _origin(node, from_)
    return ids


def step_ids(placed: Sequence[Node], ids: Mapping[Node, str]) -> dict[Node, str]:
    """Return the id of each step of the plan that runs; the parts of one begin with its id.

    Args:
        placed: the plan that runs.
        ids: of the steps as they were written.
    """
    found: dict[Node, str] = {}
    times: Counter[str] = Counter()
    for node in placed:
        name = _of_part(node, ids, found)
        times[name] += 1
        found[node] = name if times[name] == 1 else f"{name}-{times[name]}"
    return found


def _of_part(node: Node, ids: Mapping[Node, str], found: Mapping[Node, str]) -> str:
    if node in ids:
        return ids[node]
    if isinstance(node, RowsNode | TableNode):
        (source,) = node.inputs
        return f"{found[_maker(source)]}.{node.kind}"
    assert node.origin is not None, "whatever else runs stands for what was written"
    name = ids[node.origin]
    if isinstance(node, MergeAggregateNode | MergeCountNode):
        return name
    is_part = isinstance(node, PartialAggregateNode | PartialCountNode) or (
        isinstance(node.origin, JoinNode) and isinstance(node, RowNode)
    )
    return f"{name}.{node.kind}" if is_part else name


def _derived(node: Node, from_: Mapping[Node, str]) -> str:
    text = "\n".join((node.kind, structure_of(node), *_origins(node, from_)))
    return f"{node.kind}-{sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]}"


def _numbered(derived: str, times: Counter[str], taken: set[str]) -> str:
    while True:
        number = times[derived]
        name = derived if number == 1 else f"{derived}-{number}"
        if name not in taken:
            return name
        times[derived] += 1


def _origins(node: Node, from_: Mapping[Node, str]) -> list[str]:
    found = [_origin_of(source, from_) for source in node.inputs]
    return sorted(found) if isinstance(node, MergeNode) else found


def _origin(node: Node, from_: Mapping[Node, str]) -> str:
    """Return from where the records come that a step passes on."""
    return " ".join(sorted(set(_origins(node, from_))))


def _origin_of(node: Node, from_: Mapping[Node, str]) -> str:
    if isinstance(node, SideNode):
        return f"{from_[_maker(node)]}@{node.tag}"
    return from_[node]


def _maker(node: Node) -> Node:
    return node.inputs[0] if isinstance(node, SideNode) else node


def _of_name(given: str) -> str:
    """Return the id of a step with a name: that name, if state can be named so."""
    if len(given) <= _CHARS_MAX and _PLAIN.fullmatch(given):
        return given
    return f"name-{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _check_given(nodes: Sequence[Node]) -> None:
    times = Counter(node.given for node in nodes if node.given)
    twice = [
        f"{count} steps have the name {name!r}: what they keep is found by it, "
        "so give each a name of its own"
        for name, count in times.items()
        if count > 1
    ]
    if twice:
        raise ConfigError(*twice)
