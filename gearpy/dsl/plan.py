"""What a user wrote, as immutable nodes; inputs come before what reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gearpy.core.window import WindowAssigner
from gearpy.task.aggregate import Fold
from gearpy.task.api import Sink, Source
from gearpy.task.application import TaskFactory
from gearpy.task.fused import RowOperator
from gearpy.task.late import SourceLate, WindowLate
from gearpy.task.stateful import StateFunction

__all__ = [
    "FoldNode",
    "MergeNode",
    "Node",
    "ProcessNode",
    "ReadNode",
    "RowNode",
    "SideNode",
    "StateNode",
    "WriteNode",
]

Dispatcher: TypeAlias = Literal["default", "shared", "pinned"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Node:
    """One step. ``parallelism`` None means: as its input, or the application's."""

    name: str
    inputs: "tuple[Node, ...]" = ()
    parallelism: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadNode(_Node):
    """Records of a source."""

    source: Source
    late: SourceLate = "keep"
    idle_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowNode(_Node):
    """A function over single records."""

    operator: RowOperator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldNode(_Node):
    """An aggregation by key (None: over all records), running or per window."""

    key: Callable[[Any], Any] | None
    windows: WindowAssigner | None
    fold: Fold
    late: WindowLate = "drop"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateNode(_Node):
    """A function over single records and what was kept for their key."""

    key: Callable[[Any], Any]
    function: StateFunction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeNode(_Node):
    """The records of several streams, in the order they come."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideNode(_Node):
    """What its input sets aside under a tag. No step of its own, only another of its outputs."""

    tag: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessNode(_Node):
    """A user's task; with a key, all records of one key go to the same of its tasks."""

    task: TaskFactory
    key: Callable[[Any], Any] | None = None
    dispatcher: Dispatcher = "default"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteNode(_Node):
    """Records go to a sink."""

    sink: Sink
    dispatcher: Dispatcher = "default"


Node: TypeAlias = (
    ReadNode | RowNode | FoldNode | StateNode | MergeNode | SideNode | ProcessNode | WriteNode
)
